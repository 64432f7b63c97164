//! The probe: a file of random bytes between two fences, and its blocks on the device.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use linux::SysRoot;
use linux::files::{self, Aligned, Caching, FileError, FileExtent};
use linux::owner::{Name, WorkDir};
use linux::stats::{Counters as Reading, DeviceStats};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use serde::Serialize;
use storage::Description;
use storage::drive::ReadsAs;
use storage::stack::{LayerKind, Stack};

use super::ProveError;

/// Bytes whose way is followed.
pub(super) const PROBE_BYTES: u64 = 64 << 20;

/// Bytes on each side that must stay as they are.
const FENCE_BYTES: u64 = 1 << 20;

/// Bytes written or read at once.
const CHUNK: usize = 1 << 20;

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

// Discards at each layer of a stack since the probe was freed.

/// Open counters of a stack's layers.
pub(super) struct Counters {
    layers: Vec<Layer>,
}

struct Layer {
    counted: Counted,
    stats: Option<(DeviceStats, Reading)>,
    /// How many bytes devices of its level discard for each byte freed.
    copies: f64,
    /// Whether a count of nothing means nothing: md counts no discards.
    silent: bool,
}

impl Counters {
    pub(super) fn open(sys: &SysRoot, stack: &Stack, found: &Description) -> Counters {
        let layers = stack.layers.iter().map(|layer| {
            let device = found.devices.iter().find(|device| {
                let drive = device.drive.as_ref().map(|drive| drive.name.as_str());
                device.name == layer.name || drive == Some(layer.name.as_str())
            });
            let stats = DeviceStats::open(sys, &layer.name).ok();
            let stats = stats.and_then(|stats| stats.read().ok().map(|now| (stats, now)));
            let off = device.is_some_and(|device| device.counting.off);
            // A partition of an NVMe drive with several paths counts at its drive.
            let elsewhere = layer.kind == LayerKind::Partition
                && device.is_some_and(|device| device.counting.statistics_of.is_some());
            Layer {
                counted: Counted {
                    name: layer.name.clone(),
                    below: layer.below.clone(),
                    top: layer.level == 0,
                    bytes: None,
                    commands: 0,
                    share: 0.0,
                },
                stats: stats.filter(|_| !off && !elsewhere),
                copies: device.map_or(1.0, |device| device.counting.copies),
                silent: matches!(layer.kind, LayerKind::Md(_)),
            }
        });
        Counters {
            layers: layers.collect(),
        }
    }

    /// The counts of each layer so far. Levels with several devices share a probe between them, so
    /// a member's share is that of all devices beside it.
    pub(super) fn read(&self) -> Vec<Counted> {
        let mut all: Vec<Counted> = self.layers.iter().map(Layer::read).collect();
        let beside = |one: &Counted, other: &Counted, layers: &[Counted]| {
            let common = layers
                .iter()
                .any(|above| above.below.contains(&one.name) && above.below.contains(&other.name));
            one.name == other.name || common || one.top && other.top
        };
        let sums: Vec<f64> = all
            .iter()
            .map(|one| {
                all.iter()
                    .filter(|other| beside(one, other, &all))
                    .map(|other| other.share)
                    .sum()
            })
            .collect();
        for (one, sum) in all.iter_mut().zip(sums) {
            one.share = sum;
        }
        all
    }
}

impl Layer {
    fn read(&self) -> Counted {
        let mut counted = self.counted.clone();
        let now = self
            .stats
            .as_ref()
            .and_then(|(stats, before)| Some(stats.read().ok()?.since(before)));
        if let Some(did) = now.filter(|did| !self.silent || did.discard_bytes > 0) {
            counted.bytes = Some(did.discard_bytes);
            counted.commands = did.discards;
            counted.share = did.discard_bytes as f64 / (PROBE_BYTES as f64 * self.copies);
        }
        counted
    }
}

// The conclusion of a proof, from what was counted and read. Pure.

/// Bytes that are compared at once.
pub(super) const BLOCK: usize = 4096;

/// From this share of the probe on, a layer passed it.
const PASSED: f64 = 0.5;

/// From this share of the probe on, more than the probe was discarded, and a count proves nothing.
const OTHERS: f64 = 4.0;

/// From this share of the probe on, its blocks are as they were.
const UNCHANGED: f64 = 0.9;

