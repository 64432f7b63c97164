//! Discard debt: what was freed and not yet discarded.

use super::counting::UNPAID;
use super::discards::Discards;
use super::window::Window;
use record::{DeletionLine, EventKind, RunRecord};

/// Figures about the debt.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Debt {
    /// The largest, in bytes.
    pub(super) max_bytes: Option<u64>,
    /// From the first deletion call to the first significant discard, in seconds.
    pub(super) first_discard_lag_s: Option<f64>,
    /// From the last deletion call's return until the debt was paid, in seconds.
    pub(super) drain_s: Option<f64>,
}

/// Returns the bytes freed in the window: by the deletion, else by the intervals. `None` if the
/// record has neither.
pub(super) fn freed(
    record: &RunRecord,
    window: &Window,
    deletion: Option<&DeletionLine>,
) -> Option<u64> {
    let counted = window.delete.clone().map_or(0, |range| {
        record.intervals.freed_bytes[range]
            .iter()
            .fold(0_u64, |sum, &b| sum.saturating_add(b))
    });
    deletion
        .map(|d| d.bytes)
        .filter(|&b| b > 0)
        .or(Some(counted))
        .filter(|&b| b > 0)
}

/// Returns the debt over the window's delete phase.
pub(super) fn debt(
    record: &RunRecord,
    window: &Window,
    deletion: Option<&DeletionLine>,
    discards: &Discards,
) -> Debt {
    let Some(range) = window.delete.clone() else {
        return Debt::default();
    };
    let intervals = &record.intervals;
    let end_of = |i: usize| intervals.at_s[i] + f64::from(intervals.seconds[i]);
    let mut result = Debt::default();
    if let (Some(deletion), Some((first, _))) = (deletion, discards.span()) {
        result.first_discard_lag_s = Some((intervals.at_s[first] - deletion.at_s).max(0.0));
    }
    let Some(total) = freed(record, window, deletion) else {
        return result;
    };
    let by_interval: u64 = intervals.freed_bytes[range.clone()]
        .iter()
        .fold(0, |sum, &b| sum.saturating_add(b));
    let returned_s = deletion.map(|d| d.at_s + d.seconds);
    let (mut freed, mut discarded, mut most) = (0_u64, 0_u64, 0_u64);
    let mut paid_s = None;
    for i in range.clone() {
        freed = freed.saturating_add(intervals.freed_bytes[i]);
        // A deletion that doesn't tell what it freed when counts at its return.
        if by_interval == 0 && freed == 0 && returned_s.is_none_or(|at| end_of(i) >= at) {
            freed = total;
        }
        discarded = discarded.saturating_add(discards.bytes[i]);
        // Discards may be seen before the call that freed the space has returned.
        let debt = freed.saturating_sub(discarded);
        most = most.max(debt);
        let returned = returned_s.is_some_and(|at| end_of(i) >= at);
        let unpaid = total.saturating_sub(discarded) as f64 > UNPAID * total as f64;
        if returned && !unpaid && paid_s.is_none() {
            paid_s = Some(end_of(i));
        }
    }
    result.max_bytes = Some(most);
    let begin = intervals.at_s.get(range.start).copied().unwrap_or(0.0);
    let event = record
        .events
        .iter()
        .find(|e| e.kind == EventKind::DebtPaid && e.at_s >= begin);
    let last = range
        .end
        .checked_sub(1)
        .filter(|_| !range.is_empty())
        .map_or(0.0, end_of);
    let of_event = event
        .map(|e| e.at_s)
        .filter(|&at| at <= last + 1.0 && discards.any());
    result.drain_s = match (paid_s.or(of_event), returned_s) {
        (Some(paid), Some(returned)) => Some((paid - returned).max(0.0)),
        _ => None,
    };
    result
}
