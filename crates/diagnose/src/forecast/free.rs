//! The discards of a trim, from the free extents.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use linux::trim::{FreeSpace, Unused};
use record::DiscardSetting;
use ssd::Card;
use storage::TrimReach;
use storage::stack::Stack;

use super::{Cuts, Forecast, count, joined};

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
