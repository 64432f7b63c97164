//! The discards that this test caused, and which of them were near a place.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use ssd::extents::Extents;

/// So many are remembered; the oldest are forgotten.
const MOST: usize = 200_000;

/// How space was freed or discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// A discard of a part of a raw device (`BLKDISCARD`).
    Blkdiscard,
    /// A hole punched into a file.
    Punch,
    /// A file cut short.
    Truncate,
    /// A file removed.
    Unlink,
    /// All free space of the file system trimmed (`FITRIM`).
    Fstrim,
}

impl How {
    /// In words, to be read after "the nearest discard".
    pub fn words(self) -> &'static str {
        match self {
            How::Blkdiscard => "BLKDISCARD",
            How::Punch => "a punched hole",
            How::Truncate => "a truncation",
            How::Unlink => "a removed file",
            How::Fstrim => "fstrim",
        }
    }
}

/// Space that was freed or discarded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Freed {
    /// Bytes of the device.
    pub(crate) range: Range<u64>,
    /// When the call began, in seconds since the test began.
    pub(crate) began_s: f64,
    pub(crate) how: How,
}

/// A discard near a place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Near {
    /// How it came.
    pub how: How,
    /// Bytes between it and the place; 0 where they overlap or touch.
    pub distance_bytes: u64,
    /// Seconds from its beginning to when the damage was found.
    pub seconds_before: f64,
}

/// The discards' evidence about a damaged place.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Around {
    /// The nearest in space; among equals the latest.
    pub in_space: Option<Near>,
    /// The latest of all.
    pub in_time: Option<Near>,
    /// Those before it was last written cover all of it.
    pub before_write: bool,
    /// One that came after it was last written ends or begins right at its edge.
    pub touches: bool,
    /// One that came after it was last written lies at most 128 KiB away, and nothing between them
    /// is known to be older and right.
    pub close: bool,
    /// The fewest bytes that one took too much if it did this damage. It came after the last write,
    /// and nothing between them is known to be older and right.
    pub reach_bytes: Option<u64>,
    /// There may have been others, of which nothing is known.
    pub unknown: bool,
}

/// A discard is close up to this distance, in bytes.
pub(crate) const CLOSE: u64 = 128 << 10;

/// Whether something in a range of the device is older than a time, and right.
type Spared<'a> = &'a dyn Fn(Range<u64>, f64) -> bool;

/// A log of discards.
#[derive(Debug, Default)]
pub(crate) struct Discards(Mutex<VecDeque<Freed>>);

impl Discards {
    pub(crate) fn add(&self, freed: Freed) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == MOST {
            log.pop_front();
        }
        log.push_back(freed);
    }

    /// Those around a place on the device that was last written at `written_s`. `spared`:
    /// whether something in a range is older than a time, and right.
    pub(crate) fn around(
        &self,
        place: &Range<u64>,
        written_s: Option<f64>,
        now_s: f64,
        spared: Spared<'_>,
    ) -> Around {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        around(log.iter(), place, written_s, now_s, spared)
    }
}

/// The same of any log, in the order of time.
fn around<'a>(
    log: impl Iterator<Item = &'a Freed>,
    place: &Range<u64>,
    written_s: Option<f64>,
    now_s: f64,
    spared: Spared<'_>,
) -> Around {
    let mut found = Around::default();
    let mut before = Extents::new();
    for freed in log {
        let near = Near {
            how: freed.how,
            distance_bytes: distance(&freed.range, place),
            seconds_before: now_s - freed.began_s,
        };
        found.in_time = Some(near);
        // An fstrim covers all free space, so it is near everything and says nothing.
        if freed.how == How::Fstrim {
            continue;
        }
        let best = found.in_space.map_or(u64::MAX, |best| best.distance_bytes);
        if near.distance_bytes <= best {
            found.in_space = Some(near);
        }
        let Some(written_s) = written_s else { continue };
        let overlaps = freed.range.start < place.end && place.start < freed.range.end;
        if overlaps && freed.began_s < written_s {
            before.insert(freed.range.clone());
        }
        let edge = freed.range.end == place.start || freed.range.start == place.end;
        if freed.began_s >= written_s {
            found.touches |= edge;
            let (between, reach) = match freed.range.end <= place.start {
                true => (freed.range.end..place.start, place.end - freed.range.end),
                false => (
                    place.end..freed.range.start,
                    freed.range.start.saturating_sub(place.start),
                ),
            };
            if !overlaps && !spared(between, freed.began_s) {
                found.close |= near.distance_bytes <= CLOSE;
                found.reach_bytes = Some(found.reach_bytes.map_or(reach, |least| least.min(reach)));
            }
        }
    }
    found.before_write = before.covers(place.clone());
    found
}

fn distance(one: &Range<u64>, other: &Range<u64>) -> u64 {
    let behind = other.start.saturating_sub(one.end);
    behind.max(one.start.saturating_sub(other.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn freed(range: Range<u64>, began_s: f64) -> Freed {
        Freed {
            range,
            began_s,
            how: How::Blkdiscard,
        }
    }

    #[test]
    fn the_nearest_in_space_and_in_time_are_told_apart() {
        let log = Discards::default();
        log.add(freed(0..4096, 1.0));
        log.add(freed(1 << 20..2 << 20, 3.0));
        let around = log.around(&(8192..12288), Some(2.0), 10.0, &|_, _| false);
        let space = around.in_space.unwrap();
        assert_eq!((space.distance_bytes, space.seconds_before), (4096, 9.0));
        let time = around.in_time.unwrap();
        assert_eq!(time.seconds_before, 7.0);
        assert_eq!(time.distance_bytes, (1 << 20) - 12288);
        assert!(!around.before_write && !around.touches);
    }

    #[test]
    fn late_and_wide_trims_leave_their_marks() {
        let log = [freed(0..8192, 1.0)];
        let inside = around(log.iter(), &(4096..8192), Some(2.0), 3.0, &|_, _| false);
        assert!(inside.before_write && !inside.touches);
        let behind = around(log.iter(), &(8192..12288), Some(0.5), 3.0, &|_, _| false);
        assert!(behind.touches && !behind.before_write);
        let half = around(log.iter(), &(4096..12288), Some(2.0), 3.0, &|_, _| false);
        assert!(!half.before_write, "nothing was discarded behind it");
        let far = |spared| {
            let place = 12288..16384;
            around(log.iter(), &place, Some(0.5), 3.0, &|between, since_s| {
                assert_eq!((between, since_s), (8192..12288, 1.0));
                spared
            })
        };
        assert!(far(false).close && !far(false).touches);
        assert_eq!(far(false).reach_bytes, Some(8192));
        assert!(!far(true).close, "what lies between them is right");
        assert_eq!(far(true).reach_bytes, None);
        let before = around(log.iter(), &(0..4096), Some(0.5), 3.0, &|_, _| false);
        assert_eq!(before.reach_bytes, None, "it was discarded itself");
        let unknown = around(log.iter(), &(8192..12288), None, 3.0, &|_, _| false);
        assert!(!unknown.touches && !unknown.before_write);
    }

    proptest! {
        #[test]
        fn distances_are_symmetric_and_zero_where_ranges_meet(
            a in 0..1000u64, al in 1..100u64, b in 0..1000u64, bl in 1..100u64,
        ) {
            let (one, other) = (a..a + al, b..b + bl);
            let found = distance(&one, &other);
            prop_assert_eq!(found, distance(&other, &one));
            let meet = one.start <= other.end && other.start <= one.end;
            prop_assert_eq!(found == 0, meet);
        }
    }
}
