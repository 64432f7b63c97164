//! Errors, each with the next step.

use std::io;
use std::path::PathBuf;

use record::units::names;
use record::units::typed::Mistake;

/// Why the laboratory didn't do something.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The name can't be a drive's.
    #[error(
        "`{name}` can't be a drive's name: it is letters, digits, '-', '_' and '.', at most 64 of \
         them, and doesn't begin with '.'"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// There can be no such drive.
    #[error("there can be no drive with {why}")]
    BadSpec {
        /// The fault.
        why: String,
    },
    /// A device card can't be read.
    #[error(transparent)]
    Card(#[from] Mistake),
    /// A fault can't be understood.
    #[error(transparent)]
    Fault(#[from] crate::faults::BadFault),
    /// There is one of this name.
    #[error("there is a drive `{name}` already: take it down first, or choose another name")]
    Exists {
        /// Its name.
        name: String,
    },
    /// There is none of this name.
    #[error("there is no drive `{name}`{}", list_of(others))]
    NoSuch {
        /// The name.
        name: String,
        /// Those that there are.
        others: Vec<String>,
    },
    /// The process that serves it doesn't answer.
    #[error(
        "drive `{name}` doesn't answer ({error}): its server may have been killed; take the drive \
         down"
    )]
    Silent {
        /// Its name.
        name: String,
        /// The error of its socket.
        error: io::Error,
    },
    /// Its server refused something.
    #[error("drive `{name}`: {why}")]
    Refused {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// Its server ended before the drive was ready.
    #[error("the server of drive `{name}` ended before the drive was ready: {output}")]
    Failed {
        /// Its name.
        name: String,
        /// The end of its log.
        output: String,
    },
    /// A program failed.
    #[error("{program} failed: {output}")]
    Program {
        /// The program with its arguments.
        program: String,
        /// The end of its output.
        output: String,
    },
    /// A program of the user's can't be started.
    #[error("cannot run {}: {error}", names::shown(program))]
    NotRun {
        /// The program.
        program: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Something is still there after everything was tried.
    #[error("drive `{name}` isn't down: {left}")]
    Left {
        /// Its name.
        name: String,
        /// The parts that are still there, and their users.
        left: String,
    },
    /// Another process makes the drive or takes it down, and doesn't finish.
    #[error(
        "drive `{name}` is being made or taken down by {by}: wait for it; --force ends a drive that \
         is being made"
    )]
    Busy {
        /// Its name.
        name: String,
        /// The process.
        by: String,
    },
    /// Every drive is down, but something is left.
    #[error("of the laboratory {root} there is still: {}", what.join("; "), root = names::shown(root))]
    Remains {
        /// The laboratory.
        root: PathBuf,
        /// The parts that are left, each with its place.
        what: Vec<String>,
    },
    /// A system call failed.
    #[error("{what} {path}: {error}", path = names::shown(path))]
    Io {
        /// The action that failed.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl LabError {
    /// Whether what was asked for can't be, rather than failed.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            LabError::BadName { .. }
                | LabError::BadSpec { .. }
                | LabError::Card(_)
                | LabError::Fault(_)
                | LabError::Exists { .. }
                | LabError::NoSuch { .. }
                | LabError::Refused { .. }
        )
    }

    /// For `map_err`: a system call on a path failed.
    pub(crate) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| LabError::Io { what, path, error }
    }
}

fn list_of(names: &[String]) -> String {
    if names.is_empty() {
        "; there are none".to_owned()
    } else {
        format!("; there are: {}", names.join(", "))
    }
}
