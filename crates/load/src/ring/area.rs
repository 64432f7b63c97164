//! Memory for I/O that the kernel works on.

use std::io;
use std::ptr::NonNull;

/// Page-aligned memory for I/O, all of it present. Unmapped when dropped.
#[derive(Debug)]
pub struct Area {
    start: NonNull<u8>,
    len: usize,
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
        let len = len.max(1);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // A fork, to start an outside program, would copy what is registered or
        // in flight, and what the kernel writes meanwhile could go to the child.
        // It's advice: without it that costs time.
        // SAFETY: our own new mapping, which no child of ours looks at before its exec.
        unsafe { libc::madvise(start, len, libc::MADV_DONTFORK) };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Area { start, len })
    }

    /// Its start.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its length, in bytes.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The address `offset` bytes from its start.
    ///
    /// # Panics
    /// When that is outside.
    #[inline]
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.len, "outside of the area");
        // SAFETY: inside, as just checked.
        unsafe { self.as_ptr().add(offset) }
    }

    /// A view of `len` bytes from `offset`.
    ///
    /// # Safety
    /// Nothing writes there meanwhile, neither this process nor the kernel.
    pub unsafe fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset + len <= self.len, "outside of the area");
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
        assert!(offset + len <= self.len, "outside of the area");
        // SAFETY: inside and mapped; the caller promises the rest.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr().add(offset), len) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; the owner keeps no pointer into it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
