//! The errors that end a deletion.
//!
//! A failure with a single name doesn't end it: the name is reported as a
//! [`Problem`](crate::Problem), and the rest is removed, as rm does.

use std::io;
use std::path::PathBuf;

use record::units::names::quoted;

/// A result whose error ends a deletion, unless another is named.
pub type Result<T, E = ReclaimError> = std::result::Result<T, E>;

/// Why a deletion stopped.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ReclaimError {
    /// The user or the caller stopped the deletion. The trash and its journal stay.
    #[error("interrupted")]
    Interrupted,
    /// The drive can't meet the goal.
    #[error(transparent)]
    Refused(#[from] pace::Refusal),
    /// A file could not be emptied. Its name stays.
    #[error("cannot free {}: {}", quoted(path), words(source))]
    Free { path: PathBuf, source: io::Error },
    /// The file system became read-only during the deletion. The trash and its journal stay.
    #[error(
        "cannot remove {path}: {said}: the file system has become so meanwhile, as it does when its disk fails; look at dmesg, check it (fsck), and mount it again"
    )]
    ReadOnly { path: String, said: String },
    /// A device or file system can't be examined.
    #[error(transparent)]
    Target(#[from] storage::TargetError),
    /// Discards destroy data there.
    #[error(transparent)]
    Harm(#[from] storage::Harm),
    /// A system call failed; `action` names the step.
    #[error("cannot {action} {}: {}", quoted(path), words(source))]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl ReclaimError {
    /// The error of an action on `path`, as an argument of `map_err`.
    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> ReclaimError {
        let path = path.into();
        move |source| ReclaimError::Io {
            action,
            path,
            source: source.into(),
        }
    }
}

/// Returns the system's message for an error, without its number, as rm writes it.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_without_their_number() {
        let error = rustix::io::Errno::NOENT.into();
        assert_eq!(words(&error), "No such file or directory");
    }
}
