//! An array of md without a superblock (`mdadm --build`), stopped however its process ends.
//!
//! A child process ([`Watcher`]) waits for the end of this one, be it by `kill -9`, and stops the
//! array as soon as nothing uses it. If both are killed, [`sweep`] does it: a lock that the kernel
//! drops tells which arrays are abandoned, and the lock's file has the names of their members.

use std::cell::Cell;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, Mode, OFlags};

use crate::SysRoot;
use crate::files::{make_own_directory, own_directory};
use crate::mount_point::{c_string, lock_file, locked};
use crate::watcher::{Undo, Watcher};

/// `STOP_ARRAY`, `_IO(9, 0x32)` of `include/uapi/linux/raid/md_u.h`.
const STOP_ARRAY: libc::Ioctl = 0x0932;
/// Arrays get numbers from this one down, as mdadm gives them.
const HIGHEST: u32 = 127;
/// So many looks without a member mean that there is no array: mdadm may be in the middle of it.
const LOOKS: u32 = 5;
/// An abandoned array may be busy for so many looks: it was just unmounted.
const BUSY_LOOKS: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(100);

/// Whether this kernel has md, and in it RAID 0, now: as a module it may have to be loaded.
pub fn has_raid0(sys: &SysRoot) -> bool {
    let text = sys.text("/proc/mdstat").unwrap_or_default();
    let mut lines = text.lines().filter(|l| l.starts_with("Personalities"));
    lines.any(|line| line.split_whitespace().any(|word| word == "[raid0]"))
}

/// A number for an array, and the promise that the array is stopped when this is dropped, and when
/// this process ends in any way.
#[derive(Debug)]
pub struct ArrayGuard {
    node: PathBuf,
    lock_file: PathBuf,
    /// `None` once the array is stopped.
    watcher: Option<Watcher>,
    /// Held as long as the array is in use.
    _lock: File,
}

/// Stops an array.
#[derive(Debug)]
struct Stop {
    node: CString,
    /// It is there while the first member is a part of the array.
    holder: CString,
    lock_file: CString,
    looks: Cell<u32>,
}

impl Undo for Stop {
    fn undo(&self, _: BorrowedFd<'_>) -> bool {
        if rustix::fs::access(self.holder.as_c_str(), Access::EXISTS).is_err() {
            // The file stays for the next `sweep`: an mdadm that is slower than that may still run.
            self.looks.set(self.looks.get() + 1);
            return self.looks.get() >= LOOKS;
        }
        let stopped = self.stop();
        if stopped {
            let _ = rustix::fs::unlink(self.lock_file.as_c_str());
        }
        stopped
    }
}

impl Stop {
    fn new(sys: &SysRoot, base: &Path, name: &str, first: &str) -> io::Result<Stop> {
        Ok(Stop {
            node: c_string(&node(name))?,
            holder: c_string(&sys.class(first).join("holders").join(name))?,
            lock_file: c_string(&lock_file(base, name))?,
            looks: Cell::new(0),
        })
    }

    /// Makes system calls alone. The kernel refuses (`EBUSY`) while anybody else has it open.
    fn stop(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(array) = rustix::fs::open(self.node.as_c_str(), flags, Mode::empty()) else {
            return false;
        };
        // SAFETY: the request has no argument; the file is open meanwhile.
        unsafe { libc::ioctl(array.as_fd().as_raw_fd(), STOP_ARRAY, 0) == 0 }
    }
}

impl ArrayGuard {
    /// Chooses a free number for an array of these members, which are kernel names, and starts its
    /// watcher. The array is still to be built at [`ArrayGuard::node`]. Locks are kept in `base`.
    ///
    /// # Errors
    /// When there are no members, no number is free, or nothing can be written in `base`.
    pub fn take(sys: &SysRoot, base: &Path, members: &[String]) -> io::Result<ArrayGuard> {
        make_own_directory(base)?;
        let first = members.first().ok_or(io::ErrorKind::InvalidInput)?;
        for number in (0..=HIGHEST).rev() {
            let name = format!("md{number}");
            if sys.class(&name).exists() {
                continue;
            }
            let lock_file = lock_file(base, &name);
            let Some(mut lock) = locked(&lock_file)? else {
                continue;
            };
            lock.set_len(0)?;
            lock.write_all((members.join("\n") + "\n").as_bytes())?;
            let stop = Stop::new(sys, base, &name, first)?;
            let watcher = Watcher::start(&lock, Some(lock.as_fd()), &stop)?;
            return Ok(ArrayGuard {
                node: node(&name),
                lock_file,
                watcher: Some(watcher),
                _lock: lock,
            });
        }
        Err(io::Error::other("no number is free for an array of md"))
    }

