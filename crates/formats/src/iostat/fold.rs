//! A long log's quiet stretches, folded while it is read: its memory doesn't grow
//! with its length, and neither does the record made of it.
//!
//! A verdict rests on the seconds around discards, and on nothing else. So when the log is full,
//! rows far from discards are folded: two reports into one, then four, then eight, as often as it
//! takes. The figures of a longer interval follow exactly from those of shorter ones
//! (`Sample::mean`). Left alone are
//!
//! - the newest rows: a deletion may follow them;
//! - those that discard significantly, as the judge says it, and their neighbours;
//! - what is right before the first of them, and after the last: baselines;
//! - the rows around the moment that the user gave.
//!
//! Where discards go on for longer than the log has room for, their rows are
//! folded, too, but later and less than the others.

use std::ops::Range;

use super::grid::LATE_S;
use super::log::{Log, Span};
use super::{Moment, Options, boot};
use crate::parts::quantile;

/// Samples (of a device in a row) that a log holds: 2.6 MB.
const SAMPLES: usize = 1 << 16;

/// Rows that a log holds at most: more than two hours at a second each.
const MOST_ROWS: usize = 8192;

/// Rows that it holds however many devices there are.
const LEAST_ROWS: usize = 2048;

/// Rows beside significant discards that are left alone, as far as there is room.
const MARGINS: [usize; 4] = [60, 20, 6, 2];

/// Rows before the first significant discard and after the last that always are: twice
/// to six times what a baseline needs at a second each.
const EDGE: usize = 30;

/// Seconds around the moment that the user gave.
const AROUND: f64 = 60.0;

/// As in the judge: an interval is significant that has this share of all bytes ...
const SIGNIFICANT: f64 = 0.001;
/// ... or this share of what a typical one has ...
const OF_TYPICAL: f64 = 0.1;
/// ... unless there are fewer bytes than this in all.
const TRICKLE_BYTES: f64 = 16.0 * 1024.0 * 1024.0;

/// Rows are folded over a pause of iostat only where more than this many reports make a row.
const OVER_PAUSES: u64 = 4096;

/// More reports than this power of two are never in a row.
const FARTHEST: u32 = 40;

/// The facts that are needed while a log is read.
#[derive(Debug, Clone, Default)]
pub(super) struct Folding {
    options: Options,
    /// How many reports make a row where nothing is discarded, as a power of two.
    quiet: u32,
    /// Rows that a log holds, where a test wants others.
    rows: Option<usize>,
}

impl Folding {
    pub(super) fn of(options: &Options) -> Folding {
        Folding {
            options: options.clone(),
            ..Folding::default()
        }
    }

    /// The same with other limits.
    #[cfg(test)]
    pub(super) fn at_most(self, rows: usize) -> Folding {
        let rows = Some(rows);
        Folding { rows, ..self }
    }

    /// Folds a log that has as many rows as it may have.
    pub(super) fn when_full(&mut self, log: &mut Log) {
        let (least, most) = self
            .rows
            .map_or((LEAST_ROWS, MOST_ROWS), |rows| (rows, rows));
        if log.rows.len() < least {
            return;
        }
        let devices = log.columns.iter().filter(|c| c.is_kept()).count().max(1);
        let most = (SAMPLES / devices).clamp(least, most);
        if log.rows.len() >= most {
            self.drop_averages(log);
            self.fold(log, most);
        }
    }

    fn interval_s(&self, log: &Log) -> f64 {
        self.options.interval_s.or(log.stepped_s()).unwrap_or(1.0)
    }

    /// First reports that tell averages since the machine started would spoil what
    /// they are folded with.
    fn drop_averages(&self, log: &mut Log) {
        let interval_s = self.interval_s(log);
        let groups: Vec<Range<usize>> = (0..log.rows.len())
            .filter(|&row| {
                let span = log.rows[row];
                let may_go = span.first && !span.looked_at;
                !(may_go && boot::is_left_out(log, row, interval_s, self.options.first))
            })
            .map(|row| row..row + 1)
            .collect();
        log.averages += (log.rows.len() - groups.len()) as u64;
        make_rows(log, &groups);
        log.rows.iter_mut().for_each(|row| row.looked_at = true);
    }

