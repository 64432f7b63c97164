//! Loop devices: a file as a block device (`linux/loop.h`).

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

use crate::mounts::DeviceNumber;
use crate::patience::while_is;
use crate::sysroot::{entries, number};

const LOOP_CONFIGURE: u64 = 0x4C0A;
const LOOP_CLR_FD: u64 = 0x4C01;
const LOOP_GET_STATUS64: u64 = 0x4C05;
const LOOP_CTL_GET_FREE: u64 = 0x4C82;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_PARTSCAN: u32 = 8;
const LO_FLAGS_DIRECT_IO: u32 = 16;
const BLKPG: u64 = 0x1269;
const BLKPG_DEL_PARTITION: i32 = 2;
const NAME_LEN: usize = 64;

/// `struct loop_info64`
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; NAME_LEN],
    crypt_name: [u8; NAME_LEN],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl LoopInfo64 {
    /// All zeros: the whole file, nothing set.
    const EMPTY: LoopInfo64 = LoopInfo64 {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        sizelimit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; NAME_LEN],
        crypt_name: [0; NAME_LEN],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
}

/// `struct loop_config`
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopConfig>() == 304);

/// Whether the kernel looks for partitions on a new loop device, and whenever it is asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitions {
    /// It does.
    Scanned,
    /// It has none.
    Ignored,
}

/// Makes a free loop device of a file, with direct I/O and sectors of so many bytes, and returns its
/// path. A sector size of 0 is the kernel's choice. Partitions that the last user of its number has
/// left are removed.
///
/// # Errors
/// The kernel's error, e.g. `EACCES` without `CAP_SYS_ADMIN`.
pub fn attach(file: &Path, sector: u32, partitions: Partitions) -> io::Result<PathBuf> {
    let backing = OpenOptions::new().read(true).write(true).open(file)?;
    let scan = match partitions {
        Partitions::Scanned => LO_FLAGS_PARTSCAN,
        Partitions::Ignored => 0,
    };
    let (path, open) = attach_free(&backing, file, sector, LO_FLAGS_DIRECT_IO | scan)?;
    if partitions == Partitions::Ignored {
        for number in partition_numbers(&path) {
            if let Err(error) = remove_partition(&open, number) {
                detach(&path)?;
                return Err(error);
            }
        }
    }
    Ok(path)
}

/// The numbers of a device's partitions, as the kernel has them now.
pub fn partition_numbers(device: &Path) -> Vec<i32> {
    let directory = Path::new("/sys/block").join(device.file_name().unwrap_or_default());
    let names = entries(&directory).into_iter();
    let mut found: Vec<i32> = names
        .filter_map(|name| number(&directory.join(name).join("partition")))
        .collect();
    found.sort_unstable();
    found
}

/// `struct blkpg_partition` (`linux/blkpg.h`)
#[repr(C)]
struct BlkpgPartition {
    start: i64,
    length: i64,
    number: i32,
    device_name: [u8; 64],
    volume_name: [u8; 64],
}

/// `struct blkpg_ioctl_arg`
#[repr(C)]
struct BlkpgArgument {
    operation: i32,
    flags: i32,
    data_length: i32,
    data: *mut BlkpgPartition,
}