    /// The path of the array's device.
    pub fn node(&self) -> &Path {
        &self.node
    }
}

impl Drop for ArrayGuard {
    fn drop(&mut self) {
        // The child stops it, as it would if this process were killed. One that stays busy keeps
        // its lock's file, for the next `sweep`.
        if self.watcher.take().is_some_and(Watcher::restore) {
            let _ = fs::remove_file(&self.lock_file);
        }
    }
}

/// Stops the arrays that killed processes left, as their locks in `base` have it. A `base` in which
/// another user could have put locks is left alone.
pub fn sweep(sys: &SysRoot, base: &Path) {
    if own_directory(base).is_err() {
        return;
    }
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let file_name = entry.file_name().to_string_lossy().into_owned();
        let name = file_name.strip_suffix(".lock").filter(|n| is_array(n));
        let Some(name) = name else { continue };
        let Ok(Some(lock)) = locked(&entry.path()) else {
            continue;
        };
        let members = fs::read_to_string(entry.path()).unwrap_or_default();
        let members: Vec<&str> = members.lines().collect();
        if !is_ours(sys, name, &members) {
            let _ = fs::remove_file(entry.path());
            continue;
        }
        let Ok(stop) = Stop::new(sys, base, name, members[0]) else {
            continue;
        };
        for _ in 0..BUSY_LOOKS {
            if stop.undo(lock.as_fd()) {
                break;
            }
            std::thread::sleep(BETWEEN);
        }
    }
}

/// Whether an array is what `mdadm --build` made of these members: another one may have its number
/// by now.
fn is_ours(sys: &SysRoot, name: &str, members: &[&str]) -> bool {
    let version = sys.attribute(name, "md/metadata_version");
    let has = |member: &&str| sys.class(member).join("holders").join(name).exists();
    !members.is_empty() && members.iter().all(has) && version.as_deref() == Some("none")
}

fn is_array(name: &str) -> bool {
    let number = name.strip_prefix("md").map(str::parse::<u32>);
    matches!(number, Some(Ok(_)))
}

fn node(name: &str) -> PathBuf {
    Path::new("/dev").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Machine;

    #[test]
    fn raid0_is_there_once_md_lists_it() {
        let machine = Machine::new("");
        let sys = SysRoot::at(machine.root());
        assert!(!has_raid0(&sys));
        machine.write(
            "proc/mdstat",
            "Personalities : [raid1] \nunused devices: <none>\n",
        );
        assert!(!has_raid0(&sys));
        machine.write("proc/mdstat", "Personalities : [raid1] [raid0] \n");
        assert!(has_raid0(&sys));
    }

    #[test]
    fn an_array_gets_a_free_number_and_leaves_nothing() {
        let machine = Machine::new("");
        machine.device("virtual/block/md127", "9:127", Some(0));
        let sys = SysRoot::at(machine.root());
        let base = tempfile::tempdir().unwrap();
        let members = ["sda".to_owned(), "sdb".to_owned()];
        let first = ArrayGuard::take(&sys, base.path(), &members).unwrap();
        let second = ArrayGuard::take(&sys, base.path(), &members).unwrap();
        assert_eq!(first.node(), Path::new("/dev/md126"));
        assert_eq!(second.node(), Path::new("/dev/md125"));
        assert!(ArrayGuard::take(&sys, base.path(), &[]).is_err());
        drop((first, second));
        sweep(&sys, base.path());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_an_array_without_a_superblock_of_the_same_members_is_abandoned() {
        let machine = Machine::new("");
        machine.device("virtual/block/md127", "9:127", Some(0));
        machine.device("pci/sda", "8:0", Some(0));
        machine.device("pci/sdb", "8:16", Some(0));
        machine.slave("virtual/block/md127", "pci/sda");
        let sys = SysRoot::at(machine.root());
        let version =
            |text: &str| machine.write("sys/devices/virtual/block/md127/md/metadata_version", text);
        for member in ["sda", "sdb"] {
            let place = format!("sys/devices/pci/{member}/holders/md127");
            assert!(!is_ours(&sys, "md127", &["sda", "sdb"]));
            if !machine.root().join(&place).exists() {
                machine.link(&place, "sys/devices/virtual/block/md127");
            }
            version("none\n");
        }
        assert!(is_ours(&sys, "md127", &["sda", "sdb"]));
        assert!(!is_ours(&sys, "md127", &["sda", "sdc"]));
        assert!(!is_ours(&sys, "md127", &[]));
        version("1.2\n");
        assert!(!is_ours(&sys, "md127", &["sda", "sdb"]));
    }
}
