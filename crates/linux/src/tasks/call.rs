//! The system call that a thread is in.

use serde::{Deserialize, Serialize};

/// The system call that a blocked thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Call {
    /// Its number on this architecture, as `libc::SYS_…` has it.
    pub number: i64,
    /// Its first argument: the descriptor of most calls.
    pub first: u64,
    /// Its second argument: the path of calls that take a directory and a path.
    #[serde(default)]
    pub second: u64,
}

/// How a call names its file: a directory, and where in memory its path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileName {
    /// The directory at which a relative path begins.
    pub directory: Directory,
    /// The address of the path in the memory of the process.
    pub path: u64,
    /// Whether the call changes the name and not the file: it removes, renames or makes it.
    pub changes_name: bool,
}

/// The directory at which a relative path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directory {
    /// The working directory of the process.
    Working,
    /// That of one of its descriptors.
    Descriptor(u64),
}

/// Calls that take a directory's descriptor and a path.
const WITH_DIRECTORY: [&str; 13] = [
    "openat",
    "openat2",
    "unlinkat",
    "renameat",
    "renameat2",
    "mkdirat",
    "mknodat",
    "linkat",
    "statx",
    "newfstatat",
    "utimensat",
    "fchmodat",
    "fchownat",
];

/// Calls that take a path first.
const WITH_PATH: [&str; 9] = [
    "truncate", "execve", "swapon", "open", "unlink", "rename", "rmdir", "mkdir", "link",
];

/// Calls that change a name and not a file.
const OF_NAMES: [&str; 9] = [
    "unlinkat",
    "renameat",
    "renameat2",
    "mkdirat",
    "mknodat",
    "unlink",
    "rename",
    "rmdir",
    "mkdir",
];

/// Calls that wait for storage, with their names. Not every architecture has the older ones.
const NAMES: &[(i64, &str)] = &[
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_sync, "sync"),
    (libc::SYS_syncfs, "syncfs"),
    (libc::SYS_msync, "msync"),
    (libc::SYS_sync_file_range, "sync_file_range"),
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_pread64, "pread"),
    (libc::SYS_pwrite64, "pwrite"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_preadv, "preadv"),
    (libc::SYS_pwritev, "pwritev"),
    (libc::SYS_preadv2, "preadv2"),
    (libc::SYS_pwritev2, "pwritev2"),
    (libc::SYS_readahead, "readahead"),
    (libc::SYS_fadvise64, "fadvise64"),
    (libc::SYS_fchmod, "fchmod"),
    (libc::SYS_fchmodat, "fchmodat"),
    (libc::SYS_fchown, "fchown"),
    (libc::SYS_fchownat, "fchownat"),
    (libc::SYS_fgetxattr, "fgetxattr"),
    (libc::SYS_fsetxattr, "fsetxattr"),
    (libc::SYS_fremovexattr, "fremovexattr"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_openat2, "openat2"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_mknodat, "mknodat"),
    (libc::SYS_linkat, "linkat"),
    (libc::SYS_utimensat, "utimensat"),
    (libc::SYS_truncate, "truncate"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_getdents64, "getdents64"),
    (libc::SYS_statx, "statx"),
    (libc::SYS_close, "close"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_io_getevents, "io_getevents"),
    (libc::SYS_io_submit, "io_submit"),
    (libc::SYS_io_uring_enter, "io_uring_enter"),
    (libc::SYS_execve, "execve"),
    (libc::SYS_swapon, "swapon"),
    (libc::SYS_swapoff, "swapoff"),
    (libc::SYS_umount2, "umount"),
    (libc::SYS_mount, "mount"),
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    (libc::SYS_renameat, "renameat"),
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    (libc::SYS_newfstatat, "newfstatat"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_link, "link"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, "open"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "unlink"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "rename"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, "rmdir"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "mkdir"),
];

impl Call {
    /// Parses `/proc/PID/syscall`: `74 0x3 …`. `running` and `-1 …`, a page fault or a kernel
    /// thread, are none.
    pub(super) fn parse(text: &str) -> Option<Call> {
        let mut words = text.split_whitespace();
        let number: i64 = words.next()?.parse().ok()?;
        let mut argument = || {
            let word = words.next()?.strip_prefix("0x")?;
            u64::from_str_radix(word, 16).ok()
        };
        (number >= 0).then(|| Call {
            number,
            first: argument().unwrap_or(u64::MAX),
            second: argument().unwrap_or(0),
        })
    }

