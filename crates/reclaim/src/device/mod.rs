//! Discards a range of a block device step by step, as a pacer allows.
//!
//! One call over a whole drive, as blkdiscard(8) and mkfs make it, keeps the drive busy for as long
//! as it takes. Here each call discards one step. The device's statistics and the canary's reads
//! decide how large a step is and when the next one comes. A call returns when its discards are
//! done.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use linux::SysRoot;
use linux::files::Caching;
use pace::{DebtMode, Work};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use storage::raw::{RawDevice, RawError};
use storage::{Commit, Description};

use crate::event::{Event, Listener, Progress, note_all};
use crate::throttle::{
    CanaryFile, LONGEST_GRANT, Pacing, Purpose, Setup, Stack, Summary, Throttle,
};
use crate::trim::{Lateness, is_over_file};
use crate::{ReclaimError, Result};

/// Discards begin and end at multiples of this, as BLKDISCARD wants it.
const SECTOR: u64 = 512;

/// Why a device can't be discarded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum DeviceError {
    #[error(transparent)]
    Raw(#[from] RawError),
    #[error(transparent)]
    Target(#[from] storage::TargetError),
    #[error(transparent)]
    Harm(#[from] storage::Harm),
    #[error("{device} takes no discards; see: trimbench inspect {device}")]
    Unsupported { device: String },
    #[error("{device}: {what}")]
    Range { device: String, what: String },
    #[error(transparent)]
    Reclaim(#[from] ReclaimError),
    #[error(
        "{source}; {} before it are discarded: the rest begins at --offset={at}",
        record::units::bytes(*bytes)
    )]
    Partly {
        source: ReclaimError,
        bytes: u64,
        at: u64,
    },
}

impl DeviceError {
    /// Whether what was asked for can't be done with this device at all.
    pub fn is_usage(&self) -> bool {
        !matches!(self, DeviceError::Reclaim(_) | DeviceError::Partly { .. })
    }
}

/// The part of a device to discard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Where to begin, in bytes.
    pub offset: u64,
    /// How many bytes; `None`: to the end.
    pub length: Option<u64>,
    /// At most so many bytes in each call.
    pub step: Option<u64>,
}

/// A device that is claimed, and the part of it to discard.
#[derive(Debug)]
pub struct Discarding {
    device: RawDevice,
    found: Description,
    range: Range<u64>,
    step: u64,
}

/// The result of a discard.
#[derive(Debug, Clone, PartialEq)]
pub struct Discarded {
    /// Bytes that were discarded.
    pub bytes: u64,
    /// In so many calls.
    pub calls: u64,
    /// Where it was interrupted, in bytes; `None` where all is discarded.
    pub stopped_at: Option<u64>,
    /// The throttle's figures.
    pub summary: Summary,
}

/// Returns the range of a device of this size that is meant.
///
/// # Errors
/// A sentence that says which bound is wrong.
fn range(part: &Part, size: u64) -> Result<Range<u64>, String> {
    let shown = record::units::bytes_exact;
    if part.offset >= size {
        return Err(format!(
            "--offset {} lies behind its end: it has {} ({size} bytes)",
            shown(part.offset),
            record::units::bytes(size)
        ));
    }
    // As blkdiscard does, a range that is too long ends at the device's end.
    let length = part.length.unwrap_or(u64::MAX).min(size - part.offset);
    for (name, bytes) in [("--offset", part.offset), ("--length", length)] {
        if bytes % SECTOR != 0 {
            return Err(format!(
                "{name} {bytes} is no multiple of {SECTOR} bytes; round it"
            ));
        }
    }
    match length {
        0 => Err("--length 0 is nothing to discard; give more".to_owned()),
        length => Ok(part.offset..part.offset + length),
    }
}

