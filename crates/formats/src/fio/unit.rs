//! The unit of latencies in logs without JSON: fio 3 writes nanoseconds, fio 2 microseconds.
//!
//! Latency × rate is how many operations were in flight. A loop that waits for its operations has
//! one or more in flight. If nanoseconds make that far less than one, they were microseconds, unless
//! the loop was held to a rate: then nothing tells.

use super::logs::{Log, LogKind};
use super::thread::Thread;

/// The unit of a log's latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unit {
    Nanoseconds,
    /// Microseconds, with the operations that would be in flight if they were nanoseconds.
    Microseconds(Option<f64>),
    Unknown,
}

/// No operation takes less from submission to completion.
const SHORTEST_NS: f64 = 1e3;
/// From so many operations in flight on, the unit fits.
const SOME: f64 = 0.25;
/// In flight at depth 1: the rest of the time is between two operations.
const ONE: std::ops::RangeInclusive<f64> = 0.5..=1.1;
/// A log is compared in so many parts…
const PARTS: usize = 10;
/// …whose rates differ by this share at least. The operations in flight then differ by half as much.
const DIFFERS: f64 = 0.05;

/// The unit of a thread's logs; nanoseconds where it has no latencies.
pub(super) fn of(thread: &Thread) -> Unit {
    let kinds = [LogKind::Latency, LogKind::Completion];
    let logs = kinds
        .into_iter()
        .filter_map(|kind| Some((kind, thread.log(kind)?)));
    let mut units = logs.map(|(kind, log)| of_log(kind, log, thread.log(LogKind::Iops)));
    units.next().unwrap_or(Unit::Nanoseconds)
}

fn of_log(kind: LogKind, log: &Log, iops: Option<&Log>) -> Unit {
    // Priorities are in logs of fio 3 alone, and offsets are seldom all 0.
    if log.fifth == Some(true) {
        return Unit::Nanoseconds;
    }
    let mut values: Vec<f64> = log.rows.iter().map(|row| row.value as f64).collect();
    values.sort_by(f64::total_cmp);
    let parts = parts(log, iops);
    let in_flight = mean(parts.iter().map(|part| part.1)).unwrap_or(0.0) / 1e9;
    let typical = values.get(values.len() / 2).copied().unwrap_or(0.0);
    if kind == LogKind::Latency && typical > 0.0 && typical < SHORTEST_NS {
        return Unit::Microseconds(Some(in_flight));
    }
    let spread = |of: fn(&(f64, f64)) -> f64| {
        let all = || parts.iter().map(of);
        let mean = mean(all())?;
        let apart = all().map(|value| (value - mean).abs());
        Some(apart.sum::<f64>() / parts.len() as f64 / mean)
    };
    let waits = match (spread(|part| part.0), spread(|part| part.1)) {
        (Some(rates), Some(flights)) => rates > DIFFERS && flights < rates / 2.0,
        _ => false,
    };
    match in_flight {
        n if n >= SOME => Unit::Nanoseconds,
        n if ONE.contains(&(n * 1e3)) || waits && n * 1e3 >= SOME => Unit::Microseconds(Some(n)),
        _ => Unit::Unknown,
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0), |(sum, n), value| (sum + value, n + 1));
    (n > 0 && sum > 0.0).then(|| sum / f64::from(n))
}

/// Rates, and rates × latencies, of equal parts of the log's time.
fn parts(log: &Log, iops: Option<&Log>) -> Vec<(f64, f64)> {
    let ends = || log.rows.iter().map(|row| row.at_ms);
    let (Some(begin), Some(end)) = (ends().min(), ends().max()) else {
        return Vec::new();
    };
    let long = (end - begin).max(1) as f64;
    let place = |at_ms: u64| {
        let share = at_ms.saturating_sub(begin) as f64 / long;
        ((share * PARTS as f64) as usize).min(PARTS - 1)
    };
    let mut sums = [(0.0, 0.0, 0.0); PARTS];
    for row in &log.rows {
        let part = &mut sums[place(row.at_ms)];
        part.0 += 1.0;
        part.1 += row.value as f64;
    }
    let part_s = long / 1e3 / PARTS as f64;
    if !log.is_averaged() {
        return sums
            .iter()
            .map(|(n, sum, _)| (n / part_s, sum / part_s))
            .collect();
    }
    let mut windows = [0.0; PARTS];
    for row in iops.into_iter().flat_map(|log| &log.rows) {
        sums[place(row.at_ms)].2 += row.value as f64;
        windows[place(row.at_ms)] += 1.0;
    }
    let both = sums
        .iter()
        .zip(windows)
        .filter(|(sums, n)| sums.0 > 0.0 && *n > 0.0);
    both.map(|((n, latency, rate), windows)| (rate / windows, rate / windows * latency / n))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// A log of single operations of these latencies, one after the other, and its unit.
    fn unit(name: LogKind, latencies: impl Iterator<Item = u64>, pause_us: u64) -> Unit {
        let mut text = String::new();
        let mut at_us = 0;
        for latency in latencies {
            at_us += latency.max(1) + pause_us;
            writeln!(text, "{}, {latency}, 0, 4096", at_us / 1000).unwrap();
        }
        of_log(name, &Log::read(text.as_bytes()).unwrap(), None)
    }

    fn is_micro(unit: Unit) -> bool {
        matches!(unit, Unit::Microseconds(_))
    }

    #[test]
    fn microseconds_are_told_by_what_is_in_flight() {
        let even = |us: u64| (0..4000_u64).map(move |i| us + i * 7919 % 90);
        assert!(is_micro(unit(LogKind::Latency, even(400), 60)));
        assert!(is_micro(unit(LogKind::Completion, even(8000), 900)));
        // A loop that waits, at whatever pace: the rate follows the latency.
        let slowing = (0..4000_u64).map(|i| 2000 + i);
        assert!(is_micro(unit(LogKind::Completion, slowing, 0)));
    }

    #[test]
    fn nanoseconds_and_what_nothing_tells() {
        // The same numbers, but a thousand times as many of them.
        let rows: String = (0..4000)
            .map(|i| format!("{}, 9000, 0, 4096\n", i / 100))
            .collect();
        let log = Log::read(rows.as_bytes()).unwrap();
        assert_eq!(of_log(LogKind::Latency, &log, None), Unit::Nanoseconds);
        // Held to a rate.
        let rows: String = (0..4000)
            .map(|i| format!("{}, 9000, 0, 4096\n", i * 50))
            .collect();
        let log = Log::read(rows.as_bytes()).unwrap();
        assert_eq!(of_log(LogKind::Latency, &log, None), Unit::Unknown);
        // A priority is of fio 3.
        let log = Log::read(rows.replace("4096", "4096, 0").as_bytes()).unwrap();
        assert_eq!(of_log(LogKind::Latency, &log, None), Unit::Nanoseconds);
    }
}
