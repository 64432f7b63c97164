//! The discards that a deletion or a trim will send, and how long they keep the drive.

mod deletion;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use linux::trim::{FreeSpace, Unused};
use record::DiscardSetting;
use record::units::{self, bytes, counted, latency_us, seconds};
use serde::Serialize;
use ssd::Card;
use ssd::card::{Note, Sure};
use storage::TrimReach;
use storage::stack::Stack;

pub use deletion::{DeletionError, if_deleted};

/// The way to a forecast of times, where no card was given.
pub const NO_CARD: &str = "without --profile it is not known how long they keep the drive busy: \
                           `trimbench lab profiles` lists drives, and `trimbench fit` measures \
                           this one";

/// Linux makes requests of at most this for a discard, and then cuts each at the device's limit.
/// It is `UINT_MAX` bytes in whole blocks (`bio_discard_limit` in block/blk-lib.c).
const LINUX_MOST: u64 = (1 << 32) - 4096;

/// A forecast.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Forecast {
    /// Bytes that come free and will be discarded.
    pub bytes: u64,
    /// Free bytes behind them that will be discarded once more.
    pub again_bytes: u64,
    /// Commands, as the mount's own device counts them.
    pub commands: u64,
    /// The largest of them, in bytes.
    pub largest_bytes: u64,
    /// The time that they take, by a device card; `None` without one.
    pub time: Option<Cost>,
    /// The most that it may be if each file is discarded apart; `None` where the file system joins
    /// neighbours, or there are none.
    pub most: Option<Most>,
    /// Bytes that come free without a discard: allocated and never written, on XFS.
    pub unwritten_bytes: u64,
    /// Files that free nothing, since they have other names.
    pub kept_files: u64,
}

/// The most discards of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Most {
    /// Commands.
    pub commands: u64,
    /// Bytes of them that were free before.
    pub again_bytes: u64,
    /// For which nothing else is served, in seconds; `None` without a card.
    pub stall_s: Option<f64>,
}

/// The time of discards, by a device card.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// For which the drive works on them, in seconds.
    pub device_s: f64,
    /// For which nothing else is served, in seconds: the stall if they come one after the other.
    pub stall_s: f64,
    /// The longest wait for one of them, in seconds.
    pub longest_wait_s: f64,
    /// Whether most of it is the card's time for even the shortest discard, which wasn't measured.
    #[serde(skip)]
    pub is_guess: bool,
}

impl Cost {
    /// The time at which they would be done if others may lose this share, in seconds.
    pub fn paced_s(&self, slowdown: f64) -> f64 {
        self.stall_s / slowdown
    }
}

/// Where a file system and the layers below cut discards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cuts {
    /// No discard crosses a multiple of this.
    group: Option<u64>,
    /// Linux and the file system make no larger request, in bytes.
    request: u64,
    /// A request is cut at this, the device's limit in bytes.
    limit: u64,
}

impl Cuts {
    /// Those of a stack with this setting of its mount.
    fn of(stack: &Stack, setting: DiscardSetting) -> Cuts {
        // Blocks of 4 KiB, as mkfs makes them where a deletion of this size matters.
        let rules = stack.file_system.as_ref().map(|fs| fs.rules());
        let by_fs = rules.and_then(|rules| rules.largest_discard_bytes(4096, setting));
        let limits = stack.layers.iter().filter(|layer| layer.level == 0);
        let limits = limits
            .map(|layer| layer.limits.max_bytes)
            .filter(|&max| max > 0);
        Cuts {
            group: rules.and_then(|rules| rules.bitmap_group_bytes(4096)),
            request: by_fs.unwrap_or(LINUX_MOST).min(LINUX_MOST),
            limit: limits.min().unwrap_or(LINUX_MOST),
        }
    }

    /// The lengths of the discards of one range, in their order.
    fn lengths(self, range: Range<u64>) -> Vec<u64> {
        let is_one_call = self.group.is_none() && self.request == LINUX_MOST;
        let mut found: Vec<u64> = Vec::new();
        let mut request = range.start;
        while request < range.end {
            let group = self
                .group
                .map_or(u64::MAX, |group| (request / group + 1) * group);
            let behind = request.saturating_add(self.request.max(1));
            let end = range.end.min(group).min(behind);
            let mut at = request;
            while at < end {
                let length = (end - at).min(self.limit.max(1));
                match found.last_mut() {
                    // The requests of one call are queued together: the rest of one that was cut
                    // and the next are merged if both fit (`blk_attempt_plug_merge`).
                    Some(last) if is_one_call && *last + length <= self.limit => {
                        *last += length;
                    }
                    _ => found.push(length),
                }
                at += length;
            }
            request = end;
        }
        found
    }
}

