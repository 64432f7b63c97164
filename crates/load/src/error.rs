//! Errors before and beside the load itself.

use record::units::names;
use std::io;
use std::path::{Path, PathBuf};

/// Why a load could not be made. Failed I/Os of a running actor aren't here:
/// those are counted in its meter.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A field of a spec is out of range.
    #[error("{actor}: {what}")]
    Spec {
        /// The actor or step the spec belongs to.
        actor: String,
        /// The fault, and the value to give instead.
        what: String,
    },
    /// io_uring was asked for by name and can't be had.
    #[error(
        "io_uring can't be used: {reason}; choose the engine `auto`, `libaio` or `sync`, or remove the restriction"
    )]
    NoIoUring {
        /// The cause that forbids it.
        reason: String,
    },
    /// libaio was asked for by name and can't be had.
    #[error(
        "libaio can't be used: {reason}; choose the engine `auto` or `sync`, or remove the restriction"
    )]
    NoLibaio {
        /// The cause that forbids it.
        reason: String,
    },
    /// The file system has no room for the file.
    #[error(
        "{}: no space left after {written_bytes} of {len_bytes} bytes; free some space or choose a smaller size",
        names::shown(path)
    )]
    NoSpace {
        /// The file that was being made.
        path: PathBuf,
        /// Bytes written before it happened.
        written_bytes: u64,
        /// Bytes that were wanted.
        len_bytes: u64,
    },
    /// The file system or device doesn't take direct I/O.
    #[error(
        "{}: direct I/O isn't possible here ({source}); use buffered I/O",
        names::shown(path)
    )]
    NoDirect {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A system call failed on a file or device.
    #[error("{}: can't {what}: {source}", names::shown(path))]
    File {
        /// The file or device.
        path: PathBuf,
        /// The call that failed.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// It was asked to stop while it was being prepared.
    #[error("stopped while it was being prepared")]
    Stopped,
    /// The outside program could not be started.
    #[error("can't start `{program}`: {source}; give its full path, or install it")]
    Command {
        /// The program.
        program: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The system gave no thread, memory or ring.
    #[error("can't {what}: {source}")]
    System {
        /// The call that failed.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

impl LoadError {
    /// A call of the system without a file that failed.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> LoadError {
        move |source| LoadError::System { what, source }
    }

    /// A call on a file that failed.
    pub(crate) fn file(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> LoadError {
        let path = path.to_owned();
        move |source| LoadError::File { path, what, source }
    }
}
