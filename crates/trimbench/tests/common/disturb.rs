//! Things that go wrong on purpose.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::loop_fs::{LoopFs, must};
use super::sweep;

/// A frozen file system, thawed whatever happens.
pub struct Freezer<'a> {
    fs: &'a LoopFs,
    /// Before it began to freeze, and when it was frozen.
    began: Instant,
    frozen: Instant,
}

impl<'a> Freezer<'a> {
    /// Freezes it: writes wait until [`Freezer::thaw`].
    pub fn freeze(fs: &'a LoopFs) -> Self {
        let began = Instant::now();
        must("fsfreeze", &["-f", &fs.path().to_string_lossy()]);
        Self {
            fs,
            began,
            frozen: Instant::now(),
        }
    }

    /// Thaws it, and tells how long it was frozen: at least, and at most.
    pub fn thaw(self) -> Range<Duration> {
        let (began, least) = (self.began, self.frozen.elapsed());
        drop(self);
        least..began.elapsed()
    }
}

impl Drop for Freezer<'_> {
    fn drop(&mut self) {
        sweep::quietly("fsfreeze", &["-u", &self.fs.path().to_string_lossy()]);
    }
}

const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// A blkio cgroup (version 1) that makes a device slow for those inside.
pub struct Throttle {
    group: PathBuf,
}

impl Throttle {
    /// The file without which there is no throttle.
    pub const NEEDS: &'static str = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device";

    /// At most `bytes_per_s` written to, and read from, a block device.
    pub fn new(device: &Path, bytes_per_s: u64) -> Self {
        let group = Path::new(BLKIO).join(sweep::own_name());
        fs::create_dir(&group).unwrap();
        let new = Self { group };
        let number = fs::metadata(device).unwrap().rdev();
        let limit = format!(
            "{}:{} {bytes_per_s}",
            rustix::fs::major(number),
            rustix::fs::minor(number)
        );
        for file in [
            "blkio.throttle.write_bps_device",
            "blkio.throttle.read_bps_device",
        ] {
            fs::write(new.group.join(file), &limit).unwrap();
        }
        new
    }

    /// The same command, run inside.
    pub fn inside(&self, command: &Command) -> Command {
        inside(&self.group, command)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
    }
}

/// A sysctl with another value, put back whatever happens.
pub struct Sysctl {
    file: PathBuf,
    before: String,
}

impl Sysctl {
    /// Sets `/proc/sys/FILE`.
    pub fn set(file: &str, value: &str) -> Self {
        let file = Path::new("/proc/sys").join(file);
        let before = fs::read_to_string(&file).unwrap();
        fs::write(&file, value).unwrap();
        Self { file, before }
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        let _ = fs::write(&self.file, &self.before);
    }
}

/// Makes io_uring_setup fail as a container's seccomp filter does, then becomes the command.
/// The call has the same number on every architecture but Alpha.
const FORBID_IO_URING: &str = r#"
import ctypes, os, struct, sys
IO_URING_SETUP, EPERM = 425, 1
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
program = b"".join(struct.pack("HBBI", *step) for step in [
    (LOAD, 0, 0, 0),
    (JUMP_IF_EQUAL, 0, 1, IO_URING_SETUP),
    (RETURN, 0, 0, FAIL | EPERM),
    (RETURN, 0, 0, ALLOW),
])
steps = ctypes.create_string_buffer(program, len(program))
filter = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(steps)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
SET_SECCOMP, SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
if prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(SET_SECCOMP, MODE_FILTER, filter, 0, 0):
    sys.exit("seccomp: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
"#;

/// The same command, where io_uring is forbidden.
pub fn without_io_uring(command: &Command) -> Command {
    let mut without = Command::new("python3");
    without
        .args(["-c", FORBID_IO_URING])
        .arg(command.get_program())
        .args(command.get_args());
    without
}

/// Loops that want a processor each, twice as many as there are.
pub struct Hogs(Vec<std::process::Child>);

impl Hogs {
    /// Begins them.
    pub fn start() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let hog = |_| {
            let mut sh = Command::new("sh");
            sh.args(["-c", "while :; do :; done"]).spawn().unwrap()
        };
        Self((0..2 * processors).map(hog).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// A cgroup whose processes together get a share of one processor's time.
pub struct Quota {
    group: PathBuf,
}

impl Quota {
    /// So much of each 100 ms; `None` where there is no such controller.
    pub fn new(per_cent: u64) -> Option<Self> {
        let first = Path::new("/sys/fs/cgroup/cpu");
        let us = per_cent * 1000;
        let (parent, file, limit) = match first.exists() {
            true => (first, "cpu.cfs_quota_us", us.to_string()),
            false => {
                let parent = Path::new("/sys/fs/cgroup");
                let _ = fs::write(parent.join("cgroup.subtree_control"), "+cpu");
                (parent, "cpu.max", format!("{us} 100000"))
            }
        };
        let new = Self {
            group: parent.join(sweep::own_name()),
        };
        fs::create_dir(&new.group).ok()?;
        fs::write(new.group.join(file), limit).ok()?;
        Some(new)
    }

    /// The same command, run inside.
    pub fn inside(&self, command: &Command) -> Command {
        inside(&self.group, command)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
    }
}

/// A command run in a cgroup.
fn inside(group: &Path, command: &Command) -> Command {
    let mut inside = Command::new("sh");
    inside
        .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
        .arg(group.join("cgroup.procs"))
        .arg(command.get_program())
        .args(command.get_args());
    inside
}
