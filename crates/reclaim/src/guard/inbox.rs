//! Files that programs hand over: names in `.trimbench/in` below the guarded directory.
//!
//! A program renames a file or a directory into it, and is done. The guard gives each large file
//! there a second name, and removes the name that it was handed over by, so that it is freed like any
//! other. Small files are removed at once. A name that isn't removed yet is still there after a crash.
//!
//! The owner of the guarded directory may mean harm to a guard that root runs. Nothing here follows
//! a symbolic link or leaves the file system. A directory is emptied only if it belongs to that
//! owner too, who could have emptied it alone. Everything that gets the owner's name is made in the
//! guard's hidden directory, where nobody can swap it, and renamed.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RawDir, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use super::keep::Keep;
use super::names::bytes;
use super::scan::{Linked, Rules, link, open_below};

/// The directory of hand-overs in a guarded one, and in it that of files.
pub(super) const HAND_OVER: &CStr = c".trimbench";
const IN: &CStr = c"in";
/// The socket's name in it.
pub(super) const SOCKET: &CStr = c"socket";

/// Smaller files are removed at once.
const LARGE: u64 = 1 << 20;

/// Directories deeper than this below the inbox stay there.
const DEEPEST: usize = 100;

/// The most names that are taken in at a time, so that orders are read in between.
const AT_A_TIME: usize = 10_000;

/// The open directory of hand-overs.
#[derive(Debug)]
pub(super) struct Inbox {
    directory: OwnedFd,
    inner: OwnedFd,
    /// The owner of the guarded directory.
    owner: u32,
}

/// The names that were taken in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Files that wait to be freed now.
    pub(super) files: u64,
    /// Smaller files and other names that were removed.
    pub(super) removed: u64,
    /// Directories of another user, which stay.
    pub(super) foreign: u64,
    /// Names that can't be removed.
    pub(super) failed: u64,
}

impl Inbox {
    /// Makes what is missing of `.trimbench/in`, for the owner of the guarded directory.
    ///
    /// # Errors
    /// The kernel's, `ELOOP` and `ENOTDIR` for something else with that name among them.
    pub(super) fn open(guarded: BorrowedFd<'_>, hidden: BorrowedFd<'_>) -> Result<Inbox, Errno> {
        let stat = rustix::fs::fstat(guarded)?;
        let directory = made(guarded, HAND_OVER, hidden, &stat)?;
        let inner = made(directory.as_fd(), IN, hidden, &stat)?;
        Ok(Inbox {
            directory,
            inner,
            owner: stat.st_uid,
        })
    }

    /// The directory that holds the inbox and the socket.
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The directory into which files are renamed.
    pub(super) fn inner(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }

    /// Takes what is there. `keep`: keeps large files; `None` where all is removed at once.
    pub(super) fn take(&self, keep: Option<Keep<'_>>) -> Taken {
        let mut taking = Taking {
            keep,
            owner: self.owner,
            left: AT_A_TIME,
            taken: Taken::default(),
        };
        taking.all(self.inner.as_fd(), 0);
        taking.taken
    }

    /// Removes the socket, and the directories if nothing is in them.
    pub(super) fn close(self, guarded: BorrowedFd<'_>) {
        let _ = rustix::fs::unlinkat(&self.directory, SOCKET, AtFlags::empty());
        let _ = rustix::fs::unlinkat(&self.directory, IN, AtFlags::REMOVEDIR);
        let _ = rustix::fs::unlinkat(guarded, HAND_OVER, AtFlags::REMOVEDIR);
    }
}

/// Opens a directory in another, or makes it with the owner and the mode of the guarded one.
fn made(
    parent: BorrowedFd<'_>,
    name: &CStr,
    hidden: BorrowedFd<'_>,
    guarded: &Stat,
) -> Result<OwnedFd, Errno> {
    match open_below(parent, name) {
        Err(Errno::NOENT) => {}
        opened => return opened,
    }
    let new = c"inbox.new";
    let _ = rustix::fs::unlinkat(hidden, new, AtFlags::REMOVEDIR);
    rustix::fs::mkdirat(hidden, new, Mode::RWXU)?;
    give(hidden, new, guarded)?;
    let mode = Mode::from_raw_mode(guarded.st_mode & 0o770) | Mode::RWXU;
    rustix::fs::chmodat(hidden, new, mode, AtFlags::empty())?;
    match rustix::fs::renameat_with(hidden, new, parent, name, RenameFlags::NOREPLACE) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => {
            let _ = rustix::fs::unlinkat(hidden, new, AtFlags::REMOVEDIR);
            return Err(errno);
        }
    }
    open_below(parent, name)
}

/// Gives something in the hidden directory to the owner of the guarded one.
pub(super) fn give(hidden: BorrowedFd<'_>, name: &CStr, guarded: &Stat) -> Result<(), Errno> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(guarded.st_uid), Gid::from_raw(guarded.st_gid));
    rustix::fs::chownat(
        hidden,
        name,
        Some(uid),
        Some(gid),
        AtFlags::SYMLINK_NOFOLLOW,
    )
}

struct Taking<'a> {
    keep: Option<Keep<'a>>,
    owner: u32,
    left: usize,
    taken: Taken,
}

