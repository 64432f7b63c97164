//! `trimbench fstrim`.

pub(crate) mod args;
mod halt;
mod install;
mod json;
mod messages;
mod unit_files;

use std::ffi::OsStr;
use std::path::Path;

use clap::Parser;
use diagnose::forecast::Forecast;
use linux::mounts::Mount;
use pace::{Policy, Work};
use reclaim::ReclaimError;
use reclaim::lease::Event;
use reclaim::throttle::Pacing;
use reclaim::trim::{
    FSTAB, MOUNTED, Part, Selected, Survey, Trim, TrimError, Trimmed, select, state_directory,
};
use ssd::Card;

use record::units::names;

use crate::cli::{Cli, Command};
use crate::commands;
use crate::commands::fstrim::args::{Details, FstrimArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::output::Sink;
use crate::{interference, signals};
use halt::Halt;
use messages::Printer;

/// The tables of a timer that names nothing else: those of the distributions' timer.
const LISTED: &str = "/etc/fstab:/proc/self/mountinfo";

/// The pieces in each second of a trim at a given rate.
const PIECES_PER_S: u64 = 10;

/// The result of one file system.
enum Outcome {
    /// Nothing was to be trimmed: it was looked at only.
    Looked,
    Trimmed(Box<Trimmed>),
    /// With the message.
    Unsupported(String),
    Failed(String),
    Interrupted,
}

/// Carries out the command.
pub(crate) fn run(args: &FstrimArgs) -> Result<Exit, Error> {
    if args.gain {
        return gain(args);
    }
    let details = Details::read(args).map_err(Error::Usage)?;
    if args.install_timer {
        return install::install(args, &details);
    }
    let card = args.goal.card()?;
    let stop = signals::stop_flag()?;
    let many = args.mounts.is_empty();
    let selected = selected(args)?;
    let file = Sink::named(&args.json)?;
    let mut printer = Printer::new(args, Sink::people(&file));
    if many && selected.is_empty() && !args.quiet {
        printer.note("no file system that is listed can be trimmed");
    }
    let origin = file
        .as_ref()
        .map(|_| storage::origin(selected.iter().map(|one| &one.path)));
    let mut sums = Sums::default();
    let place = details.lease.as_ref().filter(|_| !args.dry_run);
    let Some(halt) = Halt::with(stop, place, &mut |text| printer.note(text))? else {
        return Ok(Exit::Interrupted);
    };
    for one in &selected {
        sums.interrupted |= halt.is_due();
        // It is long since it was listed, where many are trimmed.
        if sums.interrupted || many && is_gone(&one.path) {
            continue;
        }
        let outcome = trim(one, args, &details, card.as_ref(), &halt, &mut printer);
        sums.add(&outcome, args, many);
        if let Err(why) = publish(one, &outcome, args, &halt) {
            printer.note(&why);
        }
        sums.all.push(json::file_system(one, &outcome, args));
    }
    let exit = match halt.lost().filter(|_| sums.interrupted) {
        Some(why) => {
            printer.failed(&format!("{why}; go on with --resume once it can be had"));
            Exit::Failed
        }
        None => sums.exit(many),
    };
    if let Some((file, origin)) = file.zip(origin) {
        file.json(&json::of(sums.all, &origin, &policy(args, &details), exit))?;
    }
    Ok(exit)
}

/// Reports the result to the users of the lease.
fn publish(
    one: &Selected,
    outcome: &Outcome,
    args: &FstrimArgs,
    halt: &Halt,
) -> Result<(), String> {
    let (is_warning, reason, text) = match outcome {
        Outcome::Trimmed(trimmed) => {
            let missed = interference::is_missed(&trimmed.summary, &args.goal);
            let reason = match (&trimmed.stopped, missed) {
                (Some(_), _) => "TrimInterrupted",
                (None, true) => "TrimMissedGoal",
                (None, false) => "Trimmed",
            };
            (reason != "Trimmed", reason, messages::result(trimmed))
        }
        // No failure, as in the exit code.
        Outcome::Unsupported(_) if args.mounts.is_empty() || args.quiet_unsupported => {
            return Ok(());
        }
        Outcome::Failed(why) | Outcome::Unsupported(why) => (true, "TrimFailed", why.clone()),
        Outcome::Looked | Outcome::Interrupted => return Ok(()),
    };
    halt.publish(&Event {
        is_warning,
        reason,
        message: &format!("{}: {text}", names::shown(&one.path)),
    })
}

/// Measures what a trim gains, as the run of that scenario.
fn gain(args: &FstrimArgs) -> Result<Exit, Error> {
    let [mount] = args.mounts.as_slice() else {
        return Err(Error::Usage("--gain: it measures one MOUNT".into()));
    };
    let mut words: Vec<&OsStr> = ["trimbench", "run", "--scenario", "never-trimmed"]
        .map(OsStr::new)
        .to_vec();
    let flags = [(args.quiet, "--quiet"), (args.dry_run, "--dry-run")];
    words.extend(
        flags
            .iter()
            .filter(|(given, _)| *given)
            .map(|(_, flag)| OsStr::new(flag)),
    );
    if let Some(file) = &args.json {
        words.extend([OsStr::new("--json"), file.as_os_str()]);
    }
    words.extend([OsStr::new("--"), mount.as_os_str()]);
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Run(args)) => commands::run::run(*args),
        Ok(_) => unreachable!("the words begin with run"),
        Err(error) => Err(Error::Usage(error.to_string())),
    }
}

