//! Where the arguments of a removal are, and how each is removed.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use linux::subvolume::Subvolume;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::remover::kept;
use super::survey::{is_protected, would_ask};
use super::trash::Trash;
use super::{Asking, Options, PreserveRoot};
use crate::event::{Event, Listener, Problem};
use crate::volume::LARGE;
use crate::{Result, directory};

/// Why something stays in its place.
pub(super) const ASKED_ABOUT: &str = "it holds what is asked about";

/// How an argument is removed.
pub(super) enum Method {
    /// By one call that frees little.
    Unlink,
    /// Through the trash, under this number.
    Trash(u32),
    /// A read-only subvolume, which can't be renamed: under its name until its turn, and listed in
    /// the trash's journal.
    Listed,
    /// Where it is, with the reason for the user.
    InPlace(Option<String>),
}

/// An argument, and how it is removed.
pub(super) struct Planned {
    pub(super) argument: Argument,
    pub(super) method: Method,
}

/// The directories of the arguments, and their trashes.
pub(super) struct Places<'a> {
    pub(super) options: &'a Options,
    pub(super) parents: Parents,
    /// By the number of the parent.
    pub(super) trashes: HashMap<usize, Trash>,
}

impl Planned {
    /// Returns whether both are files to be unlinked whole from the same directory.
    pub(super) fn goes_with(&self, other: &Planned) -> bool {
        let file = matches!(self.method, Method::Unlink) && !self.argument.is_directory();
        file && self.argument.parent == other.argument.parent
    }
}

impl<'a> Places<'a> {
    /// None so far.
    pub(super) fn new(options: &'a Options) -> Places<'a> {
        Places {
            options,
            parents: Parents::default(),
            trashes: HashMap::new(),
        }
    }

    /// Returns the arguments that may be removed. Reports the others, and returns how many of them
    /// are failures.
    pub(super) fn look(
        &mut self,
        paths: &[PathBuf],
        listener: &mut Listener<'_>,
    ) -> (Vec<Argument>, u64) {
        // Each directory that arguments are in stays open, and so does its trash.
        linux::files::allow_most_open();
        let mut all = Vec::with_capacity(paths.len());
        let mut failures = 0;
        let mut named = HashSet::new();
        for path in paths {
            let looked = self.parents.look(path, self.options).and_then(|argument| {
                let first = named.insert((argument.parent, argument.name.clone()));
                // The first removes it, unless somebody says no.
                match first || self.asks(&argument) {
                    true => Ok(argument),
                    false => Err(Problem::System(Errno::NOENT)),
                }
            });
            match looked {
                Ok(argument) => match self.parents.keeps(&argument) {
                    None => all.push(argument),
                    Some(why) => {
                        failures += 1;
                        listener(Event::Failed(path, &Problem::Words(why)));
                    }
                },
                Err(Problem::System(Errno::NOENT | Errno::NOTDIR)) if self.options.force => {}
                Err(problem) => {
                    failures += 1;
                    listener(Event::Failed(path, &problem));
                }
            }
        }
        (all, failures)
    }

    /// Returns the directory that an argument is in.
    pub(super) fn parent(&self, argument: &Argument) -> &Parent {
        self.parents.get(argument.parent)
    }

    /// Returns whether one call removes it, and frees little or isn't paced.
    pub(super) fn goes_at_once(&self, argument: &Argument, paces: bool) -> bool {
        match argument.is_directory() {
            true => !self.options.recursive,
            false => !paces || argument.bytes() < LARGE,
        }
    }

    /// Returns whether the user will be asked about something in it, and is to see where that is.
    pub(super) fn is_asked_about(
        &self,
        argument: &Argument,
        listener: &mut Listener<'_>,
    ) -> Result<bool> {
        let parent = self.parent(argument).fd.as_fd();
        Ok(self.options.asking == Asking::Protected && would_ask(argument, parent, listener)?)
    }

    /// Returns whether the user is asked about this name, whatever is in it.
    fn asks(&self, argument: &Argument) -> bool {
        match self.options.asking {
            Asking::Never => false,
            Asking::Always => true,
            Asking::Protected => is_protected(self.parent(argument).fd.as_fd(), &argument.name),
        }
    }

    /// Returns whether the user is asked about this name, or about one in it.
    pub(super) fn asks_within(&self, planned: &Planned) -> bool {
        let within = matches!(&planned.method, Method::InPlace(Some(why)) if why == ASKED_ABOUT);
        within || self.asks(&planned.argument)
    }

    /// Returns why an argument isn't renamed first, as far as that is known before.
    pub(super) fn reason(&self, argument: &Argument) -> Option<String> {
        if !self.options.trash || self.options.asking == Asking::Always {
            return Some("as asked".to_owned());
        }
        self.parents.elsewhere(argument).map(str::to_owned)
    }

    /// Returns how an argument is removed. `paces`: freeing is paced where it is.
    pub(super) fn method(
        &self,
        argument: &Argument,
        paces: bool,
        listener: &mut Listener<'_>,
    ) -> Result<Method> {
        if self.goes_at_once(argument, paces) {
            return Ok(Method::Unlink);
        }
        if self.is_asked_about(argument, listener)? {
            return Ok(Method::InPlace(Some(ASKED_ABOUT.to_owned())));
        }
        Ok(match self.reason(argument) {
            // A user who is asked about each name sees where it goes.
            Some(_) if self.options.asking == Asking::Always => Method::InPlace(None),
            Some(why) => Method::InPlace(Some(why)),
            None => Method::Trash(0),
        })
    }

    /// Returns whether an argument still has its name.
    pub(super) fn is_there(&self, argument: &Argument) -> bool {
        directory::has(&self.parent(argument).fd, &*argument.name)
    }

    /// Returns where an argument is now: the directory, and its name there.
    pub(super) fn of(&self, planned: &Planned) -> (BorrowedFd<'_>, CString) {
        let argument = &planned.argument;
        match (&planned.method, self.trashes.get(&argument.parent)) {
            (Method::Trash(number), Some(trash)) => (trash.directory(), Trash::name(*number)),
            _ => (self.parent(argument).fd.as_fd(), argument.name.clone()),
        }
    }

    /// Renames every argument that is in a trash back to its old name.
    pub(super) fn put_all_back(&self, all: &[Planned]) {
        for Planned { argument, method } in all {
            if let (Method::Trash(number), Some(trash)) =
                (method, self.trashes.get(&argument.parent))
            {
                let _ = trash.put_back(*number, &argument.name);
            }
        }
    }
}

// The arguments: each a name in an open directory, looked at once.

/// A directory that arguments are in.
#[derive(Debug)]
pub(super) struct Parent {
    pub(super) fd: Rc<OwnedFd>,
    /// As the user wrote it, for messages.
    pub(super) path: PathBuf,
    pub(super) device: u64,
}

/// An argument that may be removed.
#[derive(Debug)]
pub(super) struct Argument {
    /// As given.
    pub(super) path: PathBuf,
    pub(super) parent: usize,
    pub(super) name: CString,
    pub(super) stat: Stat,
    /// The subvolume that is deleted as one, if it is one.
    pub(super) subvolume: Option<Subvolume>,
}

impl Argument {
    pub(super) fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::Directory
    }