impl Taking<'_> {
    fn all(&mut self, directory: BorrowedFd<'_>, depth: usize) {
        for name in names(directory) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            self.one(directory, &name, depth);
        }
    }

    fn one(&mut self, at: BorrowedFd<'_>, name: &CStr, depth: usize) {
        let Ok(stat) = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            return self.tree(at, name, depth);
        }
        let large = kind == FileType::RegularFile && bytes(&stat) >= LARGE;
        let mut linked = false;
        if let Some(keep) = self.keep.filter(|_| large) {
            let rules = Rules {
                min_bytes: LARGE,
                owner: Some(self.owner),
                device: stat.st_dev,
            };
            linked = matches!(
                link(at, name, keep, &rules),
                Linked::New(_) | Linked::Before
            );
        }
        match rustix::fs::unlinkat(at, name, AtFlags::empty()) {
            Ok(()) if linked => self.taken.files += 1,
            Ok(()) => self.taken.removed += 1,
            // Taken back meanwhile.
            Err(Errno::NOENT | Errno::ISDIR) => {}
            Err(_) => self.taken.failed += 1,
        }
    }

    fn tree(&mut self, at: BorrowedFd<'_>, name: &CStr, depth: usize) {
        let Ok(open) = open_below(at, name) else {
            self.taken.failed += 1;
            return;
        };
        let owner = rustix::fs::fstat(&open).map(|stat| stat.st_uid);
        if owner != Ok(self.owner) || depth >= DEEPEST {
            self.taken.foreign += 1;
            return;
        }
        self.all(open.as_fd(), depth + 1);
        match rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR) {
            Ok(()) => self.taken.removed += 1,
            // More came, or stays.
            Err(Errno::NOTEMPTY | Errno::NOENT | Errno::NOTDIR) => {}
            Err(_) => self.taken.failed += 1,
        }
    }
}

fn names(directory: BorrowedFd<'_>) -> Vec<CString> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(open) = rustix::fs::openat(directory, c".", flags, Mode::empty()) else {
        return Vec::new();
    };
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut entries = RawDir::new(open, buffer.spare_capacity_mut());
    let mut all = Vec::new();
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name();
        if name != c"." && name != c".." && all.len() < AT_A_TIME {
            all.push(name.to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;

    use super::*;

    fn place() -> (tempfile::TempDir, File, File) {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let hidden = place.path().join("hidden");
        fs::create_dir(&hidden).unwrap();
        let open = |path: &Path| File::open(path).unwrap();
        let (guarded, hidden) = (open(place.path()), open(&hidden));
        (place, guarded, hidden)
    }

    #[test]
    fn large_files_get_a_second_name_and_the_rest_is_removed() {
        let (place, guarded, hidden) = place();
        let inbox = Inbox::open(guarded.as_fd(), hidden.as_fd()).unwrap();
        let at = place.path().join(".trimbench/in");
        fs::create_dir_all(at.join("a/b")).unwrap();
        fs::write(at.join("a/b/large"), vec![1; 2 << 20]).unwrap();
        fs::write(at.join("a/small"), "x").unwrap();
        fs::write(at.join("new\nline\u{1b}[31m"), "x").unwrap();
        fs::write(place.path().join("precious"), vec![1; 2 << 20]).unwrap();
        std::os::unix::fs::symlink("../../precious", at.join("link")).unwrap();
        std::os::unix::fs::symlink("../..", at.join("directory")).unwrap();
        let taken = inbox.take(Some(Keep::Names(hidden.as_fd())));
        assert_eq!(fs::read_dir(&at).unwrap().count(), 0, "{taken:?}");
        assert_eq!((taken.files, taken.failed, taken.foreign), (1, 0, 0));
        assert_eq!(
            fs::read_dir(place.path().join("hidden")).unwrap().count(),
            1
        );
        let precious = fs::read(place.path().join("precious")).unwrap();
        assert_eq!(precious.len(), 2 << 20);
        inbox.close(guarded.as_fd());
        assert!(!place.path().join(".trimbench").exists());
    }

    #[test]
    fn a_directory_of_another_user_stays() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (place, guarded, hidden) = place();
        std::os::unix::fs::chown(place.path(), Some(65_534), Some(65_534)).unwrap();
        let inbox = Inbox::open(guarded.as_fd(), hidden.as_fd()).unwrap();
        let at = place.path().join(".trimbench/in");
        let owner = std::os::unix::fs::MetadataExt::uid(&at.metadata().unwrap());
        assert_eq!(owner, 65_534);
        fs::create_dir(at.join("roots")).unwrap();
        fs::write(at.join("roots/file"), "x").unwrap();
        let taken = inbox.take(Some(Keep::Names(hidden.as_fd())));
        assert_eq!((taken.foreign, taken.removed), (1, 0));
        assert!(at.join("roots/file").exists());
    }

    #[test]
    fn something_else_of_that_name_is_refused() {
        let (place, guarded, hidden) = place();
        std::os::unix::fs::symlink("hidden", place.path().join(".trimbench")).unwrap();
        assert!(Inbox::open(guarded.as_fd(), hidden.as_fd()).is_err());
        fs::remove_file(place.path().join(".trimbench")).unwrap();
        fs::write(place.path().join(".trimbench"), "").unwrap();
        assert!(Inbox::open(guarded.as_fd(), hidden.as_fd()).is_err());
    }
}
