//! The forms of a suite's results.

use std::path::Path;

use ::suite::log::Log;
use ::suite::{Results, columns, sheet};
use report::sheet::{html, markdown, svg, text};

use crate::commands::suite::args::ShownArgs;
use crate::console::Stream;
use crate::exit::Error;
use crate::output::{Output, Sink};

/// The files that the results go to.
pub(super) struct Shown<'a> {
    args: &'a ShownArgs,
    to_stdout: bool,
}

impl Shown<'_> {
    /// Checks that each file can be written. It leaves none behind: a suite takes hours, and may be
    /// killed.
    pub(super) fn open(args: &ShownArgs) -> Result<Shown<'_>, Error> {
        let to_stdout = args.json.as_deref() == Some(Path::new("-"));
        let json = args.json.as_ref().filter(|_| !to_stdout);
        let others = [&args.markdown, &args.html, &args.svg, &args.parquet];
        for path in json.into_iter().chain(others.into_iter().flatten()) {
            Output::open(path)?;
        }
        Ok(Shown { args, to_stdout })
    }

    /// Where the text for people goes.
    pub(super) fn people(&self) -> Stream {
        match self.to_stdout {
            true => Stream::Err,
            false => Stream::Out,
        }
    }

    /// Prints and writes the results.
    pub(super) fn write(self, log: &Log) -> Result<(), Error> {
        let results = Results::of(log);
        let (sheet, json) = (sheet(&results), results.json());
        let people = self.people();
        people.print(&format!("\n{}", text(&sheet, people.style().width.into())));
        if self.to_stdout {
            Stream::Out.json(&json);
        }
        let args = self.args;
        if let Some(path) = args.json.as_ref().filter(|_| !self.to_stdout) {
            Output::open(path)?.json(&json)?;
        }
        let texts = [
            (&args.markdown, markdown(&sheet)),
            (&args.html, html(&sheet, &format!("{json:#}"))),
            (&args.svg, svg(&sheet)),
        ];
        for (path, text) in texts {
            if let Some(path) = path {
                Sink::file(path)?.write(|to| to.write_all(text.as_bytes()))?;
            }
        }
        if let Some(path) = &args.parquet {
            let bytes = report::parquet::parquet(&columns(log));
            Sink::file(path)?.write(|to| to.write_all(&bytes))?;
        }
        Ok(())
    }
}
