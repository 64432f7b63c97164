//! The messages of `trimbench guard`.

use std::path::Path;

use reclaim::Event;
use reclaim::guard::{FRESH_FOR, Goals, LITTLE, LITTLE_FOR, Left, Status};
use reclaim::throttle::Summary;
use record::units::names::quoted;
use record::units::{self, bytes, count, counted, duration_exact, percent_exact, seconds};
use serde_json::{Value, json};

use crate::commands::guard::args::NewGoal;
use crate::goal::{GoalArgs, default_slowdown, in_shell};
use crate::interference;

/// The first message.
pub(super) fn begins(mount: &Path) -> String {
    let mount = quoted(mount);
    format!(
        "{mount}: trims what is freed on this file system; stop with Ctrl-C, or with: trimbench guard \
         stop {mount}"
    )
}

/// The result of a dry run.
pub(super) fn intended(mount: &Path, intention: &str, goal: &GoalArgs) -> String {
    let given = goal.given();
    let goal = match given.is_empty() {
        true => format!(" --slowdown={}", default_slowdown()),
        false => in_shell(&given),
    };
    format!("{}: {intention}; goal:{goal}\n", quoted(mount))
}

/// An event; `None` for one that isn't printed.
pub(super) fn event(event: &Event<'_>) -> Option<String> {
    match event {
        Event::Note(sentence) => Some(sentence.to_string()),
        Event::Trimmed {
            mount,
            bytes,
            discarded,
            within_s,
            busy_s,
            summary,
        } => {
            let (trimmed, within) = (units::bytes(*bytes), seconds(*within_s));
            let (mount, busy) = (quoted(mount), busy(*busy_s));
            let discarded = units::bytes(*discarded);
            let text = format!(
                "{mount}: trimmed {trimmed} in the last {within}, {discarded} discarded{busy}"
            );
            Some(with_figures(text, *summary))
        }
        _ => None,
    }
}

/// How long the drive was busy; nothing where that isn't counted.
fn busy(long_s: f64) -> String {
    match long_s > 0.0 {
        true => format!("; the drive was busy with that for {}", seconds(long_s)),
        false => String::new(),
    }
}

fn with_figures(text: String, summary: Option<&Summary>) -> String {
    let Some(summary) = summary else { return text };
    let report = interference::report(summary);
    let parts: Vec<String> = std::iter::once(text).chain(report).collect();
    parts.join("; ")
}

/// The debt that a guard leaves, if it is worth a trim.
pub(super) fn untrimmed(left: &Left) -> Option<String> {
    let (mount, debt) = (quoted(&left.mount), bytes(left.debt_bytes));
    (left.debt_bytes > 0).then(|| {
        format!(
            "{mount}: {debt} that are free aren't trimmed; start a guard again, or run: trimbench \
             fstrim {mount}"
        )
    })
}

/// The failures of an ended guard.
pub(super) fn failures(left: &Left) -> Vec<String> {
    let failed = left.failed.as_ref();
    let failed = failed.map(|why| format!("{}: ended, because {why}", quoted(&left.mount)));
    let not_restored = left.not_restored.as_ref().map(ToString::to_string);
    failed.into_iter().chain(not_restored).collect()
}

/// The result of an order.
pub(super) fn done(mount: &Path, what: &str) -> String {
    format!("{}: {what}\n", quoted(mount))
}

/// The goal that an order sets.
pub(super) fn new_goal(goal: &NewGoal) -> String {
    let slowdown = goal
        .slowdown
        .map(|share| format!("--slowdown {}", percent_exact(share)));
    let latency = goal
        .max_latency
        .map(|max| format!("--max-latency {}", duration_exact(max)));
    let parts: Vec<String> = slowdown.into_iter().chain(latency).collect();
    format!("the goal is {} from now on", parts.join(" "))
}

