//! Requests that only block devices know (`linux/fs.h`), and whether their completions can be polled.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use crate::SysRoot;

const BLKDISCARD: libc::Ioctl = 0x1277;
const BLKZEROOUT: libc::Ioctl = 0x127f;

/// Discards a range of bytes, whole sectors, of a block device that is open for writing, and waits
/// until that is done. The content of the range afterwards depends on the device.
///
/// # Errors
/// The kernel's error, e.g. `EOPNOTSUPP` where the device takes no discards.
pub fn discard(device: &File, range: &Range<u64>) -> io::Result<()> {
    ask(device, BLKDISCARD, range)
}

/// Lets a range of bytes, whole sectors, of a block device that is open for
/// writing read as zeros, its space kept.
///
/// # Errors
/// The kernel's error.
pub fn zero_out(device: &File, range: &Range<u64>) -> io::Result<()> {
    ask(device, BLKZEROOUT, range)
}

/// Whether completions of a device can be polled for (`queue/io_poll`), by its kernel name; `None`
/// where the kernel doesn't say. A partition has the queue of its drive.
pub fn polls(sys: &SysRoot, name: &str) -> Option<bool> {
    let places = ["queue/io_poll", "../queue/io_poll"];
    let value = places.iter().find_map(|file| sys.attribute(name, file))?;
    Some(value != "0")
}

fn ask(device: &File, request: libc::Ioctl, range: &Range<u64>) -> io::Result<()> {
    let span = [range.start, range.end.saturating_sub(range.start)];
    // SAFETY: either request reads two 64-bit numbers, start and length, and
    // keeps no pointer to them.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), request, span.as_ptr()) };
    if done == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_no_block_device() {
        let file = tempfile::tempfile().unwrap();
        for refused in [discard(&file, &(0..512)), zero_out(&file, &(0..512))] {
            assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        }
    }

    #[test]
    fn a_partition_is_polled_as_its_drive_is() {
        let root = tempfile::tempdir().unwrap();
        let class = root.path().join("sys/class/block");
        std::fs::create_dir_all(class.join("sda/queue")).unwrap();
        std::fs::create_dir(class.join("sda/sda1")).unwrap();
        std::os::unix::fs::symlink("sda/sda1", class.join("sda1")).unwrap();
        let sys = SysRoot::at(root.path());
        assert_eq!(polls(&sys, "sda"), None);
        for (value, can) in [("0\n", false), ("1\n", true)] {
            std::fs::write(class.join("sda/queue/io_poll"), value).unwrap();
            assert_eq!(polls(&sys, "sda"), Some(can));
            assert_eq!(polls(&sys, "sda1"), Some(can));
        }
    }
}
