//! Files that processes have open.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, RawDir, Stat, StatxFlags};

/// The regular files that processes have open or execute, as far as this user may look into
/// them. A file that is only mapped is not among them, nor one that the kernel itself uses
/// (a loop device, swap).
#[derive(Debug, Default)]
pub struct OpenFiles {
    /// One of the processes of each, by `st_dev` and inode number: this one only where no other has it.
    files: HashMap<(u64, u64), u32>,
}

impl OpenFiles {
    /// Lists the files that are open now. It takes about a microsecond for each open descriptor of
    /// the machine. Without `/proc` the list is empty.
    pub fn now() -> OpenFiles {
        let mut open = OpenFiles::default();
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = process.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // Kernel threads, and processes of others or that have ended, show nothing.
            if let Ok(directory) = File::open(process.path()) {
                open.add(pid, &directory, c"exe");
            }
            if let Ok(directory) = File::open(process.path().join("fd")) {
                open.add_all(pid, &directory);
            }
        }
        open
    }

    /// Whether a file is among them.
    pub fn has(&self, file: &Stat) -> bool {
        self.process(file).is_some()
    }

    /// A process that has a file open.
    pub fn process(&self, file: &Stat) -> Option<u32> {
        self.files.get(&(file.st_dev, file.st_ino)).copied()
    }

    /// Adds all descriptors of a directory `fd`.
    fn add_all(&mut self, pid: u32, directory: &File) {
        let mut buffer = Vec::with_capacity(32 << 10);
        let mut names = RawDir::new(directory, buffer.spare_capacity_mut());
        while let Some(Ok(entry)) = names.next() {
            if entry.file_type() == FileType::Symlink {
                self.add(pid, directory, entry.file_name());
            }
        }
    }

    fn add(&mut self, pid: u32, directory: impl AsFd, name: &std::ffi::CStr) {
        // A server that doesn't answer (NFS) is not asked.
        let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let wanted = StatxFlags::TYPE | StatxFlags::INO;
        let Ok(found) = rustix::fs::statx(directory, name, flags, wanted) else {
            return;
        };
        if FileType::from_raw_mode(u32::from(found.stx_mode)) == FileType::RegularFile {
            let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
            let process = self.files.entry((device, found.stx_ino)).or_insert(pid);
            if *process == std::process::id() {
                *process = pid;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_listed_while_it_is_open() {
        // With a name: the inode of a file without one is another test's as soon as it is closed.
        let (file, _name) = tempfile::NamedTempFile::new().unwrap().into_parts();
        let stat = rustix::fs::fstat(&file).unwrap();
        assert!(OpenFiles::now().has(&stat));
        let own = std::process::id();
        // Programs that other tests are about to start have it, too, for a moment.
        let is_own = || OpenFiles::now().process(&stat) == Some(own);
        assert!((0..100).any(|_| is_own()));
        drop(file);
        // A program that another test starts holds it until its exec.
        let mut tries = 0..100;
        while OpenFiles::now().has(&stat) {
            tries.next().expect("it stays open");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    #[test]
    fn another_process_is_named_before_this_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let held = file.reopen().unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .stdin(held)
            .spawn()
            .unwrap();
        let stat = rustix::fs::fstat(file.as_file()).unwrap();
        // Programs that other tests are about to start have it, too, for a moment.
        let named = || OpenFiles::now().process(&stat) == Some(child.id());
        assert!((0..100).any(|_| named()));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_running_program_is_listed() {
        let own = rustix::fs::stat("/proc/self/exe").unwrap();
        assert!(OpenFiles::now().process(&own).is_some());
    }
}
