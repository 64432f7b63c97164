//! The cost of a deletion or a trim for other I/O, and whether its goal was met: in sentences,
//! as JSON, and as an exit code. `rm` and `fstrim` share it.

pub(crate) mod json;

use std::time::Duration;

use pace::{CanaryWaits, GoalResult, Kept, LateReads, Limit, Measured, Quiet, ReaderLoss, Witness};
use reclaim::throttle::Summary;
use record::absence;
use record::units::{self, count, duration_exact, latency_us, percent, percent_exact, rate};

use crate::goal::GoalArgs;

/// If readers are slower in the pauses than before by more than this share, a note says so.
const SLOWER: f64 = 0.05;

/// So many reads have a 99.9th percentile that isn't just the longest.
const FOR_P999: u64 = 1000;

/// Sentences, the most important first: whether each goal was kept, how much other I/O lost and waited,
/// and when trimbench itself did not run.
pub(crate) fn report(summary: &Summary) -> Vec<String> {
    let mut all = goals(summary);
    if summary.later.is_none() {
        all.extend(lost(summary));
    }
    let absent = absence::in_words(&summary.absences);
    all.extend(absent.map(|spans| {
        format!("trimbench itself did not run for {spans}. All figures leave that time out.")
    }));
    all
}

/// Sentences about what other I/O lost and trimbench's own reads waited.
fn lost(summary: &Summary) -> Vec<String> {
    let observed = summary.observed.as_ref();
    let readers = observed.and_then(|observed| observed.readers);
    let flushers = observed.and_then(|observed| observed.flushers);
    let drives = summary.drives.join(", ");
    let mut all: Vec<String> = [(readers, "reads"), (flushers, "flushes")]
        .into_iter()
        .filter_map(|(loss, ops)| Some(of_series(&loss?, &format!("{ops} on {drives}"))))
        .flatten()
        .collect();
    if all.is_empty() {
        let why = "other I/O lost: not measured (too few reads and flushes, or their load changed)";
        all.push(why.to_owned());
    }
    let canary = observed.and_then(|observed| observed.canary);
    all.push(match canary {
        Some(canary) => of_canary(&canary),
        None => "trimbench's own reads: not measured".to_owned(),
    });
    all
}

/// Reports the loss of those who read, or flush. `ops`: what they do, and on which drives.
fn of_series(readers: &ReaderLoss, ops: &str) -> Vec<String> {
    let during = rate(readers.during_per_s);
    let time = match readers.left_s {
        Some(left) => format!("until they stopped after {}", seconds(left)),
        None => "over all the time".to_owned(),
    };
    let baseline = rate(readers.baseline_per_s);
    let rates = match readers.quiet {
        Quiet::Pauses => format!("{baseline} without discards, {during} {time}"),
        Quiet::Before => format!("{baseline} before, {during} {time}"),
        Quiet::Around {
            before_per_s,
            after_per_s,
        } => {
            let (before, after) = (rate(before_per_s), rate(after_per_s));
            format!("{before} before, {during} {time}, {after} after it")
        }
    };
    if readers.open_loop {
        let wait = seconds(readers.wait_s);
        let usual = match readers.usual_wait_s {
            none if none <= 0.0 => "a time that is not known".to_owned(),
            usual => seconds(usual),
        };
        let text = format!(
            "other I/O kept its rate of {ops} ({rates}); each took {wait} instead of {usual}"
        );
        return vec![text];
    }
    let lost = share(&readers.lost);
    let slower = readers.slower_pauses.filter(|slower| *slower > SLOWER);
    match slower.map(percent) {
        None => vec![format!("other I/O lost {lost} of its {ops} ({rates})")],
        // Then no rate is the one without discards.
        Some(slower) => vec![
            format!("other I/O lost {lost} of its {ops}"),
            format!(
                "between discards other I/O was {slower} slower than before the first one: because of the drive \
                 after a discard, commits, other I/O, or a load that changed"
            ),
        ],
    }
}

fn of_canary(canary: &CanaryWaits) -> String {
    let (added, most) = (time(canary.p999_added), time(canary.max_added));
    let reads = count(canary.reads);
    match canary.reads < FOR_P999 {
        true => format!("trimbench's own {reads} reads took at most {most} longer than usual"),
        false => format!(
            "of trimbench's own {reads} reads, 1 in 1,000 took {added} longer than usual, the longest {most}"
        ),
    }
}

/// Sentences about the goal: whether each part was kept, and what else made reads wait.
fn goals(summary: &Summary) -> Vec<String> {
    let goals = summary.goals.iter();
    let hurried = goals
        .clone()
        .any(|one| matches!(one.limit, Limit::Deadline(_)));
    let mut all: Vec<String> = goals
        .map(|one| {
            protected(one, summary).unwrap_or_else(|| goal(one, hurried, summary.later.is_some()))
        })
        .collect();
    let observed = summary.observed.as_ref();
    let over = observed.and_then(|observed| observed.canary?.over);
    all.extend(over.and_then(not_ours));
    all
}

