//! Whether direct I/O works somewhere, and how it must be aligned.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::SysRoot;
use crate::mounts::DeviceNumber;

/// `statfs` magic of tmpfs, ramfs and hugetlbfs (Linux, include/uapi/linux/magic.h).
const MEMORY_MAGICS: [u32; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// The alignment where the kernel doesn't give one: every common device can work with it.
const SAFE_ALIGNMENT: u32 = 4096;

/// How buffers and offsets of direct I/O must be aligned, in bytes; powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Of buffers in memory.
    pub memory_bytes: u32,
    /// Of offsets and lengths in the file.
    pub offset_bytes: u32,
}

/// Whether direct I/O works in a directory.
#[derive(Debug)]
pub enum DirectIo {
    /// It does, aligned like this.
    Works(DirectAlignment),
    /// The file system keeps its files in memory: even where `O_DIRECT` is
    /// taken (tmpfs, Linux ≥ 6.6), no device is behind it.
    Memory,
    /// The file system refuses it.
    Refused(io::Error),
}

/// No file can be made in a directory.
#[derive(Debug, thiserror::Error)]
#[error(
    "no file can be made in it ({0}); give a directory of a file system on a drive that you may \
     write to"
)]
pub struct NoFile(io::Error);

/// Tries direct I/O in a directory with a file of one block, which has no
/// name where the file system allows that, and is removed at once.
///
/// # Errors
/// When the directory can't be examined or no file can be created in it.
pub fn probe_direct(directory: impl AsRef<Path>) -> Result<DirectIo, NoFile> {
    let directory = directory.as_ref();
    let statfs = rustix::fs::statfs(directory).map_err(|errno| NoFile(errno.into()))?;
    // Magics have 32 bits; the field's width depends on the machine.
    if MEMORY_MAGICS.contains(&(statfs.f_type as u32)) {
        return Ok(DirectIo::Memory);
    }
    let file = match scratch_file(directory) {
        Ok(file) => file,
        Err(Errno::INVAL) => return Ok(DirectIo::Refused(Errno::INVAL.into())),
        Err(errno) => return Err(NoFile(errno.into())),
    };
    let alignment = direct_alignment(&file);
    let unit = alignment.memory_bytes.max(alignment.offset_bytes) as usize;
    let mut room = Aligned::to(unit, unit);
    match file.write_all_at(room.get(unit), 0) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            return Ok(DirectIo::Refused(error));
        }
        Err(error) => return Err(NoFile(error)),
    }
    match file.read_exact_at(room.get(unit), 0) {
        Ok(()) => Ok(DirectIo::Works(alignment)),
        Err(error) => Ok(DirectIo::Refused(error)),
    }
}

/// Memory at an address that direct I/O takes: a multiple of 4 KiB, or of another unit.
#[derive(Debug)]
pub struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    /// So many bytes, all 0.
    pub fn new(length: usize) -> Aligned {
        Aligned::to(4096, length)
    }

    fn to(unit: usize, length: usize) -> Aligned {
        let bytes = vec![0; length + unit];
        let start = bytes.as_ptr().align_offset(unit);
        Aligned { bytes, start }
    }

    /// The first bytes, of which there must be as many.
    pub fn get(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + length]
    }
}

/// A direct file without a name, or one whose name is already gone.
fn scratch_file(directory: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        Ok(fd) => return Ok(File::from(fd)),
        // Not every file system has O_TMPFILE, and some say EINVAL for O_DIRECT here.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let name = directory.join(format!(".trimbench-probe-{}", std::process::id()));
    let opened = rustix::fs::openat(
        CWD,
        &name,
        flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW,
        mode,
    );
    if !matches!(opened, Err(Errno::EXIST)) {
        // O_CREAT may have made the file before O_DIRECT was refused.
        let _ = rustix::fs::unlinkat(CWD, &name, AtFlags::empty());
    }
    opened.map(File::from)
}

/// The alignment that direct I/O on an open file or block device needs. It comes from the kernel
/// (`statx`, Linux ≥ 6.1), else from the logical block size of the device below, else it is 4096.
pub fn direct_alignment(file: &File) -> DirectAlignment {
    let reported = rustix::fs::statx(file.as_fd(), c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
        .ok()
        .filter(|statx| statx.stx_mask & StatxFlags::DIOALIGN.bits() != 0)
        .map(|statx| DirectAlignment {
            memory_bytes: statx.stx_dio_mem_align,
            offset_bytes: statx.stx_dio_offset_align,
        })
        // Zeros mean that there is no direct I/O: any alignment does.
        .filter(|one| one.memory_bytes.is_power_of_two() && one.offset_bytes.is_power_of_two());
    reported.unwrap_or_else(|| {
        let bytes = logical_block_bytes(file).unwrap_or(SAFE_ALIGNMENT);
        DirectAlignment {
            memory_bytes: bytes,
            offset_bytes: bytes,
        }
    })
}

/// Logical block size of the device that an open file is on.
fn logical_block_bytes(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let number = DeviceNumber::from_raw(match metadata.rdev() {
        0 => metadata.dev(),
        own => own,
    });
    let sys = SysRoot::host();
    let base = format!("/sys/dev/block/{number}");
    // A partition's queue is its drive's.
    let text = sys
        .text(format!("{base}/queue/logical_block_size"))
        .or_else(|_| sys.text(format!("{base}/../queue/logical_block_size")))
        .ok()?;
    text.trim()
        .parse()
        .ok()
        .filter(|bytes: &u32| bytes.is_power_of_two())
}