    /// Bytes that may come free with it.
    pub(super) fn bytes(&self) -> u64 {
        share(&self.stat)
    }
}

/// Bytes that a regular file holds, whatever its names; 0 for all else.
pub(super) fn allocated(stat: &Stat) -> u64 {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return 0;
    }
    u64::try_from(stat.st_blocks)
        .unwrap_or(0)
        .saturating_mul(512)
}

/// Bytes that come free with a name of this file: none if it has another.
pub(super) fn frees(stat: &Stat) -> u64 {
    match stat.st_nlink {
        1 => allocated(stat),
        _ => 0,
    }
}

/// A name's share of the bytes that its file holds. The shares of a tree add up to the bytes that
/// come free with it, unless the file also has names elsewhere.
pub(super) fn share(stat: &Stat) -> u64 {
    #[allow(clippy::useless_conversion, reason = "its width is the processor's")]
    let names = u64::from(stat.st_nlink).max(1);
    allocated(stat) / names
}

/// The directories of all arguments, each opened once as it is written. Two paths to the same
/// directory stay two: behind a bind mount other things may be mounted in it, or it may be
/// read-only.
#[derive(Debug, Default)]
pub(super) struct Parents {
    all: Vec<Parent>,
    by_path: HashMap<PathBuf, usize>,
    /// All mount points, sorted.
    mounts: OnceCell<Vec<PathBuf>>,
}

impl Parents {
    pub(super) fn get(&self, index: usize) -> &Parent {
        &self.all[index]
    }

