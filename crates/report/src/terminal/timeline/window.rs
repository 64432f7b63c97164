//! The stretch of a record that is drawn, cut into columns.
//!
//! A column keeps the extreme of its intervals, never their mean: a stall of
//! 200 ms would vanish in the mean of the second or two that a column covers.

use std::ops::Range;

use ::timeline::RunRecord;
use ::timeline::record::{Part, PhaseName};

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