/// How a guard stands.
pub(super) fn status(status: &Status) -> String {
    let trim = &status.trim;
    let (mount, pid) = (quoted(&status.mount), status.pid);
    let (long, debt) = (seconds(status.running_s as f64), bytes(trim.debt_bytes));
    let oldest = trim.oldest_s.map(seconds);
    let oldest = oldest.map_or(String::new(), |long| format!(", the oldest for {long}"));
    let extents = count(trim.extents);
    let mut text = format!(
        "{mount}: guarded by process {pid} for {long}\n  \
         debt      {debt} freed and not trimmed, in {extents} extents{oldest}\n"
    );
    if trim.unknown_bytes > 0 {
        let unknown = bytes(trim.unknown_bytes);
        text += &format!("  unknown   {unknown} are free and may never have been trimmed\n");
    }
    if trim.unseen_bytes > 0 {
        let unseen = bytes(trim.unseen_bytes);
        text += &format!("  unseen    up to {unseen} were used and freed between two looks\n");
    }
    for (index, reason) in reasons(status).iter().enumerate() {
        let head = if index == 0 { "waits" } else { "" };
        text += &format!("  {head:<9} {reason}\n");
    }
    text += &format!("  trimmed   {}\n", trimmed(status));
    if let (Some(p50), Some(p99)) = (trim.age_p50_s.map(seconds), trim.age_p99_s.map(seconds)) {
        text += &format!("            half within {p50}, 99 % within {p99} of being freed\n");
    }
    text + &goal(status)
}

/// How much was trimmed, and what the devices did meanwhile.
fn trimmed(status: &Status) -> String {
    let trim = &status.trim;
    let all = bytes(trim.trimmed_bytes);
    let discards = counted(trim.discards, "discard");
    if trim.discards == 0 || status.devices.is_empty() {
        return format!("{all} since the guard's start");
    }
    let (sent, busy) = (bytes(trim.discarded_bytes), busy(trim.busy_s));
    let devices = status.devices.join(", ");
    format!("{all} since the guard's start; meanwhile {sent} in {discards} on {devices}{busy}")
}

/// Why debt waits, each with its rule.
fn reasons(status: &Status) -> Vec<String> {
    let trim = &status.trim;
    if let Some(limit) = trim.discards_per_s {
        return vec![format!(
            "as the kernel decides: 2 minutes for more, then {limit} discards a second (the goal's)"
        )];
    }
    let waits = trim.waits.unwrap_or_default();
    let half = status.max_age_s / 2.0;
    let fresh = duration_exact(FRESH_FOR);
    let (little, little_for) = (bytes(LITTLE), seconds(LITTLE_FOR.as_secs_f64().min(half)));
    let (short, half) = (bytes(trim.min_run_bytes), seconds(half));
    let fresh = format!("until it is free for {fresh}, because it may be used again");
    let short = format!("in runs below {short} (min-run), for {half} (half of max-age)");
    let due = "for nothing: trimmed now, as fast as the goal allows";
    let all = [
        (waits.fresh_bytes, fresh),
        (
            waits.little_bytes,
            format!("until there are {little}, or for {little_for}"),
        ),
        (waits.short_bytes, short),
        (waits.hours_bytes, "for the hours of `between`".to_owned()),
        (waits.due_bytes, due.to_owned()),
    ];
    let some = all.into_iter().filter(|(bytes, _)| *bytes > 0);
    some.map(|(size, rule)| format!("{} {rule}", bytes(size)))
        .collect()
}

fn goal(status: &Status) -> String {
    let slowdown = percent_exact(status.slowdown);
    let latency = status.max_latency_ms;
    let latency = latency.map_or(String::new(), |ms| format!(" --max-latency {ms}ms"));
    let kept = kept(status.goals);
    format!("  goal      --slowdown {slowdown}{latency}; {kept}\n")
}

/// How often the goal was kept, and why the other series of trims were not judged.
fn kept(goals: Goals) -> String {
    let times = |n: u64| counted(n, "time");
    let judged = format!("met {}, missed {}", times(goals.met), times(goals.missed));
    let others = [
        (goals.unsure, "not certain"),
        (
            goals.not_measured,
            "not measured, because the trims were too short or too few reads came beside them",
        ),
        (goals.nobody_else, "nothing else used the drive"),
    ];
    let others = others.into_iter().filter(|(n, _)| *n > 0);
    let mut parts: Vec<String> = others
        .map(|(n, why)| format!("{}: {why}", times(n)))
        .collect();
    if goals.met + goals.missed > 0 {
        parts.insert(0, judged);
    }
    match parts.is_empty() {
        true => "nothing was trimmed under it yet".to_owned(),
        false => parts.join("; "),
    }
}

