//! Why a suite ended.

use std::io;
use std::path::PathBuf;

use units::names;

/// Why a suite failed or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The request can't be carried out; the text says what to ask for instead.
    #[error("{0}")]
    Usage(String),
    /// Something failed that no cell can go on after.
    #[error("{0}")]
    Failed(String),
    /// A signal stopped it.
    #[error("interrupted; the same command goes on where it was")]
    Stopped,
    /// The log can't be read or written.
    #[error(
        "{}: {source}; free space there, or give another file with --output",
        names::shown(path)
    )]
    Log {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A simulated drive that can't be made.
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    /// A device that may not be touched.
    #[error(transparent)]
    Raw(#[from] storage::raw::RawError),
}

impl SuiteError {
    /// Whether the request was at fault, and nothing was begun.
    pub fn is_usage(&self) -> bool {
        match self {
            SuiteError::Usage(_) | SuiteError::Raw(_) => true,
            SuiteError::Lab(error) => error.is_usage(),
            SuiteError::Failed(_) | SuiteError::Stopped | SuiteError::Log { .. } => false,
        }
    }
}
