//! FUSE's messages: requests from bytes, answers to bytes.
//!
//! From `include/uapi/linux/fuse.h`, version 7.42. A request is header, the operation's own
//! header, and data.

/// Bytes of a request's header.
pub(super) const IN_HEADER: usize = 40;
/// Bytes of an answer's header.
pub(super) const OUT_HEADER: usize = 16;
/// Bytes of an answer's own part at most, but for a read's data: that to `LOOKUP`.
pub(super) const MOST_OUT: usize = 128;

/// The numbers of operations.
pub(super) mod op {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const FALLOCATE: u32 = 43;
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) opcode: u32,
    pub(super) unique: u64,
    pub(super) inode: u64,
    /// The operation's own header.
    pub(super) own: &'a [u8],
    pub(super) data: &'a [u8],
}

impl<'a> Request<'a> {
    /// A request as `/dev/fuse` gives it; `None` if it is cut off.
    pub(super) fn whole(bytes: &'a [u8]) -> Option<Request<'a>> {
        let (header, rest) = bytes.split_at_checked(IN_HEADER)?;
        let own = match u32_at(header, 4)? {
            op::INIT => rest.len(),
            op::READ | op::WRITE => 40,
            op::FALLOCATE => 32,
            _ => 0,
        };
        let (own, data) = rest.split_at_checked(own)?;
        Some(Request {
            opcode: u32_at(header, 4)?,
            unique: u64_at(header, 8)?,
            inode: u64_at(header, 16)?,
            own,
            data,
        })
    }

    /// A number in the operation's own header.
    pub(super) fn u32(&self, at: usize) -> Option<u32> {
        u32_at(self.own, at)
    }

    /// A number in the operation's own header.
    pub(super) fn u64(&self, at: usize) -> Option<u64> {
        u64_at(self.own, at)
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// An answer's own part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Out {
    bytes: [u8; MOST_OUT],
    len: usize,
}

impl Out {
    pub(super) const EMPTY: Out = Out {
        bytes: [0; MOST_OUT],
        len: 0,
    };

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(super) fn u16(mut self, value: u16) -> Out {
        self.push(&value.to_ne_bytes());
        self
    }

    pub(super) fn u32(mut self, value: u32) -> Out {
        self.push(&value.to_ne_bytes());
        self
    }

    pub(super) fn u64(mut self, value: u64) -> Out {
        self.push(&value.to_ne_bytes());
        self
    }

    /// So many bytes that mean nothing.
    pub(super) fn zeros(mut self, count: usize) -> Out {
        self.push(&[0; MOST_OUT][..count]);
        self
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

/// The header of an answer with so many bytes behind it. `error`: 0, or an errno.
pub(super) fn out_header(unique: u64, error: i32, behind: usize) -> [u8; OUT_HEADER] {
    let len = u32::try_from(OUT_HEADER + behind).unwrap_or(u32::MAX);
    let mut header = [0; OUT_HEADER];
    header[..4].copy_from_slice(&len.to_ne_bytes());
    header[4..8].copy_from_slice(&(-error).to_ne_bytes());
    header[8..].copy_from_slice(&unique.to_ne_bytes());
    header
}

/// The kernel's first request: what it can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Init {
    pub(super) minor: u32,
    readahead: u32,
    pub(super) flags: u64,
}

/// Flags of the first messages.
pub(super) mod can {
    pub(crate) const ASYNC_READ: u64 = 1 << 0;
    pub(crate) const BIG_WRITES: u64 = 1 << 5;
    pub(crate) const ASYNC_DIO: u64 = 1 << 15;
    pub(crate) const PARALLEL_DIROPS: u64 = 1 << 18;
    pub(crate) const MAX_PAGES: u64 = 1 << 22;
    /// There are 64 flags.
    pub(crate) const INIT_EXT: u64 = 1 << 30;
}

/// Version 7.x that this speaks.
const MAJOR: u32 = 7;
const MINOR: u32 = 42;

impl Init {
    /// `None` for a version before 7.23 (Linux 3.15), and for any but 7.
    pub(super) fn of(request: &Request<'_>) -> Option<Init> {
        let (major, minor) = (request.u32(0)?, request.u32(4)?);
        let low = u64::from(request.u32(12)?);
        let high = match low & can::INIT_EXT {
            0 => 0,
            _ => u64::from(request.u32(16)?),
        };
        (major == MAJOR && minor >= 23).then_some(Init {
            minor,
            readahead: request.u32(8)?,
            flags: low | high << 32,
        })
    }

    /// The answer: which of the flags are wanted, requests in flight at most, and pages of a
    /// request at most.
    pub(super) fn answer(&self, wanted: u64, in_flight: u16, pages: u16) -> Out {
        let flags = self.flags & (wanted | can::INIT_EXT);
        Out::EMPTY
            .u32(MAJOR)
            .u32(self.minor.min(MINOR))
            .u32(self.readahead)
            .u32(flags as u32)
            .u16(in_flight)
            .u16(in_flight)
            .u32(u32::from(pages) * 4096)
            // Granularity of times, in nanoseconds.
            .u32(1)
            .u16(pages)
            .u16(0)
            .u32((flags >> 32) as u32)
            .zeros(28)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers as a little-endian machine has them.
    fn hex(text: &str) -> Vec<u8> {
        let text: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let digits = text
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).unwrap());
        digits
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn reads_what_linux_sends() {
        // Read from /dev/fuse of Linux 6.18 while a process called pread for 4096 bytes at 8192.
        let bytes = hex(
            "50000000 0f000000 0800000000000000 0200000000000000 00000000 00000000 190b0000 0000 0000
             0000000000000000 0020000000000000 00100000 02000000 9af8515018f6263b 00800000 00000000",
        );
        let request = Request::whole(&bytes).unwrap();
        assert_eq!(
            (request.opcode, request.unique, request.inode),
            (op::READ, 8, 2)
        );
        assert_eq!((request.u64(8), request.u32(16)), (Some(8192), Some(4096)));
        assert!(request.data.is_empty());
        assert_eq!(Request::whole(&bytes[..60]), None, "cut off");
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_name_is_data() {
        // Read as above while the process opened the file.
        let bytes = hex(
            "2d000000 01000000 0400000000000000 0100000000000000 00000000 00000000 190b0000 0000 0000
             6469736b00",
        );
        let request = Request::whole(&bytes).unwrap();
        assert_eq!((request.opcode, request.data), (op::LOOKUP, &b"disk\0"[..]));
    }

    #[test]
    fn init_takes_what_both_can() {
        const HIGH: u64 = 1 << 41;
        let mut own = Vec::new();
        let low = (can::ASYNC_READ | can::MAX_PAGES | can::INIT_EXT) as u32;
        let high = (HIGH >> 32) as u32;
        for word in [7, 45, 131_072, low, high] {
            own.extend(u32::to_ne_bytes(word));
        }
        own.resize(64, 0);
        let request = Request {
            opcode: op::INIT,
            unique: 1,
            inode: 0,
            own: &own,
            data: &[],
        };
        let init = Init::of(&request).unwrap();
        let wanted = can::ASYNC_READ | can::BIG_WRITES | HIGH;
        let out = init.answer(wanted, 1024, 256);
        let word = |at| u32_at(out.bytes(), at).unwrap();
        assert_eq!(out.bytes().len(), 64);
        assert_eq!((word(0), word(4), word(8)), (7, 42, 131_072));
        assert_eq!(word(12), (can::ASYNC_READ | can::INIT_EXT) as u32);
        assert_eq!((word(20), word(32)), (1 << 20, high));
        let mut old = own.clone();
        old[4..8].copy_from_slice(&22_u32.to_ne_bytes());
        let request = Request {
            own: &old,
            ..request
        };
        assert_eq!(Init::of(&request), None);
    }

    #[test]
    fn an_error_is_negative() {
        let header = out_header(9, 5, 0);
        assert_eq!(u32_at(&header, 0), Some(16));
        assert_eq!(u32_at(&header, 4), Some((-5_i32).cast_unsigned()));
    }
}