    /// Its name, where it is one that waits for storage.
    pub fn name(self) -> Option<&'static str> {
        let mut names = NAMES.iter();
        names
            .find(|(number, _)| *number == self.number)
            .map(|(_, name)| *name)
    }

    /// Whether its first argument is a descriptor of the file that it works on.
    pub fn has_descriptor(self) -> bool {
        const NONE: [&str; 7] = [
            "sync",
            "msync",
            "io_getevents",
            "io_submit",
            "io_uring_enter",
            "mount",
            "umount",
        ];
        let by_path = |name| WITH_DIRECTORY.contains(&name) || WITH_PATH.contains(&name);
        self.name()
            .is_some_and(|name| !NONE.contains(&name) && !by_path(name))
    }

    /// How it names the file that it works on. `None` of calls that take no path, or several file
    /// systems' (`mount`).
    pub fn file_name(self) -> Option<FileName> {
        let name = self.name()?;
        let changes_name = OF_NAMES.contains(&name);
        if WITH_PATH.contains(&name) {
            return Some(FileName {
                directory: Directory::Working,
                path: self.first,
                changes_name,
            });
        }
        // The kernel takes an `int` of it.
        let directory = match self.first as i32 {
            libc::AT_FDCWD => Directory::Working,
            number => Directory::Descriptor(u64::try_from(number).ok()?),
        };
        WITH_DIRECTORY.contains(&name).then_some(FileName {
            directory,
            path: self.second,
            changes_name,
        })
    }

    /// Whether it submits to or waits for a queue of operations: io_uring or libaio.
    pub fn is_of_queue(self) -> bool {
        let name = self.name();
        name.is_some_and(|name| matches!(name, "io_uring_enter" | "io_getevents" | "io_submit"))
    }

    /// Whether a thread that sleeps in it (`S`, not `D`) may wait for storage all the same: it
    /// syncs, frees, trims or reaps I/O.
    pub fn may_sleep_for_storage(self) -> bool {
        const SOME: [&str; 15] = [
            "fsync",
            "fdatasync",
            "sync",
            "syncfs",
            "msync",
            "unlinkat",
            "unlink",
            "truncate",
            "ftruncate",
            "fallocate",
            "io_getevents",
            "io_submit",
            "io_uring_enter",
            "flock",
            "fcntl",
        ];
        self.name().is_some_and(|name| SOME.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_and_named() {
        let fsync = Call::parse(&format!("{} 0x3 0x0\n", libc::SYS_fsync)).unwrap();
        assert_eq!((fsync.name(), fsync.first), (Some("fsync"), 3));
        assert!(fsync.has_descriptor() && fsync.may_sleep_for_storage());
        let sync = Call::parse(&format!("{} 0x3\n", libc::SYS_sync)).unwrap();
        assert!(!sync.has_descriptor());
        let ring = Call::parse(&format!("{} 0x4\n", libc::SYS_io_uring_enter)).unwrap();
        assert!(ring.is_of_queue() && !ring.has_descriptor() && !fsync.is_of_queue());
        // Python's `os.preadv` is `preadv2`.
        for number in [libc::SYS_preadv2, libc::SYS_pwritev2, libc::SYS_fsetxattr] {
            let call = Call::parse(&format!("{number} 0x3 0x7f00\n")).unwrap();
            assert!(call.has_descriptor(), "{call:?}");
        }
        for none in ["running\n", "-1 0x0 0x0\n", ""] {
            assert_eq!(Call::parse(none), None);
        }
        let other = Call {
            number: 9999,
            first: 0,
            second: 0,
        };
        assert!(other.name().is_none() && !other.has_descriptor());
    }

    #[test]
    fn a_call_with_a_path_names_its_directory() {
        let name = |number: i64, first: &str| {
            let call = Call::parse(&format!("{number} {first} 0x7f00 0x0\n")).unwrap();
            assert!(!call.has_descriptor(), "{call:?}");
            call.file_name()
        };
        let in_directory = |directory, changes_name| FileName {
            directory,
            path: 0x7f00,
            changes_name,
        };
        // The kernel shows AT_FDCWD in 32 or in 64 bits, as the program passed it.
        for working in ["0xffffff9c", "0xffffffffffffff9c"] {
            let expected = in_directory(Directory::Working, true);
            assert_eq!(name(libc::SYS_unlinkat, working), Some(expected));
        }
        let opened = in_directory(Directory::Descriptor(5), false);
        assert_eq!(name(libc::SYS_openat, "0x5"), Some(opened));
        let truncated = name(libc::SYS_truncate, "0x55aa").unwrap();
        assert_eq!(
            (truncated.directory, truncated.path),
            (Directory::Working, 0x55aa)
        );
        assert_eq!(name(libc::SYS_sync, "0x0"), None);
        assert_eq!(name(libc::SYS_umount2, "0x55aa"), None);
    }
}