/// From this share on they changed. Nothing but a discard changes them, so half is proof; btrfs
/// may keep a part that was in a chunk of its own.
const CHANGED: f64 = 0.5;

/// The discards that a layer counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counted {
    /// The layer's kernel name.
    pub name: String,
    /// The layers right below it.
    pub below: Vec<String>,
    /// Whether it is at the top.
    pub top: bool,
    /// Bytes discarded there; `None` if its counters say nothing.
    pub bytes: Option<u64>,
    /// Commands.
    pub commands: u64,
    /// Bytes over those of the probe, each copy counted once.
    pub share: f64,
}

impl Counted {
    /// Whether others discarded there, too.
    pub(super) fn is_others(&self) -> bool {
        self.share >= OTHERS
    }
}

/// The content of the probe's blocks afterwards, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Raw {
    /// Still the probe's data.
    pub unchanged_bytes: u64,
    /// Zeros.
    pub zero_bytes: u64,
    /// Something else.
    pub other_bytes: u64,
}

impl Raw {
    /// Compares blocks with those that were written.
    pub(super) fn add(&mut self, written: &[u8], read: &[u8]) {
        for (before, after) in written.chunks(BLOCK).zip(read.chunks(BLOCK)) {
            let bytes = after.len() as u64;
            match () {
                () if before == after => self.unchanged_bytes += bytes,
                () if after.iter().all(|&byte| byte == 0) => self.zero_bytes += bytes,
                () => self.other_bytes += bytes,
            }
        }
    }

    fn share(&self, bytes: u64) -> f64 {
        let all = self.unchanged_bytes + self.zero_bytes + self.other_bytes;
        bytes as f64 / all.max(1) as f64
    }
}

/// The result of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The drive got the discards, and the blocks changed.
    Arrives,
    /// The drive got the discards; the blocks could not be read, or only some changed.
    Counted,
    /// The drive got the discards, and the blocks are as they were.
    Ignored,
    /// A layer above the drive stopped them.
    Stops,
    /// The file system sent none.
    NotSent,
    /// Data beside the probe changed, too.
    TooMuch,
    /// The blocks are as they were, or were not read; and no counter is on, or others discarded
    /// much more than the probe.
    Unknown,
}

/// The result, and the layer at which discards stopped.
pub(super) fn conclude(
    layers: &[Counted],
    raw: Option<&Raw>,
    fence_intact: bool,
) -> (Outcome, Option<String>) {
    if !fence_intact {
        return (Outcome::TooMuch, None);
    }
    let passes = |layer: &Counted| layer.bytes.is_none() || layer.share >= PASSED;
    let tops: Vec<&Counted> = layers.iter().filter(|layer| layer.top).collect();
    let known = layers.iter().any(|layer| layer.bytes.is_some());
    if !known {
        let changed = raw.is_some_and(|raw| raw.share(raw.zero_bytes + raw.other_bytes) >= CHANGED);
        return match changed {
            true => (Outcome::Arrives, None),
            false => (Outcome::Unknown, None),
        };
    }
    if !tops.iter().any(|top| passes(top)) {
        return (Outcome::NotSent, None);
    }
    let stop = layers.iter().find(|layer| {
        let mut below = layers
            .iter()
            .filter(|one| layer.below.contains(&one.name))
            .peekable();
        passes(layer) && below.peek().is_some() && !below.any(passes)
    });
    if let Some(stop) = stop {
        // A layer without counters above that got none itself sent nothing.
        return match stop.top && stop.bytes.is_none() {
            true => (Outcome::NotSent, None),
            false => (Outcome::Stops, Some(stop.name.clone())),
        };
    }
    let outcome = match raw {
        Some(raw) if raw.share(raw.zero_bytes + raw.other_bytes) >= CHANGED => Outcome::Arrives,
        _ if layers.iter().any(Counted::is_others) => Outcome::Unknown,
        Some(raw) if raw.share(raw.unchanged_bytes) >= UNCHANGED => Outcome::Ignored,
        _ => Outcome::Counted,
    };
    (outcome, None)
}

/// Whether unchanged blocks break a drive's promise. `None`: it reported nothing.
pub(in crate::inspect) fn breaks_promise(promise: Option<ReadsAs>) -> bool {
    !matches!(promise, Some(ReadsAs::Anything | ReadsAs::Deterministic))
}
