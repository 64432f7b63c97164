//! The large files below a directory, and their second names.
//!
//! The owner of the directory may mean harm to a guard that root runs. So nothing here follows a
//! symbolic link or leaves the file system. A directory is opened below an open one. A file is opened
//! as a path alone, which reads and waits for nothing. It is examined, and then linked by that open
//! file.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use linux::owner::Found;
use linux::owner::Held;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;

use super::inbox::HAND_OVER;
use super::keep::Keep;
use super::place::PREFIX;

/// Directories deeper than this below the guarded one are left out: each level holds a descriptor.
const DEEPEST: usize = 100;

/// The beginning of trimbench's own names.
const OWN: &[u8] = b".trimbench-";

/// The suffix of a file that RocksDB has renamed to truncate it slowly itself.
const PACED_ALREADY: &[u8] = b".trash";

/// Which files get a second name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) min_bytes: u64,
    /// The user whose files they must be; `None` where any user's will do.
    pub(super) owner: Option<u32>,
    /// `st_dev` of the guarded directory.
    pub(super) device: u64,
}

/// The result for one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Linked {
    /// It has a second name now; the file's size is this many bytes.
    New(u64),
    /// It already had one.
    Before,
    /// It is too small yet.
    Small,
    /// It is no file that gets a second name.
    Never,
    /// The file system refused.
    Refused(Errno),
}

/// The result of a scan.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// Files that got a second name, and their bytes.
    pub(super) new_files: u64,
    pub(super) new_bytes: u64,
    /// Errors of the file system, and how many files had each.
    pub(super) refused: HashMap<i32, u64>,
    /// Directories that were left out because they are too deep, or another guard works there.
    pub(super) too_deep: u64,
    pub(super) guarded: Vec<u32>,
    /// Inodes of all directories seen.
    pub(super) directories: HashSet<u64>,
}

impl Scanned {
    /// Adds what a scan of a part found.
    pub(super) fn take_in(&mut self, part: Scanned) {
        self.new_files += part.new_files;
        self.new_bytes += part.new_bytes;
        for (errno, files) in part.refused {
            *self.refused.entry(errno).or_default() += files;
        }
        self.too_deep += part.too_deep;
        self.guarded.extend(part.guarded);
        self.directories.extend(part.directories);
    }

    pub(super) fn add(&mut self, linked: Linked) {
        match linked {
            Linked::New(bytes) => {
                self.new_files += 1;
                self.new_bytes += bytes;
            }
            Linked::Refused(errno) => *self.refused.entry(errno.raw_os_error()).or_default() += 1,
            Linked::Before | Linked::Small | Linked::Never => {}
        }
    }
}

/// Opens a directory below an open one, on the same file system, whatever it was replaced by.
pub(super) fn open_below(at: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat2(at, name, flags, Mode::empty(), RESOLVE)
}

const RESOLVE: ResolveFlags = ResolveFlags::NO_XDEV
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::BENEATH);

/// Gives all large files below an open directory their second names. It asks `goes_on` from time to
/// time whether to continue.
pub(super) fn scan(
    directory: BorrowedFd<'_>,
    keep: Keep<'_>,
    rules: &Rules,
    goes_on: &dyn Fn() -> bool,
) -> Scanned {
    let mut linked = Scanned::default();
    let mut scanned = visit(directory, rules.device, goes_on, &mut |at, name| {
        linked.add(link(at, name, keep, rules));
    });
    scanned.take_in(linked);
    scanned
}

/// Calls `each` for all regular files below an open directory, on its file system.
pub(super) fn visit(
    directory: BorrowedFd<'_>,
    device: u64,
    goes_on: &dyn Fn() -> bool,
    each: &mut dyn FnMut(BorrowedFd<'_>, &CStr),
) -> Scanned {
    let mut walk = Walk {
        device,
        goes_on,
        each,
        scanned: Scanned::default(),
    };
    if let Ok(open) = directory.try_clone_to_owned() {
        walk.below(&open, 0);
    }
    walk.scanned
}

/// A walk through a tree.
struct Walk<'a> {
    device: u64,
    goes_on: &'a dyn Fn() -> bool,
    each: &'a mut dyn FnMut(BorrowedFd<'_>, &CStr),
    scanned: Scanned,
}

