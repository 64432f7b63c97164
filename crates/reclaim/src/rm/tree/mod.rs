//! Walks a directory tree by open directories alone.
//!
//! Other processes may rename, replace and link names meanwhile. So each directory is opened once,
//! by its name in its open parent, never through a symbolic link. All names in it are relative to
//! it.
//!
//! At most [`walk::MOST_OPEN`] directories are open at a time. In deeper trees those near the top
//! are closed, and opened once more by `..` on the way back. That must lead to the same directory
//! (device and inode), or the walk gives up that branch.

#[cfg(test)]
mod tests;
mod walk;

use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;

pub(crate) use walk::{At, Enter, Left, Root, Visit, walk};

// Where the walk is, as a path for messages. Nothing is ever opened by it.

/// A path for messages.
#[derive(Debug, Clone)]
pub(crate) struct Trail {
    bytes: Vec<u8>,
}

impl Trail {
    /// Begins at what the user named.
    pub(crate) fn new(path: &Path) -> Trail {
        Trail {
            bytes: path.as_os_str().as_bytes().to_vec(),
        }
    }

    /// The path of the directory, or file, that it is at.
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.bytes))
    }

    /// The path of a name there.
    pub(crate) fn of(&self, name: &CStr) -> std::path::PathBuf {
        self.path().join(OsStr::from_bytes(name.to_bytes()))
    }

    /// One level down; gives what [`Trail::up`] needs.
    fn down(&mut self, name: &CStr) -> usize {
        let length = self.bytes.len();
        if self.bytes.last().is_some_and(|&byte| byte != b'/') {
            self.bytes.push(b'/');
        }
        self.bytes.extend_from_slice(name.to_bytes());
        length
    }

    /// Back up again.
    fn up(&mut self, length: usize) {
        self.bytes.truncate(length);
    }
}

// Names of a directory, as many as one call brings.

/// The kind of a name, as far as the directory shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, device, FIFO or socket: nothing that holds space.
    Other,
    /// The file system doesn't show it.
    Unknown,
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Kind {
        match kind {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Unknown => Kind::Unknown,
            _ => Kind::Other,
        }
    }
}

/// One name in a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// The name: any bytes but NUL and a slash.
    pub(crate) name: &'a CStr,
    /// Its kind.
    pub(crate) kind: Kind,
}

/// Some names in a row, and where to go on behind each of them.
#[derive(Debug, Default)]
struct Batch {
    /// Names one after the other, each with its NUL.
    names: Vec<u8>,
    /// Where each begins.
    places: Vec<Place>,
    next: usize,
    end: u64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    begins: u32,
    kind: Kind,
    inode: u64,
    cookie: u64,
}

impl Batch {
    /// Reads the next names of an open directory in one call. The batch is empty at its end.
    fn read(directory: BorrowedFd<'_>, buffer: &mut [MaybeUninit<u8>]) -> Result<Batch, Errno> {
        let mut batch = Batch::default();
        let mut raw = RawDir::new(directory, buffer);
        while let Some(entry) = raw.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes_with_nul();
            // A slash in a name would lead elsewhere. The kernel refuses such names since 5.5.
            let is_self_or_parent = name == b".\0" || name == b"..\0";
            if !is_self_or_parent && !name.contains(&b'/') && name.len() > 1 {
                batch.end = entry.next_entry_cookie();
                batch.places.push(Place {
                    // A buffer is far below 4 GiB.
                    begins: u32::try_from(batch.names.len()).unwrap_or(u32::MAX),
                    kind: entry.file_type().into(),
                    inode: entry.ino(),
                    cookie: entry.next_entry_cookie(),
                });
                batch.names.extend_from_slice(name);
            }
            // Only `.` and `..` so far: the next call may bring more.
            if raw.is_buffer_empty() && !batch.places.is_empty() {
                break;
            }
        }
        Ok(batch)
    }

    /// Puts what certainly is no directory first, in the order of inodes; the rest follows as
    /// the directory has it.
    ///
    /// Files were usually made in that order, and so lie beside each other on the disk. Then space
    /// that is freed together is also discarded together, and each block of inodes is read once.
    fn files_first(&mut self) {
        self.places.sort_by_key(|place| match place.kind {
            Kind::File | Kind::Other => (false, place.inode),
            Kind::Directory | Kind::Unknown => (true, 0),
        });
    }

    /// The position behind the last of them in the directory's order.
    fn end(&self) -> u64 {
        self.end
    }

    /// Whether names are left.
    fn has_more(&self) -> bool {
        self.next < self.places.len()
    }

    /// The next name, and the position behind it.
    fn next(&mut self) -> Option<(Entry<'_>, u64)> {
        let place = *self.places.get(self.next)?;
        self.next += 1;
        let bytes = self.names.get(place.begins as usize..)?;
        let name = CStr::from_bytes_until_nul(bytes).ok()?;
        let entry = Entry {
            name,
            kind: place.kind,
        };
        Some((entry, place.cookie))
    }
}