impl Discarding {
    /// Claims a device. With `force`, signatures of file systems and the like on it may be
    /// destroyed. Discards nothing.
    ///
    /// # Errors
    /// [`DeviceError::Raw`] where it is in use, or holds known data without `force`;
    /// [`DeviceError::Unsupported`] where it takes no discards; [`DeviceError::Range`].
    pub fn claim(path: &Path, part: &Part, force: bool) -> Result<Discarding, DeviceError> {
        let name = record::units::names::shown(path).to_string();
        let device = RawDevice::claim(path, force)?;
        if device.discard().max_bytes == 0 {
            return Err(DeviceError::Unsupported { device: name });
        }
        let found = storage::describe_device(path)?;
        found.unless_harmful(&name, "use blkdiscard(8)")?;
        let failed = |what| DeviceError::Range {
            device: name.clone(),
            what,
        };
        let range = range(part, device.size_bytes()).map_err(failed)?;
        // A discard that is shorter than the granularity does nothing.
        let least = device.discard().granularity_bytes.max(SECTOR);
        let step = part.step.unwrap_or(u64::MAX);
        if step < least {
            return Err(failed(format!(
                "--step {} is shorter than its shortest discard of {}; give more",
                record::units::bytes(step),
                record::units::bytes(least)
            )));
        }
        Ok(Discarding {
            found,
            device,
            range,
            step,
        })
    }

    /// The range to discard, in bytes.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Its storage stack as a throttle needs it.
    fn stack(&self) -> Stack {
        let mut stack = Stack::trimmed(&SysRoot::host(), &self.found, SECTOR);
        stack.commit = Commit::Within;
        stack.discards_twice = false;
        stack.unit = stack.unit.max(self.device.discard().max_bytes);
        stack
    }

    /// The work as the device shapes it, for a forecast.
    pub fn work(&self) -> Work {
        let bytes = self.range.end - self.range.start;
        self.stack().shape(&Work::new(bytes, 1))
    }

    /// Discards the range.
    ///
    /// # Errors
    /// [`DeviceError::Reclaim`] with the kernel's error, or if the goal can't be met. An
    /// interruption is no error: the result says where it stopped.
    pub fn run(
        self,
        pacing: &Pacing,
        listener: &mut Listener<'_>,
    ) -> Result<Discarded, DeviceError> {
        let device = Arc::new(self.device.open(Caching::Buffered)?);
        let canary = Arc::new(self.device.open(Caching::Direct)?);
        let pacing = Pacing {
            canary: CanaryFile::Given(canary),
            ..pacing.clone()
        };
        let stack = self.stack();
        let setup = Setup {
            on: device.as_fd(),
            stack: &stack,
            purpose: Purpose::Trim,
            work: &self.work(),
            pacing: &pacing,
        };
        note_all(listener, self.found.fault());
        let mut throttle = Throttle::start(&setup, listener)?;
        let total = self.range.end - self.range.start;
        let mut listener = |event: Event<'_>| match event {
            Event::Progress(progress) => listener(Event::Progress(Progress {
                total_bytes: total,
                ..progress
            })),
            event => listener(event),
        };
        let (mut at, mut calls) = (self.range.start, 0);
        let outcome = self.all(&device, &mut throttle, &mut at, &mut calls, &mut listener);
        let stopped_at = match outcome {
            Ok(()) => None,
            Err(ReclaimError::Interrupted) => Some(at),
            Err(source) if at > self.range.start => {
                let bytes = at - self.range.start;
                return Err(DeviceError::Partly { source, bytes, at });
            }
            Err(error) => return Err(error.into()),
        };
        let summary = match stopped_at {
            Some(_) => throttle.end(),
            None => throttle.finish(&mut listener)?,
        };
        Ok(Discarded {
            bytes: at - self.range.start,
            calls,
            stopped_at,
            summary,
        })
    }

    fn all(
        &self,
        device: &Arc<File>,
        throttle: &mut Throttle,
        at: &mut u64,
        calls: &mut u64,
        listener: &mut Listener<'_>,
    ) -> Result<()> {
        let granularity = self.device.discard().granularity_bytes.max(SECTOR);
        // Its discards are holes in a file, which reach the drive when that is committed.
        let over_file = self.found.devices.iter().any(is_over_file);
        let is_seen = self.stack().mode == DebtMode::Commit;
        let mut late = (over_file && is_seen).then(Lateness::default);
        let holes = Holes::of(&self.found);
        while *at < self.range.end {
            // Where there is a hole already, nothing reaches the drive.
            let hole = holes.as_ref().map_or(0, |holes| holes.bytes(*at));
            let hole = hole.min(self.range.end - *at).min(self.step) / granularity * granularity;
            if hole > 0 {
                self.call(device, *at..*at + hole, throttle, listener)?;
                throttle.freed(hole, hole);
                *at += hole;
                *calls += 1;
                continue;
            }
            let advice = throttle.grant(self.range.end - *at, listener)?;
            let began = Instant::now();
            let mut allowed = advice.allow;
            while allowed > 0 && *at < self.range.end && began.elapsed() < LONGEST_GRANT {
                let most = advice.piece.min(allowed).min(self.step);
                let end = next(*at, most, granularity, self.range.end);
                let before = throttle.discards().bytes;
                self.call(device, *at..end, throttle, listener)?;
                let bytes = end - *at;
                let mut swallowed = 0;
                if let Some(late) = &mut late {
                    let own = Arc::clone(device);
                    throttle.flush(listener, move || own.sync_all())?;
                    late.wait(throttle, bytes, before, listener)?;
                    // The file system below may send none, or not for all.
                    swallowed = bytes.saturating_sub(throttle.discards().bytes - before);
                }
                throttle.freed(bytes, swallowed);
                allowed = allowed.saturating_sub(bytes);
                *at = end;
                *calls += 1;
            }
        }
        Ok(())
    }

    /// Discards a part in one call.
    fn call(
        &self,
        device: &Arc<File>,
        part: Range<u64>,
        throttle: &mut Throttle,
        listener: &mut Listener<'_>,
    ) -> Result<()> {
        let own = Arc::clone(device);
        throttle
            .call(listener, move || linux::block::discard(&own, &part))?
            .map_err(ReclaimError::io("discard a part of", self.device.path()))
    }
}

