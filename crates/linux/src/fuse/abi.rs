//! Structures and numbers of `include/uapi/linux/io_uring.h` and `fuse.h`, as far as a queue needs
//! them.

use std::os::fd::RawFd;
use std::time::Duration;

/// Another file of the same connection.
pub(super) const DEV_IOC_CLONE: libc::Ioctl = libc::_IOR::<u32>(229, 0);

pub(super) const OFF_SQ_RING: u64 = 0;
pub(super) const OFF_SQES: u64 = 0x1000_0000;
pub(super) const SETUP_SUBMIT_ALL: u32 = 1 << 7;
pub(super) const SETUP_SQE128: u32 = 1 << 10;
pub(super) const SETUP_SINGLE_ISSUER: u32 = 1 << 12;
pub(super) const SETUP_DEFER_TASKRUN: u32 = 1 << 13;
pub(super) const ENTER_GETEVENTS: u32 = 1;
pub(super) const ENTER_EXT_ARG: u32 = 1 << 3;
pub(super) const FEAT_SINGLE_MMAP: u32 = 1;

const OP_READ: u8 = 22;
const OP_URING_CMD: u8 = 46;

/// `FUSE_IO_URING_CMD_REGISTER`: here is an entry, fetch a request into it.
pub(super) const REGISTER: u32 = 1;
/// `FUSE_IO_URING_CMD_COMMIT_AND_FETCH`: here is an answer, fetch the next request.
pub(super) const COMMIT_AND_FETCH: u32 = 2;

/// `struct io_uring_params`
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

/// `struct io_sqring_offsets`
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct SqOffsets {
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) ring_mask: u32,
    ring_entries: u32,
    flags: u32,
    dropped: u32,
    pub(super) array: u32,
    resv1: u32,
    user_addr: u64,
}

/// `struct io_cqring_offsets`
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

/// `struct io_uring_getevents_arg`
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct GeteventsArg {
    sigmask: u64,
    sigmask_sz: u32,
    min_wait_usec: u32,
    ts: u64,
}

/// `struct __kernel_timespec`
#[repr(C)]
#[derive(Debug)]
pub(super) struct Timespec {
    sec: i64,
    nsec: i64,
}

impl Timespec {
    pub(super) fn of(span: Duration) -> Timespec {
        Timespec {
            sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            nsec: span.subsec_nanos().into(),
        }
    }
}

impl GeteventsArg {
    /// With the address of a time after which a wait ends.
    pub(super) fn timeout(ts: u64) -> GeteventsArg {
        GeteventsArg {
            ts,
            ..GeteventsArg::default()
        }
    }
}

/// `struct io_uring_cqe`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Cqe {
    pub(super) user_data: u64,
    pub(super) res: i32,
    flags: u32,
}

/// `struct io_uring_sqe` of 128 bytes: with 80 bytes for the command of a driver.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sqe {
    opcode: u8,
    flags: u8,
    ioprio: u16,
    fd: RawFd,
    /// The offset; of a driver's command, its number.
    off: u64,
    addr: u64,
    len: u32,
    op_flags: u32,
    user_data: u64,
    buf_index: u16,
    personality: u16,
    file_index: u32,
    command: Command,
    unused: [u64; 7],
}

/// `struct fuse_uring_cmd_req`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Command {
    flags: u64,
    commit_id: u64,
    qid: u16,
    padding: [u16; 3],
}

impl Sqe {
    /// Reads `len` bytes from a file that has no place.
    pub(super) fn read(fd: RawFd, into: u64, len: u32, user_data: u64) -> Sqe {
        Sqe {
            opcode: OP_READ,
            fd,
            off: u64::MAX,
            addr: into,
            len,
            user_data,
            ..Sqe::default()
        }
    }

    /// A command to a FUSE connection for a queue. `vectors`: where an entry's two buffers are
    /// listed.
    pub(super) fn fuse(
        fd: RawFd,
        number: u32,
        queue: u16,
        vectors: u64,
        commit_id: u64,
        user_data: u64,
    ) -> Sqe {
        Sqe {
            opcode: OP_URING_CMD,
            fd,
            off: number.into(),
            addr: vectors,
            len: if vectors == 0 { 0 } else { 2 },
            user_data,
            command: Command {
                commit_id,
                qid: queue,
                ..Command::default()
            },
            ..Sqe::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn structures_have_the_kernels_layout() {
        assert_eq!((size_of::<Sqe>(), size_of::<Cqe>()), (128, 16));
        assert_eq!(offset_of!(Sqe, command), 48);
        assert_eq!(size_of::<Command>(), 24);
        assert_eq!(size_of::<Params>(), 120);
    }
}
