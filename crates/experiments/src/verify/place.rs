//! Where a test works: a directory of its own, or a raw device.

use std::fs::File;
use std::iter;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use linux::files::{Caching, DirectIo, extents_within, probe_direct};
use linux::mounts::Mount;
use linux::trim::{Chunk, placed_chunks};
use record::units::names::shown;
use storage::raw::RawDevice;
use storage::{Description, FileSystem, describe};

use crate::verify::block::BLOCK;
use crate::verify::home::{self, Home, slot_name};
use crate::verify::slot::{Content, Slot};
use crate::verify::{Plan, VerifyError, Where};

const MIB: u64 = 1 << 20;
/// So much is tested unless more is asked for.
const USUAL: u64 = 1 << 30;
/// Files or regions for each worker.
const EACH: u32 = 4;
/// Files and regions are multiples of it.
const UNIT: u64 = MIB;

/// Where a test works.
#[derive(Debug)]
pub(crate) enum Place {
    /// A directory of its own.
    Directory {
        home: Home,
        addresses: Addresses,
        /// Whether files are read and written past the page cache.
        direct: bool,
    },
    /// A raw device.
    Device {
        claim: RawDevice,
        /// Bytes; discards are multiples of it.
        granularity: u64,
    },
}

/// A place, and all that was found out about it.
pub(crate) struct Surveyed {
    pub(crate) place: Place,
    /// The named path or device.
    pub(crate) path: PathBuf,
    pub(crate) fs: Option<String>,
    pub(crate) device: Option<PathBuf>,
    pub(crate) size_bytes: u64,
    pub(crate) erase_block_bytes: Option<u64>,
    pub(crate) notes: Vec<String>,
}

impl Surveyed {
    /// How many files or regions there are for so many workers, and the blocks of each.
    pub(crate) fn slots(&self, workers: u32) -> (u32, usize) {
        let count = workers.max(1) * EACH;
        let each = self.size_bytes / u64::from(count);
        (count, (each / UNIT * UNIT / BLOCK as u64) as usize)
    }
}

/// Looks at the place, and makes the test's directory in it.
pub(crate) fn survey(plan: &Plan) -> Result<Surveyed, VerifyError> {
    match &plan.place {
        Where::Directory(path) => directory(plan, path),
        Where::Device { path, force } => device(plan, path, *force),
    }
}

fn directory(plan: &Plan, path: &Path) -> Result<Surveyed, VerifyError> {
    let found = describe(path)?;
    let refused = |why| refused(path, why);
    if found.mount.as_ref().is_some_and(Mount::read_only) {
        return Err(refused(
            "mounted read-only; remount it read-write, or name another directory".to_owned(),
        ));
    }
    let mut notes = Vec::new();
    let direct = match probe_direct(path) {
        Ok(DirectIo::Works(_)) => true,
        Ok(DirectIo::Memory) => {
            return Err(refused(
                "its files are in memory, and no drive is behind them; name a directory on a disk"
                    .to_owned(),
            ));
        }
        Ok(DirectIo::Refused(error)) => {
            notes.push(format!(
                "direct I/O is refused here ({error}): data are dropped from the page cache \
                 before they are read, as far as the kernel does that"
            ));
            false
        }
        Err(error) => return Err(refused(error.to_string())),
    };
    notes.append(&mut home::sweep(path)?);
    let size = size(plan, path)?;
    let home = Home::create(path)?;
    Ok(surveyed(path, found, home, direct, size, notes))
}

fn refused(path: &Path, why: String) -> VerifyError {
    let path = path.to_owned();
    VerifyError::Place { path, why }
}

/// Less is no test: each file or region has a MiB.
fn least(plan: &Plan) -> u64 {
    u64::from(plan.workers.max(1) * EACH) * UNIT
}

/// The bytes to be tested: what was asked for, or a quarter of what may be written.
fn size(plan: &Plan, path: &Path) -> Result<u64, VerifyError> {
    let space = linux::space::Space::of(path).map_err(storage::TargetError::from)?;
    let usable = space.usable_bytes();
    if usable < least(plan) + least(plan) / 4 {
        return Err(refused(
            path,
            format!(
                "the file system is too small or too full: {} may be written, as 10 % or 1 GiB \
                 stays free, and the least test takes {}; free space, or name another directory",
                record::units::bytes(usable),
                record::units::bytes(least(plan) + least(plan) / 4)
            ),
        ));
    }
    let size = plan
        .size_bytes
        .unwrap_or(least(plan).max(USUAL.min(usable / 4) / MIB * MIB));
    // A file that is being removed may take its space until the next commit.
    let needed = size + size / 4;
    if size < least(plan) || needed > usable {
        return Err(refused(
            path,
            format!(
                "testing {} takes up to {}, at least {} must be tested, and {} may be written, as \
                 10 % or 1 GiB stays free; choose another --size or free space",
                record::units::bytes(size),
                record::units::bytes(needed),
                record::units::bytes(least(plan)),
                record::units::bytes(usable)
            ),
        ));
    }
    Ok(size)
}

fn surveyed(
    path: &Path,
    found: Description,
    home: Home,
    direct: bool,
    size_bytes: u64,
    mut notes: Vec<String>,
) -> Surveyed {
    notes.extend(found.warnings.iter().map(ToString::to_string));
    let addresses = Addresses::of(&found, &home);
    Surveyed {
        device: addresses.device.clone(),
        fs: found.target.fs.clone(),
        erase_block_bytes: erase_block(found.devices.iter().map(|d| d.discard.granularity_bytes)),
        path: path.to_owned(),
        place: Place::Directory {
            home,
            addresses,
            direct,
        },
        size_bytes,
        notes,
    }
}

