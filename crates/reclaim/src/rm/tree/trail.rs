//! Where the walk is, as a path for messages. Nothing is ever opened by it.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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
    pub(super) fn down(&mut self, name: &CStr) -> usize {
        let length = self.bytes.len();
        if self.bytes.last().is_some_and(|&byte| byte != b'/') {
            self.bytes.push(b'/');
        }
        self.bytes.extend_from_slice(name.to_bytes());
        length
    }

    /// Back up again.
    pub(super) fn up(&mut self, length: usize) {
        self.bytes.truncate(length);
    }
}
