//! fio's logs: `write_{bw,iops,lat}_log` and `write_hist_log`.
//!
//! A line of the first three is
//! `ms, value[, maximum], direction, block size[, offset][, priority][, issue time]`:
//! of every I/O (block size set), or with `log_avg_msec` of a window that ends
//! at that time (block size 0). A line of a histogram log is
//! `ms, direction, block size, count, count, …`. Nothing is written while
//! nothing completes.

use std::io::{self, BufRead};

use super::bins::Layout;
use crate::lines::{Left, Lines, TextLine};

/// The kind of figures in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogKind {
    /// `_bw`: KiB per second, or the size of each I/O's share.
    Bandwidth,
    /// `_iops`: operations per second, or 1 for each I/O.
    Iops,
    /// `_lat`: submission and completion together, in nanoseconds.
    Latency,
    /// `_clat`: from submission to completion.
    Completion,
    /// `_slat`: how long submitting took.
    Submission,
    /// `_clat_hist`: histograms of completion latencies.
    Histogram,
}

/// A log's file name, taken apart: `PREFIX_KIND[.NUMBER].log`, of a client's host
/// `PREFIX_KIND[.NUMBER].log.HOST`, or as people attach it (`.txt`, `.log.gz`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogName {
    /// The value of the `write_…_log` option, without its directory; with the host that ran it.
    pub prefix: String,
    /// The kind of figures.
    pub kind: LogKind,
    /// fio's number of the job's thread, from 1; `None` with `per_job_logs=0`.
    pub thread: Option<u32>,
}

impl LogName {
    /// Reads a file name; `None` if it isn't that of a log of fio.
    pub fn parse(name: &str) -> Option<LogName> {
        let mut base = name.rsplit('/').next().unwrap_or(name);
        while let Some(rest) = [".gz", ".zst", ".txt", ".csv"]
            .iter()
            .find_map(|end| base.strip_suffix(end))
        {
            base = rest;
        }
        let (stem, host) = match base.rsplit_once(".log") {
            Some((stem, host)) => (stem, host.strip_prefix('.')),
            None => (base, None),
        };
        let (stem, thread) = match stem.rsplit_once('.') {
            Some((before, number)) => match number.parse() {
                Ok(number) => (before, Some(number)),
                Err(_) => (stem, None),
            },
            None => (stem, None),
        };
        let kinds = [
            ("clat_hist", LogKind::Histogram),
            ("bw", LogKind::Bandwidth),
            ("iops", LogKind::Iops),
            ("clat", LogKind::Completion),
            ("slat", LogKind::Submission),
            ("lat", LogKind::Latency),
        ];
        let (kind, prefix) = kinds.into_iter().find_map(|(word, kind)| {
            let rest = stem.strip_suffix(word)?;
            let prefix = rest.strip_suffix(['_', '-']);
            Some((kind, prefix.or(rest.is_empty().then_some("fio"))?))
        })?;
        Some(LogName {
            prefix: match host {
                Some(host) => format!("{prefix}-{host}"),
                None => prefix.to_owned(),
            },
            kind,
            thread,
        })
    }
}

/// Which way data went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards that fio itself sent (`rw=trim`).
    Trim,
}

impl Direction {
    /// All of them, by fio's numbers.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    fn of(number: u64) -> Option<Direction> {
        let place = usize::try_from(number).ok()?;
        Direction::ALL.get(place).copied()
    }

    /// `read`, `write` or `trim`: as fio's JSON and our actors name it.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Trim => "trim",
        }
    }
}

/// A line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// When the I/O completed or the window ended, in milliseconds: since 1970
    /// with `log_unix_epoch=1`, else since the job's start.
    pub at_ms: u64,
    /// Its value, in the unit of its kind.
    pub value: u64,
    /// The window's largest value, with `log_window_value=both`.
    pub most: Option<u64>,
    /// Which way.
    pub direction: Direction,
    /// Bytes of the I/O; 0 for a window.
    pub block_bytes: u64,
}

/// A line of a histogram log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramRow {
    /// When its window ended, as in [`Row::at_ms`].
    pub at_ms: u64,
    /// Which way.
    pub direction: Direction,
    /// Columns with counts, in order: column and count.
    pub counts: Vec<(u16, u32)>,
}

/// Times later than this are milliseconds since 1970 (this one is of 1973).
const EPOCH_MS: u64 = 100_000_000_000;

