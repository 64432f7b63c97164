//! Pages of SCSI drives, and of ATA drives through SCSI (`scsi/sg.h`, SPC-5, SBC-4, SAT-4).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `SG_IO`.
const SG_IO: libc::Ioctl = 0x2285;
const FROM_DEVICE: i32 = -3;

/// `struct sg_io_hdr`.
#[repr(C)]
struct Header {
    interface: i32,
    direction: i32,
    command_length: u8,
    sense_length: u8,
    vectors: u16,
    length: u32,
    data: *mut u8,
    command: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack: i32,
    user: *mut u8,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_written: u8,
    host_status: u16,
    driver_status: u16,
    left: i32,
    duration_ms: u32,
    info: u32,
}

/// A page of vital product data.
pub(super) fn vital_page(file: &File, page: u8) -> io::Result<Vec<u8>> {
    let command = [0x12, 1, page, 0, 64, 0];
    let answer = read(file, &command, 64)?;
    match answer.get(1) {
        Some(&found) if found == page => Ok(answer),
        _ => Err(io::Error::other("the drive has no such page")),
    }
}

/// The answer to READ CAPACITY(16).
pub(super) fn capacity(file: &File) -> io::Result<Vec<u8>> {
    let mut command = [0; 16];
    (command[0], command[1], command[13]) = (0x9e, 0x10, 32);
    read(file, &command, 32)
}

/// ATA IDENTIFY DEVICE through ATA PASS-THROUGH(16).
pub(super) fn ata_identify(file: &File) -> io::Result<Vec<u8>> {
    let mut command = [0; 16];
    // PIO data-in; the length is in the count of sectors; IDENTIFY DEVICE.
    (command[0], command[1], command[2]) = (0x85, 4 << 1, 0x0e);
    (command[6], command[14]) = (1, 0xec);
    read(file, &command, 512)
}

fn read(file: &File, command: &[u8], length: usize) -> io::Result<Vec<u8>> {
    let mut data = vec![0u8; length];
    let mut sense = [0u8; 64];
    let mut header = Header {
        interface: i32::from(b'S'),
        direction: FROM_DEVICE,
        command_length: command.len() as u8,
        sense_length: sense.len() as u8,
        vectors: 0,
        length: length as u32,
        data: data.as_mut_ptr(),
        command: command.as_ptr(),
        sense: sense.as_mut_ptr(),
        timeout_ms: super::COMMAND_MS,
        flags: 0,
        pack: 0,
        user: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_written: 0,
        host_status: 0,
        driver_status: 0,
        left: 0,
        duration_ms: 0,
        info: 0,
    };
    // SAFETY: the request reads and writes one such header; the buffers that it points to have
    // the lengths that it says, and outlive the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), SG_IO, &raw mut header) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    if header.status != 0 || header.host_status != 0 {
        let why = format!(
            "the drive refused it with status {:#x}, host {:#x}",
            header.status, header.host_status
        );
        return Err(io::Error::other(why));
    }
    data.truncate(length.saturating_sub(usize::try_from(header.left).unwrap_or(0)));
    Ok(data)
}
