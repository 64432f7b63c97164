//! The files that the findings go to.

use std::path::Path;

use super::args::{Details, TuneArgs};
use crate::exit::Error;
use crate::output::Sink;

/// Each that was asked for, opened before anything is tried.
pub(super) struct Sinks {
    pub(super) json: Option<Sink>,
    pub(super) svg: Option<Sink>,
    pub(super) role: Option<Sink>,
}

impl Sinks {
    pub(super) fn open(args: &TuneArgs, details: &Details) -> Result<Sinks, Error> {
        let sinks = Sinks {
            json: args.json.as_deref().map(sink).transpose()?,
            svg: args.svg.as_deref().map(Sink::file).transpose()?,
            role: details.role.as_deref().map(sink).transpose()?,
        };
        let (json, svg, role) = ("--json", "--svg", "role");
        for (one, sink, other, path) in [
            (json, &sinks.json, svg, &args.svg),
            (json, &sinks.json, role, &details.role),
            (svg, &sinks.svg, role, &details.role),
        ] {
            let is_same = path.as_ref().is_some_and(|path| {
                let sink_is = |sink: &Sink| !is_standard(path) && sink.is(path);
                sink.as_ref().is_some_and(sink_is)
            });
            if is_same {
                return Err(Error::Usage(format!(
                    "{one} and {other} name the same file: give each its own"
                )));
            }
        }
        match [&args.json, &details.role].map(|path| path.as_deref().is_some_and(is_standard)) {
            [true, true] => Err(Error::Usage(
                "--json and role both go to standard output: give one of them a file".into(),
            )),
            _ => Ok(sinks),
        }
    }
}

/// Whether one of them goes to standard output, so that all else goes to standard error.
pub(super) fn takes_standard_output(args: &TuneArgs, details: &Details) -> bool {
    let mut both = [&args.json, &details.role].into_iter().flatten();
    both.any(|path| is_standard(path))
}

fn sink(path: &Path) -> Result<Sink, Error> {
    match is_standard(path) {
        true => Ok(Sink::standard()),
        false => Sink::file(path),
    }
}

fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}
