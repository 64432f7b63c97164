//! Where trashes lie that aren't empty yet, so that all can be resumed at once.
//!
//! A symbolic link for each, in a directory of this user's: `$XDG_STATE_HOME`
//! (or `~/.local/state`) `/trimbench/trash`. Where there is no place for it,
//! the trash is found by its directory alone.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// The note of one trash.
#[derive(Debug)]
pub(super) struct Link(PathBuf);

impl Link {
    pub(super) fn forget(self) {
        let _ = std::fs::remove_file(self.0);
    }
}

/// Where notes lie.
pub(crate) fn place() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state =
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("trimbench/trash"))
}

/// Notes where a trash lies now; `None` where that isn't possible.
pub(super) fn remember(trash: BorrowedFd<'_>, name: &str) -> Option<Link> {
    let place = place()?;
    let path = std::fs::read_link(format!("/proc/self/fd/{}", trash.as_raw_fd())).ok()?;
    std::fs::create_dir_all(&place).ok()?;
    let link = place.join(name.trim_start_matches('.'));
    match std::os::unix::fs::symlink(path, &link) {
        Ok(()) => Some(Link(link)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Some(Link(link)),
        Err(_) => None,
    }
}

/// All that were noted: the directory each was in, its name, and its note.
pub(crate) fn all() -> Vec<(PathBuf, String, PathBuf)> {
    let Some(notes) = place().and_then(|place| std::fs::read_dir(place).ok()) else {
        return Vec::new();
    };
    let mut found: Vec<_> = notes
        .filter_map(|note| {
            let note = note.ok()?.path();
            let path = std::fs::read_link(&note).ok()?;
            let name = path.file_name()?.to_str()?.to_owned();
            let parent: &Path = path.parent()?;
            linux::owner::is_named(&name, super::PREFIX).then(|| (parent.to_owned(), name, note))
        })
        .collect();
    found.sort();
    found
}
