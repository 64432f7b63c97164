//! The progress, the result and the errors of a trim.

use std::path::PathBuf;

use crate::error::ReclaimError;
use crate::event::Progress;
use crate::throttle::Summary;
use record::units::names;

/// Why a file system isn't trimmed, or not to its end.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TrimError {
    #[error("{path}: not a directory", path = names::shown(path))]
    NotADirectory { path: PathBuf },
    /// Nothing can be trimmed there, which is no fault.
    #[error("{path}: the discard operation is not supported{why}", path = names::shown(path))]
    Unsupported { path: PathBuf, why: String },
    #[error("{path}: trimming takes CAP_SYS_ADMIN; run as root", path = names::shown(path))]
    NotPermitted { path: PathBuf },
    #[error("{path}: it is read-only; remount it for writing", path = names::shown(path))]
    ReadOnly { path: PathBuf },
    /// Another process trims it. Two of them would overwrite each other's notes.
    #[error("{path}: it is being trimmed already; wait until that is done, or stop it", path = names::shown(path))]
    Busy { path: PathBuf },
    #[error(transparent)]
    Reclaim(#[from] ReclaimError),
}

/// The result of a trim.
#[derive(Debug)]
pub struct Trimmed {
    /// Bytes of free space that were trimmed, those of the interrupted run included.
    pub bytes: u64,
    /// The last progress.
    pub progress: Progress,
    /// The throttle's summary.
    pub summary: Summary,
    /// The position in bytes where it was interrupted; `None` if it was not.
    pub stopped: Option<u64>,
    /// Whether that position is noted, so that the trim can be resumed.
    pub noted: bool,
    /// The reason why the note stays although the trim is done.
    pub kept: Option<ReclaimError>,
}