/// Ascending ranges, neighbours as one.
fn joined(ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match found.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => found.push(range),
        }
    }
    found
}

/// Counts the discards of ranges, each by itself.
fn count(
    ranges: impl IntoIterator<Item = Range<u64>>,
    cuts: Cuts,
    card: Option<&Card>,
) -> Forecast {
    let discard = card.and_then(|card| card.figures().discard.as_ref());
    let mut found = Forecast {
        time: discard.map(|_| Cost::default()),
        ..Forecast::default()
    };
    for bytes in ranges.into_iter().flat_map(|range| cuts.lengths(range)) {
        found.bytes += bytes;
        found.commands += 1;
        found.largest_bytes = found.largest_bytes.max(bytes);
        if let (Some(cost), Some(discard)) = (&mut found.time, discard) {
            let service = discard.service(bytes, 0, 1);
            let wait: Duration = service.mul_f64(discard.phi());
            cost.device_s += service.as_secs_f64();
            cost.stall_s += wait.as_secs_f64();
            cost.longest_wait_s = cost.longest_wait_s.max(wait.as_secs_f64());
        }
    }
    let is_known = |note: &Note| matches!(note.sure, Sure::Measured | Sure::Derived);
    let unknown = card.is_some_and(|card| !card.note("discard.a").is_some_and(is_known));
    if let (Some(cost), Some(discard)) = (&mut found.time, discard) {
        let shortest_s = discard.a.as_secs_f64() * found.commands as f64;
        cost.is_guess = unknown && shortest_s > 0.5 * cost.device_s;
    }
    found
}

/// A forecast in a sentence. `verb`: the action, as `deleting`.
pub fn sentence(forecast: &Forecast, verb: &str) -> String {
    let most = forecast.most.as_ref();
    let upto = |least: String, most: Option<String>| match most {
        Some(most) if most != least => format!("{least} to {most}"),
        _ => least,
    };
    let mut text = format!(
        "{verb} {}: {}",
        bytes(forecast.bytes),
        match most {
            Some(most) => format!(
                "{} to {}",
                units::count(forecast.commands),
                counted(most.commands, "discard")
            ),
            None => counted(forecast.commands, "discard"),
        }
    );
    let most_again = most.map(|most| most.again_bytes);
    if most_again.unwrap_or(forecast.again_bytes) > 0 {
        let again = upto(bytes(forecast.again_bytes), most_again.map(bytes));
        text += &format!(", with {again} behind them that was free before");
    }
    if let Some(cost) = &forecast.time {
        let most_s = most.and_then(|most| most.stall_s);
        text += &format!(
            ", a stall of {} (each up to {}); with --slowdown 10% about {}",
            upto(seconds(cost.stall_s), most_s.map(seconds)),
            latency_us(cost.longest_wait_s * 1e6),
            upto(seconds(cost.paced_s(0.1)), most_s.map(|s| seconds(s / 0.1)))
        );
        if cost.is_guess {
            text +=
                " (a guess: the card's `a`, the time of the shortest discard, was not measured)";
        }
    }
    if most.is_some() {
        text += ". The most comes if ext4 discards each file apart";
    }
    text
}

// The discards of a trim, from the free extents.

/// Forecasts a trim of all free space of a mount, at most: ext4 and btrfs remember what they
/// trimmed before and skip it. `None` where the file system doesn't report its free extents.
pub fn if_trimmed(
    path: &Path,
    within: Range<u64>,
    minimum: u64,
    stack: &Stack,
    card: Option<&Card>,
) -> Option<Forecast> {
    let directory = File::open(path).ok()?;
    let cuts = Cuts::of(stack, DiscardSetting::On);
    let reached = reached(stack, cuts, &within);
    let asked = |extent: Range<u64>| {
        let cut = extent.start.max(reached.start)..extent.end.min(reached.end);
        (cut.end.saturating_sub(cut.start) >= minimum.max(1)).then_some(cut)
    };
    if let Some(free) = FreeSpace::open(&directory) {
        let extents = extents(free, &within).ok()?.into_iter();
        return Some(count(joined(extents.filter_map(asked)), cuts, card));
    }
    // What a btrfs has free within a block group it discards by itself, and what none uses in any
    // case, whatever range was asked for (`btrfs_trim_fs` in fs/btrfs/extent-tree.c).
    let unused = Unused::of(&directory)?;
    let copies = |(extent, copies): (Range<u64>, u16)| {
        asked(extent)
            .into_iter()
            .flat_map(move |extent| std::iter::repeat_n(extent, copies.into()))
    };
    let outside = unused.outside.into_iter();
    let outside = outside.filter(|range| range.end - range.start >= minimum);
    let extents = unused.within.into_iter().flat_map(copies).chain(outside);
    Some(count(extents, cuts, card))
}