/// The result of all file systems together.
#[derive(Default)]
struct Sums {
    done: usize,
    failed: usize,
    interrupted: bool,
    /// A goal that was given was missed.
    missed: bool,
    all: Vec<serde_json::Value>,
}

impl Sums {
    fn add(&mut self, outcome: &Outcome, args: &FstrimArgs, many: bool) {
        match outcome {
            Outcome::Looked => self.done += 1,
            Outcome::Trimmed(trimmed) => {
                self.interrupted |= trimmed.stopped.is_some();
                self.missed |= interference::is_missed(&trimmed.summary, &args.goal);
                self.done += 1;
            }
            Outcome::Unsupported(_) if many || args.quiet_unsupported => self.done += 1,
            Outcome::Failed(_) | Outcome::Unsupported(_) => self.failed += 1,
            Outcome::Interrupted => self.interrupted = true,
        }
    }

    fn exit(&self, many: bool) -> Exit {
        match (many, self.done, self.failed) {
            _ if self.interrupted => Exit::Interrupted,
            (_, _, 0) if self.missed => Exit::ConditionHeld,
            (_, _, 0) => Exit::Done,
            (false, ..) => Exit::Failed,
            (true, 0, _) => Exit::AllFailed,
            (true, ..) => Exit::SomeFailed,
        }
    }
}

/// Whether nothing is mounted there any more: what is there now is another file system's.
fn is_gone(path: &Path) -> bool {
    let place = path.canonicalize().ok();
    let mount = place.as_ref().and_then(|place| Mount::of(place).ok());
    mount.is_none_or(|mount| Some(mount.mount_point) != place)
}

/// The file systems that are named, or that the tables list.
fn selected(args: &FstrimArgs) -> Result<Vec<Selected>, Error> {
    if !args.mounts.is_empty() {
        let named = args.mounts.iter().map(|path| Selected {
            path: path.clone(),
            source: String::new(),
        });
        return Ok(named.collect());
    }
    let files = match &args.listed_in {
        Some(files) => files.as_str(),
        None if args.fstab => FSTAB,
        None if args.all => MOUNTED,
        None => LISTED,
    };
    select(files, args.types.as_deref()).map_err(|error| usage(error.to_string()))
}

