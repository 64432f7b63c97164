//! The processes that use a block device without a claim: the kernel's `O_EXCL` knows nothing of
//! them.

use std::fmt;
use std::fs;
use std::path::Path;

use rustix::fs::OFlags;

use super::{Thread, device_of, processes, threads};
use crate::mounts::DeviceNumber;

/// The way in which a process uses a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It can write to it, or has a file open that lies on it.
    Open,
    /// It has mapped it into its memory.
    Mapped,
}

/// A process that uses a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opener {
    /// The process.
    pub pid: u32,
    /// Its name, as the kernel has it.
    pub name: String,
    /// The device.
    pub device: DeviceNumber,
    /// The way in which it uses it.
    pub uses: Use,
}

impl fmt::Display for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.uses {
            Use::Open => "open",
            Use::Mapped => "mapped into its memory",
        };
        let name = record::units::names::harmless(&self.name);
        write!(f, "process {} ({name}) has it {what}", self.pid)
    }
}

/// Finds another process that has one of these devices mapped or open for writing, or a file open
/// that lies on it. Processes that this one may not examine, and those outside its pid namespace,
/// are left out.
pub fn opener(devices: &[DeviceNumber]) -> Option<Opener> {
    let own = std::process::id();
    let others = processes().into_iter().filter(|&pid| pid != own);
    others.into_iter().find_map(|pid| of_process(pid, devices))
}

fn of_process(pid: u32, devices: &[DeviceNumber]) -> Option<Opener> {
    let found = |device, uses| {
        let first = Thread { pid, tid: pid };
        let name = first.stat().map(|stat| stat.comm).unwrap_or_default();
        Opener {
            pid,
            name,
            device,
            uses,
        }
    };
    let ours = |path: &Path| device_of(path).filter(|device| devices.contains(device));
    let all = threads(pid);
    for thread in &all {
        // Most threads share the descriptors of the first.
        if thread.tid != pid && shares_descriptors(pid, thread.tid) {
            continue;
        }
        for number in thread.descriptors() {
            let path = thread.descriptor(number);
            let device = ours(&path).filter(|_| thread.can_lose(number, &path));
            if let Some(device) = device {
                return Some(found(device, Use::Open));
            }
        }
    }
    // All threads share the memory. That of a first thread that has ended is no longer shown.
    for thread in all {
        let maps = fs::read_dir(format!("/proc/{}/map_files", thread.tid));
        let mut maps = maps.into_iter().flatten().flatten().peekable();
        let is_shown = maps.peek().is_some();
        if let Some(device) = maps.find_map(|map| ours(&map.path())) {
            return Some(found(device, Use::Mapped));
        }
        if is_shown {
            break;
        }
    }
    None
}

impl Thread {
    /// Whether a descriptor of a device, or of a file on it, is more than one for reading the
    /// device.
    fn can_lose(self, number: u64, path: &Path) -> bool {
        let flags = self.flags(number).unwrap_or(OFlags::empty());
        if flags.contains(OFlags::PATH) {
            return false;
        }
        flags.intersects(OFlags::WRONLY | OFlags::RDWR) || !is_block_device(path)
    }
}

fn is_block_device(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE);
    found.is_ok_and(|found| {
        FileType::from_raw_mode(u32::from(found.stx_mode)) == FileType::BlockDevice
    })
}

/// Whether two threads have one table of descriptors. A kernel without `kcmp` doesn't say.
pub(crate) fn shares_descriptors(one: u32, other: u32) -> bool {
    const KCMP_FILES: libc::c_int = 2;
    // SAFETY: the call takes numbers alone.
    let compared = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_FILES, 0_u64, 0_u64) };
    compared == 0
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::fs::MetadataExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that has done what a program says, until it is killed.
    struct Running(Child);

    impl Running {
        fn python(program: &str, path: &Path) -> Running {
            let program =
                format!("{program}\nprint('ready', flush=True)\nimport time\ntime.sleep(600)");
            let mut child = Command::new("python3")
                .args(["-c", &program])
                .arg(path)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let out = child.stdout.as_mut().unwrap().by_ref();
            BufReader::new(out).read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
            Running(child)
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A file stands for the device that it lies on, which many processes use: the test looks at
    /// one process alone.
    #[test]
    fn open_files_and_maps_are_found_and_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 16).unwrap();
        let device = DeviceNumber::from_raw(file.as_file().metadata().unwrap().dev());
        let begin = "import sys, os, mmap, threading\np = sys.argv[1]\n";
        let open = Running::python(&format!("{begin}f = open(p)"), file.path());
        let found = of_process(open.0.id(), &[device]).unwrap();
        assert_eq!((found.pid, found.uses), (open.0.id(), Use::Open));
        assert!(found.to_string().contains("(python3"), "{found}");
        let pid = open.0.id();
        drop(open);
        assert_eq!(of_process(pid, &[device]), None);
    }

    #[test]
    fn threads_of_this_process_share_their_descriptors() {
        let own = std::process::id();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| rustix::thread::gettid().as_raw_nonzero().get());
            let other = u32::try_from(other.join().unwrap()).unwrap();
            // A thread that has ended shares none.
            let _ = shares_descriptors(own, other);
        });
        assert!(shares_descriptors(own, own));
        assert!(!shares_descriptors(own, 1));
    }
}