/// A bw, iops or latency log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// Its lines, in order of the file.
    pub rows: Vec<Row>,
    /// Lines that could not be read.
    pub skipped: Left,
    /// Whether only the very last line was left out, since it was cut off.
    pub cut_off: bool,
    /// Whether the fifth column is 0 in all lines; `None` if there is none.
    pub(super) fifth: Option<bool>,
}

/// A histogram log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistogramLog {
    /// How to read the columns; `None` in an empty log.
    pub layout: Option<Layout>,
    /// Its lines, in order of the file.
    pub rows: Vec<HistogramRow>,
    /// Lines that could not be read.
    pub skipped: Left,
    /// Whether only the very last line was left out, since it was cut off.
    pub cut_off: bool,
}

impl Log {
    /// Reads a log. Lines that aren't lines of a log are counted and left out.
    ///
    /// # Errors
    /// If the text itself can't be read.
    pub fn read(from: impl BufRead) -> io::Result<Log> {
        let mut lines = Lines::new(from);
        let mut log = Log::default();
        // Whether the third column is a second value can be told from a line where it is
        // no direction. Until then the column after it could be the direction as well.
        let mut both = None;
        while let Some(line) = lines.next()? {
            let mut fields = [0; 6];
            let found = numbers(line.bytes, &mut fields);
            let [at_ms, value, third, fourth, fifth, _] = fields;
            // There never was such a line without a sixth column.
            if found >= 6 && both.is_none() && third > 2 && fourth <= 2 {
                both = Some(true);
                log.rows.iter_mut().for_each(shift);
            } else if found >= 4 && both.is_none() && fourth > 2 {
                both = Some(false);
            }
            let (most, direction, block_bytes, least) = match both {
                Some(true) => (Some(third), fourth, fifth, 6),
                _ => (None, third, fourth, 4),
            };
            // A line without its end may lack digits of its last number, too.
            match Direction::of(direction).filter(|_| found >= least && line.ended) {
                Some(direction) => {
                    log.fifth = (found > 4).then(|| fifth == 0 && log.fifth != Some(false));
                    log.rows.push(Row {
                        at_ms,
                        value,
                        most,
                        direction,
                        block_bytes,
                    });
                }
                None if line.bytes.is_empty() => {}
                None => skip(&mut log.skipped, &mut log.cut_off, line),
            }
        }
        Ok(log)
    }

    /// Whether its lines are windows (`log_avg_msec`) and not single I/Os.
    pub fn is_averaged(&self) -> bool {
        self.rows.iter().all(|row| row.block_bytes == 0)
    }
}

/// Whether a log's times are since 1970, by its first.
pub(super) fn is_since_1970(at_ms: u64) -> bool {
    at_ms > EPOCH_MS
}

fn skip(skipped: &mut Left, cut_off: &mut bool, line: TextLine<'_>) {
    *cut_off = skipped.lines == 0 && !line.ended;
    skipped.add(line.number);
}

/// A row that was read without a second value, and has one.
fn shift(row: &mut Row) {
    row.most = Some(row.direction as u64);
    row.direction = Direction::of(row.block_bytes).unwrap_or(Direction::Read);
    row.block_bytes = 0;
}

impl HistogramLog {
    /// Reads a histogram log. Lines that don't have as many columns as the
    /// first good one are counted and left out.
    ///
    /// # Errors
    /// If the text itself can't be read.
    pub fn read(from: impl BufRead) -> io::Result<HistogramLog> {
        let mut lines = Lines::new(from);
        let mut log = HistogramLog::default();
        while let Some(line) = lines.next()? {
            match histogram_row(line.bytes).filter(|_| line.ended) {
                Some((row, layout)) if log.layout.is_none_or(|known| known == layout) => {
                    log.layout = Some(layout);
                    log.rows.push(row);
                }
                _ if line.bytes.is_empty() => {}
                _ => skip(&mut log.skipped, &mut log.cut_off, line),
            }
        }
        Ok(log)
    }
}

fn histogram_row(line: &[u8]) -> Option<(HistogramRow, Layout)> {
    let mut fields = line.split(|&b| b == b',').map(number);
    let at_ms = fields.next()??;
    let direction = Direction::of(fields.next()??)?;
    // Bytes of the I/O that ended the window.
    fields.next()??;
    let mut counts = Vec::new();
    let mut columns = 0_usize;
    for count in fields {
        let count = count?;
        if count > 0 {
            let column = u16::try_from(columns).ok()?;
            counts.push((column, u32::try_from(count).unwrap_or(u32::MAX)));
        }
        columns += 1;
    }
    let row = HistogramRow {
        at_ms,
        direction,
        counts,
    };
    Some((row, Layout::of_columns(columns)?))
}

