//! How many paced deleters work on the same drive.
//!
//! Each one holds a read lock on a random byte of the drive's statistics file in sysfs, and
//! counts the bytes that others have locked. So two deleters divide one goal without a
//! daemon, a file of their own or root. The kernel drops the lock when the process ends in
//! whatever way. Processes in another network namespace see another sysfs, and are not
//! counted.

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::SysRoot;

/// The last byte that can be locked.
const LAST: i64 = i64::MAX - 1;

/// Membership among the deleters of some drives; it ends when this is dropped.
#[derive(Debug)]
pub struct Deleters {
    drives: Vec<File>,
}

impl Deleters {
    /// Joins the deleters of these drives, given by their kernel names. A drive whose
    /// statistics cannot be opened or locked is left out: its deleters are not counted.
    pub fn join(sys: &SysRoot, drives: &[String]) -> Deleters {
        let open = |name: &String| File::open(sys.class(name).join("stat")).ok();
        let mut drives: Vec<File> = drives.iter().filter_map(open).collect();
        let mut random = [0; 8];
        // Without random bytes two deleters could take the same, and count as one.
        drives.retain(|file| {
            rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).is_ok()
                && lock(file, i64::from_ne_bytes(random) & LAST)
        });
        Deleters { drives }
    }

    /// How many others are on the drive that has most of them.
    pub fn others(&self) -> u32 {
        self.drives.iter().map(others).max().unwrap_or(0)
    }
}

/// Takes a read lock on one byte.
fn lock(file: &File, at: i64) -> bool {
    let lock = flock(libc::F_RDLCK, at, 1);
    // SAFETY: the kernel reads one `flock`, which lives until the call returns.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    result == 0
}

/// How many bytes of a file others have locked.
fn others(file: &File) -> u32 {
    let mut found = 0;
    // The kernel names any lock within a range: what lies on both sides of it is asked next.
    let mut ranges = vec![(0, LAST)];
    while let Some((from, to)) = ranges.pop() {
        if from > to {
            continue;
        }
        let mut lock = flock(libc::F_WRLCK, from, to - from + 1);
        // SAFETY: the kernel reads and writes one `flock`, which lives until the call returns.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
        if result != 0 || lock.l_type == libc::F_UNLCK as libc::c_short {
            continue;
        }
        found += 1;
        ranges.push((from, lock.l_start - 1));
        if lock.l_len > 0 {
            ranges.push((lock.l_start + lock.l_len, to));
        }
    }
    found
}

fn flock(kind: i32, start: i64, length: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: length,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleters_of_a_drive_count_each_other_until_they_end() {
        let root = tempfile::tempdir().unwrap();
        let class = root.path().join("sys/class/block");
        for name in ["a", "b"] {
            std::fs::create_dir_all(class.join(name)).unwrap();
            std::fs::write(class.join(name).join("stat"), "0").unwrap();
        }
        let sys = SysRoot::at(root.path());
        let (a, both) = (["a".to_owned()], ["a".to_owned(), "b".to_owned()]);
        let first = Deleters::join(&sys, &a);
        assert_eq!(first.others(), 0);
        let second = Deleters::join(&sys, &both);
        let third = Deleters::join(&sys, &both);
        assert_eq!((first.others(), second.others()), (2, 2));
        drop(third);
        assert_eq!((first.others(), second.others()), (1, 1));
        assert_eq!(Deleters::join(&sys, &["c".to_owned()]).others(), 0);
    }
}
