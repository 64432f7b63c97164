//! The threads of the machine: their states, the calls they are in, and where in the kernel they
//! wait.
//!
//! The kernel shows a thread's state to everybody. It shows the call, the wait channel and the
//! times to its owner, and the stack to root alone.

mod call;
mod named;
mod openers;
pub mod peers;

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use serde::{Deserialize, Serialize};

pub use call::{Call, Directory, FileName};
pub(crate) use openers::shares_descriptors;
pub use openers::{Opener, Use, opener};

use crate::sysroot::value;

/// A thread, by its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

impl Thread {
    fn file(self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/task/{}/{name}", self.pid, self.tid))
    }

    /// Its state and times. `None` if it has ended.
    pub fn stat(self) -> Option<Stat> {
        let mut text = [0; SHORT];
        let count = File::open(self.file("stat")).ok()?.read(&mut text).ok()?;
        Stat::parse(&text[..count])
    }

    /// The file of how long it has run, held open. `None` if it has ended, and of a kernel without it.
    pub fn runs_file(self) -> Option<RunsFile> {
        File::open(self.file("schedstat")).ok().map(RunsFile)
    }

    /// Where in the kernel it waits: names of functions, the innermost first.
    ///
    /// # Errors
    /// Without root, and if it has ended.
    pub fn stack(self) -> io::Result<Vec<String>> {
        let text = text(&self.file("stack"))?;
        Ok(frames(&text).map(str::to_owned).collect())
    }

    /// The function it sleeps in; `None` while it runs, and of threads of other users.
    pub fn wait_channel(self) -> Option<String> {
        let name = fs::read_to_string(self.file("wchan")).ok()?;
        (!name.is_empty() && name != "0").then_some(name)
    }

    /// The system call it is blocked in; `None` while it runs, of kernel threads, and of threads
    /// of other users.
    pub fn call(self) -> Option<Call> {
        Call::parse(&text(&self.file("syscall")).ok()?)
    }

    /// The path of the file behind one of its descriptors: a link of `/proc`.
    pub fn descriptor(self, number: u64) -> PathBuf {
        self.file(&format!("fd/{number}"))
    }

    /// Its open descriptors; none of threads of other users.
    pub fn descriptors(self) -> Vec<u64> {
        let all = numbers(&format!("/proc/{}/task/{}/fd", self.pid, self.tid));
        all.into_iter().map(u64::from).collect()
    }

    /// Operations in flight in the io_uring behind one of its descriptors: submitted and not
    /// completed. `None` if it is no ring, or the kernel doesn't show it.
    pub fn ring_in_flight(self, number: u64) -> Option<u32> {
        in_flight(&fs::read_to_string(self.file(&format!("fdinfo/{number}"))).ok()?)
    }

    /// Whether one of its descriptors bypasses the page cache (`O_DIRECT`).
    pub fn is_direct(self, number: u64) -> bool {
        self.flags(number)
            .is_some_and(|flags| flags.contains(OFlags::DIRECT))
    }

    /// The flags with which one of its descriptors was opened.
    fn flags(self, number: u64) -> Option<OFlags> {
        open_flags(&fs::read_to_string(self.file(&format!("fdinfo/{number}"))).ok()?)
    }
}

/// A thread's `schedstat`, held open: a reading makes one system call. It stays that of its thread,
/// whoever has the number later.
#[derive(Debug)]
pub struct RunsFile(File);

impl RunsFile {
    /// The nanoseconds that the thread has run, and how often (Linux, `proc_pid_schedstat` in
    /// fs/proc/base.c). Both stay the same while it sleeps. `None` if it has ended, or the kernel doesn't
    /// count.
    pub fn read(&self) -> Option<(u64, u64)> {
        let mut text = [0; SHORT];
        let count = self.0.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..count]).ok()?;
        let mut fields = text.split_whitespace().map(str::parse);
        let (ran_ns, times) = (fields.next()?.ok()?, fields.nth(1)?.ok()?);
        (times > 0).then_some((ran_ns, times))
    }
}

/// `stat` and `syscall` are shorter than this, in bytes; most stacks are, too.
const SHORT: usize = 2048;