/// The first numbers of a line, and how many there were. Stops at what is none.
fn numbers<const N: usize>(line: &[u8], into: &mut [u64; N]) -> usize {
    let mut found = 0;
    for field in line.split(|&b| b == b',').take(N) {
        let Some(value) = number(field) else { break };
        into[found] = value;
        found += 1;
    }
    found
}

/// A plain number with blanks around it.
fn number(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field.trim_ascii()).ok()?;
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) -> Log {
        Log::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn names() {
        let name = LogName::parse("/tmp/x/a.b_clat_hist.12.log").unwrap();
        assert_eq!(name.prefix, "a.b");
        assert_eq!(name.kind, LogKind::Histogram);
        assert_eq!(name.thread, Some(12));
        let merged = LogName::parse("all_lat.log").unwrap();
        assert_eq!((merged.kind, merged.thread), (LogKind::Latency, None));
        assert_eq!(
            LogName::parse("job_clat.1.log").unwrap().kind,
            LogKind::Completion
        );
        for (name, prefix, thread) in [
            ("x_iops.1.txt", "x", Some(1)),
            ("x_iops.1.log.gz", "x", Some(1)),
            ("x_iops.2.log.txt", "x", Some(2)),
            ("x_iops.3.log.node-7", "x-node-7", Some(3)),
            ("iops.1.log", "fio", Some(1)),
            ("_iops.log", "", None),
        ] {
            let parsed = LogName::parse(name).unwrap();
            assert_eq!(
                (parsed.prefix.as_str(), parsed.thread),
                (prefix, thread),
                "{name}"
            );
        }
        for none in ["fio.json", "x_iops.1.png", "syslog.log", "flat.log", ""] {
            assert_eq!(LogName::parse(none), None, "{none}");
        }
    }

    #[test]
    fn the_formats_of_many_versions() {
        let windows = log("100, 38300, 0, 0, 0\n200, 50030, 1, 0, 0\n");
        assert!(windows.is_averaged() && !is_since_1970(windows.rows[0].at_ms));
        assert_eq!(windows.rows[1].direction, Direction::Write);
        let old = log("100, 38300, 0, 4096\n");
        assert!(!old.is_averaged());
        let offset = log("1795208155802, 1, 1, 4096, 8192, 0x4001, 77\n");
        assert!(is_since_1970(offset.rows[0].at_ms));
        assert_eq!(offset.rows[0].block_bytes, 4096);
        assert_eq!(offset.rows[0].most, None);
    }

    #[test]
    fn a_second_value_is_seen_where_it_can_be_told() {
        let both = log("100, 2, 2, 1, 0, 0\n200, 38300, 40000, 1, 0, 0\n300, 1, 1, 0, 0, 0\n");
        assert_eq!(both.skipped.lines, 0);
        let most: Vec<_> = both.rows.iter().map(|r| r.most).collect();
        assert_eq!(most, [Some(2), Some(40000), Some(1)]);
        assert_eq!(both.rows[0].direction, Direction::Write);
        assert_eq!(both.rows[2].direction, Direction::Read);
        assert!(both.is_averaged());
    }

    #[test]
    fn what_is_no_line_of_a_log_is_counted() {
        let mixed = log("100, 1, 0, 0, 0\nhello\n200, 1, 7, 0, 0\n300, 5, 0, 0, 0\n400, 1");
        assert_eq!(mixed.rows.len(), 2);
        assert_eq!((mixed.skipped.lines, mixed.skipped.first), (3, 2));
        assert!(!mixed.cut_off);
        let cut = log("100, 1, 0, 0, 0\n200, 1, 0, 0");
        assert_eq!((cut.skipped.first, cut.cut_off), (2, true));
    }

    #[test]
    fn histograms() {
        let line = |at: u64, columns: usize| {
            let mut counts = vec!["0"; columns];
            counts[7] = "3";
            format!("{at}, 1, 4096, {}\n", counts.join(", "))
        };
        let text = line(100, 116) + &line(200, 116) + &line(300, 115) + "400, 0, 4096, 0";
        let log = HistogramLog::read(text.as_bytes()).unwrap();
        assert_eq!(log.rows.len(), 2);
        assert_eq!(log.rows[0].counts, [(7, 3)]);
        assert_eq!((log.skipped.lines, log.skipped.first), (2, 3));
    }
}
