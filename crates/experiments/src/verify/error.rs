//! Why nothing could be verified.

use std::io;
use std::path::PathBuf;

use linux::owner::OwnerError;
use record::units::names::shown;
use storage::TargetError;
use storage::raw::RawError;

/// Why a test could not begin or go on.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum VerifyError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Raw(#[from] RawError),
    #[error(transparent)]
    Owner(#[from] OwnerError),
    #[error("cannot use {}: {why}", shown(path))]
    Home { path: PathBuf, why: String },
    #[error("{}: {why}", shown(path))]
    Place { path: PathBuf, why: String },
    #[error("cannot {what} {}: {source}", shown(path))]
    Io {
        path: PathBuf,
        what: &'static str,
        source: io::Error,
    },
    #[error("state file {}: {why}", shown(path))]
    State { path: PathBuf, why: String },
    #[error("{0}")]
    Failed(String),
}

impl VerifyError {
    /// Whether something else was to be asked for.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            VerifyError::Target(_)
                | VerifyError::Raw(_)
                | VerifyError::Place { .. }
                | VerifyError::State { .. }
        )
    }
}
