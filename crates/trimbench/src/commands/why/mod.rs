//! `trimbench why`.

pub(crate) mod args;
mod record;
mod since;
mod subject;

use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ::record::units::names;
use ::record::units::settings::Section;
use diagnose::why::{Observation, Observer, Subject, advice, explain, folded, text};
use linux::SysRoot;

use crate::commands::why::args::{Details, WhyArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::output::{self, Sink};
use crate::signals;

/// How long is watched where nothing else ends it.
const USUAL: Duration = Duration::from_secs(30);

/// Carries out the command.
pub(crate) fn run(args: &WhyArgs) -> Result<Exit, Error> {
    let details = Details::of(&args.set).map_err(Error::Usage)?;
    if args.record {
        return record::run(&details.recorder());
    }
    let report = Report::open(args)?;
    if args.since.is_some() || args.recording.is_some() {
        let (observation, subject) = since::observed(args, &details.recorder())?;
        report.write(args, &observation, &subject)?;
        return Ok(Exit::Done);
    }
    let stop = signals::stop_flag()?;
    let requested = subject::of(args)?;
    // Before the command begins, so that nothing of it is missed.
    let observer = Observer::begin(SysRoot::host(), details.rate());
    let mut child = None;
    let subject = match requested {
        Some(subject) => subject,
        None => {
            let started = start(args)?;
            let subject = Subject::Family(started.id());
            child = Some(started);
            subject
        }
    };
    let ends = subject::ends(&subject);
    let limit = args.duration.or((!ends).then_some(USUAL));
    let began = Instant::now();
    let mut status = None;
    let observation = observer.watch(subject.clone(), &mut || {
        let ended = match &mut child {
            Some(child) => {
                status = child.try_wait().ok().flatten();
                status.is_some()
            }
            None => ends && !subject::is_there(&subject),
        };
        ended || stop.load(Ordering::Relaxed) || limit.is_some_and(|most| began.elapsed() >= most)
    });
    report.write(args, &observation, &subject)?;
    Ok(match (child, status) {
        (Some(_), Some(status)) => Exit::Command(status),
        // It runs on: what was asked for is over.
        (Some(_), None) if stop.load(Ordering::Relaxed) => Exit::Interrupted,
        _ => Exit::Done,
    })
}

/// The outputs that were asked for.
struct Report {
    json: Option<Sink>,
    stacks: Option<Sink>,
}

impl Report {
    /// Opens them, so that one that can't be written is known before anything is watched.
    fn open(args: &WhyArgs) -> Result<Report, Error> {
        Ok(Report {
            json: Sink::named(&args.json)?,
            stacks: Sink::named(&args.output)?,
        })
    }

    /// Draws the conclusions and writes them.
    fn write(
        self,
        args: &WhyArgs,
        observation: &Observation,
        subject: &Subject,
    ) -> Result<(), Error> {
        let command = command_line(args);
        let mut why = explain(observation, subject, command.as_deref());
        let sys = SysRoot::host();
        why.advice = advice(&sys, &why, rustix::process::geteuid().is_root());
        let stream = match args.command.is_empty() {
            true => Stream::Out,
            // The command's own output stays as it is.
            false => Stream::Err,
        };
        output::present(&why, self.json, stream, || text::page(&why, stream.look()))?;
        let Some(mut sink) = self.stacks else {
            return Ok(());
        };
        let stacks = folded(observation, subject);
        sink.write(|to| to.write_all(stacks.as_bytes()))
    }
}

fn start(args: &WhyArgs) -> Result<Child, Error> {
    let Some((program, rest)) = args.command.split_first() else {
        return Err(usage("name a COMMAND after `--`"));
    };
    Command::new(program).args(rest).spawn().map_err(|error| {
        usage(format!(
            "cannot start {}: {error}; name a program that is in PATH",
            names::shown(program)
        ))
    })
}

/// The command as the report calls it.
fn command_line(args: &WhyArgs) -> Option<String> {
    let words: Vec<String> = args.command.iter().map(names::shown).collect();
    let whole = words.join(" ");
    let short: String = whole.chars().take(60).collect();
    let cut = short.len() < whole.len();
    (!words.is_empty()).then(|| if cut { short + "…" } else { short })
}
