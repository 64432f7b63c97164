//! Where a drive's answer to a request goes.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::FILE;
use super::message::{Out, Request, op, out_header};
use crate::device::{Answer, Op};

thread_local! {
    /// Each answering thread's buffer, as large as the largest read so far.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(super) unique: u64,
    /// Bytes of a write.
    pub(super) written: Option<u32>,
    /// A file of the connection.
    pub(super) to: Arc<OwnedFd>,
}

impl Reply {
    fn send(self, error: i32, data: &[u8]) {
        answer(&self.to, self.unique, error, data);
    }
}

/// Writes an answer to a connection.
pub(super) fn answer(file: &OwnedFd, unique: u64, error: i32, data: &[u8]) {
    let header = out_header(unique, error, data.len());
    // A connection that has ended needs no answer.
    let _ = rustix::io::writev(file, &[IoSlice::new(&header), IoSlice::new(data)]);
}

impl Answer for Reply {
    fn data(self, len: usize, read: impl FnOnce(&mut [u8]) -> io::Result<()>) {
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < len {
                buffer.resize(len, 0);
            }
            let into = &mut buffer[..len];
            match read(into) {
                Ok(()) => self.send(0, into),
                Err(_) => self.fail(Errno::IO),
            }
        });
    }

    fn done(self) {
        let out = self
            .written
            .map_or(Out::EMPTY, |bytes| Out::EMPTY.u32(bytes).u32(0));
        self.send(0, out.bytes());
    }

    fn fail(self, errno: Errno) {
        self.send(errno.raw_os_error(), &[]);
    }
}

// The file system: a directory with one file, `disk`. Decides what a request means.

const ROOT: u64 = 1;

const DISK: u64 = 2;

/// Seconds. Nothing about the file ever changes.
const FOR_EVER: u64 = 365 * 24 * 3600;

/// `FOPEN_DIRECT_IO`, `FOPEN_NOFLUSH` and `FOPEN_PARALLEL_DIRECT_WRITES`
const OPENED: u32 = 1 | 1 << 5 | 1 << 6;

/// The file's figures, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files {
    pub(super) size: u64,
    /// The discard granularity that the loop device shows.
    pub(super) granule: u32,
}

/// The next step for a request.
#[derive(Debug)]
pub(super) enum Action<'a> {
    /// This is the answer.
    Answer(Result<Out, Errno>),
    /// The drive answers.
    Submit(Op<'a>),
    /// Nobody waits for an answer.
    Ignore,
}

impl Files {
    pub(super) fn act<'a>(&self, request: &Request<'a>) -> Action<'a> {
        let io = match request.opcode {
            op::FORGET | op::BATCH_FORGET => return Action::Ignore,
            op::READ => self.read(request),
            op::WRITE => self.write(request),
            op::FSYNC => Ok(Op::Flush),
            op::FALLOCATE => self.fallocate(request),
            _ => return Action::Answer(self.look(request)),
        };
        match io {
            Ok(Op::Read(range)) if range.is_empty() => Action::Answer(Ok(Out::EMPTY)),
            Ok(op) => Action::Submit(op),
            Err(errno) => Action::Answer(Err(errno)),
        }
    }

    fn look(&self, request: &Request<'_>) -> Result<Out, Errno> {
        match request.opcode {
            op::LOOKUP if request.data.strip_suffix(b"\0") == Some(FILE.as_bytes()) => {
                // Inode, generation, and how long name and attributes hold.
                let entry = Out::EMPTY.u64(DISK).u64(0).u64(FOR_EVER).u64(FOR_EVER);
                Ok(self.attributes(entry.u64(0), DISK))
            }
            op::LOOKUP => Err(Errno::NOENT),
            op::GETATTR => {
                let valid = Out::EMPTY.u64(FOR_EVER).u64(0);
                Ok(self.attributes(valid, request.inode))
            }
            op::OPEN => Ok(Out::EMPTY.u64(0).u32(OPENED).u32(0)),
            op::OPENDIR => Ok(Out::EMPTY.u64(0).u64(0)),
            // The loop driver takes the block size as its discard granularity.
            op::STATFS => Ok(Out::EMPTY
                .zeros(40)
                .u32(self.granule)
                .u32(255)
                .u32(self.granule)
                .zeros(28)),
            op::RELEASE | op::RELEASEDIR | op::DESTROY => Ok(Out::EMPTY),
            // The kernel doesn't ask for such a thing a second time.
            _ => Err(Errno::NOSYS),
        }
    }

    fn attributes(&self, out: Out, inode: u64) -> Out {
        let (mode, size) = match inode {
            ROOT => (0o040_700, 0),
            _ => (0o100_600, self.size),
        };
        // Blocks and three times, in seconds and nanoseconds; links, owner, group, device.
        let out = out.u64(inode).u64(size).zeros(4 * 8 + 3 * 4);
        out.u32(mode).u32(1).zeros(12).u32(self.granule).u32(0)
    }

    fn read(&self, request: &Request<'_>) -> Result<Op<'static>, Errno> {
        let (at, len) = at_and_len(request)?;
        let end = at.saturating_add(len.into()).min(self.size);
        Ok(Op::Read(at.min(end)..end))
    }

    fn write<'a>(&self, request: &Request<'a>) -> Result<Op<'a>, Errno> {
        let (at, len) = at_and_len(request)?;
        let data = request.data.get(..len as usize).ok_or(Errno::INVAL)?;
        self.end(at, len.into())?;
        Ok(Op::Write(at, data))
    }

    fn fallocate(&self, request: &Request<'_>) -> Result<Op<'static>, Errno> {
        let number = |at| request.u64(at).ok_or(Errno::INVAL);
        let start = number(8)?;
        let range = start..self.end(start, number(16)?)?;
        let mode = FallocateFlags::from_bits_retain(request.u32(24).ok_or(Errno::INVAL)?);
        if mode.contains(FallocateFlags::PUNCH_HOLE) {
            Ok(Op::Discard(range))
        } else if mode.contains(FallocateFlags::ZERO_RANGE) {
            Ok(Op::Zero(range))
        } else {
            Err(Errno::OPNOTSUPP)
        }
    }

    fn end(&self, start: u64, len: u64) -> Result<u64, Errno> {
        let end = start.checked_add(len).filter(|&end| end <= self.size);
        end.ok_or(Errno::NOSPC)
    }
}