impl Walk<'_> {
    fn below(&mut self, directory: &OwnedFd, depth: usize) {
        if !(self.goes_on)() {
            return;
        }
        let on = rustix::fs::fstat(directory);
        let Some(stat) = on.ok().filter(|stat| stat.st_dev == self.device) else {
            return;
        };
        if depth > 0
            && let Some(pid) = guarded_by_another(directory)
        {
            self.scanned.guarded.push(pid);
            return;
        }
        self.scanned.directories.insert(stat.st_ino);
        let mut deeper = Vec::new();
        for entry in entries(directory) {
            match entry {
                Entry::Directory(name) => deeper.push(name),
                Entry::File(name) => (self.each)(directory.as_fd(), &name),
            }
        }
        if depth >= DEEPEST {
            self.scanned.too_deep += deeper.len() as u64;
            return;
        }
        for name in deeper {
            if let Ok(open) = open_below(directory.as_fd(), &name) {
                self.below(&open, depth + 1);
            }
        }
    }
}

/// A name in a directory that deserves a look.
enum Entry {
    Directory(CString),
    File(CString),
}

fn entries(directory: &OwnedFd) -> Vec<Entry> {
    let mut all = Vec::new();
    let mut buffer = Vec::with_capacity(32 << 10);
    // A descriptor of its own: another reads the same directory.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(open) = rustix::fs::openat(directory, c".", flags, Mode::empty()) else {
        return all;
    };
    let mut names = RawDir::new(open, buffer.spare_capacity_mut());
    while let Some(Ok(entry)) = names.next() {
        let name = entry.file_name();
        if is_left_alone(name) {
            continue;
        }
        match entry.file_type() {
            FileType::Directory => all.push(Entry::Directory(name.to_owned())),
            // Some file systems don't tell: then it is looked at.
            FileType::RegularFile => all.push(Entry::File(name.to_owned())),
            FileType::Unknown => match kind(directory, name) {
                Some(FileType::Directory) => all.push(Entry::Directory(name.to_owned())),
                Some(FileType::RegularFile) => all.push(Entry::File(name.to_owned())),
                _ => {}
            },
            _ => {}
        }
    }
    all
}

fn kind(directory: &OwnedFd, name: &CStr) -> Option<FileType> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Whether a name gets no look: trimbench's own, and what its program frees slowly itself.
pub(super) fn is_left_alone(name: &CStr) -> bool {
    let name = name.to_bytes();
    let own = name.starts_with(OWN) || name == HAND_OVER.to_bytes();
    name == b"." || name == b".." || own || name.ends_with(PACED_ALREADY)
}

/// The process of another guard that works in a directory.
fn guarded_by_another(directory: &OwnedFd) -> Option<u32> {
    let entries = Dir::read_from(directory).ok()?;
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
        .filter(|name| linux::owner::is_named(name, PREFIX))
        .find_map(|name| match Held::find(directory, &name) {
            Found::InUse { pid } => Some(pid.unwrap_or(0)),
            _ => None,
        })
}

/// Keeps a file if it is to be kept.
pub(super) fn link(
    directory: BorrowedFd<'_>,
    name: &CStr,
    keep: Keep<'_>,
    rules: &Rules,
) -> Linked {
    // Most names need no descriptor.
    let looked = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    match looked.map(|stat| rules.of(&stat)) {
        Ok(Some(true)) => {}
        Ok(Some(false)) => return Linked::Small,
        Ok(None) | Err(_) => return Linked::Never,
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::openat2(directory, name, flags, Mode::empty(), RESOLVE) {
        Ok(file) => file,
        // Replaced or removed meanwhile.
        Err(Errno::NOENT | Errno::LOOP | Errno::XDEV | Errno::AGAIN) => return Linked::Never,
        Err(errno) => return Linked::Refused(errno),
    };
    // It may be another file by now.
    let Ok(stat) = rustix::fs::fstat(&file) else {
        return Linked::Never;
    };
    match rules.of(&stat) {
        Some(true) => {}
        Some(false) => return Linked::Small,
        None => return Linked::Never,
    }
    match keep.add(file, stat.st_ino) {
        Ok(false) => Linked::New(u64::try_from(stat.st_blocks).unwrap_or(0) * 512),
        Ok(true) => Linked::Before,
        // Removed meanwhile.
        Err(Errno::NOENT) => Linked::Never,
        Err(errno) => Linked::Refused(errno),
    }
}

impl Rules {
    /// Whether a file is large enough; `None` where it never gets a second name.
    pub(super) fn of(&self, stat: &Stat) -> Option<bool> {
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let may = self.owner.is_none_or(|owner| owner == stat.st_uid);
        if !is_file || !may || stat.st_dev != self.device || stat.st_nlink == 0 {
            return None;
        }
        Some(u64::try_from(stat.st_blocks).unwrap_or(0) * 512 >= self.min_bytes)
    }
}
