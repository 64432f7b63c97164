//! The cost of a deletion or a trim for other I/O, and whether its goal was met: in sentences,
//! as JSON, and as an exit code. `rm` and `fstrim` share it.

pub(crate) mod json;

use std::time::Duration;

use pace::{CanaryWaits, GoalResult, Kept, LateReads, Limit, Measured, ReaderLoss, Witness};
use reclaim::throttle::Summary;
use record::absence;

use crate::goal::GoalArgs;

/// If readers are slower in the pauses than before by more than this share, a note says so.
const SLOWER: f64 = 0.05;

/// Reports how much other I/O lost and waited.
pub(crate) fn lost(summary: &Summary) -> String {
    let observed = summary.observed.as_ref();
    let of = |loss: Option<ReaderLoss>, ops| loss.map(|loss| of_series(&loss, ops));
    let series = [
        of(observed.and_then(|observed| observed.readers), "reads"),
        of(observed.and_then(|observed| observed.flushers), "flushes"),
    ];
    let series: Vec<String> = series.into_iter().flatten().collect();
    let series = match series.is_empty() {
        true => "other I/O lost: not measured (too few reads and flushes)".to_owned(),
        false => series.join("; "),
    };
    let canary = match observed.and_then(|observed| observed.canary) {
        Some(canary) => of_canary(&canary),
        None => "a read's wait: not measured".to_owned(),
    };
    format!("{series}; {canary}")
}

/// Reports the loss of those who read, or flush. `ops`: what they do.
fn of_series(readers: &ReaderLoss, ops: &str) -> String {
    let rates = format!(
        "{} without discards, {} in all",
        record::units::rate(readers.baseline_per_s),
        record::units::rate(readers.during_per_s)
    );
    if readers.open_loop {
        return format!(
            "other I/O lost no {ops}, for its {ops} don't wait for each other ({rates}), but each took {} instead of {}",
            seconds(readers.wait_s),
            seconds(readers.usual_wait_s)
        );
    }
    let slower = readers.slower_pauses.filter(|slower| *slower > SLOWER);
    let slower = slower.map_or(String::new(), |slower| {
        format!(
            "; without any discard in service they were {} slower than before it began: other I/O, \
             commits, or a load that changed",
            record::units::percent(slower)
        )
    });
    format!(
        "other I/O lost {} of its {ops} ({rates}){slower}",
        share(&readers.lost)
    )
}

fn of_canary(canary: &CanaryWaits) -> String {
    format!(
        "a read waited {} longer (p99.9 of {}; at most {})",
        time(canary.p999_added),
        record::units::count(canary.reads),
        time(canary.max_added)
    )
}

/// Sentences about the goal: whether each part was kept, and what else made reads wait.
pub(crate) fn goals(summary: &Summary) -> Vec<String> {
    let mut all: Vec<String> = summary.goals.iter().map(goal).collect();
    let canary = summary
        .observed
        .as_ref()
        .and_then(|observed| observed.canary);
    all.extend(canary.and_then(|canary| canary.over).and_then(not_ours));
    all.extend(away(summary));
    all
}

/// Returns the note on spans in which trimbench itself did not run; `None` without any.
fn away(summary: &Summary) -> Option<String> {
    let spans = absence::in_words(&summary.absences)?;
    Some(format!(
        "trimbench itself did not run for {spans}. All figures leave that time out."
    ))
}

fn goal(result: &GoalResult) -> String {
    let limit = match result.limit {
        Limit::Slowdown(share) => format!("--slowdown {}", record::units::percent_exact(share)),
        Limit::MaxLatency(limit) => {
            format!("--max-latency {}", record::units::duration_exact(limit))
        }
        Limit::Deadline(limit) => format!("--deadline {}", record::units::duration_exact(limit)),
    };
    let Some(measured) = result.measured else {
        return match result.kept {
            Kept::NobodyElse => {
                format!("goal {limit}: nothing else used the drive, so nothing was slowed down")
            }
            _ => format!("goal {limit}: not measured"),
        };
    };
    let word = match result.kept {
        Kept::Met => "met",
        Kept::Missed => "missed",
        _ => "not certain",
    };
    format!(
        "goal {limit} {word}: {}{}{}",
        came_to(result, &measured),
        on_whom(result),
        when(result)
    )
}

fn came_to(result: &GoalResult, measured: &Measured) -> String {
    let value = measured.value;
    let (what, beyond) = match result.limit {
        Limit::Slowdown(limit) => {
            let beyond = format!("{:.1} points", (value - limit) * 100.0);
            match result.witness {
                Some(Witness::Readers | Witness::Flushers) => {
                    (format!("other I/O lost {}", share(measured)), beyond)
                }
                _ => {
                    let what = format!("{} of reads met a discard", share(measured));
                    (what, beyond)
                }
            }
        }
        Limit::MaxLatency(limit) => {
            let beyond = seconds(value - limit.as_secs_f64());
            let what = format!(
                "beside our discards a read waited {} longer",
                seconds(value)
            );
            (what, beyond)
        }
        Limit::Deadline(limit) => (
            format!("it took {}", seconds(value)),
            seconds(value - limit.as_secs_f64()),
        ),
    };
    match result.kept {
        Kept::Missed => format!("{what}, {beyond} too much"),
        _ => what,
    }
}

