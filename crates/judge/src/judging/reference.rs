//! The reference: the stretches that a part's delete phase is compared with.
//!
//! A single deletion is compared with the time before it. A *continuous* deleter (an LSM tree's
//! compaction, a spill) creates files and drops them all the time. Its writes slow the foreground,
//! too, and the baseline phase has none of them. Compared with that, TRIM would be blamed for the
//! writes.
//!
//! So while it works, the stretches with significant discards are compared with those without. One
//! interval, and one of the actor's cells, around discards are left out. The time after its last
//! call is left out, too, since it writes no more.
//!
//! Where hardly any stretch is free of discards, there is only the baseline phase. The loss against
//! that is an upper bound: discards and writes together. It can clear TRIM. It can convict TRIM
//! only with a control that had the writes.
//!
//! The comparison is fair if the deleter writes alike with discards and without.
//! Where the devices wrote far more beside discards (a compaction that writes at
//! full speed and drops its input right after), it says nothing about a slowdown.

use std::ops::Range;

use super::discards::Discards;
use super::spans::Spans;
use super::window::Window;
use record::{DeletionLine, RunRecord};

/// Shorter than this, stretches without discards are nothing to compare with, in seconds.
pub(super) const LEAST_FREE_S: f64 = 3.0;
/// Nor if they are less than this share of the time that the deleter works.
const LEAST_FREE: f64 = 0.1;

/// The reference of a delete phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// The time before it, or after it.
    Outside,
    /// Its own stretches without discards, while its deleter works: these intervals.
    Within(Range<usize>),
    /// Outside, for want of such stretches: an upper bound of what discards do.
    Bound,
}

impl Reference {
    /// Returns the reference of a part.
    pub(super) fn of(
        record: &RunRecord,
        window: &Window,
        deletion: Option<&DeletionLine>,
        discards: &Discards,
    ) -> Reference {
        let Some(work) = window.work(record, deletion) else {
            return Reference::Outside;
        };
        if !discards.covered[work.clone()].contains(&true) {
            return Reference::Outside; // none of them came beside writes
        }
        let free_s = free(discards, &work, 1).seconds(record);
        let work_s = Spans::from(work.clone()).seconds(record);
        if free_s < LEAST_FREE_S.max(LEAST_FREE * work_s) - 1e-3 {
            return Reference::Bound;
        }
        Reference::Within(work)
    }

    /// Returns the reference of a control, which has no discards, by that of its main part.
    pub(super) fn of_control(
        &self,
        record: &RunRecord,
        window: &Window,
        deletion: Option<&DeletionLine>,
    ) -> Reference {
        match self {
            Reference::Outside | Reference::Bound => Reference::Outside,
            Reference::Within(_) => window
                .work(record, deletion)
                .map_or(Reference::Outside, Reference::Within),
        }
    }
}

/// The devices may write so many times as much beside discards as without.
const MORE_WRITES: f64 = 2.0;
/// Fewer bytes per second than these slow nobody.
const FEW_WRITES: f64 = 4.0 * 1024.0 * 1024.0;

impl Reference {
    /// Returns whether far more was written beside the discards than without them, so that the
    /// writes may have caused a loss.
    pub(super) fn more_writes(&self, record: &RunRecord, discards: &Discards) -> bool {
        let Reference::Within(work) = self else {
            return false;
        };
        let devices = record.head.devices.iter().zip(&record.intervals.devices);
        let leaves: Vec<_> = devices.filter(|(d, _)| d.leaf).map(|(_, c)| c).collect();
        let rate = |spans: &Spans| {
            let written = spans.intervals().fold(0.0, |sum, i| {
                let bytes = leaves.iter().map(|c| c.write_bytes[i] as f64);
                sum + bytes.sum::<f64>()
            });
            written / spans.seconds(record).max(f64::MIN_POSITIVE)
        };
        let with = rate(&Spans::filtered(work.clone(), |i| discards.covered[i]));
        let without = rate(&free(discards, work, 1));
        with > FEW_WRITES && with >= MORE_WRITES * without
    }
}

/// Returns the intervals of `work` without a discard in service in them, nor in the `guard`
/// intervals before and after them.
pub(super) fn free(discards: &Discards, work: &Range<usize>, guard: usize) -> Spans {
    let covered = &discards.covered;
    let mut near = vec![false; covered.len()];
    let mut marked = 0;
    for i in (0..covered.len()).filter(|&i| covered[i]) {
        let end = (i + guard + 1).min(near.len());
        near[i.saturating_sub(guard).max(marked).min(end)..end].fill(true);
        marked = end;
    }
    Spans::filtered(work.clone(), |i| !near[i])
}
