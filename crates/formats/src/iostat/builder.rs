//! Collects reports, row by row.

use std::collections::HashMap;

use super::columns::Row;
use super::log::{Banner, Column, Log, Report, Sample};
use super::stamp::Stamp;

/// Most devices that are distinguished; the names in a damaged log may be anything.
pub(super) const MOST_COLUMNS: usize = 4096;

/// Collects reports, row by row.
#[derive(Debug, Default)]
pub(super) struct Builder {
    pub(super) log: Log,
    places: HashMap<Vec<u8>, usize>,
    /// The report that is being read: a row for each of its devices, in order, and the line of
    /// the header that it was last below.
    current: Vec<(usize, Row, u64)>,
    /// The line of the header in force.
    header: u64,
    /// Takes figures of devices beyond those that are distinguished.
    nobody: Row,
    /// How many rows the report before had.
    before: usize,
    pub(super) open: bool,
    /// Number of the line in which it began.
    began: u64,
    /// Whether one of its lines was damaged.
    damaged: bool,
    stamp: Option<Stamp>,
    /// The time that another program put before the line that is being read.
    beside: Option<Stamp>,
    unstamped: bool,
    day_s: f64,
    last_s: f64,
    fresh: bool,
}

impl Builder {
    /// A run of iostat begins.
    pub(super) fn banner(&mut self, banner: Banner) {
        self.run();
        if self.log.banner == Banner::default() {
            self.log.banner = banner;
        }
    }

    /// Begins a run of iostat about which no facts are known.
    pub(super) fn run(&mut self) {
        self.finish(true);
        self.fresh = true;
    }

    /// The time of the report that comes next was read. A header that stands alone before it, at no
    /// other time, was no report.
    pub(super) fn report_of(&mut self, stamp: Stamp) {
        let alone = self.current.is_empty() && !self.damaged;
        if alone && self.stamp.is_none_or(|own| own == stamp) {
            self.open = false;
        }
        self.finish(true);
        self.stamp = Some(stamp);
    }

    /// The time of the report that is being read, or comes next.
    pub(super) fn stamp(&mut self, stamp: Option<Stamp>) {
        self.stamp = stamp.or(self.stamp);
    }

    /// Takes the text that another program put before the line that is read next.
    pub(super) fn beside(&mut self, prefix: &[u8]) {
        self.beside = Stamp::within(prefix);
    }

    /// A header was read, which may begin a report.
    pub(super) fn header(&mut self, line: u64, begins: bool) {
        if begins {
            self.begin(line);
        }
        self.header = line;
    }

    /// A report begins. Its own time counts, else the one before its line.
    pub(super) fn begin(&mut self, line: u64) {
        self.finish(true);
        self.open = true;
        self.began = line;
        self.stamp = self.stamp.or(self.beside);
    }

    /// Whether a device of this name was seen before.
    pub(super) fn knows(&self, name: &[u8]) -> bool {
        self.places.contains_key(name)
    }

    /// The row of a device in the report that is being read, to be filled in. `at` is
    /// where it is expected; `group` whether it is the total of several.
    pub(super) fn row(&mut self, name: &[u8], at: usize, group: bool, line: u64) -> &mut Row {
        // Devices mostly come in the same order, so the row is where it was last time.
        let place = match self.log.columns.get(at) {
            Some(column) if column.name.as_bytes() == name && column.group == group => Some(at),
            _ => self.place(name, group),
        };
        let Some(place) = place else {
            self.log.beyond.add(line);
            self.nobody = Row::default();
            return &mut self.nobody;
        };
        let known = match self.current.get(at) {
            Some((known, ..)) if *known == place => Some(at),
            _ => self.current.iter().position(|(known, ..)| *known == place),
        };
        // A device below the same header once more: the next report, whose header was left out.
        // So was that of a row after the time of a report.
        let repeated = known.is_some_and(|i| self.current[i].2 == self.header);
        if repeated || !self.open {
            self.begin(line);
        }
        let index = known.filter(|_| !repeated).unwrap_or(self.current.len());
        if index == self.current.len() {
            self.current.push((place, Row::default(), self.header));
        }
        self.current[index].2 = self.header;
        &mut self.current[index].1
    }

    fn place(&mut self, name: &[u8], group: bool) -> Option<usize> {
        // A group may have a device's name.
        let key = match group {
            true => [b" ", name].concat(),
            false => name.to_vec(),
        };
        if let Some(&place) = self.places.get(&key) {
            return Some(place);
        }
        let place = self.log.columns.len();
        if place == MOST_COLUMNS {
            return None;
        }
        self.places.insert(key, place);
        let name = String::from_utf8_lossy(name).into_owned();
        self.log.columns.push(Column::new(name, group));
        Some(place)
    }

    /// A row of the report that is being read was damaged.
    pub(super) fn damage(&mut self, line: u64) {
        if !self.open {
            self.begin(line);
        }
        self.log.damaged_lines.add(line);
        self.damaged = true;
    }

    /// The report that is being read is over. One that isn't whole is forgotten.
    pub(super) fn finish(&mut self, whole: bool) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let damaged = std::mem::take(&mut self.damaged);
        if !whole {
            self.current.clear();
            self.log.cut_off = Some(self.began);
            return;
        }
        self.before = self.current.len();
        let report = self.log.reports;
        let printed_s = self.time(report);
        let first = std::mem::take(&mut self.fresh) || report == 0;
        self.log.reports += 1;
        if !damaged {
            let row = self.log.rows.len();
            for (place, figures, _) in &self.current {
                self.log.columns[*place].set(row, Sample::of(figures));
            }
            self.log.rows.push(Report {
                number: report,
                printed_s,
                first,
            });
        }
        self.current.clear();
    }

    /// Whether the report that is being read has fewer rows than the one before.
    pub(super) fn short(&self) -> bool {
        self.current.len() < self.before
    }

    /// When a report was printed.
    fn time(&mut self, report: usize) -> Option<f64> {
        let Some(stamp) = self.stamp.take() else {
            self.unstamped = true;
            self.log.timed = false;
            self.log.dated = None;
            return None;
        };
        if self.unstamped {
            return None;
        }
        if report == 0 {
            let day = stamp.day.or(self.log.banner.day);
            self.log.timed = true;
            self.log.dated = Stamp { day, ..stamp }.unix_s().map(|_| stamp.zoned);
            self.day_s = match stamp.zoned {
                true => 0.0,
                false => day.unwrap_or(0) as f64 * 86_400.0,
            };
        } else if let (Some(day), false) = (stamp.day, stamp.zoned) {
            self.day_s = day as f64 * 86_400.0;
        }
        let mut at_s = self.day_s + stamp.seconds;
        if report > 0 {
            if at_s < self.last_s - 43_200.0 && stamp.day.is_none() {
                self.day_s += 86_400.0;
                at_s += 86_400.0;
            }
            self.log.steps.add(at_s - self.last_s);
        }
        self.last_s = at_s;
        Some(at_s)
    }
}
