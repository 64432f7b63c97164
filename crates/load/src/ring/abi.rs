//! The kernel's structures and numbers, as in `include/uapi/linux/io_uring.h`.

use std::os::fd::RawFd;
use std::time::Duration;

pub(super) const OFF_SQ_RING: u64 = 0;
pub(super) const OFF_SQES: u64 = 0x1000_0000;

pub(super) const SETUP_IOPOLL: u32 = 1 << 0;
pub(super) const SETUP_SQPOLL: u32 = 1 << 1;
pub(super) const SETUP_CQSIZE: u32 = 1 << 3;
pub(super) const SETUP_SUBMIT_ALL: u32 = 1 << 7;
pub(super) const SETUP_COOP_TASKRUN: u32 = 1 << 8;
pub(super) const SETUP_SINGLE_ISSUER: u32 = 1 << 12;
pub(super) const SETUP_DEFER_TASKRUN: u32 = 1 << 13;
pub(super) const SETUP_NO_SQARRAY: u32 = 1 << 16;

pub(super) const ENTER_GETEVENTS: u32 = 1 << 0;
pub(super) const ENTER_SQ_WAKEUP: u32 = 1 << 1;
pub(super) const ENTER_EXT_ARG: u32 = 1 << 3;
pub(super) const ENTER_REGISTERED_RING: u32 = 1 << 4;
pub(super) const ENTER_NO_IOWAIT: u32 = 1 << 7;

pub(super) const FEAT_SINGLE_MMAP: u32 = 1 << 0;
pub(super) const FEAT_EXT_ARG: u32 = 1 << 8;
pub(super) const FEAT_NO_IOWAIT: u32 = 1 << 17;

pub(super) const REGISTER_BUFFERS: u32 = 0;
pub(super) const REGISTER_FILES: u32 = 2;
pub(super) const UNREGISTER_FILES: u32 = 3;
pub(super) const REGISTER_RING_FDS: u32 = 20;

/// In the submission ring's flags: its kernel thread sleeps.
pub(super) const SQ_NEED_WAKEUP: u32 = 1 << 0;

const OP_NOP: u8 = 0;
const OP_READ_FIXED: u8 = 4;
const OP_WRITE_FIXED: u8 = 5;
const OP_READ: u8 = 22;
const OP_WRITE: u8 = 23;
const IOSQE_FIXED_FILE: u8 = 1 << 0;

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Params {
    pub(super) sq_entries: u32,
    pub(super) cq_entries: u32,
    pub(super) flags: u32,
    pub(super) sq_thread_cpu: u32,
    pub(super) sq_thread_idle: u32,
    pub(super) features: u32,
    pub(super) wq_fd: u32,
    pub(super) resv: [u32; 3],
    pub(super) sq_off: SqOffsets,
    pub(super) cq_off: CqOffsets,
}

/// `struct io_sqring_offsets`.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct SqOffsets {
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) ring_mask: u32,
    ring_entries: u32,
    pub(super) flags: u32,
    dropped: u32,
    pub(super) array: u32,
    resv1: u32,
    user_addr: u64,
}

/// `struct io_cqring_offsets`.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct CqOffsets {
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) ring_mask: u32,
    ring_entries: u32,
    overflow: u32,
    pub(super) cqes: u32,
    flags: u32,
    resv1: u32,
    user_addr: u64,
}

/// `struct io_uring_rsrc_update`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct RsrcUpdate {
    pub(super) offset: u32,
    pub(super) resv: u32,
    pub(super) data: u64,
}

/// `struct __kernel_timespec`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Timespec {
    tv_sec: i64,
    tv_nsec: i64,
}

impl From<Duration> for Timespec {
    fn from(duration: Duration) -> Self {
        Timespec {
            tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(duration.subsec_nanos()),
        }
    }
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct GeteventsArg {
    pub(super) sigmask: u64,
    pub(super) sigmask_sz: u32,
    pub(super) min_wait_usec: u32,
    pub(super) ts: u64,
}

/// A submission: `struct io_uring_sqe`, as far as reads, writes and no-operations need it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Sqe {
    opcode: u8,
    flags: u8,
    ioprio: u16,
    fd: RawFd,
    off: u64,
    addr: u64,
    len: u32,
    rw_flags: u32,
    user_data: u64,
    buf_index: u16,
    personality: u16,
    file_index: u32,
    addr3: u64,
    pad2: u64,
}

impl Sqe {
    /// Does nothing, and completes.
    #[inline]
    pub fn nop(user_data: u64) -> Sqe {
        Sqe {
            opcode: OP_NOP,
            flags: 0,
            ioprio: 0,
            fd: -1,
            off: 0,
            addr: 0,
            len: 0,
            rw_flags: 0,
            user_data,
            buf_index: 0,
            personality: 0,
            file_index: 0,
            addr3: 0,
            pad2: 0,
        }
    }

    /// `pread`: `len` bytes at `offset` of `fd`, to `address`.
    #[inline]
    pub fn read(fd: RawFd, address: *mut u8, len: u32, offset: u64, user_data: u64) -> Sqe {
        Sqe {
            opcode: OP_READ,
            fd,
            off: offset,
            addr: address as u64,
            len,
            ..Sqe::nop(user_data)
        }
    }

    /// `pwrite`: `len` bytes at `offset` of `fd`, from `address`.
    #[inline]
    pub fn write(fd: RawFd, address: *mut u8, len: u32, offset: u64, user_data: u64) -> Sqe {
        Sqe {
            opcode: OP_WRITE,
            ..Sqe::read(fd, address, len, offset, user_data)
        }
    }

    /// Takes `fd` as the index of a registered file.
    #[inline]
    #[must_use]
    pub fn fixed_file(mut self) -> Sqe {
        self.flags |= IOSQE_FIXED_FILE;
        self
    }

    /// The memory lies in registered buffer 0.
    #[inline]
    #[must_use]
    pub fn fixed_buffer(mut self) -> Sqe {
        self.opcode = match self.opcode {
            OP_READ => OP_READ_FIXED,
            OP_WRITE => OP_WRITE_FIXED,
            other => other,
        };
        self
    }
}

/// A completion: `struct io_uring_cqe`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Cqe {
    /// The value that the submission carried.
    pub user_data: u64,
    /// Bytes moved, or minus an `errno`.
    pub res: i32,
    /// `IORING_CQE_F_*`.
    pub flags: u32,
}

const _: () = assert!(size_of::<Sqe>() == 64 && size_of::<Cqe>() == 16);
const _: () = assert!(size_of::<Params>() == 120 && size_of::<GeteventsArg>() == 24);
