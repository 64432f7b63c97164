//! `trimbench suite`.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use ::lab::Launcher;
use experiments::suite::log::{Head, Log, SCHEMA, Writer};
use experiments::suite::{
    Asked, Plan, Raid0, Results, Selection, Stage, Target, perform, select, sheet,
};
use progress::Progress;
use record::units::names::shown as shown_path;
use record::units::settings::Section;
use record::units::{bytes, counted};
use report::sheet::text;
use storage::making::Kind;

use crate::commands::lab::up::launcher;
use crate::commands::suite::args::{Details, SuiteArgs, SuiteCommand, SuiteFormat};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::output::Sink;
use crate::{card, signals, simulated};

pub(crate) mod args;
mod progress;

/// Carries out the command.
pub(crate) fn run(args: &SuiteArgs) -> Result<Exit, Error> {
    match &args.command {
        Some(SuiteCommand::Report {
            file,
            format,
            output,
        }) => {
            write_shown(&Log::read(file)?, *format, output.as_deref())?;
            Ok(Exit::Done)
        }
        None => measured(args),
    }
}

fn measured(args: &SuiteArgs) -> Result<Exit, Error> {
    let details = details(args)?;
    let target = target(args, &details)?;
    let mut selection = select(&args.cells, args.quick, Kind::available)?;
    if !rustix::process::geteuid().is_root() {
        return Err(usage(
            "trimbench suite needs root, for it makes file systems and mounts them: run it with sudo",
        ));
    }
    let drive = target.drive()?;
    if let Target::Raid0(raid0) = &target {
        selection.notes.push(raid0.note());
    }
    let discards_per_s = target.discards_per_s();
    let (head, plan) = head(args, &details, &selection, drive, discards_per_s)?;
    selection
        .notes
        .extend(plan.too_fast(&head.drive, discards_per_s));
    if args.dry_run {
        intentions(&plan, &selection, &head, Stream::Out);
        return Ok(Exit::Done);
    }
    let people = Stream::Out;
    let stop = signals::stop_flag()?;
    // It ends a simulated drive with this process.
    let mut launcher = launcher()?;
    launcher.arguments.push("--with-parent".into());
    let (mut writer, log) = Writer::open(&args.output, &head)?;
    intentions(&plan, &selection, &head, people);
    let mut ended = Ok(());
    if !log.left().is_empty() {
        let done = plan.turns().len() - log.left().len();
        if !log.outcomes.is_empty() {
            let (file, turns) = (shown_path(&args.output), plan.turns().len() as u64);
            let turns = counted(turns, "turn");
            people.print(&format!(
                "Resumed: {file} has {done} of {turns} already (a turn takes a cell through a round).\n"
            ));
        }
        ended = performed(&target, &launcher, &log, &mut writer, &stop, people);
    }
    drop(writer);
    let log = Log::read(&args.output)?;
    let results = Results::of(&log);
    let interrupted = stop.load(Ordering::Relaxed);
    // Whatever ended it, what was measured is shown.
    people.print(&format!(
        "\n{}\nEach step is in {}; `trimbench suite report` shows it again.\n",
        tables(&log),
        shown_path(&args.output)
    ));
    match ended {
        Err(experiments::Error::Stopped) if interrupted => {
            Stream::Err.print(
                "trimbench suite: interrupted; nothing is mounted any more, and the same command \
                 goes on\n",
            );
            Ok(Exit::Interrupted)
        }
        Err(error) => Err(error.into()),
        Ok(()) if results.has_failures() => Ok(Exit::Failed),
        Ok(()) => Ok(Exit::Done),
    }
}

fn performed(
    target: &Target,
    launcher: &Launcher,
    log: &Log,
    writer: &mut Writer,
    stop: &std::sync::atomic::AtomicBool,
    people: Stream,
) -> Result<(), experiments::Error> {
    let stage = Stage::set(target, launcher, &log.head.plan)?;
    let mut progress = Progress::new(people);
    let ended = perform(&stage, launcher, log, writer, stop, &mut progress);
    progress.end();
    ended
}

/// The details, each of which does something.
fn details(args: &SuiteArgs) -> Result<Details, Error> {
    let details = Details::of(&args.set).map_err(Error::Usage)?;
    let in_lab = details.lab_size.is_some() || details.lab_slower.is_some();
    let without = |key: &str, option: &str| {
        Err(usage(format!(
            "--set: {key} only does something with {option}: leave it out, or add that"
        )))
    };
    match (args.on_file, &args.lab) {
        (None, _) if details.dir.is_some() => without("dir", "--on-file"),
        (_, None) if in_lab => without("lab-size and lab-slower", "--lab"),
        _ => Ok(details),
    }
}

