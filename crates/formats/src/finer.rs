//! iostat's intervals, divided where fio's logs know more of the time within them.

use record::{DeviceInterval, Interval, MAX_INTERVALS, RunRecord};

use crate::fio::FioSeries;
use crate::fio::record::SHORTEST_S;

/// A window is at most this share of iostat's interval to be finer.
const FINER: f64 = 0.75;

/// Into how many parts an interval is divided; 1 where fio's logs are no finer. A part is half of
/// fio's window, so at least one part lies wholly within each window. A window in which nothing
/// completed is thus a stall of its own length.
pub(crate) fn parts(base: &RunRecord, series: &[FioSeries]) -> u32 {
    let interval_s = base.head.interval_ms / 1e3;
    let windows = series.iter().map(FioSeries::window_s);
    let window_s = windows.fold(f64::INFINITY, f64::min);
    if window_s > FINER * interval_s {
        return 1;
    }
    let part_s = (window_s / 2.0).max(SHORTEST_S);
    let parts = (interval_s / part_s).round().max(1.0);
    let seconds = base.intervals.seconds.iter().copied().map(f64::from);
    let all = seconds.sum::<f64>() / interval_s * parts;
    match all < MAX_INTERVALS as f64 {
        true => parts as u32,
        false => 1,
    }
}

/// A record's intervals, each divided into so many parts of its nominal length, what the
/// devices did spread over them evenly. Actors are left out.
pub(crate) fn intervals(base: &RunRecord, parts: u32) -> impl Iterator<Item = Interval> {
    let interval_s = base.head.interval_ms / 1e3;
    (0..base.intervals.len()).flat_map(move |i| {
        let whole = base.interval(i);
        let times = (whole.seconds / interval_s).round().max(1.0) as u64;
        let n = match parts {
            1 => 1,
            parts => u64::from(parts) * times,
        };
        (0..n).map(move |i| Interval {
            at_s: whole.at_s + whole.seconds * i as f64 / n as f64,
            seconds: whole.seconds / n as f64,
            devices: whole.devices.iter().map(|all| part(all, i, n)).collect(),
            freed_bytes: share(whole.freed_bytes, i, n),
            ..Interval::default()
        })
    })
}

fn part(all: &DeviceInterval, i: u64, n: u64) -> DeviceInterval {
    let share = |of: u64| share(of, i, n);
    DeviceInterval {
        reads: share(all.reads),
        read_bytes: share(all.read_bytes),
        read_ms: share(all.read_ms),
        writes: share(all.writes),
        write_bytes: share(all.write_bytes),
        write_ms: share(all.write_ms),
        discards: share(all.discards),
        discard_bytes: share(all.discard_bytes),
        discard_ms: share(all.discard_ms),
        in_flight: all.in_flight,
    }
}

/// The `i`th of `n` parts that add up to the whole.
fn share(whole: u64, i: u64, n: u64) -> u64 {
    let until = |i: u64| u128::from(whole) * u128::from(i) / u128::from(n);
    (until(i + 1) - until(i)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        for (whole, n) in [(0, 4), (7, 4), (u64::MAX, 3)] {
            let sum: u64 = (0..n).map(|i| share(whole, i, n)).sum();
            assert_eq!(sum, whole);
        }
    }
}
