//! The only front end: a FUSE file system with one file, `disk`.
//!
//! A loop device with direct I/O over that file turns each block request into one FUSE request.
//! Reads and writes are asynchronous. Discards and flushes come one at a time from each of the loop
//! driver's workers.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr,
    ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session,
    WriteFlags,
};
use rustix::fs::FallocateFlags;

use crate::device::{Answer, Device, Op};

/// The one file's name.
pub(crate) const FILE: &str = "disk";

const DISK: INodeNo = INodeNo(2);
/// Nothing about the file ever changes.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// Requests the kernel may have in flight; by default only 16.
const IN_FLIGHT: u16 = 1024;

/// The reply to one request.
#[derive(Debug)]
pub(crate) enum FuseAnswer {
    Data(ReplyData),
    Written(ReplyWrite, u32),
    Empty(ReplyEmpty),
}

impl Answer for FuseAnswer {
    fn data(self, data: &[u8]) {
        match self {
            FuseAnswer::Data(reply) => reply.data(data),
            other => other.done(),
        }
    }

    fn done(self) {
        match self {
            FuseAnswer::Data(reply) => reply.data(&[]),
            FuseAnswer::Written(reply, bytes) => reply.written(bytes),
            FuseAnswer::Empty(reply) => reply.ok(),
        }
    }

    fn fail(self, errno: rustix::io::Errno) {
        let errno = Errno::from_i32(errno.raw_os_error());
        match self {
            FuseAnswer::Data(reply) => reply.error(errno),
            FuseAnswer::Written(reply, _) => reply.error(errno),
            FuseAnswer::Empty(reply) => reply.error(errno),
        }
    }
}

/// Mounts the file on a directory, and serves it with `threads` threads until
/// the session is ended or the file system unmounted.
///
/// `granule`: the discard granularity that the loop device reports, in bytes.
///
/// # Errors
/// The kernel's error for the mount.
pub(crate) fn mount(
    device: Arc<Device<FuseAnswer>>,
    size: u64,
    granule: u32,
    on: &Path,
    threads: usize,
) -> io::Result<BackgroundSession> {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("trimbench-lab".to_owned()),
        MountOption::Subtype("trimbench-lab".to_owned()),
        MountOption::NoExec,
    ];
    config.n_threads = Some(threads);
    config.clone_fd = true;
    let files = Files {
        device,
        size,
        granule,
    };
    Session::new(files, on, &config)?.spawn()
}

struct Files {
    device: Arc<Device<FuseAnswer>>,
    size: u64,
    granule: u32,
}

impl Files {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_disk = inode == DISK;
        FileAttr {
            ino: inode,
            size: if is_disk { self.size } else { 0 },
            blocks: 0,
            atime: SystemTime::UNIX_EPOCH,
            mtime: SystemTime::UNIX_EPOCH,
            ctime: SystemTime::UNIX_EPOCH,
            crtime: SystemTime::UNIX_EPOCH,
            kind: if is_disk {
                FileType::RegularFile
            } else {
                FileType::Directory
            },
            perm: if is_disk { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: self.granule,
            flags: 0,
        }
    }

    fn end(&self, start: u64, len: u64) -> Option<u64> {
        start.checked_add(len).filter(|&end| end <= self.size)
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Each is taken where the kernel has it.
        for wanted in [
            InitFlags::FUSE_ASYNC_READ,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_BIG_WRITES,
            InitFlags::FUSE_PARALLEL_DIROPS,
        ] {
            let _ = config.add_capabilities(wanted);
        }
        let _ = config.set_max_background(IN_FLIGHT);
        let _ = config.set_congestion_threshold(IN_FLIGHT);
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == FILE {
            reply.entry(&FOR_EVER, &self.attributes(DISK), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(inode));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // The loop driver takes the block size as its discard granularity.
        reply.statfs(0, 0, 0, 0, 0, self.granule, 255, self.granule);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let end = offset.saturating_add(size.into()).min(self.size);
        if offset >= end {
            return reply.data(&[]);
        }
        self.device
            .submit(Op::Read(offset..end), FuseAnswer::Data(reply));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // Data longer than 4 GiB don't come in one request.
        let (Some(_), Ok(len)) = (
            self.end(offset, data.len() as u64),
            u32::try_from(data.len()),
        ) else {
            return reply.error(Errno::ENOSPC);
        };
        self.device
            .submit(Op::Write(offset, data), FuseAnswer::Written(reply, len));
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.device.submit(Op::Flush, FuseAnswer::Empty(reply));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some(end) = self.end(offset, length) else {
            return reply.error(Errno::ENOSPC);
        };
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let op = if mode.contains(FallocateFlags::PUNCH_HOLE) {
            Op::Discard(offset..end)
        } else if mode.contains(FallocateFlags::ZERO_RANGE) {
            Op::Zero(offset..end)
        } else {
            return reply.error(Errno::EOPNOTSUPP);
        };
        self.device.submit(op, FuseAnswer::Empty(reply));
    }
}
