//! The stretch of a record that is drawn, cut into columns.
//!
//! A column keeps the extreme of its intervals, never their mean: a stall of
//! 200 ms would vanish in the mean of the second or two that a column covers.

use std::ops::Range;

use ::record::RunRecord;
use ::record::{Part, PhaseName};

use crate::series::rate;

/// A stretch of a record, in columns of equal length.
#[derive(Debug)]
pub(super) struct Window {
    /// Its start, in seconds since the record's zero.
    pub(super) from_s: f64,
    /// Its end, likewise.
    pub(super) to_s: f64,
    /// The intervals of each column, as indices; empty where nothing was recorded.
    pub(super) columns: Vec<Range<usize>>,
}

impl Window {
    /// The part from its baseline on: what came before (making files, settling)
    /// can be much longer than the stall, which would leave it no room. `None`
    /// if nothing was recorded there.
    pub(super) fn of_part(record: &RunRecord, part: Part, width: usize) -> Option<Window> {
        let from_s = start(record, part)?;
        let to_s = record
            .phases
            .iter()
            .filter(|phase| phase.part != part && phase.at_s > from_s)
            .map(|phase| phase.at_s)
            .fold(record.intervals.end_s(), f64::min);
        Window::new(record, from_s, to_s, width)
    }

    fn new(record: &RunRecord, from_s: f64, to_s: f64, width: usize) -> Option<Window> {
        if !(from_s.is_finite() && to_s.is_finite() && to_s - from_s > 0.0) || width == 0 {
            return None;
        }
        let mut window = Window {
            from_s,
            to_s,
            columns: vec![0..0; width],
        };
        let intervals = &record.intervals;
        for (i, (&at, &seconds)) in intervals.at_s.iter().zip(&intervals.seconds).enumerate() {
            if let Some(column) = window.column(at + f64::from(seconds) / 2.0) {
                let range = &mut window.columns[column];
                let first = if range.start == range.end {
                    i
                } else {
                    range.start
                };
                *range = first..i + 1;
            }
        }
        window.stretch_long_intervals(record);
        window
            .columns
            .iter()
            .any(|range| !range.is_empty())
            .then_some(window)
    }

    /// Intervals longer than a column also fill the empty columns they cover.
    fn stretch_long_intervals(&mut self, record: &RunRecord) {
        let intervals = &record.intervals;
        let half = self.seconds_per_column() / 2.0;
        for (i, (&at, &seconds)) in intervals.at_s.iter().zip(&intervals.seconds).enumerate() {
            let end = at + f64::from(seconds);
            let first = self.column(at.max(self.from_s));
            let last = self.column((end - half / 1e3).min(self.to_s));
            let (Some(first), Some(last)) = (first, last) else {
                continue;
            };
            for column in first..=last {
                let middle = self.from_s + (2 * column + 1) as f64 * half;
                if self.columns[column].is_empty() && at <= middle && middle <= end {
                    self.columns[column] = i..i + 1;
                }
            }
        }
    }

    /// Length of a column, in seconds.
    pub(super) fn seconds_per_column(&self) -> f64 {
        (self.to_s - self.from_s) / self.columns.len() as f64
    }

    /// The column of a moment; the end belongs to the last one.
    pub(super) fn column(&self, at_s: f64) -> Option<usize> {
        if !(self.from_s..=self.to_s).contains(&at_s) {
            return None;
        }
        let column = ((at_s - self.from_s) / self.seconds_per_column()) as usize;
        Some(column.min(self.columns.len() - 1))
    }

    /// The least of what `value` tells of each column's intervals.
    pub(super) fn least(&self, value: impl Fn(usize) -> Option<f64>) -> Vec<Option<f64>> {
        self.fold(value, f64::min)
    }

    /// The greatest.
    pub(super) fn greatest(&self, value: impl Fn(usize) -> Option<f64>) -> Vec<Option<f64>> {
        self.fold(value, f64::max)
    }