/// The text of a file of `/proc` that the kernel makes at once. A read that does not fill its
/// buffer was the last.
fn text(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut short = [0; SHORT];
    let count = file.read(&mut short)?;
    let mut text = short[..count].to_vec();
    if count == SHORT {
        file.read_to_end(&mut text)?;
    }
    String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The number of the device that holds a file, or of the block device that the file is: read
/// without asking a file system that does not answer.
pub fn device_of(path: &Path) -> Option<crate::mounts::DeviceNumber> {
    use rustix::fs::{AtFlags, FileType, StatxFlags};
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let found = rustix::fs::statx(rustix::fs::CWD, path, flags, StatxFlags::TYPE).ok()?;
    let mode = u32::from(found.stx_mode);
    let (major, minor) = match FileType::from_raw_mode(mode) {
        FileType::BlockDevice => (found.stx_rdev_major, found.stx_rdev_minor),
        _ => (found.stx_dev_major, found.stx_dev_minor),
    };
    Some(crate::mounts::DeviceNumber { major, minor })
}

/// All processes that this one sees.
pub fn processes() -> Vec<u32> {
    numbers("/proc")
}

/// The name of the process that a thread belongs to, where the thread is not its first: threads
/// often have names of their own. `None` of first threads, and if it has ended.
pub fn name_of_process(tid: u32) -> Option<String> {
    let pid = status(tid, "Tgid:")?;
    let first = Thread { pid, tid: pid };
    (pid != tid)
        .then(|| first.stat())
        .flatten()
        .map(|stat| stat.comm)
}

/// A figure that changes with the number of a process' threads, without a list of them: the links
/// of its directory `task` (Linux, `proc_task_getattr` in fs/proc/base.c). `None` if it has ended.
pub fn thread_links(pid: u32) -> Option<u64> {
    let found = fs::metadata(format!("/proc/{pid}/task")).ok()?;
    Some(found.nlink())
}

/// The threads of a process; none if it has ended.
pub fn threads(pid: u32) -> Vec<Thread> {
    let all = numbers(&format!("/proc/{pid}/task")).into_iter();
    all.map(|tid| Thread { pid, tid }).collect()
}

/// A process and its descendants, itself first. A descendant whose parent has ended is missing.
pub fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(&parent) = all.get(next) {
        next += 1;
        for thread in threads(parent) {
            let text = fs::read_to_string(thread.file("children")).unwrap_or_default();
            let children = text.split_whitespace().filter_map(|one| one.parse().ok());
            all.extend(children.filter(|child: &u32| *child != pid));
        }
    }
    all
}

/// The processes of a control group and of those below it, by the group's directory.
pub fn of_cgroup(directory: &Path) -> Vec<u32> {
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    let mut all: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(of_cgroup(&entry.path()));
        }
    }
    all
}

/// A number in `/proc/PID/status`.
fn status(pid: u32, key: &str) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    value(&text, key)?.parse().ok()
}

fn numbers(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The counters that a ring shows in `fdinfo` (Linux, io_uring/fdinfo.c); both wrap.
fn in_flight(text: &str) -> Option<u32> {
    let figure = |name: &str| -> Option<u32> { value(text, name)?.parse().ok() };
    Some(figure("CachedSqHead:")?.wrapping_sub(figure("CachedCqTail:")?))
}

/// Whether the flags of an `fdinfo`, in octal, have `O_DIRECT`.
fn open_flags(text: &str) -> Option<OFlags> {
    let flags = u32::from_str_radix(value(text, "flags:")?, 8).ok()?;
    Some(OFlags::from_bits_retain(flags))
}

/// The functions of `/proc/PID/stack`: `[<0>] submit_bio_wait+0x74/0xc0`.
fn frames(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let frame = line.split_once("] ")?.1;
        let name = frame.split(['+', ' ']).next()?;
        (!name.is_empty()).then_some(name)
    })
}

// `/proc/PID/task/TID/stat`.

/// A thread's state (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It runs, or waits for a processor.
    Running,
    /// It is blocked and no signal wakes it (`D`).
    Blocked,
    /// It sleeps until something happens or a signal comes (`S`).
    Sleeping,
    /// Stopped, a zombie, or a kernel thread that is idle.
    Other,
}

/// A thread's state and times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Its name: 15 bytes at most of a user's, more of a kernel's worker.
    pub comm: String,
    /// Its state.
    pub state: State,
    /// The parent process.
    pub parent: u32,
    /// Whether it is a thread of the kernel.
    pub kernel: bool,
    /// When it started, in ticks since the machine did.
    pub started_ticks: u64,
    /// The processor that it ran on last.
    pub processor: Option<usize>,
}

