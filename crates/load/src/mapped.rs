//! A file mapped shared, whose pages any thread may dirty.
//!
//! A store to a page that the file no longer has, or that the drive can't give, raises `SIGBUS`,
//! which would end the process. [`faults`] handles it: the store goes to a spare page, and
//! the thread that stored counts a fault. [`Mapped::repair`] then maps the file there anew.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;

mod faults;

pub(crate) use faults::faults_of_this_thread;

/// A page of the kernel, in bytes: mappings begin and end at multiples of it.
pub(crate) fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// A shared mapping of a part of a file, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapped {
    file: Arc<File>,
    /// Where the part begins in the file, in bytes.
    offset: u64,
    /// Its place among the mappings whose faults are handled. It is given up before the memory is:
    /// the kernel may give the same addresses to others at once.
    _watched: faults::Watched,
    memory: Memory,
}

/// Mapped memory, unmapped when dropped.
#[derive(Debug)]
struct Memory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: memory that the kernel shares with everybody anyway; it is written through raw pointers
// only, and no reference to it ever exists.
unsafe impl Send for Mapped {}
// SAFETY: as above; concurrent stores to one page are plain copies of bytes whose mixture is as good
// as either, as with two processes that write one file.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps `len` bytes of a file that is open for reading and writing. `offset` is a multiple of the
    /// page size.
    ///
    /// # Errors
    /// `EINVAL` for another offset, `ENODEV` where the file can't be mapped, `ENOMEM`, `EACCES`;
    /// `EBUSY` when too many files are mapped at once.
    pub(crate) fn new(file: Arc<File>, offset: u64, len: u64) -> io::Result<Mapped> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let at = map(std::ptr::null_mut(), &file, offset, len, 0)?;
        let start = NonNull::new(at).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = Memory { start, len };
        // A child that runs a program doesn't need it, and a fork would copy its page tables.
        // SAFETY: advice about our own new mapping.
        unsafe { libc::madvise(at.cast(), len, libc::MADV_DONTFORK) };
        Ok(Mapped {
            file,
            offset,
            _watched: faults::Watched::new(at as usize, len)?,
            memory,
        })
    }

    /// Writes bytes `at` so many bytes from the start of the part, without a system call.
    ///
    /// # Panics
    /// When they don't lie inside.
    #[inline]
    pub(crate) fn store(&self, at: usize, bytes: &[u8]) {
        assert!(
            at <= self.memory.len && bytes.len() <= self.memory.len - at,
            "outside of the mapping"
        );
        // SAFETY: inside the mapping, as just checked, which lives as long as `self`. No reference
        // to it exists, and `bytes` lies elsewhere.
        unsafe {
            let to = self.memory.start.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    /// Forces the dirty pages of the whole part to the drive, and waits for them.
    ///
    /// # Errors
    /// Those of the drive and of the file system, such as `EIO`.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let Memory { start, len } = self.memory;
        // SAFETY: our own mapping.
        match unsafe { libc::msync(start.as_ptr().cast(), len, libc::MS_SYNC) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Maps the file anew where a fault put spare pages: the pages of `len` bytes `at` the start.
    ///
    /// # Errors
    /// Those of [`Mapped::new`].
    pub(crate) fn repair(&self, at: usize, len: usize) -> io::Result<()> {
        let page = page_bytes();
        let begin = at / page * page;
        let end = (at + len).next_multiple_of(page);
        let end = end.min(self.memory.len.next_multiple_of(page));
        // SAFETY: inside the mapping.
        let address = unsafe { self.memory.start.as_ptr().add(begin) };
        let offset = self.offset + begin as u64;
        map(address, &self.file, offset, end - begin, libc::MAP_FIXED).map(drop)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and nobody has a pointer into it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

fn map(
    address: *mut u8,
    file: &File,
    offset: u64,
    len: usize,
    flags: libc::c_int,
) -> io::Result<*mut u8> {
    // SAFETY: at an address of the kernel's choice, or over pages of our own mapping.
    let start = unsafe {
        libc::mmap(
            address.cast(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | flags,
            file.as_raw_fd(),
            offset as libc::off_t,
        )
    };
    match start {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        start => Ok(start.cast()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    fn file_of(len: usize) -> Arc<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; len]).unwrap();
        Arc::new(file)
    }

    #[test]
    fn stored_bytes_are_the_files() {
        let page = page_bytes();
        let file = file_of(3 * page);
        let mapped = Mapped::new(file.clone(), page as u64, 2 * page as u64).unwrap();
        mapped.store(page, b"stored");
        mapped.sync().unwrap();
        let mut read = [0; 6];
        file.read_exact_at(&mut read, 2 * page as u64).unwrap();
        assert_eq!(&read, b"stored");
    }

    #[test]
    fn a_file_that_was_cut_counts_a_fault_until_it_is_long_again() {
        let page = page_bytes();
        let file = file_of(4 * page);
        let mapped = Mapped::new(file.clone(), 0, 4 * page as u64).unwrap();
        mapped.store(2 * page, b"in");
        file.set_len(page as u64).unwrap();
        for round in 1..=2 {
            let before = faults_of_this_thread();
            mapped.store(2 * page, &vec![1; 2 * page]);
            assert_eq!(faults_of_this_thread(), before + 2, "round {round}");
            mapped.repair(2 * page, 2 * page).unwrap();
        }
        file.set_len(4 * page as u64).unwrap();
        let before = faults_of_this_thread();
        mapped.store(2 * page, b"again");
        assert_eq!(faults_of_this_thread(), before);
        let mut read = [0; 5];
        file.read_exact_at(&mut read, 2 * page as u64).unwrap();
        assert_eq!(&read, b"again");
    }

    #[test]
    #[should_panic(expected = "outside of the mapping")]
    fn a_store_outside_is_refused() {
        let page = page_bytes();
        let mapped = Mapped::new(file_of(page), 0, page as u64).unwrap();
        mapped.store(page - 1, b"12");
    }
}
