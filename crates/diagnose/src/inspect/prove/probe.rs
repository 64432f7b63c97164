//! The probe: a file of random bytes between two fences, and its blocks on the device.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use linux::files::{self, Caching, FileError, FileExtent};
use linux::owner::{Name, WorkDir};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::ProveError;
use super::outcome::{BLOCK, Raw};

/// Bytes whose way is followed.
pub(super) const PROBE_BYTES: u64 = 64 << 20;

/// Bytes on each side that must stay as they are.
const FENCE_BYTES: u64 = 1 << 20;

/// Bytes written or read at once.
const CHUNK: usize = 1 << 20;

/// Random bytes at an address that direct I/O takes.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(length: usize) -> Aligned {
        let bytes = vec![0; length + BLOCK];
        let start = bytes.as_ptr().align_offset(BLOCK);
        Aligned { bytes, start }
    }

    fn get(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + length]
    }
}

/// A part of the probe on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its offset in the file.
    pub(super) at: u64,
    /// The address that the file system has for it.
    pub(super) address: u64,
    pub(super) length: u64,
}

/// The file.
pub(super) struct Probe {
    file: File,
    seed: u64,
    pieces: Vec<Piece>,
}

impl Probe {
    /// Writes it, each part with a commit of its own, so that an extent ends where the probe does.
    pub(super) fn write(home: &WorkDir, seed: u64) -> Result<Probe, ProveError> {
        let create = |caching| home.create_file(Name::Victim(1), caching);
        let file = match create(Caching::Direct) {
            Err(FileError::Direct { .. }) => create(Caching::Buffered)?,
            created => created?,
        };
        let mut probe = Probe {
            file,
            seed,
            pieces: Vec::new(),
        };
        let end = FENCE_BYTES + PROBE_BYTES;
        for part in [0..FENCE_BYTES, FENCE_BYTES..end, end..end + FENCE_BYTES] {
            let mut buffer = Aligned::new(CHUNK);
            for at in part.step_by(CHUNK) {
                let chunk = buffer.get(CHUNK);
                probe.fill(chunk, at);
                probe.file.write_all_at(chunk, at)?;
            }
            probe.file.sync_all()?;
        }
        let extents = files::extents_within(&probe.file, FENCE_BYTES, end).unwrap_or_default();
        probe.pieces = extents.iter().filter_map(piece).collect();
        Ok(probe)
    }

    /// Where it lies; empty where the file system doesn't report it.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Frees its middle.
    pub(super) fn free(&self) -> Result<(), ProveError> {
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, punch, FENCE_BYTES, PROBE_BYTES) {
            // Without holes the end is cut off, and with it the fence behind the probe.
            Err(Errno::OPNOTSUPP) => self.file.set_len(FENCE_BYTES)?,
            done => done.map_err(io::Error::from)?,
        }
        Ok(self.file.sync_all()?)
    }

    /// Whether the fences are as they were written, read from the device.
    pub(super) fn fences_are_intact(&self) -> Result<bool, ProveError> {
        let behind = FENCE_BYTES + PROBE_BYTES;
        let length = self.file.metadata()?.len();
        // What the page cache has is not what the device has.
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed);
        for at in [0, behind] {
            if at >= length {
                continue;
            }
            let (mut read, mut wanted) = (Aligned::new(CHUNK), vec![0; CHUNK]);
            match self.file.read_exact_at(read.get(CHUNK), at) {
                // A file system with checksums sees it before we do.
                Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                    return Ok(false);
                }
                done => done?,
            }
            self.fill(&mut wanted, at);
            if read.get(CHUNK) != wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares the probe's blocks on the device with what was written. `place`: the offset on
    /// the device of an address of the file system. Nothing but the probe's blocks is read.
    pub(super) fn raw(&self, device: &Path, place: &dyn Fn(u64) -> Option<u64>) -> io::Result<Raw> {
        let direct =
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::CLOEXEC;
        let device = File::from(rustix::fs::open(device, direct, rustix::fs::Mode::empty())?);
        let (mut buffer, mut wanted) = (Aligned::new(CHUNK), vec![0; CHUNK]);
        let mut raw = Raw::default();
        for piece in &self.pieces {
            for from in (0..piece.length).step_by(CHUNK) {
                let length = (piece.length - from).min(CHUNK as u64) as usize;
                let Some(at) = place(piece.address + from) else {
                    return Err(io::Error::other("the address on the device is unknown"));
                };
                let read = buffer.get(length);
                device.read_exact_at(read, at)?;
                self.fill(&mut wanted[..length], piece.at + from);
                raw.add(&wanted[..length], read);
            }
        }
        Ok(raw)
    }

    /// The bytes that belong at an offset, a multiple of a block.
    fn fill(&self, bytes: &mut [u8], at: u64) {
        for (index, block) in bytes.chunks_mut(BLOCK).enumerate() {
            let number = at / BLOCK as u64 + index as u64;
            fastrand::Rng::with_seed(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .fill(block);
        }
    }
}

/// The part of an extent that belongs to the probe, in whole blocks.
fn piece(extent: &FileExtent) -> Option<Piece> {
    let end = extent.end().min(FENCE_BYTES + PROBE_BYTES);
    let at = extent.start.max(FENCE_BYTES);
    let length = end.checked_sub(at)? / BLOCK as u64 * BLOCK as u64;
    let usable = extent.on_disk && !extent.unwritten && !extent.shared && length > 0;
    usable.then_some(Piece {
        at,
        address: extent.physical + (at - extent.start),
        length,
    })
}