/// `PF_KTHREAD` (Linux, include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Stat {
    /// Parses the file; `None` of anything else.
    pub fn parse(text: &[u8]) -> Option<Stat> {
        let text = String::from_utf8_lossy(text);
        // A name may hold parentheses.
        let (before, after) = text.rsplit_once(')')?;
        let comm = before.split_once('(')?.1.to_owned();
        let mut fields = after.split_ascii_whitespace();
        let state = match fields.next()? {
            "R" => State::Running,
            "D" => State::Blocked,
            "S" => State::Sleeping,
            _ => State::Other,
        };
        let parent = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(4)?.parse().ok()?;
        let started_ticks = fields.nth(12)?.parse().ok()?;
        Some(Stat {
            comm,
            state,
            parent,
            kernel: flags & KERNEL_THREAD != 0,
            started_ticks,
            processor: fields.nth(16).and_then(|number| number.parse().ok()),
        })
    }
}

// Processors.

/// The processors that a thread may run on.
#[derive(Debug, Clone)]
pub struct Processors(CpuSet);

impl Processors {
    /// Those of the calling thread; `None` if the kernel refuses.
    pub fn allowed() -> Option<Processors> {
        sched_getaffinity(None).ok().map(Processors)
    }

    /// The one that the calling thread runs on.
    pub fn current() -> usize {
        sched_getcpu()
    }

    /// Lets the calling thread run on all of them but this one, if there is another.
    pub fn avoid(&self, processor: usize) {
        if processor >= CpuSet::MAX_CPU {
            return;
        }
        let mut others = self.0;
        others.unset(processor);
        if others.count() > 0 {
            // On the old ones it is right as well.
            let _ = sched_setaffinity(None, &others);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_read() {
        let text =
            "[<0>] submit_bio_wait+0x74/0xc0\n[<0>] btrfs_commit_transaction+0x662/0xce0 [btrfs]\n";
        let found: Vec<&str> = frames(text).collect();
        assert_eq!(found, ["submit_bio_wait", "btrfs_commit_transaction"]);
    }

    #[test]
    fn what_a_ring_has_in_flight_is_read() {
        let text = "pos:\t0\nSqMask:\t0x3f\nSqHead:\t9\nSqTail:\t9\nCachedSqHead:\t9\n\
                    CqMask:\t0x7f\nCqHead:\t7\nCqTail:\t7\nCachedCqTail:\t7\n";
        assert_eq!(in_flight(text), Some(2));
        assert_eq!(in_flight("pos:\t0\nflags:\t02\n"), None);
    }

    #[test]
    fn a_descriptor_that_bypasses_the_page_cache_is_recognised() {
        let flags = |bits: u32| format!("pos:\t0\nflags:\t0{bits:o}\nmnt_id:\t26\n");
        let direct = rustix::fs::OFlags::DIRECT.bits();
        let has_direct =
            |text: &str| open_flags(text).is_some_and(|all| all.contains(OFlags::DIRECT));
        assert!(has_direct(&flags(direct | 2)));
        assert!(!has_direct(&flags(2)) && !has_direct("pos:\t0\n"));
    }

    #[test]
    fn this_process_is_found() {
        let own = std::process::id();
        assert!(processes().contains(&own));
        let thread = threads(own)[0];
        let stat = thread.stat().unwrap();
        assert!(!stat.kernel && stat.parent > 0, "{stat:?}");
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert!(family(own).contains(&child.id()));
        let alone = thread_links(child.id()).unwrap();
        assert!(thread_links(own).unwrap() > alone || threads(own).len() == 1);
        let first = threads(child.id())[0];
        assert_eq!(first.stat().unwrap().parent, own);
        let held = first.runs_file();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(threads(child.id()).is_empty() && thread_links(child.id()).is_none());
        assert!(held.and_then(|file| file.read()).is_none() && first.stat().is_none());
    }

    #[test]
    fn a_thread_moves_off_a_processor() {
        let Some(allowed) = Processors::allowed() else {
            return;
        };
        let others = allowed.0.count() > 1;
        for _ in 0..3 {
            let here = Processors::current();
            allowed.avoid(here);
            assert_eq!(others, Processors::current() != here);
        }
        allowed.avoid(usize::MAX);
    }

    #[test]
    fn a_thread_is_read_whatever_its_name() {
        let text = b"44 (a) b (c) D 2 0 0 0 -1 69238880 0 0 0 0 7 11 0 0 0 -20 1 0 34 0 0 18446744073709551615 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(
            (stat.comm.as_str(), stat.state),
            ("a) b (c", State::Blocked)
        );
        assert_eq!((stat.parent, stat.started_ticks), (2, 34));
        assert_eq!(stat.processor, None, "it is cut off");
        assert!(stat.kernel, "69238880 has 0x200000");
        assert_eq!(Stat::parse(b"44 (a"), None);
        assert_eq!(Stat::parse(b""), None);
    }
}
