//! The findings as a table.

use experiments::Spread;
use experiments::tune::{Point, Trials};

/// The table, a row for each point; `on`: which of them no other beats.
pub(super) fn of(points: &[Point], on: &[bool], trials: &Trials) -> String {
    let mut text = format!(
        "  {:<42} {:>19} {:>19} {:>8} {:>9} {:>9}\n",
        "", "freed in", "others' loss", "worst", "longest", "longest"
    );
    text += &format!(
        "  {:<42} {:>19} {:>19} {:>8} {:>9} {:>9}\n",
        format!(
            "{} deleted{}",
            record::units::bytes(trials.setup.size_bytes),
            match points.iter().any(|point| point.runs > 1) {
                true => ", medians (range)",
                false => ", single runs",
            }
        ),
        "",
        "",
        "100 ms",
        "read",
        "fsync"
    );
    for (i, point) in points.iter().enumerate() {
        text += &format!(
            "{} {:<42} {:>19} {:>19} {:>8} {:>9} {:>9}\n",
            match point.misses(trials.setup.slowdown) {
                Some(true) => '!',
                _ if on.get(i) == Some(&true) => '*',
                _ => ' ',
            },
            point.trial.to_string(),
            seconds(&point.freeing_s),
            seconds(&point.lost_s),
            record::units::percent(point.worst_loss.median),
            record::units::latency_us(point.worst_read_us.median),
            record::units::latency_us(point.worst_fsync_us.median),
        );
    }
    text += "  * on the frontier: nothing else is better in time, loss, loss per second, worst 100 ms or read without being\n    \
             worse in another, by more than the noise: 15 % at least, and 10 points of the worst 100 ms\n";
    let slowdown = trials.setup.slowdown;
    if points.iter().any(|p| p.misses(slowdown) == Some(true)) {
        text += &format!(
            "  ! misses the goal: other I/O lost more than {} of its throughput\n",
            record::units::percent(slowdown)
        );
    }
    if let Some(unit) = trials.unit_bytes {
        text += &format!(
            "  The file system cuts discards at {} itself.\n",
            record::units::bytes(unit)
        );
    }
    text
}

/// The median, with the range of several runs.
fn seconds(spread: &Spread) -> String {
    let median = lost(spread.median);
    match spread.count {
        0 | 1 => median,
        _ => format!("{median} ({:.2}–{:.2})", spread.low, spread.high),
    }
}

/// A time in seconds. Less than a few milliseconds can't be measured.
pub(super) fn lost(s: f64) -> String {
    match s {
        s if s < 0.005 => "0 s".to_owned(),
        s => record::units::seconds(s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_run_has_no_range() {
        let of = |all: &[f64]| seconds(&Spread::of(all.iter().copied()).unwrap());
        assert_eq!(of(&[0.2]), "0.20 s");
        assert_eq!(of(&[1.5, 1.6, 1.8]), "1.6 s (1.50–1.80)");
    }
}
