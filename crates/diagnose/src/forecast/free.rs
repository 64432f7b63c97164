//! The discards of a trim, from the free extents.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use linux::trim::FreeSpace;
use record::DiscardSetting;
use ssd::Card;
use storage::stack::Stack;

use super::{Cuts, Forecast, count};

/// Forecasts a trim of all free space of a mount, at most: ext4 remembers groups that it trimmed
/// before and skips them. `None` where the file system doesn't report its free extents.
pub fn if_trimmed(
    path: &Path,
    within: Range<u64>,
    minimum: u64,
    stack: &Stack,
    card: Option<&Card>,
) -> Option<Forecast> {
    let directory = File::open(path).ok()?;
    let mut free = FreeSpace::open(&directory)?;
    let mut ranges = Vec::new();
    let mut at = within.start;
    while let Some(extent) = free.behind(at).ok()? {
        if extent.start >= within.end {
            break;
        }
        at = extent.end;
        let cut = extent.start.max(within.start)..extent.end.min(within.end);
        if cut.end.saturating_sub(cut.start) >= minimum.max(1) {
            ranges.push(cut);
        }
    }
    Some(count(ranges, Cuts::of(stack, DiscardSetting::On), card))
}