/// The same as JSON.
pub(super) fn json(status: &Status) -> Value {
    json!({
        "schema": "trimbench.guard/2",
        "origin": storage::origin([&status.mount]),
        "mount": status.mount.to_string_lossy(),
        "devices": status.devices,
        "pid": status.pid,
        "running_s": status.running_s,
        "goal": {
            "slowdown": status.slowdown,
            "max_latency_ms": status.max_latency_ms,
            "met": status.goals.met,
            "missed": status.goals.missed,
            "unsure": status.goals.unsure,
            "not_measured": status.goals.not_measured,
            "nobody_else": status.goals.nobody_else,
        },
        "most": status.most,
        "max_age_s": status.max_age_s,
        "trim": status.trim,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use reclaim::guard::{TrimReport, Waits};

    use super::*;

    pub(in super::super) fn standing(trim: TrimReport) -> Status {
        Status {
            mount: "/data".into(),
            devices: vec!["sda".to_owned()],
            pid: 7,
            running_s: 90,
            slowdown: 0.1,
            max_latency_ms: None,
            most: 0.2,
            max_age_s: 600.0,
            goals: Goals::default(),
            last: None,
            trim,
        }
    }

    #[test]
    fn each_part_of_the_debt_has_the_rule_that_makes_it_wait() {
        let waits = Waits {
            fresh_bytes: 1 << 20,
            short_bytes: 2 << 20,
            little_bytes: 3 << 20,
            hours_bytes: 4 << 20,
            due_bytes: 5 << 20,
        };
        let text = status(&standing(TrimReport {
            min_run_bytes: 256 << 10,
            waits: Some(waits),
            ..TrimReport::default()
        }));
        for line in [
            "  waits     1.0 MiB until it is free for 2s",
            "3.0 MiB until there are 64.0 MiB, or for 30.0 s",
            "2.0 MiB in runs below 256 KiB (min-run), for 5 min 00 s (half of max-age)",
            "4.0 MiB for the hours of `between`",
            "5.0 MiB for nothing: trimmed now",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!status(&standing(TrimReport::default())).contains("waits"));
    }

    #[test]
    fn an_order_is_answered_with_its_effect() {
        use record::units::settings::Section;

        let goal = |changes: &[&str]| {
            let changes: Vec<String> = changes.iter().map(|&text| text.to_owned()).collect();
            let goal = NewGoal::of(&changes).unwrap();
            done(Path::new("/data"), &new_goal(&goal))
        };
        assert_eq!(
            goal(&["max-latency=7ms"]),
            "'/data': the goal is --max-latency 7ms from now on\n"
        );
        assert_eq!(
            goal(&["slowdown=30%", "max-latency=7ms"]),
            "'/data': the goal is --slowdown 30% --max-latency 7ms from now on\n"
        );
    }

    #[test]
    fn the_discards_that_are_shown_are_those_of_the_devices_that_count_them() {
        let sent = |discards| {
            standing(TrimReport {
                trimmed_bytes: 3 << 30,
                discarded_bytes: 1 << 30,
                discards,
                busy_s: 0.035,
                ..TrimReport::default()
            })
        };
        assert_eq!(
            trimmed(&sent(303)),
            "3.0 GiB since the guard's start; meanwhile 1.0 GiB in 303 discards on sda; the drive \
             was busy with that for 35.0 ms"
        );
        assert_eq!(trimmed(&sent(0)), "3.0 GiB since the guard's start");
    }

    #[test]
    fn a_goal_that_was_not_judged_has_the_reason() {
        let none = Goals::default();
        assert_eq!(kept(none), "nothing was trimmed under it yet");
        let short = Goals {
            not_measured: 2,
            ..none
        };
        assert_eq!(
            kept(short),
            "2 times: not measured, because the trims were too short or too few reads came beside \
             them"
        );
        let alone = Goals {
            met: 1,
            nobody_else: 3,
            ..none
        };
        assert_eq!(
            kept(alone),
            "met 1 time, missed 0 times; 3 times: nothing else used the drive"
        );
    }

    #[test]
    fn a_trim_says_within_which_time_and_the_time_of_what() {
        let mount = Path::new("/data");
        let text = event(&Event::Trimmed {
            mount,
            bytes: 23 << 30,
            discarded: 5 << 30,
            within_s: 60.0,
            busy_s: 0.15,
            summary: None,
        });
        let text = text.unwrap();
        let both = "23.0 GiB in the last 60.0 s, 5.0 GiB discarded";
        assert!(text.contains(both), "{text}");
        assert!(text.contains("busy with that for 0.15 s"), "{text}");
    }
}
