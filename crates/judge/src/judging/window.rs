//! Which intervals belong to which phase of the part that is judged.

use std::ops::Range;

use crate::verdict::Reason;
use record::{DeletionLine, EndReason, EventKind, Part, PhaseName, RunRecord};

/// The part of a record that is judged, as ranges of intervals.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// The part.
    pub(super) part: Part,
    /// Whether the record tells phases at all (an imported log doesn't).
    pub(super) has_phases: bool,
    /// Where rates are looked at: baseline, delete and recovery; everything without phases.
    pub(super) all: Range<usize>,
    /// The baseline phase.
    pub(super) baseline: Option<Range<usize>>,
    /// The delete phase: discards count only here. Everything without phases.
    pub(super) delete: Option<Range<usize>>,
    /// The recovery phase.
    pub(super) recovery: Option<Range<usize>>,
    /// Why the delete phase did not run to its end; `None` if it did.
    pub(super) cut_short: Option<Reason>,
}

impl Window {
    /// The window of one part; `None` when the record has phases, but none of this part.
    pub(super) fn of(record: &RunRecord, part: Part) -> Option<Window> {
        let everything = 0..record.intervals.len();
        let cut_short = cut_short(record);
        if record.phases.is_empty() {
            return (part == Part::Main).then_some(Window {
                part,
                has_phases: false,
                all: everything.clone(),
                baseline: None,
                delete: Some(everything),
                recovery: None,
                cut_short,
            });
        }
        if !record.phases.iter().any(|p| p.part == part) {
            return None;
        }
        let mut baseline = phase(record, part, PhaseName::Baseline);
        let delete = delete_phase(record, part);
        let mut recovery = phase(record, part, PhaseName::Recovery);
        if let Some(delete) = &delete {
            baseline = baseline.map(|r| r.start..r.end.min(delete.start).max(r.start));
            recovery = recovery.map(|r| r.start.max(delete.end)..r.end.max(delete.end));
        }
        let begin = [&baseline, &delete, &recovery]
            .into_iter()
            .flatten()
            .map(|r| r.start)
            .min();
        let end = [&baseline, &delete, &recovery]
            .into_iter()
            .flatten()
            .map(|r| r.end)
            .max();
        let over = delete.is_some() && recovery.is_some();
        Some(Window {
            part,
            has_phases: true,
            all: begin.unwrap_or(0)..end.unwrap_or(0),
            baseline: baseline.filter(|r| !r.is_empty()),
            delete: delete.filter(|r| !r.is_empty()),
            recovery: recovery.filter(|r| !r.is_empty()),
            cut_short: cut_short.filter(|_| !over),
        })
    }

    /// The intervals in which this part's deleter created and dropped files all
    /// the time; `None` if it didn't. Of a run that was killed there is no deletion
    /// line, only the event with which it began.
    pub(super) fn work(
        &self,
        record: &RunRecord,
        deletion: Option<&DeletionLine>,
    ) -> Option<Range<usize>> {
        let delete = self.delete.clone()?;
        let began = record.events.iter().find(|e| {
            let at = place(record, e.at_s);
            e.kind == EventKind::ContinuousDeletionBegan
                && (delete.start..=delete.end).contains(&at)
        });
        let (begin, end) = match deletion {
            Some(d) if d.continuous => (place(record, d.at_s), place(record, d.at_s + d.seconds)),
            Some(_) => return None,
            None => (place(record, began?.at_s), delete.end),
        };
        let work = begin.max(delete.start)..end.min(delete.end);
        (!work.is_empty()).then_some(work)
    }

    /// Returns the deletion of this part; several deletions count as one.
    pub(super) fn deletion(&self, record: &RunRecord) -> Option<DeletionLine> {
        let mut of_part = record.deletions.iter().filter(|d| d.part == self.part);
        let first = *of_part.next()?;
        Some(of_part.fold(first, |sum, d| {
            let begin = sum.at_s.min(d.at_s);
            let end = (sum.at_s + sum.seconds).max(d.at_s + d.seconds);
            DeletionLine {
                at_s: begin,
                seconds: end - begin,
                bytes: sum.bytes.saturating_add(d.bytes),
                files: sum.files.saturating_add(d.files),
                errors: sum.errors.saturating_add(d.errors),
                continuous: sum.continuous || d.continuous,
                space_freed_bytes: sum.space_freed_bytes.max(d.space_freed_bytes),
                ..sum
            }
        }))
    }
}

/// Returns why a run ended before it was over. One that was killed could write no reason.
pub(super) fn cut_short(record: &RunRecord) -> Option<Reason> {
    match record.end.as_ref().map(|end| end.reason) {
        Some(EndReason::Completed) => None,
        Some(EndReason::Interrupted) | None => Some(Reason::Interrupted),
        Some(EndReason::Failed) => Some(Reason::Failed),
    }
}

/// The intervals of a phase, from its begin to that of the next of any part.
/// An interval belongs where its middle lies: the ticks and the phases are
/// kept by different threads, and need not meet.
fn phase(record: &RunRecord, part: Part, name: PhaseName) -> Option<Range<usize>> {
    let index = record
        .phases
        .iter()
        .position(|p| (p.part, p.name) == (part, name))?;
    let begin = record.phases[index].at_s;
    let end = record.phases[index + 1..]
        .iter()
        .find(|p| (p.part, p.name) != (part, name));
    let last = end.map_or(record.intervals.len(), |p| place(record, p.at_s));
    Some(place(record, begin)..last)
}

/// The intervals of the delete phase. One of which less than half belongs to it is the phase's if the
/// devices discarded in it: all discards of a short deletion may lie there.
fn delete_phase(record: &RunRecord, part: Part) -> Option<Range<usize>> {
    let range = phase(record, part, PhaseName::Delete)?;
    let is_delete = |p: &record::Phase| (p.part, p.name) == (part, PhaseName::Delete);
    let first = record.phases.iter().position(is_delete)?;
    let begin_s = record.phases[first].at_s;
    let end = record.phases[first + 1..].iter().find(|p| !is_delete(p));
    let end_s = end.map_or(f64::INFINITY, |p| p.at_s);
    let intervals = &record.intervals;
    let shared = |i: usize| {
        let (from_s, length_s) = (intervals.at_s[i], f64::from(intervals.seconds[i]));
        let seconds = (from_s + length_s).min(end_s) - from_s.max(begin_s);
        seconds > LEAST_SHARED * length_s && intervals.devices.iter().any(|d| d.discards[i] > 0)
    };
    let before = range.start.checked_sub(1).filter(|&i| shared(i));
    let after = range.end < intervals.len() && shared(range.end);
    Some(before.unwrap_or(range.start)..range.end + usize::from(after))
}

/// Less of an interval than this share is the imprecision of its times.
const LEAST_SHARED: f64 = 0.01;

/// The first interval whose middle lies at or after this time.
fn place(record: &RunRecord, at_s: f64) -> usize {
    let intervals = &record.intervals;
    let middle = |i: usize| intervals.at_s[i] + f64::from(intervals.seconds[i]) / 2.0;
    // The columns are in order of time.
    let (mut low, mut high) = (0, intervals.len());
    while low < high {
        let mid = low.midpoint(high);
        if middle(mid) < at_s {
            low = mid + 1
        } else {
            high = mid
        }
    }
    low
}