/// The range within which the kernel discards free extents that touch the range `within`.
fn reached(stack: &Stack, cuts: Cuts, within: &Range<u64>) -> Range<u64> {
    let rules = stack.file_system.as_ref().map(|fs| fs.rules());
    match rules.map(|rules| rules.trim_reach(linux::host::kernel_version())) {
        Some(TrimReach::End) => {
            let group = cuts.group.unwrap_or(1);
            within.start..within.end.div_ceil(group).saturating_mul(group)
        }
        Some(TrimReach::Whole) => 0..u64::MAX,
        _ => within.clone(),
    }
}

/// The free extents that touch a range, ascending.
fn extents(mut free: FreeSpace, within: &Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    let mut at = within.start;
    while let Some(extent) = free.behind(at)? {
        if extent.start >= within.end {
            break;
        }
        at = extent.end;
        found.push(extent);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn counted(ranges: &[Range<u64>], group: Option<u64>, largest: u64) -> (u64, u64, u64) {
        let cuts = Cuts {
            group,
            request: LINUX_MOST,
            limit: largest,
        };
        let found = count(joined(ranges.iter().cloned()), cuts, None);
        (found.commands, found.bytes, found.largest_bytes)
    }

    #[test]
    fn each_request_is_cut_at_the_limit_of_the_device() {
        // ATA takes 65,535 sectors for each of 64 ranges: two of them and a rest of each request.
        // The last request is 16 KiB, and merged with the rest before it.
        let limit = 65_535 * 64 * 512;
        let free = std::slice::from_ref(&(0..16 << 30));
        let (commands, bytes, largest) = counted(free, None, limit);
        assert_eq!((bytes, largest), (16 << 30, limit));
        assert_eq!(commands, 4 * 3);
        assert_eq!(counted(free, None, LINUX_MOST).0, 5);
        assert_eq!(counted(free, None, 1 << 30).0, 17);
    }

    #[test]
    fn neighbours_are_one_and_groups_are_not_crossed() {
        let ranges = [0..MIB, MIB..3 * MIB, 4 * MIB..5 * MIB];
        assert_eq!(counted(&ranges, None, u64::MAX), (2, 4 * MIB, 3 * MIB));
        assert_eq!(
            counted(&ranges, Some(2 * MIB), u64::MAX),
            (3, 4 * MIB, 2 * MIB)
        );
        assert_eq!(counted(&ranges, None, MIB), (4, 4 * MIB, MIB));
        assert_eq!(counted(&[], None, MIB), (0, 0, 0));
    }

    #[test]
    fn what_rests_on_a_figure_that_was_not_measured_is_a_guess() {
        let card = ssd::profiles::by_name("samsung-870-evo-2tb").unwrap();
        let assumed = card.with("a=2145us").unwrap();
        let cuts = Cuts {
            group: Some(128 * MIB),
            request: LINUX_MOST,
            limit: LINUX_MOST,
        };
        let is_guess = |ranges: Vec<Range<u64>>, card: &Card| {
            let found = count(ranges, cuts, Some(card));
            sentence(&found, "deleting").contains("a guess")
        };
        let small = |at: u64| at << 20..(at << 20) + 16_384;
        assert!(is_guess((0..20_000).map(small).collect(), &assumed));
        // Large ones take their time by their bytes.
        let slow = assumed.with("discard.b=1ms/MiB").unwrap();
        assert!(!is_guess(std::iter::once(0..1 << 40).collect(), &slow));
    }

    #[test]
    fn a_card_adds_the_time() {
        let card = ssd::profiles::by_name("samsung-870-evo-2tb").unwrap();
        let cuts = Cuts {
            group: Some(128 * MIB),
            request: LINUX_MOST,
            limit: LINUX_MOST,
        };
        let found = count(std::iter::once(0..1u64 << 40), cuts, Some(card));
        let cost = found.time.unwrap();
        assert_eq!(found.commands, 8192);
        // 8,192 × (0.481 ms + 128 × 8.44 µs).
        assert!((cost.stall_s - 12.79).abs() < 0.01, "{cost:?}");
        assert!((cost.paced_s(0.1) - 127.9).abs() < 0.1);
        let text = sentence(&found, "deleting");
        assert!(
            text.starts_with("deleting 1.0 TiB: 8,192 discards, a stall of 12.8 s"),
            "{text}"
        );
    }
}
