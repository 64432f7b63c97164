//! Why a run could not be made or finished.

use std::io;
use std::path::PathBuf;

use record::units::names;

use crate::sizes::TooLittleSpace;

/// Why a run could not be made or finished. Every message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The path can't be tested as it is.
    #[error("{}: {why}", names::shown(path))]
    Place {
        /// The directory or device that was named.
        path: PathBuf,
        /// The fault, and the next step.
        why: String,
    },
    /// The files don't fit.
    #[error("{}: {source}", names::shown(path))]
    Space {
        /// The directory that was named.
        path: PathBuf,
        /// By how much.
        source: TooLittleSpace,
    },
    /// A combination of options that makes no sense.
    #[error("{0}")]
    Plan(String),
    /// Nobody would know whether discards came.
    #[error(
        "the counters of {} are switched off (queue/iostats is 0), so it would be unknown whether \
         discards came: switch them on ({}), let --set counters=enable do it for the run, or go on \
         without them with --set counters=blind",
        .0.join(" and "),
        .0.iter().map(|device| format!("echo 1 > /sys/class/block/{device}/queue/iostats"))
            .collect::<Vec<_>>().join("; ")
    )]
    CountersOff(Vec<String>),
    /// A device's counters can't be switched on, or not off again.
    #[error(transparent)]
    Counters(#[from] linux::counters::CountersError),
    /// The load could not be made.
    #[error(transparent)]
    Load(#[from] load::LoadError),
    /// A directory of ours can't be made, used or removed.
    #[error(transparent)]
    Owner(#[from] linux::owner::OwnerError),
    /// A file of ours can't be made or used.
    #[error(transparent)]
    Files(#[from] linux::files::FileError),
    /// The raw device is not to be had.
    #[error(transparent)]
    Raw(#[from] storage::raw::RawError),
    /// The file system can't be remounted, or not back.
    #[error(transparent)]
    Remount(#[from] storage::remount::RemountError),
    /// More than one thing failed.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; and: "))]
    Several(Vec<BenchError>),
    /// A system call failed.
    #[error("{}: can't {what}: {source}", names::shown(path))]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The action that failed.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The deletion did not delete.
    #[error("the deletion failed: {0}")]
    Deletion(String),
    /// The record could not be written to its end.
    #[error(
        "the record could not be written: {}; the run itself went on: {}",
        .0,
        linux::files::after_failed_write(.0)
    )]
    Record(io::Error),
}

impl BenchError {
    /// Picks the error to report from several.
    pub(crate) fn of(mut failures: Vec<BenchError>) -> Option<BenchError> {
        match failures.len() {
            0 | 1 => failures.pop(),
            _ => Some(BenchError::Several(failures)),
        }
    }

    /// Whether the fault is in what was asked for, rather than in what happened.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            BenchError::Place { .. }
                | BenchError::Space { .. }
                | BenchError::Plan(_)
                | BenchError::CountersOff(_)
                | BenchError::Raw(_)
                | BenchError::Load(
                    load::LoadError::Spec { .. }
                        | load::LoadError::NoDirect { .. }
                        | load::LoadError::NoIoUring { .. }
                        | load::LoadError::NoLibaio { .. }
                )
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_was_not_written_is_answered_by_its_cause() {
        let of = |kind: io::ErrorKind| BenchError::Record(kind.into()).to_string();
        assert!(
            of(io::ErrorKind::QuotaExceeded).ends_with("free space there or give another file")
        );
        assert!(of(io::ErrorKind::BrokenPipe).ends_with("went on: give another file"));
    }
}