    /// Looks at an argument. Returns the reason if it stays.
    pub(super) fn look(&mut self, given: &Path, options: &Options) -> Result<Argument, Problem> {
        let bytes = given.as_os_str().as_bytes();
        let end = bytes.iter().rposition(|&byte| byte != b'/');
        let Some(end) = end.map(|last| last + 1) else {
            return Err(match bytes {
                [] => Problem::System(Errno::NOENT),
                _ if !options.recursive => Problem::System(Errno::ISDIR),
                _ if options.preserve_root == PreserveRoot::No => Problem::System(Errno::BUSY),
                _ => Problem::Root,
            });
        };
        let slashed = end < bytes.len();
        let begin = bytes[..end]
            .iter()
            .rposition(|&byte| byte == b'/')
            .map_or(0, |slash| slash + 1);
        let name = &bytes[begin..end];
        if name == b"." || name == b".." {
            return Err(Problem::SelfOrParent);
        }
        let parent = match begin {
            0 => Path::new(""),
            _ => Path::new(OsStr::from_bytes(&bytes[..begin])),
        };
        let parent = self.open(parent).map_err(Problem::System)?;
        let name = CString::new(name).map_err(|_| Problem::System(Errno::INVAL))?;
        let at = &self.all[parent];
        let stat = rustix::fs::statat(&at.fd, &*name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(Problem::System)?;
        // One slash is enough in messages: `a///` is shown as `a/`, and what is in it as `a/b`.
        let shown = &bytes[..bytes.len().min(end + 1)];
        let argument = Argument {
            path: PathBuf::from(OsStr::from_bytes(shown)),
            parent,
            name,
            stat,
            subvolume: None,
        };
        if !argument.is_directory() {
            return match slashed {
                true => Err(Problem::System(Errno::NOTDIR)),
                false => Ok(argument),
            };
        }
        if !options.recursive && !options.empty_directories {
            return Err(Problem::System(Errno::ISDIR));
        }
        if options.recursive && options.preserve_root != PreserveRoot::No {
            let root = rustix::fs::stat("/").map_err(Problem::System)?;
            if (root.st_dev, root.st_ino) == (stat.st_dev, stat.st_ino) {
                return Err(Problem::Root);
            }
            if options.preserve_root == PreserveRoot::All && at.device != stat.st_dev {
                return Err(Problem::ParentsDevice);
            }
        }
        let of = |argument: &Argument| Subvolume::at(at.fd.as_fd(), &argument.name);
        let is_other = options.recursive && at.device != stat.st_dev;
        Ok(Argument {
            subvolume: is_other.then(|| of(&argument)).flatten(),
            ..argument
        })
    }

    fn open(&mut self, path: &Path) -> Result<usize, Errno> {
        if let Some(&known) = self.by_path.get(path) {
            return Ok(known);
        }
        let real = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(real, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        let index = self.all.len();
        self.all.push(Parent {
            fd: Rc::new(fd),
            path: path.to_owned(),
            device: stat.st_dev,
        });
        self.by_path.insert(path.to_owned(), index);
        Ok(index)
    }

    /// Returns why an argument can't be renamed into a trash beside it, if a mount or subvolume
    /// prevents it.
    pub(super) fn elsewhere(&self, argument: &Argument) -> Option<&'static str> {
        let parent = self.get(argument.parent);
        if argument.stat.st_dev != parent.device && argument.subvolume.is_none() {
            return Some("it is a mount point or subvolume");
        }
        let mounts = argument.is_directory() && self.has_mounts(argument, parent);
        mounts.then_some("something is mounted in it")
    }

    /// Returns why an argument stays that is a subvolume.
    fn keeps(&self, argument: &Argument) -> Option<String> {
        let subvolume = argument.subvolume?;
        let parent = self.get(argument.parent);
        kept(
            &subvolume,
            parent.fd.as_fd(),
            self.has_mounts(argument, parent),
        )
    }

    /// Returns whether anything is mounted at a directory or below it. A mount that comes later is
    /// found during the removal, as rm would find it.
    fn has_mounts(&self, argument: &Argument, parent: &Parent) -> bool {
        let Ok(parent) = std::fs::read_link(format!("/proc/self/fd/{}", parent.fd.as_raw_fd()))
        else {
            return false;
        };
        let path = parent.join(OsStr::from_bytes(argument.name.as_bytes()));
        let mounts = self.mounts.get_or_init(mount_points);
        // What lies below a path comes right after it.
        let after = mounts.partition_point(|mount| *mount < path);
        mounts
            .get(after)
            .is_some_and(|mount| mount.starts_with(&path))
    }
}

/// All mount points, sorted.
fn mount_points() -> Vec<PathBuf> {
    let mounts = linux::mounts::list(&linux::SysRoot::host()).unwrap_or_default();
    let mut all: Vec<PathBuf> = mounts.into_iter().map(|mount| mount.mount_point).collect();
    all.sort();
    all
}
