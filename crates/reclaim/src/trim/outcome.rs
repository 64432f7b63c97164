//! How far a trim is, what came of it, and why there is none.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::state::StateError;
use crate::error::ReclaimError;
use crate::throttle::Summary;
use units::names;

/// Why a file system isn't trimmed, or not to its end.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TrimError {
    #[error("{path}: not a directory", path = names::shown(path))]
    NotADirectory { path: PathBuf },
    /// Nothing can be trimmed there, which is no fault.
    #[error("{path}: the discard operation is not supported{why}", path = names::shown(path))]
    Unsupported { path: PathBuf, why: String },
    #[error("cannot {action} {path}: {source}", path = names::shown(path))]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{path}: trimming takes CAP_SYS_ADMIN; run as root", path = names::shown(path))]
    NotPermitted { path: PathBuf },
    #[error("{path}: it is read-only; remount it for writing", path = names::shown(path))]
    ReadOnly { path: PathBuf },
    /// By another process: two would write over each other how far they came.
    #[error("{path}: it is being trimmed already; wait until that is done, or stop it", path = names::shown(path))]
    Busy { path: PathBuf },
    #[error(transparent)]
    Target(#[from] storage::TargetError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Reclaim(#[from] ReclaimError),
}

/// How far it is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TrimProgress {
    /// Bytes of the file system that were looked at, and in all.
    pub looked_bytes: u64,
    /// All that are to be looked at.
    pub total_bytes: u64,
    /// Of them, in this run.
    pub looked_now_bytes: u64,
    /// Bytes trimmed by this run.
    pub trimmed_bytes: u64,
    /// Windows so far.
    pub windows: u64,
    /// Bytes trimmed and not seen to be discarded.
    pub debt_bytes: u64,
    /// What others wait longer than before, as the controller sees it.
    pub added_latency: Option<Duration>,
}

/// What came of it.
#[derive(Debug)]
pub struct Trimmed {
    /// Bytes that were free and are trimmed, those of a run that it went on with
    /// included.
    pub bytes: u64,
    /// How it went.
    pub progress: TrimProgress,
    /// What the trim came to.
    pub summary: Summary,
    /// Where it stopped, in bytes, if it was interrupted.
    pub stopped: Option<u64>,
    /// Whether how far it came is written down.
    pub noted: bool,
    /// It is done; why how far it had come is written down still.
    pub kept: Option<StateError>,
}
