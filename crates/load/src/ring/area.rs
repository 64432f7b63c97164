//! Memory that the kernel works on: the rings themselves and the I/O buffers.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;

/// A mapping, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// A part of a ring.
    pub(super) fn of_ring(fd: RawFd, len: usize, offset: u64) -> io::Result<Mapping> {
        Mapping::map(len, libc::MAP_SHARED | libc::MAP_POPULATE, fd, offset)
    }

    fn anonymous(len: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let mapping = Mapping::map(len, flags, -1, 0)?;
        // A fork, to start an outside program, would copy what is registered or
        // in flight, and what the kernel writes meanwhile could go to the child.
        // It's advice: without it that costs time.
        // SAFETY: our own new mapping, which no child of ours looks at before its exec.
        unsafe { libc::madvise(mapping.start.as_ptr().cast(), len, libc::MADV_DONTFORK) };
        Ok(mapping)
    }

    fn map(len: usize, flags: i32, fd: RawFd, offset: u64) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let start = unsafe {
            let at = std::ptr::null_mut();
            libc::mmap(at, len, protection, flags, fd, offset as libc::off_t)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len })
    }

    /// # Safety
    /// A `T`, aligned, lies at `offset` and is used no longer than the mapping.
    pub(super) unsafe fn at<T>(&self, offset: usize) -> NonNull<T> {
        assert!(
            offset + size_of::<T>() <= self.len,
            "outside of the mapping"
        );
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.start.add(offset) }.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; the owner keeps no pointer into it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Page-aligned memory for I/O, all of it present.
#[derive(Debug)]
pub struct Area {
    mapping: Mapping,
}

// SAFETY: owned memory, not bound to a thread; reading it is an unsafe method.
unsafe impl Send for Area {}
// SAFETY: a shared reference gives out only pointers.
unsafe impl Sync for Area {}

impl Area {
    /// Maps `len` bytes (at least 1) of zeroes.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(len: usize) -> io::Result<Area> {
        Ok(Area {
            mapping: Mapping::anonymous(len.max(1))?,
        })
    }

    /// Its start.
    pub fn as_ptr(&self) -> *mut u8 {
        self.mapping.start.as_ptr()
    }

    /// Its length, in bytes.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.mapping.len
    }

    /// The address `offset` bytes from its start.
    ///
    /// # Panics
    /// When that is outside.
    #[inline]
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.mapping.len, "outside of the area");
        // SAFETY: inside, as just checked.
        unsafe { self.as_ptr().add(offset) }
    }

    /// A view of `len` bytes from `offset`.
    ///
    /// # Safety
    /// Nothing writes there meanwhile, neither this process nor the kernel.
    pub unsafe fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset + len <= self.mapping.len, "outside of the area");
        // SAFETY: inside and mapped; the caller promises the rest.
        unsafe { std::slice::from_raw_parts(self.as_ptr().add(offset), len) }
    }

    /// A view to write to.
    ///
    /// # Safety
    /// Nothing else reads or writes there meanwhile, neither this process nor the kernel.
    #[allow(
        clippy::mut_from_ref,
        reason = "the caller promises that it is the only one"
    )]
    pub unsafe fn bytes_mut(&self, offset: usize, len: usize) -> &mut [u8] {
        assert!(offset + len <= self.mapping.len, "outside of the area");
        // SAFETY: inside and mapped; the caller promises the rest.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr().add(offset), len) }
    }
}
