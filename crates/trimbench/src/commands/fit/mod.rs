//! `trimbench fit`.

pub(crate) mod args;
mod ladder;
pub(crate) mod made;
mod plans;
mod table;

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use bench::plan::Place;
use record::RunRecord;
use record::as_drive::{NotSlowed, slower};
use record::units::names;
use record::units::settings::Section;
use ssd::fit::{Fit, FitError};

use crate::commands::fit::args::{Details, FitArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::input;
use crate::output::Sink;

/// Carries out the command.
pub(crate) fn run(args: &FitArgs) -> Result<Exit, Error> {
    crate::output::refuse_dry(args.dry_run, "--output", args.output.as_deref())?;
    let card_to_stdout = args.output.as_ref().is_some_and(|p| p.as_os_str() == "-");
    let people = if card_to_stdout {
        Stream::Err
    } else {
        Stream::Out
    };
    let details = Details::of(&args.set).map_err(Error::Usage)?;
    let place = place(args)?;
    if args.dry_run && place.is_none() {
        return Err(Error::Usage(
            "--dry-run: records are only read; give a directory or a device to try".into(),
        ));
    }
    let mut card = args.output.as_deref().map(Sink::open).transpose()?;
    if let (Some(sink), Some(path)) = (&card, &args.output)
        && args.paths.iter().any(|record| sink.is(record))
    {
        return Err(Error::Usage(format!(
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
            .to_string();
        card.write(|to| to.write_all(text.as_bytes()))?;
        if let (Some(path), false) = (&args.output, card_to_stdout) {
            people.print(&next_step(&fit, path));
        }
    }
    Ok(Exit::Done)
}

/// Where the card is, and what it is good for.
fn next_step(fit: &Fit, path: &Path) -> String {
    let card = made::as_profile(path);
    match fit.only_bytes() {
        None => format!(
            "\nThe device card is in {card}; a drive that behaves so: trimbench lab up NAME \
             --profile {card}\n"
        ),
        Some(bytes) => format!(
            "\nThe device card is in {card}. It holds for discards of about {} alone.\n",
            record::units::bytes(bytes)
        ),
    }
}

/// A record in one time, which a card can be made of: simulated drives may be slower,
/// or faster, than what they stand for.
fn in_one_time(record: RunRecord) -> Result<RunRecord, Error> {
    slower(&record.head.devices)
        .map(|_| record)
        .map_err(no_one_time)
}

fn no_one_time(why: NotSlowed) -> Error {
    Error::Usage(FitError::from(why).to_string())
}

/// Where to climb a ladder; `None` where records are given.
fn place(args: &FitArgs) -> Result<Option<Place>, Error> {
    let device = |path: &Path| {
        path.metadata()
            .is_ok_and(|it| it.file_type().is_block_device())
    };
    match &args.paths[..] {
        [path] if device(path) && args.destroy_data => Ok(Some(Place::Device {
            path: path.clone(),
            force: args.force,
        })),
        paths if args.destroy_data || paths.iter().any(|path| device(path)) => {
            Err(Error::Usage(match paths {
                [path] if device(path) => format!(
                    "{}: a ladder destroys all data on a block device: say so with --destroy-data, \
                     or give a directory",
                    names::shown(path)
                ),
                paths => format!(
                    "--destroy-data: {}: give one block device alone, or leave the option out",
                    paths.first().map(names::shown).unwrap_or_default()
                ),
            }))
        }
        [path] if path.is_dir() => Ok(Some(Place::Directory(path.clone()))),
        paths => match paths.iter().find(|path| path.is_dir()) {
            Some(path) => Err(Error::Usage(format!(
                "{}: is a directory; give one alone to try it, or records alone",
                names::shown(path)
            ))),
            None => Ok(None),
        },
    }
}