/// Reports how a protected control group waited, if that is the goal.
fn protected(result: &GoalResult, summary: &Summary) -> Option<String> {
    let (Limit::Pressure(limit), Some(name)) = (result.limit, &summary.protected) else {
        return None;
    };
    let observed = summary.observed.as_ref();
    let Some(waits) = observed.and_then(|observed| observed.group) else {
        return Some(format!("how long {name} waited for I/O was not measured"));
    };
    let limit = percent_exact(limit);
    let held = match result.kept {
        Kept::Missed => format!("missed, for at most {limit} more were allowed"),
        _ => "held".to_owned(),
    };
    let (before, beside) = (percent(waits.before), percent(waits.beside));
    Some(format!(
        "{name} waited for I/O {before} of the time before, {beside} beside: {held}"
    ))
}

/// `hurried`: a deadline was given, to which the slowdown gives way. `later`: the file system
/// sends its discards in the background later.
fn goal(result: &GoalResult, hurried: bool, later: bool) -> String {
    let limit = match result.limit {
        Limit::Slowdown(share) => format!("--slowdown {}", percent_exact(share)),
        Limit::MaxLatency(limit) => format!("--max-latency {}", duration_exact(limit)),
        Limit::Deadline(limit) => format!("--deadline {}", duration_exact(limit)),
        Limit::Pressure(limit) => format!("--protect ={}", percent_exact(limit)),
    };
    let word = match (result.kept, result.limit) {
        (Kept::Met, _) => "met",
        (Kept::Missed, Limit::Slowdown(_)) if hurried => "given up for the deadline",
        (Kept::Missed, _) => "missed",
        _ => "not certain",
    };
    match (&result.measured, result.kept) {
        (Some(measured), _) => {
            let (came_to, when) = (came_to(result, measured), when(result));
            format!("goal {limit} {word}: {came_to}{}{when}", on_whom(result))
        }
        (None, Kept::NobodyElse) => {
            format!("goal {limit}: nothing else used the drive, so nothing was slowed down")
        }
        (None, _) if later => {
            format!("goal {limit}: not measured, because the file system discards later")
        }
        (None, _) => format!("goal {limit}: not measured"),
    }
}

fn came_to(result: &GoalResult, measured: &Measured) -> String {
    let value = measured.value;
    let on_others = matches!(result.witness, Some(Witness::Readers | Witness::Flushers));
    let (what, beyond) = match result.limit {
        Limit::Slowdown(limit) | Limit::Pressure(limit) => {
            let beyond = format!("{:.1} points", (value - limit) * 100.0);
            let what = match on_others {
                true => format!("other I/O lost {}", share(measured)),
                false => format!("{} of reads met a discard", share(measured)),
            };
            (what, beyond)
        }
        Limit::MaxLatency(limit) => {
            let what = format!(
                "beside our discards a read waited {} longer",
                seconds(value)
            );
            (what, seconds(value - limit.as_secs_f64()))
        }
        Limit::Deadline(limit) => {
            let what = format!("it took {}", seconds(value));
            (what, seconds(value - limit.as_secs_f64()))
        }
    };
    match result.kept {
        Kept::Missed => format!("{what}, {beyond} too much"),
        _ => what,
    }
}

/// Names the I/O that it was measured on.
fn on_whom(result: &GoalResult) -> &'static str {
    match result.witness {
        Some(Witness::Readers) => " (measured on the drive's readers)",
        Some(Witness::Flushers) => " (measured on the flushes of programs that sync)",
        Some(Witness::Canary) => " (measured on trimbench's own reads)",
        Some(Witness::Clock | Witness::Group) | None => "",
    }
}

fn when(result: &GoalResult) -> String {
    let at = |at: f64| format!("{at:.1} s after its first piece");
    let first = result
        .first_missed_s
        .map(|first| format!("; first missed {}", at(first)));
    let worst = result.worst.map(|worst| match result.limit {
        Limit::Slowdown(_) => {
            let (length, lost) = (worst.length_s, percent(worst.value));
            format!("; the worst {length} s lost {lost}, {}", at(worst.at_s))
        }
        _ => format!("; worst {}", at(worst.at_s)),
    });
    [first, worst].into_iter().flatten().collect()
}

/// Reads that waited longer than the goal, but not for our discards.
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
    .filter(|(reads, _)| *reads > 0)
    .map(|(reads, why)| format!("{} {why}", count(reads)))
    .collect();
    let reads = over.all() - over.our_discards;
    (reads > 0).then(|| {
        let (reads, parts) = (count(reads), parts.join("; "));
        format!(
            "{reads} more of trimbench's own reads waited longer than that. The goal does not count them: \
             {parts}"
        )
    })
}