    /// Makes room: at most an eighth of the rows stay as the newest, three eighths
    /// for what is discarded and two for the rest, and some at the edges.
    fn fold(&mut self, log: &mut Log, most: usize) {
        let interval_s = self.interval_s(log);
        let bytes = discarded(log);
        let least = self.least_significant(log, &bytes);
        let significant = |row: usize| bytes[row] > 0.0 && bytes[row] >= least;
        let mut margins = MARGINS.into_iter();
        let mut margin = margins.next().unwrap_or(0);
        let mut near = 1_u64;
        loop {
            let marks = self.marks(log, most / 8, margin, &significant);
            let groups = groups(&log.rows, &marks, near, 1 << self.quiet, interval_s);
            let count = |mark: Mark| groups.iter().filter(|g| marks[g.start] == mark).count();
            if count(Mark::Quiet) > most / 4 && self.quiet < FARTHEST {
                self.quiet += 1;
            } else if count(Mark::Near) <= most / 8 * 3 || near == 1 << FARTHEST {
                make_rows(log, &groups);
                return;
            } else if let Some(next) = margins.next() {
                margin = next;
            } else {
                near *= 2;
            }
        }
    }

    /// The rate from which on a row discards significantly, in bytes per second.
    fn least_significant(&self, log: &Log, rates: &[f64]) -> f64 {
        let mut sorted: Vec<(f64, f64)> = (log.rows.iter().zip(rates))
            .map(|(row, &rate)| (rate, rate * row.weight()))
            .collect();
        sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
        let total: f64 = sorted.iter().map(|row| row.1).sum();
        if total * self.interval_s(log) < TRICKLE_BYTES {
            return f64::INFINITY;
        }
        let typical = quantile(&sorted, 0.5).unwrap_or(0.0);
        (SIGNIFICANT * total).min(OF_TYPICAL * typical)
    }

    fn marks(
        &self,
        log: &Log,
        newest: usize,
        margin: usize,
        significant: &dyn Fn(usize) -> bool,
    ) -> Vec<Mark> {
        let n = log.rows.len();
        let mut marks = vec![Mark::Quiet; n];
        let mut put =
            |rows: Range<usize>, mark: Mark| marks[rows.start..rows.end.min(n)].fill(mark);
        let mut of_discards = (0..n).filter(|&row| significant(row));
        if let Some(first) = of_discards.next() {
            let mut last = first;
            let mut near =
                |row: usize| put(row.saturating_sub(margin)..row + margin + 1, Mark::Near);
            near(first);
            for row in of_discards {
                near(row);
                last = row;
            }
            put(first.saturating_sub(EDGE)..first, Mark::Alone);
            put(last + 1..last + 1 + EDGE, Mark::Alone);
        }
        put(n - newest.min(n)..n, Mark::Alone);
        for (row, mark) in marks.iter_mut().enumerate() {
            if self.is_near_deletion(log, &log.rows[row]) {
                *mark = Mark::Alone;
            }
        }
        marks
    }

    /// Whether it is close to the moment that the user gave.
    fn is_near_deletion(&self, log: &Log, row: &Span) -> bool {
        let interval_s = self.interval_s(log);
        match (self.options.deletion, row.printed_s) {
            (Some(Moment::After(at_s)), _) => {
                let report = at_s / interval_s;
                row.begin as f64 <= report + AROUND && row.end as f64 >= report - AROUND
            }
            (Some(Moment::Unix(unix_s)), Some((first_s, last_s))) => {
                let around_s = AROUND * interval_s;
                first_s <= unix_s + around_s && last_s >= unix_s - around_s
            }
            _ => false,
        }
    }
}

/// The fate of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// It stays as it is.
    Alone,
    /// It discards, or is near to one that does.
    Near,
    Quiet,
}

/// Bytes per second that each row discards. Devices above others count them
/// again, or not at all; no matter, for rows are compared with each other.
fn discarded(log: &Log) -> Vec<f64> {
    let kept = || log.columns.iter().filter(|c| c.is_kept());
    (0..log.rows.len())
        .map(|row| kept().map(|c| f64::from(c.at(row).bytes[2])).sum())
        .collect()
}

/// Neighbours of one mark that become one row, of at most so many reports.
fn groups(
    rows: &[Span],
    marks: &[Mark],
    near: u64,
    quiet: u64,
    interval_s: f64,
) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut reports = 0;
    for (row, span) in rows.iter().enumerate() {
        let most = match marks[row] {
            Mark::Alone => 0,
            Mark::Near => near,
            Mark::Quiet => quiet,
        };
        let own = u64::from(span.reports);
        let joins = row > 0
            && marks[row - 1] == marks[row]
            && reports + own <= most
            && (follows(&rows[row - 1], span, interval_s) || most > OVER_PAUSES);
        match groups.last_mut() {
            Some(group) if joins => {
                group.end = row + 1;
                reports += own;
            }
            _ => {
                groups.push(row..row + 1);
                reports = own;
            }
        }
    }
    groups
}

