//! The forms of a suite's results.

use std::path::Path;

use ::suite::log::Log;
use ::suite::{Results, columns, sheet};
use report::sheet::{html, markdown, svg, text};

use crate::commands::suite::args::ShownArgs;
use crate::console::Stream;
use crate::exit::Error;
use crate::output::{Output, Sink};

/// The files that the results go to, opened before anything begins.
pub(super) struct Shown {
    to_stdout: bool,
    json: Option<Output>,
    markdown: Option<Sink>,
    html: Option<Sink>,
    svg: Option<Sink>,
    parquet: Option<Sink>,
}

impl Shown {
    pub(super) fn open(args: &ShownArgs) -> Result<Shown, Error> {
        let to_stdout = args.json.as_deref() == Some(Path::new("-"));
        let file = args.json.as_deref().filter(|_| !to_stdout);
        let sink = |path: &Option<std::path::PathBuf>| path.as_deref().map(Sink::file).transpose();
        Ok(Shown {
            to_stdout,
            json: file.map(Output::open).transpose()?,
            markdown: sink(&args.markdown)?,
            html: sink(&args.html)?,
            svg: sink(&args.svg)?,
            parquet: sink(&args.parquet)?,
        })
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
            Stream::Out.print(&format!("{json:#}\n"));
        }
        if let Some(file) = self.json {
            file.json(&json)?;
        }
        let texts = [
            (self.markdown, markdown(&sheet)),
            (self.html, html(&sheet, &format!("{json:#}"))),
            (self.svg, svg(&sheet)),
        ];
        for (sink, text) in texts {
            if let Some(mut sink) = sink {
                sink.write(|to| to.write_all(text.as_bytes()))?;
            }
        }
        if let Some(mut sink) = self.parquet {
            let bytes = report::parquet::parquet(&columns(log));
            sink.write(|to| to.write_all(&bytes))?;
        }
        Ok(())
    }
}
