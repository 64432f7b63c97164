//! The verdict of a record and its text in whatever format: of `run`, of `report` and of `import`.
//! A verdict is the same, whether its run has just ended or its file was found years later.

use std::io;
use std::io::Write;

use clap::ValueEnum;
use judge::verdict::condition::{CheckResult, Condition};
use judge::{JudgeOptions, Verdict, judge};
use record::as_drive::{NotSlowed, slower};
use record::units::names;
use record::{DeviceInfo, Head, RunRecord, as_drive};
use report::csv::Run;
use report::terminal::Style;
use report::{csv, html, markdown, terminal};

use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::output;

/// A format of a record's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The verdict and the timeline, as `run` shows them
    Text,
    /// The verdict (schema trimbench.verdict/1)
    Json,
    /// A row per actor and interval
    Csv,
    /// A row per device and interval
    CsvDevices,
    /// The verdict as tables, for an issue or a blog
    Markdown,
    /// A page with charts, whole in one file
    Html,
}

/// A record and its verdict.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    /// The record.
    pub(crate) record: &'a RunRecord,
    /// Its verdict.
    pub(crate) verdict: &'a Verdict,
}

/// The output of a run at its end.
pub(crate) fn ended(record: &RunRecord, verdict: &Verdict, style: &Style) -> String {
    format!(
        "\n{}\n{}",
        terminal::verdict(verdict, record, style),
        terminal::timeline(record, verdict, style)
    )
}

impl Shown<'_> {
    /// Writes it. `run` says whether it is one of several, and which.
    pub(crate) fn write(
        &self,
        format: Format,
        run: Run<'_>,
        style: &Style,
        mut to: impl Write,
    ) -> io::Result<()> {
        let Shown { record, verdict } = *self;
        match format {
            Format::Text => {
                to.write_all(title(run, "==> ", " <==").as_bytes())?;
                to.write_all(terminal::set_up(&record.head, style).as_bytes())?;
                to.write_all(ended(record, verdict, style).as_bytes())
            }
            Format::Markdown => {
                to.write_all(title(run, "## ", "").as_bytes())?;
                to.write_all(markdown::verdict(verdict, record).as_bytes())
            }
            Format::Json => output::write_verdict(to, verdict),
            Format::Csv => csv::actors(record, run, to),
            Format::CsvDevices => csv::devices(record, run, to),
            Format::Html => to.write_all(html::report(record, verdict)?.as_bytes()),
        }
    }
}

/// A page is for a browser.
pub(crate) fn refuse_on_terminal(format: Format) -> Result<(), Error> {
    if format == Format::Html && Stream::Out.is_terminal() {
        return Err(usage(
            "a page isn't shown on a terminal: write it into a file and open that in a browser",
        ));
    }
    Ok(())
}

/// The title above one of several.
fn title(run: Run<'_>, before: &str, after: &str) -> String {
    let printable = |name: &str| names::harmless(name).replace('\n', "\u{fffd}");
    match run {
        Run::Only => String::new(),
        Run::First(name) => format!("{before}{}{after}\n\n", printable(name)),
        Run::Next(name) => format!("\n{before}{}{after}\n\n", printable(name)),
    }
}

impl Format {
    /// How names of such files end.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Format::Text => "txt",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::CsvDevices => "devices.csv",
            Format::Markdown => "md",
            Format::Html => "html",
        }
    }

    /// Returns whether several records may follow each other in one output.
    pub(crate) fn joins(self) -> bool {
        self != Format::Html
    }
}

/// Judges a record as its run was asked to (`judge.low`), and fits its discards.
pub(crate) fn verdict(record: &RunRecord) -> Verdict {
    verdict_with(record, &JudgeOptions::of(record))
}

/// Judges a record with these options.
pub(crate) fn verdict_with(record: &RunRecord, options: &JudgeOptions) -> Verdict {
    ssd::fit::joined(judge(record, options), record)
}

/// Whether a run on these devices can be shown in another drive's time.
pub(crate) fn has_drives_time(devices: &[DeviceInfo]) -> Result<(), Error> {
    match slower(devices) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(refused(&NotSlowed::Real)),
        Err(why) => Err(refused(&why)),
    }
}

/// A record in the time of the drive that its simulated one stands for.
pub(crate) fn in_drives_time(record: RunRecord) -> Result<RunRecord, Error> {
    as_drive(record).map_err(|why| refused(&why))
}

fn refused(why: &NotSlowed) -> Error {
    usage(format!("as-drive: {why}"))
}

/// Returns the exit code that the verdict's conditions give (`--fail-on`).
pub(crate) fn ending(verdict: &Verdict) -> Result<Exit, Error> {
    let any = |outcome| verdict.conditions.iter().find(|c| c.result == outcome);
    if any(CheckResult::Held).is_some() {
        return Ok(Exit::ConditionHeld);
    }
    match any(CheckResult::Unknown) {
        Some(unknown) => Err(Error::Unqualified(format!(
            "--fail-on '{}' is unknown. {}",
            unknown.condition, verdict.summary
        ))),
        None => Ok(Exit::Done),
    }
}

/// A condition on an actor that the record does not have would never be tested.
pub(crate) fn refuse_unknown_actors(conditions: &[Condition], head: &Head) -> Result<(), Error> {
    let names: Vec<&str> = head.actors.iter().map(|a| a.name.as_str()).collect();
    let unknown = conditions.iter().find_map(|condition| {
        let actor = condition.actor.as_deref()?;
        (!names.contains(&actor)).then_some((condition, actor))
    });
    match unknown {
        Some((condition, actor)) => Err(usage(format!(
            "--fail-on '{condition}': this run has no actor '{actor}'; name one of: {}",
            names.join(", ")
        ))),
        None => Ok(()),
    }
}