/// The holes of the file that a loop device is made of.
struct Holes {
    file: File,
    /// Where the device begins in it, in bytes.
    offset: u64,
}

impl Holes {
    /// `None` for a device that isn't such a one, or whose file can't be opened.
    fn of(found: &Description) -> Option<Holes> {
        let top = found.devices.iter().find(|device| device.level == 0)?;
        if !is_over_file(top) {
            return None;
        }
        let path = linux::loop_device::backing_file(&Path::new("/dev").join(&top.name))?;
        let sys = SysRoot::host();
        let offset = sys.attribute(&top.name, "loop/offset")?.parse().ok()?;
        let file = File::open(path).ok()?;
        Some(Holes { file, offset })
    }

    /// The length of the hole at a byte of the device; 0 where data lie.
    fn bytes(&self, at: u64) -> u64 {
        let begin = self.offset + at;
        match rustix::fs::seek(&self.file, SeekFrom::Data(begin)) {
            Ok(data) => data - begin,
            // None lie behind.
            Err(Errno::NXIO) => u64::MAX,
            Err(_) => 0,
        }
    }
}

/// Where a step ends that begins at `at`, has at most `most` bytes, and ends at a multiple of the
/// granularity: what is shorter does nothing.
fn next(at: u64, most: u64, granularity: u64, end: u64) -> u64 {
    let whole = at.saturating_add(most) / granularity * granularity;
    let least = (at / granularity + 1).saturating_mul(granularity);
    whole.max(least).min(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(offset: u64, length: Option<u64>) -> Part {
        Part {
            offset,
            length,
            step: None,
        }
    }

    #[test]
    fn a_range_lies_within_the_device_and_in_sectors() {
        assert_eq!(range(&part(0, None), 8192), Ok(0..8192));
        assert_eq!(range(&part(512, Some(1 << 40)), 8192), Ok(512..8192));
        for (wrong, word) in [
            (part(8192, None), "behind its end"),
            (part(100, None), "--offset 100"),
            (part(0, Some(1000)), "--length 1000"),
            (part(0, Some(0)), "--length 0"),
        ] {
            let said = range(&wrong, 8192).unwrap_err();
            assert!(said.contains(word), "{said}");
        }
    }

    proptest! {
        #[test]
        fn steps_cover_a_range_once_and_end_at_the_granularity(
            start in 0..1000u64,
            sectors in 1..5000u64,
            granularity in prop::sample::select(vec![1u64, 8, 2048]),
            most in 1..3_000_000u64,
        ) {
            let granularity = granularity * SECTOR;
            let (mut at, end) = (start * SECTOR, (start + sectors) * SECTOR);
            let mut steps = 0;
            while at < end {
                let to = next(at, most, granularity, end);
                prop_assert!(to > at && to <= end);
                prop_assert!(to - at <= most.max(granularity));
                prop_assert!(to == end || to.is_multiple_of(granularity));
                at = to;
                steps += 1;
                prop_assert!(steps <= sectors);
            }
        }
    }
}
