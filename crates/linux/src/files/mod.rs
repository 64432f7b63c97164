//! Opening, creating and examining files for measuring.

mod direct;
mod elsewhere;
mod map;
mod own;
mod replace;
#[cfg(test)]
mod tests;

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use record::units::names;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use direct::{Aligned, DirectAlignment, DirectIo, NoFile, direct_alignment, probe_direct};
pub use elsewhere::open_elsewhere;
pub use map::{FileExtent, extents_within};
pub use own::{make_own_directory, own_directory};
pub use replace::{after_failed_write, directory_of, remove_unfinished, replace, replace_with};

/// Whether I/O goes through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// `O_DIRECT`: every operation reaches the device.
    Direct,
    /// Through the page cache.
    Buffered,
}

impl Caching {
    fn flags(self) -> OFlags {
        match self {
            Caching::Direct => OFlags::DIRECT,
            Caching::Buffered => OFlags::empty(),
        }
    }
}

/// An error with a file.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FileError {
    #[error("cannot open {path}: {source}", path = names::shown(path))]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot create {path}: {source}", path = names::shown(path))]
    Create { path: PathBuf, source: io::Error },
    #[error(
        "{path} takes no direct I/O (O_DIRECT: {source}); use buffered I/O (buffered=true) or another file system", path = names::shown(path))]
    Direct { path: PathBuf, source: io::Error },
    #[error("{path} is not a regular file", path = names::shown(path))]
    NotRegular { path: PathBuf },
    #[error("cannot sync the file system of {path}: {source}", path = names::shown(path))]
    Sync { path: PathBuf, source: io::Error },
    #[error("cannot tell the extents of a file: {0}")]
    Extents(io::Error),
}

/// Opens an existing regular file for reading. Its access time stays as it
/// is where the kernel allows that (the file's owner and root).
pub fn open_read(path: impl AsRef<Path>, caching: Caching) -> Result<File, FileError> {
    open(path.as_ref(), caching, OFlags::RDONLY)
}

/// Opens an existing regular file for reading and writing, and doesn't truncate it.
pub fn open_write(path: impl AsRef<Path>, caching: Caching) -> Result<File, FileError> {
    open(path.as_ref(), caching, OFlags::RDWR)
}

/// Creates a file that must not exist, for reading and writing, readable by
/// its owner alone. A symbolic link of that name is an error, wherever it leads.
pub fn create(path: impl AsRef<Path>, caching: Caching) -> Result<File, FileError> {
    let path = path.as_ref();
    create_at(CWD, path, path, caching)
}

/// The same below an open directory; `shown` is the path for messages.
pub(crate) fn create_at(
    directory: impl AsFd,
    name: &Path,
    shown: &Path,
    caching: Caching,
) -> Result<File, FileError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::openat(&directory, name, flags | caching.flags(), mode) {
        Ok(fd) => Ok(File::from(fd)),
        Err(Errno::INVAL) if caching == Caching::Direct => {
            // O_CREAT may have made the file before O_DIRECT was refused.
            let _ = rustix::fs::unlinkat(&directory, name, rustix::fs::AtFlags::empty());
            Err(FileError::Direct {
                path: shown.to_path_buf(),
                source: Errno::INVAL.into(),
            })
        }
        Err(errno) => Err(FileError::Create {
            path: shown.to_path_buf(),
            source: errno.into(),
        }),
    }
}

fn open(path: &Path, caching: Caching, access: OFlags) -> Result<File, FileError> {
    let failed = |source: io::Error| FileError::Open {
        path: path.to_path_buf(),
        source,
    };
    let not_regular = || FileError::NotRegular {
        path: path.to_path_buf(),
    };
    // Opening a FIFO would wait for its other end: look before.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(not_regular());
    }
    let flags = access | OFlags::CLOEXEC | OFlags::NOCTTY | caching.flags();
    let opened = match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => rustix::fs::open(path, flags, Mode::empty()),
        opened => opened,
    };
    let file = match opened {
        Ok(fd) => File::from(fd),
        Err(Errno::INVAL) if caching == Caching::Direct => {
            return Err(FileError::Direct {
                path: path.to_path_buf(),
                source: Errno::INVAL.into(),
            });
        }
        Err(errno) => return Err(failed(errno.into())),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(not_regular());
    }
    Ok(file)
}

/// Bytes that a file takes on disk, and that its deletion frees: its blocks, and not its length,
/// which holes and preallocation make say something else. It counts blocks shared with other files
/// (reflinks) too. On XFS it counts the space that was reserved beyond the end of a file that grew
/// by buffered writes; setting the length before writing avoids that.
pub fn allocated_bytes(metadata: &Metadata) -> u64 {
    metadata.blocks().saturating_mul(512)
}

/// Writes out everything the file system of `path` holds back, and with it
/// commits its journal. Waits for that; discards may come later still.
pub fn syncfs(path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    let failed = |errno: Errno| FileError::Sync {
        path: path.to_path_buf(),
        source: errno.into(),
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
    rustix::fs::syncfs(&fd).map_err(failed)
}

// How many files may be open at once.

/// Lets this process have as many files open as it may allow itself. Returns how many
/// that is; `None` where there is no limit.
pub fn allow_most_open() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match limit.current == limit.maximum || setrlimit(Resource::Nofile, raised).is_ok() {
        true => limit.maximum,
        false => limit.current,
    }
}

/// Keeps the descriptors that this process has inherited from the programs that it starts: a lock
/// would be held for as long as one of them runs. Does nothing before Linux 5.11.
pub fn keep_from_children() {
    // SAFETY: it takes numbers alone, and each descriptor stays as open as it was.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
    }
}
