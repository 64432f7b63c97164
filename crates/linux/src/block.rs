//! Requests that only block devices know (`linux/fs.h`).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

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
}