fn at_and_len(request: &Request<'_>) -> Result<(u64, u32), Errno> {
    let both = (|| Some((request.u64(8)?, request.u32(16)?)))();
    both.ok_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::super::message::u32_at;
    use super::*;

    const FILES: Files = Files {
        size: 1 << 20,
        granule: 4096,
    };

    fn act<'a>(opcode: u32, own: &'a [u8], data: &'a [u8]) -> Action<'a> {
        FILES.act(&Request {
            opcode,
            unique: 1,
            inode: DISK,
            own,
            data,
        })
    }

    fn io(at: u64, len: u64, mode: u32) -> Vec<u8> {
        let mut own = vec![0; 8];
        own.extend(at.to_ne_bytes());
        own.extend(len.to_ne_bytes());
        own.extend(mode.to_ne_bytes());
        own.extend([0; 12]);
        own
    }

    #[test]
    fn the_file_is_found_with_its_size() {
        let Action::Answer(Ok(out)) = act(op::LOOKUP, &[], b"disk\0") else {
            panic!("not found");
        };
        // `struct fuse_entry_out`: attributes from byte 40 on.
        assert_eq!(out.bytes().len(), 128);
        assert_eq!(u32_at(out.bytes(), 48), Some(1 << 20));
        assert_eq!(u32_at(out.bytes(), 100), Some(0o100_600));
        assert_eq!(u32_at(out.bytes(), 120), Some(4096));
        let other = act(op::LOOKUP, &[], b"dis\0");
        assert!(matches!(other, Action::Answer(Err(Errno::NOENT))));
        let Action::Answer(Ok(out)) = act(op::GETATTR, &[], &[]) else {
            panic!("no attributes");
        };
        assert_eq!(out.bytes().len(), 104);
        let Action::Answer(Ok(out)) = act(op::STATFS, &[], &[]) else {
            panic!("no figures");
        };
        assert_eq!(out.bytes().len(), 80);
    }

    #[test]
    fn nothing_reaches_beyond_the_end() {
        let end = 1 << 20;
        let own = io(end - 4096, 8192, 0);
        let read = act(op::READ, &own, &[]);
        assert!(matches!(read, Action::Submit(Op::Read(range)) if range == (end - 4096..end)));
        let write = act(op::WRITE, &own, &[0; 8192]);
        assert!(matches!(write, Action::Answer(Err(Errno::NOSPC))));
        let own = io(end - 4096, 4096, 0);
        let short = act(op::WRITE, &own, &[0; 100]);
        assert!(matches!(short, Action::Answer(Err(Errno::INVAL))));
        let own = io(end + 1, 1, 0);
        let behind = act(op::READ, &own, &[]);
        assert!(matches!(behind, Action::Answer(Ok(Out::EMPTY))));
    }

    #[test]
    fn holes_are_discards_and_zeros_are_written() {
        let own = io(4096, 8192, 3);
        let hole = act(op::FALLOCATE, &own, &[]);
        assert!(matches!(hole, Action::Submit(Op::Discard(range)) if range == (4096..12_288)));
        let own = io(4096, 8192, 0x11);
        let zero = act(op::FALLOCATE, &own, &[]);
        assert!(matches!(zero, Action::Submit(Op::Zero(range)) if range == (4096..12_288)));
        let own = io(4096, 8192, 0);
        let space = act(op::FALLOCATE, &own, &[]);
        assert!(matches!(space, Action::Answer(Err(Errno::OPNOTSUPP))));
    }
}