/// Whether a goal that was given was missed.
pub(crate) fn is_missed(summary: &Summary, given: &GoalArgs) -> bool {
    let missed = |goal: &GoalResult| goal.kept == Kept::Missed && is_given(goal.limit, given);
    summary.goals.iter().any(missed)
}

fn is_given(limit: Limit, given: &GoalArgs) -> bool {
    match limit {
        Limit::Slowdown(_) => given.slowdown.is_some(),
        Limit::MaxLatency(_) => given.max_latency.is_some(),
        Limit::Deadline(_) => given.deadline.is_some(),
        Limit::Pressure(_) => given.protect.is_some(),
    }
}

fn share(measured: &Measured) -> String {
    let [value, low, high] = [measured.value, measured.low, measured.high].map(percent);
    format!("{value} ({low} to {high})")
}

fn time(span: Duration) -> String {
    seconds(span.as_secs_f64())
}

fn seconds(seconds: f64) -> String {
    match seconds < 1.0 {
        true => latency_us(seconds * 1e6),
        false => units::seconds(seconds),
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
            goal(&met, false, false),
            "goal --slowdown 10% met: other I/O lost 8.0 % (7.0 % to 9.0 %) (measured on the drive's readers)"
        );
        let given_up = goal(
            &result(Limit::Slowdown(0.1), Kept::Missed, 0.4),
            true,
            false,
        );
        let begin = "goal --slowdown 10% given up for the deadline: other I/O lost 40 %";
        assert!(given_up.starts_with(begin), "{given_up}");
        let on_canary = GoalResult {
            witness: Some(Witness::Canary),
            ..met
        };
        let on = "(measured on trimbench's own reads)";
        assert!(
            goal(&on_canary, false, false).ends_with(on),
            "{}",
            goal(&on_canary, false, false)
        );
        let unsure = GoalResult {
            witness: Some(Witness::Flushers),
            ..result(Limit::Slowdown(0.1), Kept::Unsure, 0.105)
        };
        assert_eq!(
            goal(&unsure, false, false),
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
            goal(&missed, false, false),
            "goal --max-latency 5ms missed: beside our discards a read waited 25.9 ms longer, \
             20.9 ms too much (measured on trimbench's own reads); first missed 1.2 s after its first piece; worst 3.4 s after its first piece"
        );
        let unmeasured = GoalResult {
            kept: Kept::NotMeasured,
            measured: None,
            witness: None,
            ..met
        };
        assert_eq!(
            goal(&unmeasured, false, true),
            "goal --slowdown 10%: not measured, because the file system discards later"
        );
    }

    #[test]
    fn a_loss_has_rates_only_where_one_of_them_is_without_discards() {
        let loss = |slower_pauses| ReaderLoss {
            baseline_per_s: 40_000.0,
            during_per_s: 30_000.0,
            quiet: Quiet::Pauses,
            lost: Measured {
                value: 0.25,
                low: 0.2,
                high: 0.3,
            },
            slower_pauses,
            lost_with_pauses: 0.25,
            usual_wait_s: 1e-4,
            wait_s: 2e-4,
            open_loop: false,
            left_s: None,
        };
        let text = |slower| of_series(&loss(slower), "reads on vda").join("\n");
        assert!(text(None).ends_with("(40,000/s without discards, 30,000/s over all the time)"));
        assert!(text(Some(0.04)).contains("without discards"));
        let around = Quiet::Around {
            before_per_s: 41_000.0,
            after_per_s: 39_000.0,
        };
        let around = ReaderLoss {
            quiet: around,
            ..loss(None)
        };
        let text_around = of_series(&around, "reads on vda").join("\n");
        let rates = "(41,000/s before, 30,000/s over all the time, 39,000/s after it)";
        assert!(text_around.ends_with(rates), "{text_around}");
        let open = ReaderLoss {
            open_loop: true,
            ..loss(None)
        };
        assert_eq!(
            of_series(&open, "flushes on sdb, sdc"),
            [
                "other I/O kept its rate of flushes on sdb, sdc (40,000/s without discards, 30,000/s over all the \
             time); each took 200 µs instead of 100 µs"
            ]
        );
        let unknown = ReaderLoss {
            usual_wait_s: 0.0,
            ..open
        };
        let text_of = of_series(&unknown, "reads on vda").join("");
        assert!(
            text_of.ends_with("instead of a time that is not known"),
            "{text_of}"
        );
        let slower = text(Some(0.42));
        assert!(!slower.contains("/s"), "{slower}");
        assert!(
            slower.contains("reads on vda\nbetween discards other I/O was 42 % slower"),
            "{slower}"
        );
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
            "1 more of trimbench's own reads waited longer than that. The goal does not count them: 1 beside a flush, of our commits or of others"
        );
        assert_eq!(not_ours(LateReads { flushes: 0, ..over }), None);
    }
}
