//! The io_uring engine's queue: a ring with its file and memory registered.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use super::mix::Direction;
use super::queue::{Io, Queue};
use crate::error::LoadError;
use crate::ring::{Area, INTERRUPT, Ring, Sqe};

/// A ring, and how its entries name file and memory. `WAY` is a flag of [`crate::ring`].
pub(super) struct Uring<const WAY: u32 = INTERRUPT> {
    ring: Ring,
    file: RawFd,
    fixed_file: bool,
    fixed_buffer: bool,
}

impl<const WAY: u32> Queue for Uring<WAY> {
    fn new(depth: u32) -> Result<Uring<WAY>, LoadError> {
        let ring = Ring::polling(depth, WAY).map_err(|error| LoadError::NoIoUring {
            reason: why_forbidden(&error),
        })?;
        Ok(Uring {
            ring,
            file: -1,
            fixed_file: false,
            fixed_buffer: false,
        })
    }

    fn attach(&mut self, file: RawFd, area: &Area) -> Option<String> {
        self.fixed_file = self.ring.register_file(file).is_ok();
        self.file = if self.fixed_file { 0 } else { file };
        match self.ring.register_area(area) {
            Ok(()) => {
                self.fixed_buffer = true;
                None
            }
            Err(error) => Some(format!(
                "the I/O buffers aren't registered ({error}; see ulimit -l), so each I/O costs a little more"
            )),
        }
    }

    #[inline]
    unsafe fn push(&mut self, io: Io, name: u64) {
        let sqe = match io {
            Io::Nop => Sqe::nop(name),
            Io::Block {
                direction,
                address,
                len,
                offset,
            } => {
                let mut sqe = match direction {
                    Direction::Read => Sqe::read(self.file, address, len, offset, name),
                    Direction::Write => Sqe::write(self.file, address, len, offset, name),
                };
                if self.fixed_file {
                    sqe = sqe.fixed_file();
                }
                if self.fixed_buffer {
                    sqe = sqe.fixed_buffer();
                }
                sqe
            }
        };
        // SAFETY: as the caller promises.
        unsafe { self.ring.push(sqe) };
    }

    #[inline]
    fn enter(&mut self, wait: u32, timeout: Option<Duration>) -> io::Result<()> {
        self.ring.enter(wait, timeout)
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u64, i32)) {
        self.ring.reap(|cqe| each(cqe.user_data, cqe.res));
    }

    fn detach(&mut self) {
        self.ring.unregister_file();
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
        _ if error.kind() == io::ErrorKind::Unsupported => "this kernel is older than 5.11".into(),
        _ => error.to_string(),
    }
}
