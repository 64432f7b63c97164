//! A record as text, in whatever format: of `run`, of `report` and of `import`.

use std::io::{self, Write};

use clap::ValueEnum;
use judge::Verdict;
use record::RunRecord;
use record::units::names;
use report::csv::Run;
use report::terminal::{self, Style};
use report::{csv, html, markdown};

use crate::console::Stream;
use crate::exit::{Error, usage};
use crate::output;

/// A format of a record's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The verdict and the timeline, as `run` shows them
    Terminal,
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
            Format::Terminal => {
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
            Format::Terminal => "txt",
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