fn on_whom(result: &GoalResult) -> &'static str {
    match (result.witness, result.limit) {
        (Some(Witness::Readers), _) => " (measured on the drive's readers)",
        (Some(Witness::Flushers), _) => " (measured on the flushes of programs that sync)",
        (Some(Witness::Canary), _) => " (measured on our canary's reads)",
        (Some(Witness::Clock) | None, _) => "",
    }
}

fn when(result: &GoalResult) -> String {
    let at = |at: f64| format!("{at:.1} s after its start");
    let missed = result.kept == Kept::Missed;
    let first = result.first_missed_s.filter(|_| missed);
    let first = first.map(|first| format!("; first missed {}", at(first)));
    let worst = result.worst.map(|worst| match result.limit {
        Limit::Slowdown(_) => format!(
            "; the worst {} s lost {}, {}",
            worst.length_s,
            record::units::percent(worst.value),
            at(worst.at_s)
        ),
        _ => format!("; worst {}", at(worst.at_s)),
    });
    [first, worst].into_iter().flatten().collect()
}

/// Reads that were late, and not beside our discards.
fn not_ours(over: LateReads) -> Option<String> {
    let parts: Vec<String> = [
        (over.others_discards, "beside discards of others"),
        (over.flushes, "beside a flush, of our commits or of others"),
        (
            over.nothing,
            "without any discard in service: other I/O, or a busy machine",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, why)| format!("{} {why}", record::units::count(count)))
    .collect();
    let reads = over.all() - over.our_discards;
    let plural = if reads == 1 { "" } else { "s" };
    (reads > 0).then(|| {
        format!(
            "{} more read{plural} of the canary waited longer than that, which the goal doesn't count: {}",
            record::units::count(reads),
            parts.join("; ")
        )
    })
}

/// Whether a part of the goal that was given on the command line was missed.
pub(crate) fn is_missed(summary: &Summary, given: &GoalArgs) -> bool {
    summary
        .goals
        .iter()
        .any(|goal| goal.kept == Kept::Missed && is_given(goal.limit, given))
}

/// Whether this part of a goal was given, and isn't the default.
fn is_given(limit: Limit, given: &GoalArgs) -> bool {
    match limit {
        Limit::Slowdown(_) => given.slowdown.is_some(),
        Limit::MaxLatency(_) => given.max_latency.is_some(),
        Limit::Deadline(_) => given.deadline.is_some(),
    }
}

/// A share with the interval in which it lies.
fn share(measured: &Measured) -> String {
    format!(
        "{} ({} to {})",
        record::units::percent(measured.value),
        record::units::percent(measured.low),
        record::units::percent(measured.high)
    )
}

fn time(span: Duration) -> String {
    seconds(span.as_secs_f64())
}

fn seconds(seconds: f64) -> String {
    match seconds < 1.0 {
        true => record::units::latency_us(seconds * 1e6),
        false => record::units::seconds(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pace::Worst;

    fn result(limit: Limit, kept: Kept, value: f64) -> GoalResult {
        GoalResult {
            limit,
            kept,
            measured: Some(Measured {
                value,
                low: value - 0.01,
                high: value + 0.01,
            }),
            witness: Some(Witness::Readers),
            first_missed_s: None,
            worst: None,
        }
    }

    #[test]
    fn a_goal_is_told_with_its_figure_and_its_witness() {
        let met = result(Limit::Slowdown(0.1), Kept::Met, 0.08);
        assert_eq!(
            goal(&met),
            "goal --slowdown 10% met: other I/O lost 8.0 % (7.0 % to 9.0 %) (measured on the drive's readers)"
        );
        let on_canary = GoalResult {
            witness: Some(Witness::Canary),
            ..met
        };
        let on = "(measured on our canary's reads)";
        assert!(goal(&on_canary).ends_with(on), "{}", goal(&on_canary));
        let unsure = GoalResult {
            witness: Some(Witness::Flushers),
            ..result(Limit::Slowdown(0.1), Kept::Unsure, 0.105)
        };
        assert_eq!(
            goal(&unsure),
            "goal --slowdown 10% not certain: other I/O lost 10 % (9.5 % to 12 %) (measured on the flushes of programs that sync)"
        );
        let missed = GoalResult {
            witness: Some(Witness::Canary),
            first_missed_s: Some(1.2),
            worst: Some(Worst {
                at_s: 3.4,
                length_s: 0.0,
                value: 0.0259,
            }),
            ..result(
                Limit::MaxLatency(Duration::from_millis(5)),
                Kept::Missed,
                0.0259,
            )
        };
        assert_eq!(
            goal(&missed),
            "goal --max-latency 5ms missed: beside our discards a read waited 25.9 ms longer, \
             20.9 ms too much (measured on our canary's reads); first missed 1.2 s after its start; worst 3.4 s after its start"
        );
        let unmeasured = GoalResult {
            kept: Kept::NotMeasured,
            measured: None,
            witness: None,
            ..met
        };
        assert_eq!(goal(&unmeasured), "goal --slowdown 10%: not measured");
    }

    #[test]
    fn late_reads_of_other_causes_are_told_apart() {
        let over = LateReads {
            our_discards: 4,
            flushes: 1,
            ..LateReads::default()
        };
        assert_eq!(
            not_ours(over).unwrap(),
            "1 more read of the canary waited longer than that, which the goal doesn't count: 1 beside a flush, of our commits or of others"
        );
        assert_eq!(not_ours(LateReads { flushes: 0, ..over }), None);
    }
}
