//! The shaded stretches (phases, stalls and dips), and the events of single moments.

use judge::Verdict;
use record::Part;
use record::RunRecord;

pub(crate) use crate::series::Mark as Kind;
use crate::series::{self, Discards};
use crate::words;

/// All of a record's.
#[derive(Debug, Clone)]
pub(crate) struct Spans {
    pub(crate) phases: Vec<PhaseSpan>,
    pub(crate) marks: Vec<MarkSpan>,
    pub(crate) events: Vec<Moment>,
    /// The stretch that is shown first: from the baseline to the end.
    pub(crate) view: [f64; 2],
    /// All that was recorded.
    pub(crate) all: [f64; 2],
    /// The length of an interval.
    pub(crate) step_s: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct PhaseSpan {
    pub(crate) name: &'static str,
    pub(crate) control: bool,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// A stretch in which an actor stalled or dipped.
#[derive(Debug, Clone)]
pub(crate) struct MarkSpan {
    pub(crate) actor: usize,
    pub(crate) kind: Kind,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct Moment {
    pub(crate) at: f64,
    pub(crate) word: &'static str,
}

impl Spans {
    /// The moments, each with the letter that stands above its line.
    pub(crate) fn lettered(&self) -> Vec<(String, &Moment)> {
        let letters = ('a'..='z').cycle().map(String::from);
        letters.zip(&self.events).collect()
    }

    /// From the first stall to the end of the last, with as much around them.
    pub(crate) fn stalls(&self) -> Option<[f64; 2]> {
        let marks = self.united(Kind::Stall, &[]).into_iter();
        let [from, to] = marks
            .map(|(from, to)| [from, to])
            .reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])?;
        let around = (to - from).max(20.0 * self.step_s);
        Some([from - around, to + around])
    }

    /// The stretches in which some of these actors (none: any actor) stalled or
    /// dipped, each once, in order.
    pub(crate) fn united(&self, kind: Kind, actors: &[usize]) -> Vec<(f64, f64)> {
        let ours = |mark: &&MarkSpan| {
            mark.kind == kind && (actors.is_empty() || actors.contains(&mark.actor))
        };
        let marks = self.marks.iter().filter(ours);
        let mut all: Vec<(f64, f64)> = marks.map(|mark| (mark.from, mark.to)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut united: Vec<(f64, f64)> = Vec::new();
        for (from, to) in all {
            match united.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => united.push((from, to)),
            }
        }
        united
    }
}

/// Returns the shaded stretches of a record's charts.
pub(crate) fn spans(record: &RunRecord, verdict: &Verdict) -> Spans {
    let end = record.intervals.end_s();
    let phases: Vec<PhaseSpan> = record
        .phases
        .iter()
        .enumerate()
        .map(|(i, phase)| PhaseSpan {
            name: words::phase(phase.name),
            control: phase.part == Part::Control,
            from: phase.at_s,
            to: record.phases.get(i + 1).map_or(end, |next| next.at_s),
        })
        .collect();
    let begin = record.intervals.at_s.first().copied().unwrap_or(0.0);
    let baseline = phases.iter().find(|phase| phase.name == "baseline");
    let from = baseline.map_or(begin, |phase| phase.from);
    Spans {
        view: if from < end {
            [from, end]
        } else {
            [begin, end]
        },
        all: [begin, end],
        step_s: record.head.interval_ms / 1e3,
        marks: marks(record, verdict),
        events: events(record),
        phases,
    }
}

fn marks(record: &RunRecord, verdict: &Verdict) -> Vec<MarkSpan> {
    let discards = Discards::of(record);
    let intervals = &record.intervals;
    let mut spans = Vec::new();
    for seen in &verdict.foreground {
        let found = record.head.actors.iter().position(|a| a.name == seen.actor);
        let Some(actor) = found else { continue };
        let marks = series::marks(record, actor, seen, &discards);
        let mut i = 0;
        while i < marks.len() {
            let first = i;
            while i < marks.len() && marks[i] == marks[first] {
                i += 1;
            }
            let kind = match marks[first] {
                Some(kind) => kind,
                None => continue,
            };
            spans.push(MarkSpan {
                actor,
                kind,
                from: intervals.at_s[first],
                to: intervals.at_s[i - 1] + f64::from(intervals.seconds[i - 1]),
            });
        }
    }
    spans
}

/// The events that are drawn. Those of one shown instant come in the order of the kinds, which is
/// that of a deletion.
pub(crate) fn events(record: &RunRecord) -> Vec<Moment> {
    let mut known: Vec<_> = record.events.iter().collect();
    known.sort_by_key(|event| ((event.at_s * 10.0).round() as i64, event.kind as u8));
    known
        .into_iter()
        .filter_map(|event| {
            Some(Moment {
                at: event.at_s,
                word: words::event(event.kind)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::SHORT;
    use record::EventKind;

    #[test]
    fn overlapping_stretches_become_one() {
        let mut spans = spans(&SHORT.record(), &SHORT.verdict());
        let mark = |actor, kind, from, to| MarkSpan {
            actor,
            kind,
            from,
            to,
        };
        spans.marks = vec![
            mark(0, Kind::Stall, 5.0, 7.0),
            mark(1, Kind::Stall, 1.0, 6.0),
            mark(1, Kind::Dip, 2.0, 3.0),
            mark(1, Kind::Stall, 8.0, 9.0),
        ];
        assert_eq!(spans.united(Kind::Stall, &[]), [(1.0, 7.0), (8.0, 9.0)]);
        assert_eq!(spans.united(Kind::Stall, &[0]), [(5.0, 7.0)]);
        assert_eq!(spans.united(Kind::Dip, &[0]), []);
    }

    #[test]
    fn the_stall_is_one_span_and_the_view_begins_with_the_baseline() {
        let spans = spans(&SHORT.record(), &SHORT.verdict());
        assert_eq!(spans.marks.len(), 1);
        let stall = &spans.marks[0];
        assert_eq!((stall.kind, stall.actor), (Kind::Stall, 0));
        assert!((stall.from - 106.4).abs() < 0.11 && (stall.to - 106.6).abs() < 0.11);
        assert_eq!(spans.view[0], 61.4);
        assert_eq!(spans.phases.len(), 5);
        assert_eq!(spans.events.len(), 5);
    }

    #[test]
    fn events_of_one_instant_come_in_the_order_of_a_deletion() {
        let mut record = SHORT.record();
        for event in &mut record.events {
            event.at_s = match event.kind {
                EventKind::DeletionBegan => 17.02,
                EventKind::DeletionReturned => 17.01,
                EventKind::CommitForced => 17.0,
                _ => 18.0,
            };
        }
        record.events.reverse();
        let words: Vec<&str> = events(&record).iter().map(|one| one.word).collect();
        assert_eq!(
            words[..3],
            ["deletion began", "it returned", "commit forced"]
        );
    }
}
