//! When each row of a log began, and how long it lasted.

use super::log::Log;
use super::{First, Notes, Options, boot};

/// Times are printed in whole seconds, so a report is late only if it is by more than this.
pub(super) const LATE_S: f64 = 1.5;

/// Intervals from this length on hide what most stalls look like.
const LONG_S: f64 = 4.0;

/// One interval of the record.
pub(super) struct Step {
    /// Its place in [`Log::rows`].
    pub(super) row: usize,
    /// Seconds after the record's zero.
    pub(super) at_s: f64,
    /// How long it was watched, in seconds.
    pub(super) seconds: f64,
}

/// Rows next to each other. Times are printed in whole seconds, so they count
/// only where a report is missing or late by more than that.
pub(super) fn steps(log: &Log, interval_s: f64, kept: &[usize]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::with_capacity(kept.len());
    let mut end_s = 0.0;
    let mut before: Option<usize> = None;
    for &row in kept {
        let report = &log.rows[row];
        let printed_s = report.printed_s.filter(|_| log.timed);
        let last = before.map(|b| log.rows[b]);
        let passed = last.map_or(1, |b| report.number - b.number);
        let since = last.and_then(|b| Some(printed_s? - b.printed_s?));
        let passed_s = late(passed, since, interval_s);
        // A late report is of all the time since the one before; one after
        // others that were left out, or of another run, isn't.
        let alone = last.is_none_or(|b| b.number + 1 != report.number) || report.first;
        let seconds = if alone { interval_s } else { passed_s };
        let begin_s = end_s;
        end_s += if last.is_some() { passed_s } else { seconds };
        steps.push(Step {
            row,
            at_s: (end_s - seconds).max(begin_s),
            seconds,
        });
        before = Some(row);
    }
    steps
}

/// How long so many reports took, of which times may tell more.
fn late(reports: usize, printed_s: Option<f64>, interval_s: f64) -> f64 {
    let nominal_s = reports as f64 * interval_s;
    let late = printed_s.filter(|printed_s| *printed_s > nominal_s + LATE_S);
    late.unwrap_or(nominal_s)
}

/// The length of an interval in seconds: as the user gave it, as timed, as fio's count makes it,
/// else one.
pub(super) fn interval_s(
    log: &Log,
    notes: Option<&Notes>,
    options: &Options,
    warnings: &mut Vec<String>,
) -> f64 {
    if let Some(seconds) = options.interval_s.or(log.stepped_s()) {
        return seconds;
    }
    // What fio issued, over what a second of each report had, is how many seconds that was.
    let issued = notes.and_then(|n| n.issued).map(|(reads, _)| reads as f64);
    let all: Vec<usize> = (0..log.rows.len()).collect();
    let sums = (0..log.columns.len()).map(|i| log.sum(&all, i, |s| s.count[0]));
    let most = sums.fold(0.0, f64::max);
    if let Some(reads) = issued.filter(|_| most > 0.0) {
        let seconds = reads / most;
        if (seconds / seconds.round().max(1.0) - 1.0).abs() < 0.1 {
            return seconds.round().max(1.0);
        }
    }
    warnings.push(
        "iostat printed no times (-t), so how long its intervals are isn't known; a second was taken."
            .to_owned(),
    );
    1.0
}

/// The rows that are intervals of the record.
pub(super) fn kept(
    log: &Log,
    options: &Options,
    interval_s: f64,
    warnings: &mut Vec<String>,
) -> Vec<usize> {
    let average = |row: &usize| {
        log.rows[*row].first && boot::is_left_out(log, *row, interval_s, options.first)
    };
    let kept: Vec<usize> = (0..log.rows.len()).filter(|row| !average(row)).collect();
    if kept.len() < log.rows.len() && options.first == First::Tell {
        let text =
            "The first report tells averages since the machine started (no -y) and was left out.";
        warnings.push(text.to_owned());
    }
    if interval_s >= LONG_S {
        let long = record::units::seconds(interval_s);
        warnings.push(format!(
            "iostat's intervals are {long}: a stall that is shorter than two of them is reported as a \
             slowdown or not at all, and rates are means over them. Record with intervals of a second."
        ));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iostat::log::Report;

    #[test]
    fn pauses_are_told_by_times() {
        let report = |number: usize, printed_s: f64| Report {
            number,
            printed_s: Some(printed_s),
            first: number == 0,
        };
        let log = Log {
            timed: true,
            reports: 7,
            rows: vec![
                report(0, 100.0),
                // Late: of all the time since.
                report(1, 110.0),
                report(2, 111.0),
                // Left out what came before it.
                report(6, 115.0),
            ],
            ..Log::default()
        };
        let steps = steps(&log, 1.0, &[0, 1, 2, 3]);
        let laid: Vec<_> = steps.iter().map(|s| (s.at_s, s.seconds)).collect();
        assert_eq!(laid, [(0.0, 1.0), (1.0, 10.0), (11.0, 1.0), (15.0, 1.0)]);
    }
}