fn erase_block(granularities: impl Iterator<Item = u64>) -> Option<u64> {
    granularities.max().filter(|bytes| *bytes > BLOCK as u64)
}

fn device(plan: &Plan, path: &Path, force: bool) -> Result<Surveyed, VerifyError> {
    let claim = RawDevice::claim(path, force)?;
    let whole = claim.size_bytes() / MIB * MIB;
    let size_bytes = plan.size_bytes.unwrap_or(USUAL.min(whole));
    if size_bytes > whole || size_bytes < least(plan) {
        return Err(refused(
            path,
            format!(
                "the device has {}, and at least {} must be tested; choose another --size",
                record::units::bytes(claim.size_bytes()),
                record::units::bytes(least(plan))
            ),
        ));
    }
    let limits = claim.discard();
    let mut notes = Vec::new();
    if limits.max_bytes == 0 {
        notes.push(format!("{} takes no discards: none are sent", shown(path)));
    }
    Ok(Surveyed {
        path: path.to_owned(),
        fs: None,
        device: Some(path.to_owned()),
        size_bytes,
        erase_block_bytes: erase_block([limits.granularity_bytes].into_iter()),
        place: Place::Device {
            granularity: match limits.max_bytes {
                0 => 0,
                _ => limits.granularity_bytes.max(BLOCK as u64),
            },
            claim,
        },
        notes,
    })
}

impl Place {
    /// Opens or makes slot `number` (from 1) of `blocks` blocks.
    pub(crate) fn slot(&self, number: u32, blocks: usize) -> Result<Slot, VerifyError> {
        match self {
            Place::Directory { home, direct, .. } => {
                let name = slot_name(number);
                let file = home
                    .open(&name, true, *direct)
                    .map_err(|source| VerifyError::Io {
                        path: home.path().join(&name),
                        what: "open",
                        source,
                    })?;
                let map = vec![Content::Zeros.into(); blocks];
                Ok(Slot::new(number, 0, file, 0, map))
            }
            Place::Device { claim, .. } => {
                let file = claim.open(Caching::Direct)?;
                let base = u64::from(number - 1) * Slot::offset(blocks);
                let map = vec![Content::Unknown.into(); blocks];
                Ok(Slot::new(number, base, file, blocks, map))
            }
        }
    }

    /// Whether data are read past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        match self {
            Place::Directory { direct, .. } => *direct,
            Place::Device { .. } => true,
        }
    }

    /// The name of a slot in messages.
    pub(crate) fn shown(&self, number: u32) -> String {
        match self {
            Place::Directory { home, .. } => shown(home.path().join(slot_name(number))),
            Place::Device { claim, .. } => format!("region {number} of {}", shown(claim.path())),
        }
    }

    /// The parts of the device that a part of a slot lies on, each with its offset in the slot.
    /// Empty where that is not known.
    pub(crate) fn on_device(&self, slot: &Slot, part: Range<u64>) -> Vec<Range<u64>> {
        match self {
            Place::Device { .. } => {
                let part = slot.base + part.start..slot.base + part.end;
                iter::once(part).collect()
            }
            Place::Directory { addresses, .. } => addresses.of_file(&slot.file, part),
        }
    }
}

/// From the addresses that a file system has for its data to those on its device.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// The device; `None` where there isn't one, or the addresses are not known.
    device: Option<PathBuf>,
    /// Of a file system with an address space of its own: where its chunks lie.
    chunks: Option<Mutex<Vec<Chunk>>>,
    directory: Option<File>,
}

impl Addresses {
    /// Those of a place whose device is not known.
    #[cfg(test)]
    pub(crate) fn unknown() -> Addresses {
        Addresses {
            device: None,
            chunks: None,
            directory: None,
        }
    }

    fn of(found: &Description, home: &Home) -> Addresses {
        let directory = home.directory().ok();
        let of_its_own = found
            .mount
            .as_ref()
            .is_some_and(|mount| FileSystem::mounted(mount).maps_addresses());
        // Several devices share the addresses of one file system: those are unknown.
        let tops = found.devices.iter().filter(|device| device.level == 0);
        let device = found.target.source.clone().filter(|_| tops.count() == 1);
        Addresses {
            device: device
                .map(PathBuf::from)
                .filter(|path| path.starts_with("/dev")),
            chunks: of_its_own.then(Mutex::default),
            directory,
        }
    }

    /// The place on the device of an address of the file system.
    fn place(&self, address: u64) -> Option<u64> {
        let Some(chunks) = &self.chunks else {
            return self.device.as_ref().map(|_| address);
        };
        let mut chunks = chunks.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |chunks: &[Chunk]| {
            let chunk = chunks
                .iter()
                .find(|chunk| chunk.logical.contains(&address))?;
            Some(chunk.physical? + (address - chunk.logical.start))
        };
        if let Some(found) = find(&chunks) {
            return Some(found);
        }
        // A chunk that was made since.
        *chunks = placed_chunks(self.directory.as_ref()?).ok()?;
        find(&chunks)
    }

    fn of_file(&self, file: &File, part: Range<u64>) -> Vec<Range<u64>> {
        let Ok(extents) = extents_within(file, part.start, part.end) else {
            return Vec::new();
        };
        let placed = extents
            .iter()
            .filter(|extent| extent.on_disk && !extent.unwritten);
        placed
            .filter_map(|extent| {
                let start = extent.start.max(part.start);
                let length = extent.end().min(part.end).checked_sub(start)?;
                let at = self.place(extent.physical + (start - extent.start))?;
                Some(at..at + length)
            })
            .collect()
    }
}