fn policy(args: &FstrimArgs, details: &Details) -> Policy {
    match details.rate {
        Some(bytes_per_s) => Policy::Rate {
            bytes_per_s: bytes_per_s as f64,
            piece: (bytes_per_s / PIECES_PER_S).max(1),
        },
        None => Policy::Adaptive(args.goal.goal()),
    }
}

/// One file system.
fn trim(
    one: &Selected,
    args: &FstrimArgs,
    details: &Details,
    card: Option<&Card>,
    halt: &Halt,
    printer: &mut Printer,
) -> Outcome {
    printer.begin(&one.path);
    let outcome = trimmed(one, args, details, card, halt, printer);
    printer.end();
    match outcome {
        Ok(None) => Outcome::Looked,
        Ok(Some(trimmed)) => {
            printer.trimmed(one, &trimmed, args);
            Outcome::Trimmed(Box::new(trimmed))
        }
        Err(TrimError::Reclaim(ReclaimError::Interrupted)) => Outcome::Interrupted,
        Err(error) => {
            let text = match error {
                TrimError::Reclaim(ReclaimError::Refused(refusal)) => {
                    messages::refused(&one.path, refusal, args)
                }
                _ => error.to_string(),
            };
            let unsupported = matches!(error, TrimError::Unsupported { .. });
            if !(unsupported && args.quiet_unsupported) {
                printer.failed(&text);
            }
            match unsupported {
                true => Outcome::Unsupported(text),
                false => Outcome::Failed(text),
            }
        }
    }
}

/// The discards of a trim; `None` where the free extents are unknown.
fn forecast(path: &Path, args: &FstrimArgs, card: Option<&Card>) -> Option<Forecast> {
    let sys = linux::SysRoot::host();
    let found = storage::describe(path).ok()?;
    let tables = linux::dm::tables(&sys).unwrap_or_default();
    let stack = storage::stack::Stack::of(&sys, &found, &tables);
    let end = args.length.map(|length| args.offset.saturating_add(length));
    let range = args.offset..end.unwrap_or(u64::MAX);
    diagnose::forecast::if_trimmed(path, range, args.minimum, &stack, card)
}

fn trimmed(
    one: &Selected,
    args: &FstrimArgs,
    details: &Details,
    card: Option<&Card>,
    halt: &Halt,
    printer: &mut Printer,
) -> Result<Option<Trimmed>, TrimError> {
    let asked = Part {
        offset: args.offset,
        length: args.length.unwrap_or(u64::MAX),
        minimum: args.minimum,
    };
    let survey = Survey::of(&one.path, asked, state_directory())?;
    if let Some(mount) = survey.mounted_above() {
        let (path, mount) = (names::shown(&one.path), names::shown(mount));
        printer.note(&format!(
            "{path}: trims all of the file system that is mounted at {mount}"
        ));
    }
    if args.dry_run {
        let text = format!("{}: {}\n", names::shown(&one.path), survey.intention()?);
        Stream::Out.print(&text);
        let forecast = forecast(&one.path, args, card);
        let known = forecast.as_ref().map(|one| (one.bytes, one.commands));
        let (bytes, commands) = known.unwrap_or((1, 1));
        let open = args
            .goal
            .foreseen(card, &Work::new(bytes.max(1), commands.max(1)));
        let most = messages::at_most(forecast.as_ref(), survey.most_bytes());
        let open = open.map_err(ReclaimError::Refused)?;
        for line in std::iter::once(most).chain(open) {
            Stream::Out.print(&format!("  {line}\n"));
        }
        return Ok(None);
    }
    let pacing = Pacing {
        card: card.cloned(),
        canary_group: crate::simulated::group_beside(std::slice::from_ref(&one.path)),
        protect: args.goal.protected(),
        ..Pacing::new(policy(args, details))
    };
    let listener = &mut |event: reclaim::Event<'_>| printer.hear(event, halt);
    let trim = Trim::new(survey, &pacing, args.resume, listener)?;
    trim.run(listener).map(Some)
}
