//! `trimbench lab up`.

use std::path::PathBuf;

use ::lab::{Info, Lab, LabError, Launcher, Spec};

use record::units::names;
use record::units::settings::Section;
use record::units::{GIB, MIB};
use ssd::Card;

use super::near::near;
use super::{card, show};
use crate::commands::lab::args::{DriveDetails, UpArgs};
use crate::console::Stream;
use crate::exit::{Error, usage};

/// A run needs so much room: 1 GiB that it leaves free, and two small files.
const SMALLEST_RUN: u64 = GIB + 64 * MIB;

/// The flash of a drive that is worn in, unless it is given.
const USUAL_FLASH: &str = "flash.geometry=16k 64 7% greedy";

/// Makes a drive; prints its device for a program, and what to do with it for a
/// person.
pub(super) fn up(lab: &Lab, args: &UpArgs) -> Result<(), Error> {
    let spec = spec(args)?;
    let limited = spec.store_limit_bytes;
    let info = lab.up(&spec, &launcher()?)?;
    Stream::Err.print(&next(lab, &info));
    let mut notes = lab.notes(&info.spec.name).unwrap_or_default();
    notes.extend(room(lab, &info, limited));
    notes.extend(near(&info));
    notes.extend(
        info.spec
            .card()
            .ok()
            .and_then(|card| card::of_one_size(&card)),
    );
    let notes = notes.iter().map(|note| format!("note: {note}\n"));
    Stream::Err.print(&notes.collect::<String>());
    let device = info.device.unwrap_or_default();
    Stream::Out.print(&format!("{}\n", names::shown(&device)));
    Ok(())
}

/// This program again, as the drive's server.
pub(crate) fn launcher() -> Result<Launcher, Error> {
    let program = std::env::current_exe()
        .map_err(|error| usage(format!("can't tell where this program is: {error}")))?;
    Ok(Launcher {
        program,
        arguments: vec!["lab".into(), "serve".into()],
    })
}

fn spec(args: &UpArgs) -> Result<Spec, Error> {
    let card = card::named(&args.profile)?;
    let (details, mut card) = set(&args.set, card)?;
    if details.aged() > 0.0 && card.figures().flash.is_none() {
        card = card
            .with(USUAL_FLASH)
            .map_err(|why| usage(why.to_string()))?;
    }
    let absolute = |path: &PathBuf| {
        std::path::absolute(path).map_err(|e| usage(format!("{}: {e}", names::shown(path))))
    };
    let mut spec = Spec::new(&args.name, &card, args.size);
    spec.premapped = details.premapped();
    spec.aged = details.aged();
    spec.volatile_cache = details.volatile_cache();
    spec.store = args.store.as_ref().map(absolute).transpose()?;
    spec.store_limit_bytes = details.store_limit;
    spec.keep = details.keep();
    spec.force = args.force;
    spec.sector_bytes = details.sector_bytes();
    spec.partscan = details.partscan();
    spec.slower = args.slower;
    spec.fs = args.fs;
    spec.mount = args.mount.as_ref().map(absolute).transpose()?;
    args.options.clone_into(&mut spec.options);
    spec.check().map_err(|error| match error {
        LabError::BadSpec { why } => usage(format!("there can be no drive with {why}")),
        error => error.into(),
    })?;
    Ok(spec)
}

/// Reads the settings: details of the drive, and figures of its card.
fn set(settings: &[String], card: Card) -> Result<(DriveDetails, Card), Error> {
    let key = |setting: &str| match setting.split_once('=') {
        Some((key, _)) => key.trim().to_owned(),
        None => setting.to_owned(),
    };
    let is_detail = |setting: &String| {
        let key = key(setting);
        DriveDetails::KEYS.iter().any(|own| own.name == key)
    };
    let (details, figures): (Vec<String>, Vec<String>) =
        settings.iter().cloned().partition(is_detail);
    let figures = figures.iter().map(String::as_str);
    let card = card.with_all(figures).map_err(|(figure, why)| {
        let why = why.or(DriveDetails::near(&key(figure)));
        usage(format!("--set {figure}: {why}"))
    })?;
    Ok((DriveDetails::of(&details).map_err(Error::Usage)?, card))
}

/// Returns a warning if the drive can't keep as much data as its size; otherwise `None`.
fn room(lab: &Lab, info: &Info, limited: Option<u64>) -> Option<String> {
    let spec = &info.spec;
    let most = record::units::bytes(lab.room(spec)?);
    let others = lab.names().map_or(0, |names| names.len().saturating_sub(1));
    let hint = match (&spec.store, limited) {
        (None, None) if others > 0 => format!(
            "half of the memory that is free and that no other drive may take ({} up). Take drives \
             down, or give --set store-limit=SIZE or --store FILE",
            record::units::counted(others as u64, "other drive")
        ),
        (None, None) => {
            "half of the free memory. --set store-limit=SIZE sets another limit, --store \
                         FILE keeps the data on a disk"
                .to_owned()
        }
        (None, Some(_)) => "its store-limit. --store FILE keeps the data on a disk".to_owned(),
        (Some(_), _) => "its limit, or all the space there is".to_owned(),
    };
    let size = record::units::bytes(spec.size_bytes);
    Some(format!(
        "of its {size} it keeps {most} of data at most, and writes beyond fail. That is {hint}"
    ))
}

/// Returns the drive's device and mounts, and the next steps.
fn next(lab: &Lab, info: &Info) -> String {
    let name = &info.spec.name;
    let run = match (info.mounts.first(), &info.device) {
        (Some(mount), _) => format!("trimbench run {}", names::shown(mount)),
        (None, Some(device)) => {
            let device = names::shown(device);
            format!("trimbench run --device {device} --destroy-data")
        }
        (None, None) => "trimbench run".to_owned(),
    };
    let lab_command = |words: &str| format!("trimbench lab {words}");
    let down = match info.spec.store {
        None => "takes it down; its data are gone",
        Some(_) => "takes it down; the store keeps its data",
    };
    let (exec, stats) = (format!("exec {name} -- COMMAND"), format!("stats {name}"));
    let mut steps = vec![
        (lab_command(&exec), "anything else, as its foreground"),
        (lab_command(&stats), "what the drive does"),
        (lab_command(&format!("down {name}")), down),
    ];
    // The run fits its sizes to the drive's room.
    if lab.left(&info.spec).is_none_or(|left| left >= SMALLEST_RUN) {
        steps.insert(0, (run, "does deleting stall it?"));
    }
    let width = steps.iter().map(|(step, _)| step.len()).max().unwrap_or(0);
    let mut text = show::line(info) + "\n";
    for (step, why) in steps {
        text += &format!("  {step:width$}  {why}\n");
    }
    text
}
