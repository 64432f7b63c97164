//! Why a directory can't be guarded.

use std::io;
use std::path::PathBuf;

use units::names::quoted;

use crate::words::of_io;

/// Why a directory can't be guarded, or no guard reached.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum GuardError {
    #[error("cannot {action} {}: {}", quoted(path), of_io(source))]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is not a directory; name a directory to guard", quoted(path))]
    NotADirectory { path: PathBuf },
    #[error(
        "{} is guarded already{}; one guard is enough: see trimbench guard status {}",
        quoted(path), by(*pid), quoted(path)
    )]
    Guarded { path: PathBuf, pid: Option<u32> },
    #[error(
        "{} can't be guarded, because {} is guarded already{}: a file with two second names would never be freed",
        quoted(path), quoted(other), by(*pid)
    )]
    Nested {
        path: PathBuf,
        other: PathBuf,
        pid: Option<u32>,
    },
    #[error(
        "the file system of {} has no hard links ({}): a guard can't keep second names there",
        quoted(path),
        of_io(source)
    )]
    NoLinks { path: PathBuf, source: io::Error },
    #[error(
        "openat2, by which a guard opens the names in {}, is forbidden ({}); in a service of systemd, \
         remove RestrictSUIDSGID; in a container, let its seccomp profile allow openat2",
        quoted(path),
        of_io(source)
    )]
    NoOpenat2 { path: PathBuf, source: io::Error },
    #[error(
        "{} lies on an overlay, where a hard link copies the whole file; guard its upper directory instead",
        quoted(path)
    )]
    Overlay { path: PathBuf },
    #[error(
        "{} belongs to the image store of {engine} at {}, and the kubelet evicts pods when space doesn't \
         come back: guard it with --by trim, or give --most 2% or less",
        quoted(path),
        quoted(store)
    )]
    ImageStore {
        path: PathBuf,
        engine: &'static str,
        store: PathBuf,
    },
    #[error(
        "{} is on a file system that is mounted read-only; remount it with rw",
        quoted(path)
    )]
    ReadOnly { path: PathBuf },
    #[error(
        "cannot use {}, because {because}; look at it, and remove it if nothing needs it",
        quoted(path)
    )]
    Unusable { path: PathBuf, because: String },
    #[error("{} can't be guarded by trims: {why}", quoted(path))]
    NotTrimmed { path: PathBuf, why: String },
    #[error(transparent)]
    Remount(Box<storage::remount::RemountError>),
    #[error(
        "{} is not guarded; start with: trimbench guard {}",
        quoted(path),
        quoted(path)
    )]
    NotGuarded { path: PathBuf },
    #[error(
        "the guard of {} did not take the order within {} s; look with: trimbench guard status {}",
        quoted(path), after.as_secs(), quoted(path)
    )]
    NoAnswer {
        path: PathBuf,
        after: std::time::Duration,
    },
}

impl GuardError {
    /// Whether what was asked for can't be done there at all.
    pub fn is_usage(&self) -> bool {
        !matches!(self, GuardError::Io { .. } | GuardError::NoAnswer { .. })
    }
}

fn by(pid: Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (by process {pid})"))
}
