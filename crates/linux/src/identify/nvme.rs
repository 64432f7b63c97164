//! Identify pages of NVMe drives (`linux/nvme_ioctl.h`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `NVME_IOCTL_ID`, `_IO('N', 0x40)`.
const ID: libc::Ioctl = 0x4E40;

/// `NVME_IOCTL_ADMIN_CMD`, `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const ADMIN: libc::Ioctl = 0xC048_4E41_u32 as libc::Ioctl;

const IDENTIFY: u8 = 0x06;
const PAGE: usize = 4096;

/// `struct nvme_admin_cmd`.
#[repr(C)]
#[derive(Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    word2: u32,
    word3: u32,
    metadata: u64,
    address: u64,
    metadata_length: u32,
    length: u32,
    words: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// The namespace's number of a block device.
pub(super) fn namespace(file: &File) -> io::Result<u32> {
    // SAFETY: the request takes no argument.
    let number = unsafe { libc::ioctl(file.as_raw_fd(), ID) };
    match u32::try_from(number) {
        Ok(number) => Ok(number),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// One page of Identify, by its CNS value.
pub(super) fn identify(file: &File, cns: u32, namespace: u32) -> io::Result<Vec<u8>> {
    let mut page = vec![0u8; PAGE];
    let mut command = Command {
        opcode: IDENTIFY,
        namespace,
        address: page.as_mut_ptr() as u64,
        length: PAGE as u32,
        words: [cns, 0, 0, 0, 0, 0],
        timeout_ms: super::COMMAND_MS,
        ..Command::default()
    };
    // SAFETY: the request reads one such command, and the kernel writes `length` bytes to
    // `address`, which `page` has and outlives.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), ADMIN, &raw mut command) };
    match status {
        0 => Ok(page),
        -1 => Err(io::Error::last_os_error()),
        status => Err(io::Error::other(format!(
            "the drive refused it with status {status:#x}"
        ))),
    }
}
