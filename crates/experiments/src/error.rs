//! Why an experiment ended.

use std::fmt::Display;
use std::io;

use bench::BenchError;

/// Why an experiment failed or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request can't be carried out; the text says what to ask for instead.
    #[error("{0}")]
    Usage(String),
    /// Something failed: a step, a setting, or all that follows.
    #[error("{0}")]
    Failed(String),
    /// A signal stopped it.
    #[error("interrupted; the same command goes on where it was")]
    Stopped,
    /// A run that failed.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A simulated drive that can't be made.
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    /// A device that may not be touched.
    #[error(transparent)]
    Raw(#[from] storage::raw::RawError),
}

impl Error {
    /// Whether the request was at fault, and nothing was begun.
    pub fn is_usage(&self) -> bool {
        match self {
            Error::Usage(_) | Error::Raw(_) => true,
            Error::Bench(error) => error.is_usage(),
            Error::Lab(error) => error.is_usage(),
            Error::Failed(_) | Error::Stopped => false,
        }
    }

    /// A failure in its own words.
    pub(crate) fn failed(error: impl Display) -> Error {
        Error::Failed(error.to_string())
    }

    /// A failed call of the system, with what was tried.
    pub(crate) fn of(what: impl Display) -> impl Fn(io::Error) -> Error {
        move |error| Error::Failed(format!("{what}: {error}"))
    }
}
