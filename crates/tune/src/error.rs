//! Why nothing was tried, set or written.

use std::io;
use std::path::PathBuf;

use bench::BenchError;
use units::names;

/// Why a command of this crate failed.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The request can't be tried. The text says what to ask for instead.
    #[error("{0}")]
    Request(String),
    /// A setting that could not be changed or put back.
    #[error("{0}")]
    Setting(String),
    /// A run that failed.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A file of settings that could not be read.
    #[error("{}: can't be read: {source}", names::shown(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of settings that could not be written.
    #[error("{}: could not be written: {source}", names::shown(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
