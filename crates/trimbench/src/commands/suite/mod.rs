//! `trimbench suite`.

pub(crate) mod args;
mod progress;
mod shown;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use ::suite::log::{Head, Log, SCHEMA, Writer};
use ::suite::{
    Asked, Plan, Programs, Raid0, Results, Selection, Stage, SuiteError, Target, compare,
    comparison_sheet, perform, select,
};
use storage::making::Kind;
use units::names::shown as shown_path;
use units::settings::Section;

use crate::commands::suite::args::{Details, SuiteArgs, SuiteCommand};
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::output::Output;
use crate::{card, signals, simulated};
use progress::Progress;

/// Carries out the command.
pub(crate) fn run(args: &SuiteArgs) -> Result<Exit, Error> {
    match &args.command {
        Some(SuiteCommand::Report {
            file,
            format,
            output,
        }) => {
            shown::write(&Log::read(file)?, *format, output.as_deref())?;
            Ok(Exit::Done)
        }
        Some(SuiteCommand::Compare {
            first,
            second,
            json,
        }) => compared(first, second, json.as_deref()),
        None => measured(args),
    }
}

fn measured(args: &SuiteArgs) -> Result<Exit, Error> {
    let details = details(args)?;
    let target = target(args, &details)?;
    let mut selection = select(&args.cells, args.quick, Kind::available)?;
    if !rustix::process::geteuid().is_root() {
        return Err(Error::Usage(
            "trimbench suite needs root, for it makes file systems and mounts them: run it with \
             sudo"
                .to_owned(),
        ));
    }
    let drive = target.drive()?;
    if let Target::Raid0(raid0) = &target {
        selection.notes.push(raid0.note());
    }
    let discards_per_s = target.discards_per_s();
    let (head, plan) = head(args, &details, &selection, drive, discards_per_s)?;
    selection.notes.extend(plan.too_fast(discards_per_s));
    if args.dry_run {
        intentions(&plan, &selection, &head, Stream::Out);
        return Ok(Exit::Done);
    }
    let people = Stream::Out;
    let stop = signals::stop_flag()
        .map_err(|error| Error::Usage(format!("signals can't be caught: {error}")))?;
    let (mut writer, log) = Writer::open(&args.output, &head)?;
    intentions(&plan, &selection, &head, people);
    let mut ended = Ok(());
    if !log.left().is_empty() {
        let done = plan.turns().len() - log.left().len();
        if !log.outcomes.is_empty() {
            people.print(&format!(
                "Resumed: {} has {done} of {} already (a turn takes a cell through a round).\n",
                shown_path(&args.output),
                units::counted(plan.turns().len() as u64, "turn")
            ));
        }
        ended = performed(&target, &log, &mut writer, &stop, people);
    }
    drop(writer);
    let log = Log::read(&args.output)?;
    let results = Results::of(&log);
    let interrupted = stop.load(Ordering::Relaxed);
    // Whatever ended it, what was measured is shown.
    people.print(&format!(
        "\n{}\nEach step is in {}; `trimbench suite report` shows it again, also as a page.\n",
        shown::tables(&log),
        shown_path(&args.output)
    ));
    match ended {
        Err(SuiteError::Stopped) if interrupted => {
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
    log: &Log,
    writer: &mut Writer,
    stop: &std::sync::atomic::AtomicBool,
    people: Stream,
) -> Result<(), SuiteError> {
    let programs = programs().map_err(SuiteError::Failed)?;
    let stage = Stage::set(target, &programs, &log.head.plan)?;
    let mut progress = Progress::new(people);
    let ended = perform(&stage, &programs, log, writer, stop, &mut progress);
    progress.end();
    ended
}

/// This program, and how it serves a drive that ends with this process.
fn programs() -> Result<Programs, String> {
    let trimbench = std::env::current_exe()
        .map_err(|error| format!("can't tell where this program is: {error}"))?;
    let arguments = ["lab", "serve", "--with-parent"];
    Ok(Programs {
        launcher: ::lab::Launcher {
            program: trimbench.clone(),
            arguments: arguments.map(Into::into).to_vec(),
        },
        trimbench,
    })
}

/// The details, each of which does something.
fn details(args: &SuiteArgs) -> Result<Details, Error> {
    let details = Details::of(&args.set).map_err(Error::Usage)?;
    let in_lab = details.lab_size.is_some() || details.lab_slower.is_some();
    for (given, on, key, option) in [
        (
            details.dir.is_some(),
            args.on_file.is_some(),
            "dir",
            "--on-file",
        ),
        (
            in_lab,
            args.lab.is_some(),
            "lab-size and lab-slower",
            "--lab",
        ),
    ] {
        if given && !on {
            return Err(Error::Usage(format!(
                "--set: {key} only does something with {option}: leave it out, or add that"
            )));
        }
    }
    Ok(details)
}

fn target(args: &SuiteArgs, details: &Details) -> Result<Target, Error> {
    if let Some(paths) = &args.raid0 {
        return raid0(paths, args);
    }
    match (&args.device, args.on_file, &args.lab) {
        (Some(path), _, _) if args.destroy_data => Ok(Target::Device {
            path: path.clone(),
            force: args.force,
        }),
        (Some(path), _, _) => Err(unconfirmed(&shown_path(path))),
        (None, Some(size_bytes), _) => Ok(Target::File {
            directory: details.dir(),
            size_bytes: size_bytes / units::MIB * units::MIB,
        }),
        (None, None, Some(profile)) => Ok(Target::Lab {
            card: Box::new(card::named(profile)?),
            size_bytes: details.lab_size() / units::MIB * units::MIB,
            slower: details.lab_slower(),
            lab: simulated::here(),
        }),
        (None, None, None) => Err(Error::Usage(
            "there is nothing to run on: name a DEVICE, or use --raid0, --on-file SIZE or --lab PROFILE"
                .to_owned(),
        )),
    }
}

fn raid0(paths: &[PathBuf], args: &SuiteArgs) -> Result<Target, Error> {
    let [first, second] = paths else {
        return Err(Error::Usage("--raid0: give two devices".to_owned()));
    };
    match args.destroy_data {
        true => Ok(Target::Raid0(Raid0::new(
            [first.clone(), second.clone()],
            args.force,
        ))),
        false => Err(unconfirmed(&format!(
            "{} and {}",
            shown_path(first),
            shown_path(second)
        ))),
    }
}

fn unconfirmed(devices: &str) -> Error {
    Error::Usage(format!(
        "{devices}: the suite makes file systems there again and again, which destroys all data: \
         say so with --destroy-data, or use --on-file SIZE or --lab PROFILE"
    ))
}

fn head(
    args: &SuiteArgs,
    details: &Details,
    selection: &Selection,
    drive: ::suite::log::Drive,
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
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let head = Head {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        begun_unix_s: now.map_or(0.0, |now| now.as_secs_f64()),
        host: linux::host::describe(),
        drive,
        plan: plan.clone(),
    };
    Ok((head, plan))
}

/// Prints the plan and its cost.
fn intentions(plan: &Plan, selection: &Selection, head: &Head, to: Stream) {
    let estimate = plan.estimate();
    let time = std::time::Duration::from_secs_f64(estimate.seconds);
    let mut text = format!(
        "Suite on {}: {} in {}, {} of {} each.\n\
         It writes about {}, and takes about {} at 400 MB/s, beside the time of discards and slow \
         writes.\n",
        head.drive.words(),
        units::counted(plan.cells.len() as u64, "cell"),
        units::counted(plan.rounds.into(), "round"),
        units::counted(plan.files.into(), "file"),
        units::bytes(plan.file_bytes),
        units::bytes(estimate.written_bytes),
        units::minutes(time),
    );
    text += &format!("Cells: {}.\n", plan.cells.join(", "));
    for note in &selection.notes {
        text += &format!("Note: {note}.\n");
    }
    to.print(&text);
}

fn compared(first: &Path, second: &Path, json: Option<&Path>) -> Result<Exit, Error> {
    let to_stdout = json == Some(Path::new("-"));
    let file = json.filter(|_| !to_stdout).map(Output::open).transpose()?;
    let both = [Log::read(first)?, Log::read(second)?].map(|log| Results::of(&log));
    let names = [first, second].map(shown_path);
    let found = compare(names, [&both[0], &both[1]]);
    let value = serde_json::to_value(&found).unwrap_or_default();
    match to_stdout {
        true => Stream::Out.json(&value),
        false => {
            let width = Stream::Out.style().width.into();
            let text = report::sheet::text(&comparison_sheet(&found), width);
            Stream::Out.print(&text);
        }
    }
    if let Some(file) = file {
        file.json(&value)?;
    }
    Ok(Exit::Done)
}
