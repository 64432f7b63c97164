//! The io_uring engine's queue: a ring with its file and memory registered.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use io_uring::opcode::Nop;

use super::mix::Direction;
use super::queue::{Io, Queue};
use crate::error::LoadError;
use crate::ring::{Area, INTERRUPT, Ring};

/// A ring; `WAY` is one of [`crate::ring`].
pub(super) struct Uring<const WAY: u8 = INTERRUPT>(Ring);

impl<const WAY: u8> Queue for Uring<WAY> {
    fn new(depth: u32) -> Result<Uring<WAY>, LoadError> {
        let ring = Ring::new(depth, WAY).map_err(|error| LoadError::NoIoUring {
            reason: why_forbidden(&error),
        })?;
        Ok(Uring(ring))
    }

    fn attach(&mut self, file: RawFd, area: &Area) -> Option<String> {
        let refused = self.0.attach(file, area).err()?;
        Some(format!(
            "the I/O buffers aren't registered ({refused}; see ulimit -l), so each I/O costs a little more"
        ))
    }

    #[inline]
    unsafe fn push(&mut self, io: Io, name: u64) {
        let entry = match io {
            Io::Nop => Nop::new().build(),
            Io::Block {
                direction: Direction::Read,
                address,
                len,
                offset,
            } => self.0.read(address, len, offset),
            Io::Block {
                direction: Direction::Write,
                address,
                len,
                offset,
            } => self.0.write(address, len, offset),
        };
        // SAFETY: as the caller promises.
        unsafe { self.0.push(entry, name) };
    }

    #[inline]
    fn enter(&mut self, wait: u32, timeout: Option<Duration>) -> io::Result<()> {
        self.0.enter(wait, timeout)
    }

    #[inline]
    fn reap(&mut self, each: impl FnMut(u64, i32)) {
        self.0.reap(each);
    }

    fn detach(&mut self) {
        self.0.detach();
    }
}

/// The cause that forbids io_uring, as far as it is known.
fn why_forbidden(error: &io::Error) -> String {
    let switch = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    let switch = switch.as_deref().map(str::trim).unwrap_or_default();
    match (error.raw_os_error(), switch) {
        (Some(libc::EPERM), "2") => "the sysctl kernel.io_uring_disabled is 2".into(),
        (Some(libc::EPERM), "1") => {
            "the sysctl kernel.io_uring_disabled is 1 and this user isn't in kernel.io_uring_group"
                .into()
        }
        (Some(libc::EPERM), _) => "a seccomp filter forbids it, as containers do".into(),
        (Some(libc::ENOSYS), _) => "this kernel has none, or a seccomp filter hides it".into(),
        (Some(libc::ENOMEM), _) => "the limit on locked memory is too low, see ulimit -l".into(),
        (Some(libc::EMFILE | libc::ENFILE), _) => "too many files are open, see ulimit -n".into(),
        _ => error.to_string(),
    }
}
