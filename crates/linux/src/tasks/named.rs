//! The file that a call of another thread names by a directory and a path.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::{Directory, FileName, Thread};

/// The longest path that a call takes, with its end (`PATH_MAX`).
const LONGEST: usize = 4096;

/// Memory is read up to the end of such a page: what follows it may not be there.
const PAGE: u64 = 4096;

/// A file or directory of another process, held without the right to read it.
#[derive(Debug)]
pub struct NamedFile(OwnedFd);

impl NamedFile {
    /// A path to it for this process: a link of `/proc`.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

impl Thread {
    /// The path at an address of its memory. `None` if it can't be read, or is none.
    ///
    /// It waits while another thread changes the memory's map, which can take as long as that
    /// thread's I/O.
    pub fn path_at(self, address: u64) -> Option<PathBuf> {
        let memory = File::open(self.file("mem")).ok()?;
        let mut path = Vec::new();
        while path.len() < LONGEST {
            let at = address.checked_add(path.len() as u64)?;
            let mut page = [0; PAGE as usize];
            let most = (PAGE - at % PAGE) as usize;
            let count = memory.read_at(&mut page[..most], at).ok()?;
            let read = &page[..count];
            if let Some(end) = read.iter().position(|byte| *byte == 0) {
                path.extend_from_slice(&read[..end]);
                return Some(OsStr::from_bytes(&path).into());
            }
            if count == 0 {
                return None;
            }
            path.extend_from_slice(read);
        }
        None
    }

    /// The file that a call of its names, as far as the kernel's cache of names knows it: no file
    /// system is asked, so none keeps this thread waiting. Of a call that changes a name, and where
    /// the name is not known, it is the directory.
    ///
    /// `path` is that of the call; `None` if it could not be read. Then the directory counts that
    /// the program has chosen by a descriptor. `None` if the file is not known.
    pub fn named(self, name: FileName, path: Option<&Path>) -> Option<NamedFile> {
        let from = match name.directory {
            Directory::Working => "cwd".to_owned(),
            Directory::Descriptor(number) => format!("fd/{number}"),
        };
        let chosen = matches!(name.directory, Directory::Descriptor(_));
        let Some(path) = path else {
            return chosen.then(|| self.hold(&from)).flatten().map(NamedFile);
        };
        let (start, rest, within) = match path.strip_prefix("/") {
            Ok(rest) => ("root", rest, ResolveFlags::IN_ROOT),
            Err(_) => (from.as_str(), path, ResolveFlags::empty()),
        };
        let start = self.hold(start)?;
        let whole = (!name.changes_name).then_some(rest);
        let mut ways = whole.into_iter().chain(rest.parent());
        let found = ways.find_map(|way| cached(&start, way, within));
        // A relative path seldom leads to another file system.
        found
            .or_else(|| path.is_relative().then_some(start))
            .map(NamedFile)
    }

    /// Holds what one of its links of `/proc` leads to.
    fn hold(self, link: &str) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        rustix::fs::open(self.file(link), flags, Mode::empty()).ok()
    }
}

/// Holds a file, if the kernel has its whole path in its cache (Linux ≥ 5.12).
fn cached(start: impl AsFd, path: &Path, within: ResolveFlags) -> Option<OwnedFd> {
    let path = match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let how = within | ResolveFlags::CACHED | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(start, path, flags, Mode::empty(), how).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;

    fn own() -> Thread {
        let pid = std::process::id();
        Thread { pid, tid: pid }
    }

    fn name(directory: Directory, changes_name: bool) -> FileName {
        FileName {
            directory,
            path: 0,
            changes_name,
        }
    }

    #[test]
    fn a_path_is_read_from_memory() {
        let text = std::ffi::CString::new("/data/old").unwrap();
        let path = own().path_at(text.as_ptr() as u64);
        assert_eq!(path.as_deref(), Some(Path::new("/data/old")));
        assert_eq!(own().path_at(0), None);
        let endless = vec![b'a'; 2 * LONGEST];
        assert_eq!(own().path_at(endless.as_ptr() as u64), None);
    }

    #[test]
    fn a_call_leads_to_its_file_or_to_the_directory() {
        let home = tempfile::tempdir().unwrap();
        let inner = home.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::os::unix::fs::symlink("/", inner.join("there")).unwrap();
        let held = File::open(home.path()).unwrap();
        let directory = Directory::Descriptor(held.as_raw_fd() as u64);
        let inode = |name, path: &str| {
            let found = own().named(name, Some(Path::new(path)))?;
            Some(std::fs::metadata(found.path()).unwrap().ino())
        };
        let of = |path: &Path| Some(std::fs::metadata(path).unwrap().ino());
        // Opened, and removed.
        let opens = name(directory, false);
        assert_eq!(inode(opens, "inner"), of(&inner));
        assert_eq!(inode(name(directory, true), "inner"), of(home.path()));
        assert_eq!(inode(name(directory, true), "inner/new"), of(&inner));
        assert_eq!(inode(opens, "inner/new"), of(&inner));
        // A link to elsewhere. The cache does not lead through one whose time of access is due for
        // an update, nor while something is mounted.
        let led = (0..100).any(|_| {
            std::fs::metadata(inner.join("there/usr")).unwrap();
            std::thread::sleep(Duration::from_millis(10));
            inode(opens, "inner/there/usr") == of(Path::new("/usr"))
        });
        assert!(led, "{:?}", inode(opens, "inner/there/usr"));
        // A path that the cache does not have.
        assert_eq!(inode(opens, "no/such/file"), of(home.path()));
        assert_eq!(inode(opens, ""), of(home.path()));
        // An absolute path, whatever the directory is.
        let working = name(Directory::Working, false);
        assert_eq!(inode(opens, inner.to_str().unwrap()), of(&inner));
        assert_eq!(inode(working, inner.to_str().unwrap()), of(&inner));
        assert_eq!(inode(working, "/no/such/file"), None);
        let here = std::env::current_dir().unwrap();
        assert_eq!(inode(name(Directory::Working, true), "new"), of(&here));
        // Whether the path is absolute is not known.
        assert!(own().named(working, None).is_none());
        assert!(own().named(opens, None).is_some());
    }
}
