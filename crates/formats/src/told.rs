//! Applies the facts that the user gives beside the texts.

use record::{Event, EventKind, Line, Phase, PhaseName, PushError, RunRecord};

/// A moment in a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Moment {
    /// So many seconds after the record's zero.
    After(f64),
    /// So many seconds after 1970 began (UTC).
    Unix(f64),
}

impl Moment {
    /// When it is in a record, in seconds after the record's zero.
    pub fn at_s(self, record: &RunRecord) -> f64 {
        match self {
            Moment::After(at_s) => at_s,
            Moment::Unix(unix_s) => unix_s - record.head.started_unix_s,
        }
    }
}

/// Longest baseline before a deletion whose time the user gave, in seconds.
const BASELINE_S: f64 = 10.0;

/// Puts the begin of the deletion into a record that has its intervals: what was
/// done before it, for 10 s at most, is the baseline.
pub(crate) fn deletion_at(record: &mut RunRecord, at: Moment) -> Result<(), PushError> {
    let at_s = at.at_s(record).max(0.0);
    let actors = &record.intervals.actors;
    let busy = (0..record.intervals.len()).find(|&i| actors.iter().any(|a| a.ops[i] > 0));
    let begin_s = busy.map_or(0.0, |i| record.intervals.at_s[i]);
    let baseline_s = (at_s - BASELINE_S).max(begin_s).min(at_s);
    for (name, at_s) in [
        (PhaseName::Settle, 0.0),
        (PhaseName::Baseline, baseline_s),
        (PhaseName::Delete, at_s),
    ] {
        record.push(&Line::Phase(Phase {
            name,
            part: Default::default(),
            at_s,
        }))?;
    }
    record.push(&Line::Event(Event {
        at_s,
        kind: EventKind::DeletionBegan,
        detail: None,
    }))
}
