//! How the program ends.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::BenchError;

/// Exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked to.
    Done,
    /// It failed.
    Failed,
    /// What was asked for can't be done.
    Usage,
    /// A `--fail-on` condition held.
    ConditionHeld,
    /// Somebody stopped it.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::ConditionHeld => 3,
            Exit::Interrupted => 130,
        })
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The run.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// Options that don't go together.
    #[error("{0}")]
    Usage(String),
    /// A file that can't be written to at all.
    #[error("{}: can't write to it: {source}; give another file", path.display())]
    OutputOpen {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that could not be written to its end.
    #[error("{}: could not be written: {source}; free space there or give another file", path.display())]
    OutputWrite {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A qualification without a measurement to rest on.
    #[error("nothing was qualified: {0}")]
    Unqualified(String),
}

impl Error {
    /// The exit code it stands for.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Error::Bench(error) if !error.is_usage() => Exit::Failed,
            Error::OutputWrite { .. } | Error::Unqualified(_) => Exit::Failed,
            Error::Bench(_) | Error::Usage(_) | Error::OutputOpen { .. } => Exit::Usage,
        }
    }
}