fn target(args: &SuiteArgs, details: &Details) -> Result<Target, Error> {
    let whole = |bytes: u64| bytes / record::units::MIB * record::units::MIB;
    let raw = args.device.iter().chain(args.raid0.iter().flatten());
    let raw: Vec<&PathBuf> = raw.collect();
    for path in &raw {
        let there = std::fs::metadata(path);
        there.map_err(|e| usage(format!("{}: {e}; give a block device", shown_path(path))))?;
    }
    if !raw.is_empty() && !args.destroy_data {
        let devices: Vec<String> = raw.into_iter().map(shown_path).collect();
        return Err(usage(format!(
            "{}: the suite makes file systems there again and again, which destroys all data: \
             say so with --destroy-data, or use --on-file SIZE or --lab PROFILE",
            devices.join(" and ")
        )));
    }
    match (&raw[..], args.on_file, &args.lab) {
        ([first, second], _, _) => {
            let paths = [first, second].map(|path| path.to_path_buf());
            Ok(Target::Raid0(Raid0::new(paths, args.force)))
        }
        ([path], _, _) => Ok(Target::Device {
            path: path.to_path_buf(),
            force: args.force,
        }),
        (_, Some(size_bytes), _) => Ok(Target::File {
            directory: details.dir(),
            size_bytes: whole(size_bytes),
        }),
        (_, None, Some(profile)) => Ok(Target::Lab {
            card: Box::new(card::named(profile)?),
            size_bytes: whole(details.lab_size()),
            slower: details.lab_slower(),
            lab: simulated::here(),
        }),
        (_, None, None) => Err(usage(
            "there is nothing to run on: name a DEVICE, or use --raid0, --on-file SIZE or --lab PROFILE",
        )),
    }
}

fn head(
    args: &SuiteArgs,
    details: &Details,
    selection: &Selection,
    drive: experiments::suite::log::Drive,
    discards_per_s: Option<f64>,
) -> Result<(Head, Plan), Error> {
    let asked = Asked {
        cells: selection.cells.clone(),
        steps: args.steps.clone(),
        files: details.files,
        size_bytes: details.size,
        writers: details.writers,
        repeats: details.repeats,
        quick: args.quick,
        discards_per_s,
    };
    let plan = Plan::new(&asked, drive.size_bytes())?;
    let head = Head {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        origin: storage::origin(drive.paths()),
        drive,
        plan: plan.clone(),
    };
    Ok((head, plan))
}

/// Prints the plan and its cost.
fn intentions(plan: &Plan, selection: &Selection, head: &Head, to: Stream) {
    let estimate = plan.estimate();
    let time = std::time::Duration::from_secs_f64(estimate.seconds);
    let cells = counted(plan.cells.len() as u64, "cell");
    let (rounds, files) = (
        counted(plan.rounds.into(), "round"),
        counted(plan.files.into(), "file"),
    );
    let (size, written) = (bytes(plan.file_bytes), bytes(estimate.written_bytes));
    let mut text = format!(
        "Suite on {}: {cells} in {rounds}, {files} of {size} each.\n\
         It writes about {written}, and takes about {} at 400 MB/s, beside the time of discards and \
         slow writes.\nCells: {}.\n",
        head.drive.words(),
        record::units::minutes(time),
        plan.cells.join(", ")
    );
    for note in &selection.notes {
        text += &format!("Note: {note}.\n");
    }
    to.print(&text);
}

/// The tables, as a terminal shows them.
fn tables(log: &Log) -> String {
    let width = Stream::Out.style().width.into();
    text(&sheet(&Results::of(log)), width)
}

/// Writes the results in one form.
fn write_shown(log: &Log, format: SuiteFormat, output: Option<&Path>) -> Result<(), Error> {
    let mut sink = Sink::open(output.unwrap_or(Path::new("-")))?;
    let results = Results::of(log);
    let bytes = match format {
        SuiteFormat::Text => tables(log).into_bytes(),
        SuiteFormat::Json => format!("{:#}\n", results.json()).into_bytes(),
    };
    sink.write(|to| to.write_all(&bytes))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn a_device_that_is_not_there_is_named_as_such_first() {
        let words = ["trimbench", "suite", "/nowhere/sdx"];
        let Command::Suite(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("another command");
        };
        let text = run(&args).unwrap_err().to_string();
        assert!(text.contains("/nowhere/sdx: No such file"), "{text}");
        assert!(!text.contains("--destroy-data"), "{text}");
    }
}
