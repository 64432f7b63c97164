//! The libaio engine's queue.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use super::mix::Direction;
use super::queue::{Io, Queue};
use crate::aio::{Aio, Iocb};
use crate::error::LoadError;
use crate::ring::Area;

/// A context, and the file its submissions are about.
pub(super) struct Libaio {
    aio: Aio,
    file: RawFd,
}

impl Queue for Libaio {
    fn new(depth: u32) -> Result<Libaio, LoadError> {
        let aio = Aio::new(depth).map_err(|error| LoadError::NoLibaio {
            reason: why_forbidden(&error),
        })?;
        Ok(Libaio { aio, file: -1 })
    }

    fn attach(&mut self, file: RawFd, _: &Area) -> Option<String> {
        self.file = file;
        None
    }

    #[inline]
    unsafe fn push(&mut self, io: Io, name: u64) {
        let iocb = match io {
            // A spec that asks for it is refused; this fails, with `EBADF`.
            Io::Nop => Iocb::read(-1, std::ptr::null_mut(), 0, 0, name),
            Io::Block {
                direction: Direction::Read,
                address,
                len,
                offset,
            } => Iocb::read(self.file, address, len, offset, name),
            Io::Block {
                direction: Direction::Write,
                address,
                len,
                offset,
            } => Iocb::write(self.file, address, len, offset, name),
        };
        // SAFETY: as the caller promises.
        unsafe { self.aio.push(iocb) };
    }

    #[inline]
    fn enter(&mut self, wait: u32, timeout: Option<Duration>) -> io::Result<()> {
        self.aio.enter(wait, timeout)
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u64, i32)) {
        self.aio.reap(|event| each(event.data, event.res as i32));
    }
}

/// The cause that forbids libaio, as far as it is known.
fn why_forbidden(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => "a seccomp filter forbids it, as some containers do".into(),
        Some(libc::ENOSYS) => "this kernel has none, or a seccomp filter hides it".into(),
        Some(libc::EAGAIN) => {
            "the operations that all users together may have are used up, see the sysctl fs.aio-max-nr"
                .into()
        }
        _ => error.to_string(),
    }
}