/// Whether two rows are of one stretch of time. Times are in whole seconds.
fn follows(one: &Span, next: &Span, interval_s: f64) -> bool {
    let passed_s = one.printed_s.zip(next.printed_s).map(|(a, b)| b.0 - a.1);
    let on_time = passed_s.is_none_or(|passed_s| (0.0..=interval_s + LATE_S).contains(&passed_s));
    one.end == next.begin && !next.first && on_time
}

/// Makes one row of each of these ranges; rows in none of them are forgotten.
fn make_rows(log: &mut Log, groups: &[Range<usize>]) {
    if groups.len() == log.rows.len() {
        return;
    }
    for column in &mut log.columns {
        column.fold(groups, &log.rows);
    }
    let joined = |group: &Range<usize>| {
        let (one, last) = (log.rows[group.start], log.rows[group.end - 1]);
        let reports = log.rows[group.clone()].iter().map(|row| row.reports);
        Span {
            end: last.end,
            reports: reports.fold(0, u32::saturating_add),
            printed_s: one.printed_s.zip(last.printed_s).map(|(a, b)| (a.0, b.1)),
            ..one
        }
    };
    log.rows = groups.iter().map(joined).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iostat::record;
    use ::record::RunRecord;
    use judge::verdict::Verdict;
    use judge::{JudgeOptions, judge};
    use std::fmt::Write;

    /// Reports of a database's drive: 10,000 reads a second and its journal's discards. A
    /// deletion of a quarter of a minute begins in each of these seconds.
    fn text(seconds: u32, deletions: &[u32], stamped: bool) -> String {
        let mut text = String::new();
        for second in 0..seconds {
            if stamped {
                writeln!(text, "{}", 1_718_773_354 + second).unwrap();
            }
            let discards = deletions.iter().any(|d| (*d..d + 15).contains(&second));
            let reads = match discards {
                true => 400,
                false => 10_000 + (second * 7919) % 300,
            };
            let (count, kb) = match (discards, second % 5) {
                (true, _) => (50, 50 * 131_072),
                (false, 0) => (1, 4),
                _ => (0, 0),
            };
            writeln!(
                text,
                "Device r/s rkB/s r_await w/s wkB/s d/s dkB/s d_await aqu-sz\n\
                 sda {reads}.00 {}.00 0.80 0.00 0.00 {count}.00 {kb}.00 20.00 8.00\n\
                 sdb 3.00 12.00 0.10 1.00 4.00 0.00 0.00 0.00 0.00\n",
                reads * 4
            )
            .unwrap();
        }
        text
    }

    fn read(text: &str, rows: usize, options: &Options) -> (Log, RunRecord, Verdict) {
        let how = Folding::of(options).at_most(rows);
        let log = Log::read_folding(text.as_bytes(), how).unwrap();
        assert!(log.rows.len() <= rows, "{} rows", log.rows.len());
        let record = record(&log, None, options).unwrap();
        let verdict = judge(&record, &JudgeOptions::default());
        (log, record, verdict)
    }

    /// The verdict without its account of the time far from discards.
    fn essence(verdict: &Verdict) -> impl PartialEq + std::fmt::Debug + use<> {
        let of = |f: &judge::verdict::Foreground| (f.baseline.ops_per_s, f.stall, f.dips.len());
        (
            (verdict.verdict, verdict.reasons.clone()),
            verdict.foreground.iter().map(of).collect::<Vec<_>>(),
            verdict.discard,
        )
    }

    #[test]
    fn a_deletion_is_judged_alike_wherever_in_a_long_log_it_lies() {
        for at in [7, 30, 5_000, 11_111, 19_990, 20_000 - 16] {
            for stamped in [false, true] {
                let text = text(20_000, &[at], stamped);
                let (whole, _, expected) = read(&text, 1 << 20, &Options::default());
                assert_eq!(whole.rows.len(), 20_000);
                let (log, record, verdict) = read(&text, 1024, &Options::default());
                assert_eq!(essence(&verdict), essence(&expected), "{at}");
                let seconds = verdict.foreground[0].stall.unwrap().seconds;
                let all = f64::from((20_000 - at).min(15));
                assert!((seconds - all).abs() < 0.1, "{at}: {seconds}");
                let said = verdict.warnings.join("\n");
                assert!(said.contains("of its 20000 reports were folded"), "{said}");
                // Nothing is lost: all of the time is there, and all that was done in it.
                assert_eq!(log.rows.iter().map(|r| r.reports).sum::<u32>(), 20_000);
                assert!((record.intervals.end_s() - 20_000.0).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn sums_are_kept() {
        let text = text(9_000, &[4_000], true);
        let reads = |rows: usize| -> f64 {
            let (_, record, _) = read(&text, rows, &Options::default());
            let ops = record.intervals.actors[0].ops.iter();
            ops.map(|&ops| f64::from(ops)).sum()
        };
        let (whole, folded) = (reads(1 << 20), reads(1024));
        assert!((whole / folded - 1.0).abs() < 1e-6, "{whole} {folded}");
    }

    #[test]
    fn of_many_deletions_all_are_told() {
        let every: Vec<u32> = (0..12).map(|n| 900 + n * 3_600).collect();
        let text = text(12 * 3_600, &every, true);
        let (_, _, verdict) = read(&text, 1024, &Options::default());
        let stall = verdict.foreground[0].stall.unwrap();
        assert!((stall.seconds - 12.0 * 15.0).abs() < 1.0, "{stall:?}");
        let rate = verdict.foreground[0].baseline.ops_per_s.unwrap();
        assert!((rate - 10_150.0).abs() < 150.0, "{rate}");
        let bytes = verdict.discard.bytes.unwrap() as f64;
        assert!((bytes / (180.0 * 50.0 * 134_217_728.0) - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_deletion_that_is_longer_than_the_log_may_be_is_folded_too() {
        let every: Vec<u32> = (0..500).map(|n| 2_000 + n * 15).collect();
        let text = text(12_000, &every, false);
        let (log, _, verdict) = read(&text, 1024, &Options::default());
        let stall = verdict.foreground[0].stall.unwrap();
        assert!((stall.seconds - 7_500.0).abs() < 60.0, "{stall:?}");
        assert!((stall.depth - 0.04).abs() < 0.005, "{stall:?}");
        assert!(log.rows.len() > 300);
    }

    #[test]
    fn what_is_around_a_moment_that_was_told_stays() {
        let text = text(20_000, &[], true);
        for moment in [
            Moment::After(9_000.0),
            Moment::Unix(1_718_773_353.0 + 9_000.0),
        ] {
            let options = Options {
                deletion: Some(moment),
                ..Options::default()
            };
            let (log, record, verdict) = read(&text, 1024, &options);
            let near = log
                .rows
                .iter()
                .filter(|r| (8_950..9_050).contains(&r.begin));
            assert_eq!(near.count(), 100);
            assert_eq!(record.phases[2].at_s, 9_000.0);
            let rate = verdict.foreground[0].baseline.ops_per_s.unwrap();
            assert!((rate - 10_150.0).abs() < 150.0, "{rate}");
        }
    }

    #[test]
    fn averages_since_the_start_and_pauses_are_not_folded_with_the_rest() {
        // Once a minute a script runs iostat without -y for a report or two.
        let mut log = String::new();
        for minute in 0..4_000 {
            writeln!(log, "Linux 6.5.0 (box) \t06/19/2024 \t_x86_64_\t(2 CPU)\n").unwrap();
            for (s, reads) in [(0, "0.03"), (1, "800.00"), (2, "801.00")] {
                writeln!(
                    log,
                    "{}\nDevice r/s rkB/s d/s dkB/s\nsda {reads} 4.00 0.00 0.00\n",
                    1_718_773_354 + minute * 60 + s
                )
                .unwrap();
            }
        }
        let (read, record, _) = read(&log, 1024, &Options::default());
        assert_eq!(read.reports, 12_000);
        let seconds: f64 = record.intervals.seconds.iter().map(|&s| f64::from(s)).sum();
        assert!((seconds - 8_000.0).abs() < 1e-3, "{seconds}");
        let ops: f64 = record.intervals.actors[0]
            .ops
            .iter()
            .map(|&n| f64::from(n))
            .sum();
        assert!((ops / 8_000.0 - 800.5).abs() < 0.6, "{ops}");
    }
}
