//! The kernel's structures and numbers, as in `include/uapi/linux/aio_abi.h`
//! and, for the ring of completions, `fs/aio.c` of Linux 6.12.

use std::os::fd::RawFd;

const CMD_PREAD: u16 = 0;
const CMD_PWRITE: u16 = 1;

/// `AIO_RING_MAGIC`.
pub(super) const RING_MAGIC: u32 = 0xa10a_10a1;

/// Bytes before the first event: `sizeof(struct aio_ring)`.
pub(super) const RING_HEADER: u32 = 32;

/// Fields of `struct aio_ring`, as 32-bit words from its start.
pub(super) const RING_NR: usize = 1;
pub(super) const RING_HEAD: usize = 2;
pub(super) const RING_TAIL: usize = 3;
pub(super) const RING_MAGIC_AT: usize = 4;
pub(super) const RING_INCOMPAT_FEATURES: usize = 6;
pub(super) const RING_HEADER_LENGTH: usize = 7;

/// A submission: `struct iocb`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Iocb {
    data: u64,
    /// `aio_key` and `aio_rw_flags`, in the order of the machine's bytes: both 0.
    key_and_flags: [u32; 2],
    opcode: u16,
    reqprio: i16,
    fildes: u32,
    buf: u64,
    nbytes: u64,
    offset: i64,
    reserved2: u64,
    flags: u32,
    resfd: u32,
}

impl Iocb {
    /// `pread`: `len` bytes at `offset` of `fd`, to `address`. `data` comes back with the completion.
    #[inline]
    pub fn read(fd: RawFd, address: *mut u8, len: u32, offset: u64, data: u64) -> Iocb {
        Iocb {
            data,
            opcode: CMD_PREAD,
            fildes: fd as u32,
            buf: address as u64,
            nbytes: u64::from(len),
            offset: offset as i64,
            ..Iocb::default()
        }
    }

    /// `pwrite`: `len` bytes at `offset` of `fd`, from `address`.
    #[inline]
    pub fn write(fd: RawFd, address: *mut u8, len: u32, offset: u64, data: u64) -> Iocb {
        Iocb {
            opcode: CMD_PWRITE,
            ..Iocb::read(fd, address, len, offset, data)
        }
    }

    /// The completion of a submission that the kernel refuses.
    pub(super) fn refused(&self, errno: i32) -> IoEvent {
        IoEvent {
            data: self.data,
            obj: 0,
            res: -i64::from(errno),
            res2: 0,
        }
    }
}

/// A completion: `struct io_event`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct IoEvent {
    /// The value that the submission carried.
    pub data: u64,
    /// The address of the submission.
    obj: u64,
    /// Bytes moved, or minus an `errno`.
    pub res: i64,
    /// Always 0 for files.
    res2: i64,
}

const _: () = assert!(size_of::<Iocb>() == 64 && size_of::<IoEvent>() == 32);
