//! The content of an iostat log: one row of figures per device and report.

use std::collections::BTreeMap;

use super::columns::{Row, field};
use crate::lines::Left;

/// Figures of one device in one report. Rates per second, sizes in bytes, waits in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sample {
    pub(crate) count: [f32; 3],
    pub(crate) bytes: [f32; 3],
    pub(crate) wait_ms: [f32; 3],
    pub(crate) queue: f32,
}

impl Sample {
    pub(super) fn of(row: &Row) -> Sample {
        let of = |places: [usize; 3]| places.map(|place| row[place] as f32);
        let mut wait_ms = of(field::AWAIT);
        // Before 10.1 there was one wait for all.
        if wait_ms == [0.0; 3] {
            wait_ms = [row[field::AWAIT_ALL] as f32; 3];
        }
        Sample {
            count: of(field::COUNT),
            bytes: of(field::BYTES),
            wait_ms,
            queue: row[field::QUEUE] as f32,
        }
    }

    fn is_idle(&self) -> bool {
        self.count == [0.0; 3] && self.queue == 0.0
    }
}

/// One device's figures. Idle rows at both ends take no memory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Whether it is the total of a group of devices (`iostat -g`).
    pub(super) group: bool,
    /// The row that the first sample is of.
    since: usize,
    samples: Vec<Sample>,
}

impl Column {
    pub(super) fn new(name: String, group: bool) -> Column {
        Column {
            name,
            group,
            since: 0,
            samples: Vec::new(),
        }
    }

    /// Its figures in a row.
    pub(crate) fn at(&self, row: usize) -> Sample {
        let index = row.checked_sub(self.since);
        let sample = index.and_then(|i| self.samples.get(i));
        sample.copied().unwrap_or_default()
    }

    /// Whether it never did anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.samples.iter().all(Sample::is_idle)
    }

    /// Whether figures of it are kept.
    pub(super) fn is_kept(&self) -> bool {
        !self.samples.is_empty()
    }

    /// Adds its figures of a row, which is none before the last that was added.
    pub(super) fn set(&mut self, row: usize, sample: Sample) {
        if sample.is_idle() {
            return;
        }
        if self.samples.is_empty() {
            self.since = row;
        }
        self.samples.resize(row - self.since, Sample::default());
        self.samples.push(sample);
    }
}

/// A report that is a row of the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Report {
    /// Its number, from 0.
    pub(crate) number: usize,
    /// When it was printed, in seconds as [`Log::timed`] says.
    pub(crate) printed_s: Option<f64>,
    /// Whether a run of iostat begins with it.
    pub(crate) first: bool,
}

/// How far apart reports were printed: steps in whole seconds, and how often.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Steps(BTreeMap<i64, u64>);

impl Steps {
    /// Most different steps that are distinguished; a log has a handful.
    const MOST: usize = 1000;

    pub(super) fn add(&mut self, seconds: f64) {
        let step = seconds.round() as i64;
        if self.0.len() < Self::MOST || self.0.contains_key(&step) {
            *self.0.entry(step).or_default() += 1;
        }
    }

    /// The median, if there is one.
    pub(crate) fn median_s(&self) -> Option<f64> {
        let all: u64 = self.0.values().sum();
        let mut seen = 0;
        let found = self.0.iter().find(|(_, times)| {
            seen += *times;
            seen > all / 2
        });
        found.map(|(step, _)| *step as f64)
    }
}

/// The machine's description in the first line.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Banner {
    pub(crate) kernel: String,
    pub(crate) host: String,
    pub(crate) cpus: u32,
    pub(crate) day: Option<i64>,
}

/// An iostat log, as read; `Log::read` (in `text`) makes one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Log {
    pub(crate) banner: Banner,
    /// Number of reports, with those that were left out.
    pub(crate) reports: usize,
    /// The report of each row.
    pub(crate) rows: Vec<Report>,
    pub(crate) columns: Vec<Column>,
    /// Whether all reports have a time: seconds since 1970 if the first had a date.
    pub(crate) timed: bool,
    pub(crate) steps: Steps,
    /// Whether times are since 1970, and if so whether the log has their zone.
    pub(crate) dated: Option<bool>,
    /// Damaged rows; their reports were left out.
    pub(crate) damaged_lines: Left,
    /// Lines that are none of iostat's.
    pub(crate) foreign: Left,
    /// Rows of more devices than are distinguished.
    pub(crate) beyond: Left,
    /// The line in which the last report begins, if that was cut off and left out.
    pub(crate) cut_off: Option<u64>,
    /// Whether there are columns of discards.
    pub(crate) discards: bool,
    /// Whether reads, writes and discards were counted in one figure (sadf).
    pub(crate) together: bool,
    /// Whether there was no header, so that their number shows which columns they are.
    pub(crate) headerless: bool,
}

impl Log {
    /// Leaves out the totals of groups (`iostat -g`), whose devices are listed, too;
    /// not where nothing but totals was printed (`-H`).
    pub(super) fn forget_groups(&mut self) {
        if self.columns.iter().any(|c| !c.group && c.is_kept()) {
            self.columns.retain(|c| !c.group);
        }
    }

    /// The sum over these rows of a device's rate; times an interval's length, what it did in them.
    pub(crate) fn sum(&self, rows: &[usize], column: usize, of: impl Fn(&Sample) -> f32) -> f64 {
        let column = &self.columns[column];
        let all = rows.iter().map(|&row| f64::from(of(&column.at(row))));
        all.sum()
    }

    /// The length of an interval, in seconds, as the times tell it.
    pub(crate) fn stepped_s(&self) -> Option<f64> {
        let median = self.steps.median_s().filter(|_| self.timed);
        median.filter(|&median| median >= 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(count: f32, wait_ms: f32) -> Sample {
        Sample {
            count: [count; 3],
            bytes: [count * 4096.0; 3],
            wait_ms: [wait_ms; 3],
            queue: count * wait_ms / 1e3,
        }
    }

    #[test]
    fn idle_rows_at_the_ends_take_no_memory() {
        let mut column = Column::new("sda".to_owned(), false);
        for row in 0..90 {
            let busy = (40..50).contains(&row);
            column.set(row, sample(if busy { 9.0 } else { 0.0 }, 1.0));
        }
        assert_eq!(column.samples.len(), 10);
        assert_eq!(
            column.at(39),
            Sample {
                queue: 0.0,
                ..Sample::default()
            }
        );
        assert_eq!(column.at(49).count[0], 9.0);
        assert!(!column.is_idle());
    }

    #[test]
    fn the_median_of_steps() {
        let mut steps = Steps::default();
        assert_eq!(steps.median_s(), None);
        for step in [1.0, 2.0, 1.0, -86_000.0, 1.0] {
            steps.add(step);
        }
        assert_eq!(steps.median_s(), Some(1.0));
    }
}
