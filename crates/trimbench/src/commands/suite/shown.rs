//! The forms of a suite's results.

use std::path::Path;

use experiments::suite::log::Log;
use experiments::suite::{Results, sheet};
use report::sheet::{html, markdown, text};

use crate::commands::suite::args::SuiteFormat;
use crate::console::Stream;
use crate::exit::Error;
use crate::output::Sink;

/// The tables, as a terminal shows them.
pub(super) fn tables(log: &Log) -> String {
    let width = Stream::Out.style().width.into();
    text(&sheet(&Results::of(log)), width)
}

/// Writes the results in one form.
pub(super) fn write(log: &Log, format: SuiteFormat, output: Option<&Path>) -> Result<(), Error> {
    let mut sink = Sink::open(output.unwrap_or(Path::new("-")))?;
    let results = Results::of(log);
    let json = || format!("{:#}", results.json());
    let bytes = match format {
        SuiteFormat::Terminal => tables(log).into_bytes(),
        SuiteFormat::Markdown => markdown(&sheet(&results)).into_bytes(),
        SuiteFormat::Json => (json() + "\n").into_bytes(),
        SuiteFormat::Html => html(&sheet(&results), &json()).into_bytes(),
    };
    sink.write(|to| to.write_all(&bytes))
}
