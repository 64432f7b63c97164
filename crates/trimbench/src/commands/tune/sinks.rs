//! The files that the findings go to.

use super::args::{Details, TuneArgs};
use crate::exit::{Error, usage};
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
            json: Sink::named(&args.json)?,
            svg: args.svg.as_deref().map(Sink::file).transpose()?,
            role: Sink::named(&details.role)?,
        };
        let (json, svg, role) = ("--json", "--svg", "role");
        for (one, sink, other, path) in [
            (json, &sinks.json, svg, &args.svg),
            (json, &sinks.json, role, &details.role),
            (svg, &sinks.svg, role, &details.role),
        ] {
            let path = path.as_deref().filter(|path| path.as_os_str() != "-");
            if let (Some(sink), Some(path)) = (sink, path)
                && sink.is(path)
            {
                return Err(usage(format!(
                    "{one} and {other} name the same file: give each its own"
                )));
            }
        }
        match [&sinks.json, &sinks.role].map(|sink| sink.as_ref().is_some_and(Sink::is_standard)) {
            [true, true] => Err(usage(
                "--json and role both go to standard output: give one of them a file",
            )),
            _ => Ok(sinks),
        }
    }
}

/// Whether one of them goes to standard output, so that all else goes to standard error.
pub(super) fn takes_standard_output(args: &TuneArgs, details: &Details) -> bool {
    let mut both = [&args.json, &details.role].into_iter().flatten();
    both.any(|path| path.as_os_str() == "-")
}
