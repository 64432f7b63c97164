//! What stops a deletion. What fails with one name only is no error of this
//! kind: it is told, and the rest goes on, as rm does.

use std::io;
use std::path::PathBuf;

use crate::words::of_io;
use units::names::quoted;

/// Why a deletion stopped.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ReclaimError {
    /// Somebody asked for it. The trash and its journal stay.
    #[error("interrupted")]
    Interrupted,
    /// The goal can't be met.
    #[error(transparent)]
    Refused(#[from] pace::Refusal),
    /// A file could not be emptied. Its name stays.
    #[error("cannot free {}: {}", quoted(path), of_io(source))]
    Free { path: PathBuf, source: io::Error },
    /// The file system has become read-only meanwhile. The trash and its journal stay.
    #[error(
        "cannot remove {path}: {said}: the file system has become so meanwhile, as it does when its disk fails; look at dmesg, check it (fsck), and mount it again"
    )]
    ReadOnly { path: String, said: String },
    /// A device or file system can't be examined.
    #[error(transparent)]
    Target(#[from] storage::TargetError),
    /// A directory that was to be resumed in can't be read.
    #[error("cannot {action} {}: {}", quoted(path), of_io(source))]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}