    fn fold(
        &self,
        value: impl Fn(usize) -> Option<f64>,
        choose: fn(f64, f64) -> f64,
    ) -> Vec<Option<f64>> {
        self.columns
            .iter()
            .map(|range| {
                range
                    .clone()
                    .filter_map(&value)
                    .filter(|v| v.is_finite())
                    .reduce(choose)
            })
            .collect()
    }
}

/// Operations per second over each column as a whole.
pub(super) fn means(record: &RunRecord, window: &Window, actor: usize) -> Vec<Option<f64>> {
    window
        .columns
        .iter()
        .map(|range| {
            let (mut ops, mut seconds) = (0.0, 0.0);
            for i in range.clone() {
                if let Some(rate) = rate(record, actor, i) {
                    let length = f64::from(record.intervals.seconds[i]);
                    ops += rate * length;
                    seconds += length;
                }
            }
            let mean = ops / seconds;
            mean.is_finite().then_some(mean)
        })
        .collect()
}

/// Where a part's picture begins: at its baseline, else where it settles, else where it is known.
fn start(record: &RunRecord, part: Part) -> Option<f64> {
    let of_part = || record.phases.iter().filter(|phase| phase.part == part);
    let named = |name| of_part().find(|phase| phase.name == name);
    named(PhaseName::Baseline)
        .or_else(|| named(PhaseName::Settle))
        .or_else(|| of_part().next())
        .map(|phase| phase.at_s)
        .or_else(|| {
            // A record without phases is the main part as a whole.
            (part == Part::Main && record.phases.is_empty())
                .then(|| record.intervals.at_s.first().copied())
                .flatten()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::{READER, SHORT};

    #[test]
    fn a_part_is_drawn_from_its_baseline_on() {
        let record = SHORT.record();
        let window = Window::of_part(&record, Part::Main, 60).unwrap();
        assert_eq!(window.from_s, 61.4);
        assert_eq!(window.to_s, record.intervals.end_s());
        assert!(Window::of_part(&record, Part::Control, 60).is_none());
    }

    #[test]
    fn each_interval_is_in_one_column_and_each_column_has_some() {
        let record = SHORT.record();
        let window = Window::of_part(&record, Part::Main, 60).unwrap();
        let first = window.columns[0].start;
        assert_eq!(
            record.intervals.at_s[first..].partition_point(|&at| at < 61.4 - 0.06),
            0
        );
        for pair in window.columns.windows(2) {
            assert_eq!(pair[0].end, pair[1].start);
        }
        assert_eq!(window.columns[59].end, record.intervals.len());
    }

    #[test]
    fn an_interval_longer_than_a_column_fills_all_it_covers() {
        let mut record = READER.record();
        record.intervals = ::record::Intervals::new(1, 2);
        for second in 0..10 {
            record.intervals.push(&::record::Interval {
                at_s: 62.0 + f64::from(second),
                seconds: 1.0,
                ..Default::default()
            });
        }
        record.phases.clear();
        let window = Window::of_part(&record, Part::Main, 65).unwrap();
        assert!(window.columns.iter().all(|range| range.len() == 1));
        assert_eq!(window.columns[0], 0..1);
        assert_eq!(window.columns[64], 9..10);
    }

    #[test]
    fn a_column_keeps_its_extremes() {
        let record = SHORT.record();
        let window = Window::of_part(&record, Part::Main, 60).unwrap();
        let ops = |i: usize| Some(f64::from(record.intervals.actors[0].ops[i]));
        let least = window
            .least(ops)
            .into_iter()
            .flatten()
            .fold(f64::MAX, f64::min);
        let greatest = window
            .greatest(ops)
            .into_iter()
            .flatten()
            .fold(0.0, f64::max);
        assert!(least < 0.02 * greatest, "{least} {greatest}");
    }

    #[test]
    fn what_is_no_stretch_of_time_has_no_window() {
        let mut record = SHORT.record();
        record.phases[2].at_s = f64::NAN;
        assert!(Window::of_part(&record, Part::Main, 60).is_none());
        record.phases[2].at_s = 1e9;
        assert!(Window::of_part(&record, Part::Main, 60).is_none());
    }
}