/// Makes the kernel forget a partition. The data on the device stay.
fn remove_partition(device: &File, number: i32) -> io::Result<()> {
    let mut partition = BlkpgPartition {
        start: 0,
        length: 0,
        number,
        device_name: [0; 64],
        volume_name: [0; 64],
    };
    let argument = BlkpgArgument {
        operation: BLKPG_DEL_PARTITION,
        flags: 0,
        data_length: size_of::<BlkpgPartition>() as i32,
        data: &raw mut partition,
    };
    // SAFETY: the request reads the two structs, laid out as above, and keeps no pointer to them.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), BLKPG as _, &raw const argument) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a free loop device of an open file, which need not have a name any more. The device is
/// detached when it isn't mounted and nobody has it open, the file that this returns included.
/// `direct`: past the page cache, for which the file has to be open so, too.
///
/// # Errors
/// The kernel's error, e.g. `EACCES` without `CAP_SYS_ADMIN`.
pub fn attach_while_open(backing: &File, sector: u32, direct: bool) -> io::Result<(PathBuf, File)> {
    let direct = if direct { LO_FLAGS_DIRECT_IO } else { 0 };
    attach_free(
        backing,
        Path::new("trimbench"),
        sector,
        LO_FLAGS_AUTOCLEAR | direct,
    )
}

fn attach_free(
    backing: &File,
    name: &Path,
    sector: u32,
    flags: u32,
) -> io::Result<(PathBuf, File)> {
    let control = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/loop-control")?;
    // Somebody else may take the free one first: ask again.
    let mut taken = Errno::BUSY;
    for _ in 0..64 {
        // SAFETY: this request takes no argument.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        let path = PathBuf::from(format!("/dev/loop{number}"));
        match configure(&path, backing, name, sector, flags) {
            Err(errno) if errno == Errno::BUSY => taken = errno,
            outcome => return Ok(outcome.map(|open| (path, open))?),
        }
    }
    Err(taken.into())
}

fn configure(
    device: &Path,
    backing: &File,
    name: &Path,
    sector: u32,
    flags: u32,
) -> Result<File, Errno> {
    // udev may be about to make the node.
    let device = while_is(Errno::NOENT, Duration::from_secs(2), || {
        let opened = OpenOptions::new().read(true).write(true).open(device);
        opened.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
    })?;
    let mut file_name = [0; NAME_LEN];
    let text = name.as_os_str().as_encoded_bytes();
    let shown = &text[..text.len().min(NAME_LEN - 1)];
    file_name[..shown.len()].copy_from_slice(shown);
    let config = LoopConfig {
        fd: backing.as_raw_fd().cast_unsigned(),
        block_size: sector,
        info: LoopInfo64 {
            flags,
            file_name,
            ..LoopInfo64::EMPTY
        },
        reserved: [0; 8],
    };
    // SAFETY: the request reads one `struct loop_config`, laid out as above,
    // and keeps no pointer to it.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) };
    if done == 0 {
        return Ok(device);
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// Detaches a loop device: at once, or when its last user has closed it.
/// One that is detached already is no error.
///
/// # Errors
/// The kernel's error.
pub fn detach(device: &Path) -> io::Result<()> {
    let opened = OpenOptions::new().read(true).open(device)?;
    // SAFETY: this request takes no argument.
    let done = unsafe { libc::ioctl(opened.as_raw_fd(), LOOP_CLR_FD as _, 0) };
    if done == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        error => Err(error),
    }
}

/// The file that a loop device is made of now, as the kernel tells it; `None`
/// if it is detached, or no loop device.
pub fn backing_file(device: &Path) -> Option<PathBuf> {
    let file = Path::new("/sys/block")
        .join(device.file_name()?)
        .join("loop/backing_file");
    let text = std::fs::read_to_string(file).ok()?;
    let text = text.trim_end_matches('\n');
    Some(PathBuf::from(text.trim_end_matches(" (deleted)")))
}

/// The name that an attached loop device was given: its file's path when it was
/// made, at most 63 bytes of it. It stays when the file can't be reached by a
/// path any more.
pub fn name(device: &Path) -> Option<PathBuf> {
    let info = status(device)?;
    let end = info.file_name.iter().position(|&byte| byte == 0)?;
    Some(PathBuf::from(OsString::from_vec(
        info.file_name[..end].to_vec(),
    )))
}

/// The part of a file that a loop device is made of. The names of the file don't matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backing {
    /// The device number and the inode number of the file.
    file: (u64, u64),
    /// The device, if the file is the node of one.
    pub device: Option<DeviceNumber>,
    /// Its bytes that are the loop device's.
    pub range: Range<u64>,
}

impl Backing {
    /// Whether both are made of one file, or of one device by nodes that may differ.
    pub fn is_of_the_same_file(&self, other: &Backing) -> bool {
        match (self.device, other.device) {
            (Some(one), Some(other)) => one == other,
            _ => self.file == other.file,
        }
    }

    /// Whether both are made of the same bytes of one file, in part at least.
    pub fn shares_bytes_with(&self, other: &Backing) -> bool {
        let meet = self.range.start < other.range.end && other.range.start < self.range.end;
        meet && self.is_of_the_same_file(other)
    }
}

/// The part of a file that a loop device is made of; `None` if it is detached, or no loop device.
pub fn backing(device: &Path) -> Option<Backing> {
    let info = status(device)?;
    let size = File::open(device).ok()?.seek(SeekFrom::End(0)).ok()?;
    Some(Backing {
        file: (info.device, info.inode),
        device: (info.rdevice != 0).then(|| DeviceNumber::from_raw(huge(info.rdevice))),
        range: info.offset..info.offset.saturating_add(size),
    })
}

/// A device number as `stat` has it, of one in the kernel's `huge_encode_dev`.
fn huge(number: u64) -> u64 {
    let (major, minor) = (number >> 8 & 0xfff, number & 0xff | number >> 12 & 0xfff00);
    rustix::fs::makedev(major as u32, minor as u32)
}

fn status(device: &Path) -> Option<LoopInfo64> {
    let opened = OpenOptions::new().read(true).open(device).ok()?;
    let mut info = LoopInfo64::EMPTY;
    // SAFETY: the request writes one `struct loop_info64`, laid out as above,
    // and keeps no pointer to it.
    let done = unsafe { libc::ioctl(opened.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) };
    (done == 0).then_some(info)
}

/// Every loop device that is attached, with its file.
pub fn attached() -> Vec<(PathBuf, PathBuf)> {
    let mut found: Vec<_> = std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let device = Path::new("/dev").join(entry.file_name());
            let file = backing_file(&device)?;
            Some((device, file))
        })
        .collect();
    found.sort();
    found
}
