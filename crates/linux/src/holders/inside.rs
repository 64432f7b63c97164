//! A thread that enters mount namespaces to look at files from there.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// `STATX_MNT_ID_UNIQUE` (include/uapi/linux/stat.h, Linux 6.8).
const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// `NSFS_MAGIC` (include/uapi/linux/magic.h).
const NSFS: rustix::fs::FsWord = 0x6e73_6673;

/// The number of a mount, by which it is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountId {
    /// No other mount ever has this number.
    Unique(u64),
    /// Another mount may have it later.
    Reused(u64),
}

/// A file by `st_dev` and inode number.
pub(super) type FileId = (u64, u64);

/// Looks at files from within mount namespaces. It belongs to one thread.
pub(super) struct Inside {
    proc: OwnedFd,
    own: OwnedFd,
}

impl Inside {
    /// Runs `look` in a thread that can enter namespaces.
    pub(super) fn run<T: Send>(look: impl FnOnce(&Inside) -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("holders".to_owned());
            let thread = thread.spawn_scoped(scope, || {
                // SAFETY: it gives this thread a working directory and a root of its own; it has
                // no part in the table of descriptors.
                unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }?;
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                let inside = Inside {
                    proc: rustix::fs::open("/proc", flags | OFlags::DIRECTORY, Mode::empty())?,
                    own: rustix::fs::open("/proc/self/ns/mnt", flags, Mode::empty())?,
                };
                // Out of a root that was changed, too.
                inside.enter(&inside.own)?;
                Ok(look(&inside))
            })?;
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("it panicked")))
        })
    }

    /// The namespace of this process.
    pub(super) fn own(&self) -> &OwnedFd {
        &self.own
    }

    /// Makes the thread see a namespace, from its root on.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn enter(&self, namespace: impl AsFd) -> Result<(), Errno> {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))
    }

    /// The text of the thread's `mountinfo`, wherever `/proc` is mounted.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn mountinfo(&self) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.proc, "thread-self/mountinfo", flags, Mode::empty())?;
        let mut text = Vec::new();
        File::from(file).read_to_end(&mut text)?;
        Ok(text)
    }

    /// Opens a path of `/proc`.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open_proc(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.proc, path, flags | OFlags::CLOEXEC, Mode::empty())
    }

    /// The text of a link of `/proc`.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn link(&self, path: &Path) -> Result<String, Errno> {
        let text = rustix::fs::readlinkat(&self.proc, path, Vec::new())?;
        Ok(text.to_string_lossy().into_owned())
    }

    /// The root of the mount at `point`, if the path leads there now: whatever is mounted over it
    /// hides it. No file system is asked, so that none can keep this waiting: the kernel knows the
    /// paths of mounts.
    pub(super) fn root_of(&self, point: &Path, mount: MountId) -> Option<FileId> {
        let found = cached(point, OFlags::NOFOLLOW)?;
        let wanted = match mount {
            MountId::Unique(_) => UNIQUE,
            MountId::Reused(_) => StatxFlags::MNT_ID,
        };
        let (stat, id) = stat(&found, wanted)?;
        (MountId::Unique(id) == mount || MountId::Reused(id) == mount).then_some(stat)
    }

    /// The directory that a path leads to.
    pub(super) fn directory(&self, path: &Path) -> Option<FileId> {
        let found = cached(path, OFlags::DIRECTORY)?;
        Some(stat(&found, StatxFlags::MNT_ID)?.0)
    }

    /// Opens the mount namespace of this number, if it is mounted at a path.
    pub(super) fn namespace_at(&self, point: &Path, number: u64) -> Option<OwnedFd> {
        let found = cached(point, OFlags::NOFOLLOW)?;
        let ((_, inode), _) = stat(&found, StatxFlags::MNT_ID)?;
        let is_namespace = rustix::fs::fstatfs(&found).ok()?.f_type == NSFS;
        // Only one that is a namespace may be opened: another file could keep this waiting.
        let link = format!("thread-self/fd/{}", found.as_raw_fd());
        (is_namespace && inode == number)
            .then(|| self.open_proc(Path::new(&link), OFlags::RDONLY).ok())
            .flatten()
    }
}

fn cached(path: &Path, flags: OFlags) -> Option<OwnedFd> {
    let how = ResolveFlags::CACHED | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), how).ok()
}

/// The file and the number of its mount.
fn stat(file: &OwnedFd, number: StatxFlags) -> Option<(FileId, u64)> {
    // A server that doesn't answer (NFS) is not asked.
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let wanted = StatxFlags::TYPE | StatxFlags::INO | number;
    let found = rustix::fs::statx(file, "", flags, wanted).ok()?;
    let has = StatxFlags::from_bits_retain(found.stx_mask);
    let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
    (has.contains(number) && FileType::from_raw_mode(found.stx_mode.into()) != FileType::Unknown)
        .then_some(((device, found.stx_ino), found.stx_mnt_id))
}
