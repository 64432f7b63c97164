//! When a job did its I/O: logged lines as stretches of time with what was done in them.
//!
//! fio logs a window when it ends, and nothing while nothing completes. So a
//! window begins where the one before ended, unless that is too long ago: then
//! the time between is a stall, in which nothing was done. But fio's logging
//! thread is late at times; its window is as long as it was late. Where another
//! log of the job shows completions in between, it is that, and no stall.

use super::logs::{Direction, Row};

/// A stretch of time, in seconds on the log's clock, and what was done in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Window {
    pub(super) begin_s: f64,
    pub(super) end_s: f64,
    /// Operations, bytes, or whatever is spread evenly over it.
    pub(super) amount: f64,
}

/// A window as long as this many nominal ones may still be one.
const LONGEST: f64 = 1.5;

/// Times that go back by more than this begin another job's lines (`per_job_logs=0`).
const BACK_MS: u64 = 5;

/// The stretches of a log of rates: one for each job whose lines are in it.
pub(super) fn stretches(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|a, b| b.at_ms.saturating_add(BACK_MS) >= a.at_ms)
}

/// The length of a log's windows in milliseconds. It is the length that was asked for, else the
/// median of the times between them; `None` without either.
pub(super) fn nominal_ms(
    wanted_ms: Option<u64>,
    rows: &[Row],
    direction: Direction,
) -> Option<f64> {
    if let Some(ms) = wanted_ms.filter(|&ms| ms > 0) {
        return Some(ms as f64);
    }
    let times = times(rows, direction);
    let mut steps: Vec<u64> = times.windows(2).map(|t| t[1] - t[0]).collect();
    steps.retain(|&ms| ms > 0);
    if steps.is_empty() {
        return None;
    }
    let middle = (steps.len() - 1) / 2;
    Some(*steps.select_nth_unstable(middle).1 as f64)
}

/// The windows of one job's rates in one direction. `witnesses` are times, in
/// order, at which other logs show completions; amounts are rates × length × `scale`.
pub(super) fn of_rates(
    rows: &[Row],
    direction: Direction,
    nominal_ms: f64,
    witnesses: &[u64],
    scale: f64,
) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    let mut before_ms = None;
    for row in rows.iter().filter(|row| row.direction == direction) {
        let end_ms = row.at_ms as f64;
        let length_ms = match before_ms {
            None => nominal_ms.min(end_ms),
            Some(before) => {
                let since_ms = row.at_ms.saturating_sub(before) as f64;
                let busy = || saw_any(witnesses, before, end_ms - nominal_ms);
                if since_ms <= LONGEST * nominal_ms || busy() {
                    since_ms
                } else {
                    nominal_ms
                }
            }
        };
        before_ms = Some(row.at_ms);
        windows.push(Window {
            begin_s: (end_ms - length_ms) / 1e3,
            end_s: end_ms / 1e3,
            amount: row.value as f64 * length_ms / 1e3 * scale,
        });
    }
    windows
}

/// Whether a completion was seen well after `before_ms` and before `until_ms`.
/// Logs aren't written at the same moment, so what comes right after doesn't count.
fn saw_any(witnesses: &[u64], before_ms: u64, until_ms: f64) -> bool {
    let since = (before_ms as f64 + until_ms) / 2.0;
    let at = witnesses.partition_point(|&ms| (ms as f64) < since);
    witnesses.get(at).is_some_and(|&ms| ms as f64 <= until_ms)
}

/// The windows of single I/Os: moments, each with its own amount.
pub(super) fn of_single(
    rows: &[Row],
    direction: Direction,
    amount: fn(&Row) -> f64,
) -> Vec<Window> {
    let rows = rows.iter().filter(|row| row.direction == direction);
    rows.map(|row| {
        let at_s = row.at_ms as f64 / 1e3;
        Window {
            begin_s: at_s,
            end_s: at_s,
            amount: amount(row),
        }
    })
    .collect()
}

/// The times of a direction's lines, in order.
pub(super) fn times(rows: &[Row], direction: Direction) -> Vec<u64> {
    let rows = rows.iter().filter(|row| row.direction == direction);
    let mut times: Vec<u64> = rows.map(|row| row.at_ms).collect();
    times.sort_unstable();
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at_ms: u64, value: u64) -> Row {
        Row {
            at_ms,
            value,
            most: None,
            direction: Direction::Read,
            block_bytes: 0,
        }
    }

    fn windows(times: &[u64], witnesses: &[u64]) -> Vec<(f64, f64, f64)> {
        let rows: Vec<Row> = times.iter().map(|&at| row(at, 1000)).collect();
        of_rates(&rows, Direction::Read, 100.0, witnesses, 1.0)
            .iter()
            .map(|w| {
                let round = |s: f64| (s * 1e6).round() / 1e6;
                (round(w.begin_s), round(w.end_s), round(w.amount))
            })
            .collect()
    }

    #[test]
    fn a_window_begins_where_the_one_before_ended() {
        let all = windows(&[100, 201, 300], &[]);
        assert_eq!(
            all,
            [(0.0, 0.1, 100.0), (0.1, 0.201, 101.0), (0.201, 0.3, 99.0)]
        );
    }

    #[test]
    fn a_gap_is_a_stall() {
        let all = windows(&[100, 900], &[]);
        assert_eq!(all[1], (0.8, 0.9, 100.0));
        let just_before = windows(&[100, 900], &[105, 885]);
        assert_eq!(
            just_before[1].0, 0.8,
            "logs of the same moments prove nothing"
        );
    }

    #[test]
    fn a_late_logger_is_no_stall() {
        let all = windows(&[100, 500], &[98, 200, 300, 400, 500]);
        assert_eq!(all[1], (0.1, 0.5, 400.0));
    }

    #[test]
    fn several_jobs_in_one_log() {
        let rows = [row(100, 1), row(200, 2), row(99, 3), row(201, 4)];
        let lengths: Vec<usize> = stretches(&rows).map(<[Row]>::len).collect();
        assert_eq!(lengths, [2, 2]);
    }

    #[test]
    fn the_length_is_asked_for_or_seen() {
        let rows: Vec<Row> = [100, 200, 301, 900, 1000].map(|at| row(at, 1)).to_vec();
        assert_eq!(nominal_ms(Some(250), &rows, Direction::Read), Some(250.0));
        assert_eq!(nominal_ms(None, &rows, Direction::Read), Some(100.0));
        assert_eq!(nominal_ms(None, &rows, Direction::Write), None);
    }
}
