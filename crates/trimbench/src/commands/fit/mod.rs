//! `trimbench fit`.

pub(crate) mod args;
mod ladder;
pub(crate) mod made;
mod plans;
mod table;

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use bench::plan::Place;
use record::as_drive::{NotSlowed, slower};
use record::units::names;
use record::units::settings::Section;
use record::{Origin, RunRecord};
use ssd::fit::{Fit, FitError};

use crate::commands::fit::args::{Details, FitArgs};
use crate::exit::{Error, Exit, usage};
use crate::input;
use crate::output::Sink;

/// Carries out the command.
pub(crate) fn run(args: &FitArgs) -> Result<Exit, Error> {
    crate::output::refuse_dry(args.dry_run, "--output", args.output.as_deref())?;
    let details = Details::of(&args.set).map_err(Error::Usage)?;
    let place = place(args)?;
    if args.dry_run && place.is_none() {
        return Err(usage(
            "--dry-run: records are only read; give a directory or a device to try",
        ));
    }
    let mut card = Sink::named(&args.output)?;
    let people = Sink::people(&card);
    if let (Some(sink), Some(path)) = (&card, &args.output)
        && args.paths.iter().any(|record| sink.is(record))
    {
        return Err(usage(format!(
            "--output {}: is one of the records; give the card another name",
            names::shown(path)
        )));
    }
    let records: Vec<RunRecord> = match &place {
        Some(place) => match ladder::climb(place, args, &details, people)? {
            ladder::Climbed::Whole(records) => records,
            ladder::Climbed::Described => return Ok(Exit::Done),
            ladder::Climbed::Interrupted => return Ok(Exit::Interrupted),
        },
        None => {
            let read = |path| in_one_time(input::read(path)?.record);
            let paths = args.paths.iter();
            paths.map(|path| read(path)).collect::<Result<_, Error>>()?
        }
    };
    let all: Vec<&RunRecord> = records.iter().collect();
    let fit = ssd::fit::fit(&all)?;
    people.print(&table::of(&fit, &made::devices(&all)));
    if let Some(card) = &mut card {
        let text = fit
            .card(&made::of(&all, details.name.as_deref()))?
            .measured_by(Origin::of(&all[0].head))
            .to_string();
        card.write(|to| to.write_all(text.as_bytes()))?;
        if let (Some(path), false) = (&args.output, card.is_standard()) {
            people.print(&next_step(&fit, path));
        }
    }
    Ok(Exit::Done)
}

/// Where the card is, and what it is good for.
fn next_step(fit: &Fit, path: &Path) -> String {
    let card = made::as_profile(path);
    let more = match fit.only_bytes() {
        None => {
            format!("; a drive that behaves so: trimbench lab up NAME --profile {card} --size 8G")
        }
        Some(bytes) => {
            let bytes = record::units::bytes(bytes);
            format!(". It holds for discards of about {bytes} alone.")
        }
    };
    format!("\nThe device card is in {card}{more}\n")
}

/// A record in one time, which a card can be made of: simulated drives may be slower,
/// or faster, than what they stand for.
fn in_one_time(record: RunRecord) -> Result<RunRecord, Error> {
    slower(&record.head.devices)
        .map(|_| record)
        .map_err(no_one_time)
}

fn no_one_time(why: NotSlowed) -> Error {
    usage(FitError::from(why).to_string())
}

/// Where to climb a ladder; `None` where records are given.
fn place(args: &FitArgs) -> Result<Option<Place>, Error> {
    let is_device = |path: &PathBuf| {
        let kind = path.metadata().map(|metadata| metadata.file_type());
        kind.is_ok_and(|kind| kind.is_block_device())
    };
    let device = args.paths.iter().find(|path| is_device(path));
    let refused = |path: &Path, why: &str| Err(usage(format!("{}: {why}", names::shown(path))));
    match (&args.paths[..], args.destroy_data) {
        ([path], true) if device.is_some() => Ok(Some(Place::Device {
            path: path.clone(),
            force: args.force,
        })),
        ([path], false) if device.is_some() => refused(
            path,
            "a ladder destroys all data on a block device: say so with --destroy-data, or give a \
             directory",
        ),
        (paths, destroys) if destroys || device.is_some() => Err(usage(format!(
            "--destroy-data: {}: give one block device alone, or leave the option out",
            paths.first().map(names::shown).unwrap_or_default()
        ))),
        ([path], _) if path.is_dir() => Ok(Some(Place::Directory(path.clone()))),
        (paths, _) => match paths.iter().find(|path| path.is_dir()) {
            Some(path) => refused(
                path,
                "is a directory; give one alone to try it, or records alone",
            ),
            None => Ok(None),
        },
    }
}
