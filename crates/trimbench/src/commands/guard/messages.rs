//! The messages of `trimbench guard`.

use std::path::Path;

use reclaim::Event;
use reclaim::guard::{FRESH_FOR, LITTLE, LITTLE_FOR, Left, Status};
use reclaim::throttle::Summary;
use record::units::names::quoted;
use serde_json::{Value, json};

use crate::goal::{GoalArgs, default_slowdown, in_shell};
use crate::interference;

/// The first message.
pub(super) fn begins(mount: &Path) -> String {
    format!(
        "{}: trims what is freed on this file system; stop with Ctrl-C, or with: trimbench guard stop {}",
        quoted(mount),
        quoted(mount)
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
            within_s,
            busy_s,
            summary,
        } => {
            let text = format!(
                "{}: trimmed {} in the last {}{}",
                quoted(mount),
                record::units::bytes(*bytes),
                record::units::seconds(*within_s),
                busy(*busy_s)
            );
            Some(with_figures(text, *summary))
        }
        _ => None,
    }
}

/// How long the drive was busy; nothing where that isn't counted.
fn busy(seconds: f64) -> String {
    match seconds > 0.0 {
        true => format!(
            "; the drive was busy with that for {}",
            record::units::seconds(seconds)
        ),
        false => String::new(),
    }
}

fn with_figures(text: String, summary: Option<&Summary>) -> String {
    let Some(summary) = summary else { return text };
    let lost = interference::lost(summary);
    let goals = interference::goals(summary).into_iter();
    std::iter::once(format!("{text}; {lost}"))
        .chain(goals)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The debt that a guard leaves, if it is worth a trim.
pub(super) fn untrimmed(left: &Left) -> Option<String> {
    (left.debt_bytes > 0).then(|| {
        format!(
            "{}: {} that are free aren't trimmed; start a guard again, or run: trimbench fstrim {}",
            quoted(&left.mount),
            record::units::bytes(left.debt_bytes),
            quoted(&left.mount)
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

/// How a guard stands.
pub(super) fn status(status: &Status) -> String {
    let trim = &status.trim;
    let mut text = format!(
        "{}: guarded by process {} for {}\n  debt      {} freed and not trimmed, in {} extents",
        quoted(&status.mount),
        status.pid,
        record::units::seconds(status.running_s as f64),
        record::units::bytes(trim.debt_bytes),
        record::units::count(trim.extents)
    );
    if let Some(oldest) = trim.oldest_s {
        text += &format!(", the oldest for {}", record::units::seconds(oldest));
    }
    text += "\n";
    if trim.unknown_bytes > 0 {
        text += &format!(
            "  unknown   {} are free and may never have been trimmed\n",
            record::units::bytes(trim.unknown_bytes)
        );
    }
    if trim.unseen_bytes > 0 {
        text += &format!(
            "  unseen    up to {} were used and freed between two looks\n",
            record::units::bytes(trim.unseen_bytes)
        );
    }
    let reasons = reasons(status);
    for (index, reason) in reasons.iter().enumerate() {
        let head = if index == 0 { "waits" } else { "" };
        text += &format!("  {head:<9} {reason}\n");
    }
    text += &format!(
        "  trimmed   {} since the guard's start{}",
        record::units::bytes(trim.trimmed_bytes),
        busy(trim.busy_s)
    );
    if let (Some(p50), Some(p99)) = (trim.age_p50_s, trim.age_p99_s) {
        text += &format!(
            "\n            half within {}, 99 % within {} of being freed",
            record::units::seconds(p50),
            record::units::seconds(p99)
        );
    }
    text + "\n" + &goal(status)
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
    let all = [
        (
            waits.fresh_bytes,
            format!(
                "until it is free for {}, because it may be used again",
                record::units::duration_exact(FRESH_FOR)
            ),
        ),
        (
            waits.little_bytes,
            format!(
                "until there are {}, or for {}",
                record::units::bytes(LITTLE),
                record::units::seconds(LITTLE_FOR.as_secs_f64().min(half))
            ),
        ),
        (
            waits.short_bytes,
            format!(
                "in runs below {} (min-run), for {} (half of max-age)",
                record::units::bytes(trim.min_run_bytes),
                record::units::seconds(half)
            ),
        ),
        (waits.hours_bytes, "for the hours of `between`".to_owned()),
        (
            waits.due_bytes,
            "for nothing: trimmed now, as fast as the goal allows".to_owned(),
        ),
    ];
    let some = all.into_iter().filter(|(bytes, _)| *bytes > 0);
    some.map(|(bytes, rule)| format!("{} {rule}", record::units::bytes(bytes)))
        .collect()
}

fn goal(status: &Status) -> String {
    let latency = status.max_latency_ms;
    format!(
        "  goal      --slowdown {}{}; met {} times, missed {} times\n",
        record::units::percent_exact(status.slowdown),
        latency.map_or(String::new(), |ms| format!(" --max-latency {ms}ms")),
        status.goals.met,
        status.goals.missed,
    )
}

/// The same as JSON.
pub(super) fn json(status: &Status) -> Value {
    json!({
        "schema": "trimbench.guard/2",
        "mount": status.mount.to_string_lossy(),
        "pid": status.pid,
        "running_s": status.running_s,
        "goal": {
            "slowdown": status.slowdown,
            "max_latency_ms": status.max_latency_ms,
            "met": status.goals.met,
            "missed": status.goals.missed,
        },
        "most": status.most,
        "max_age_s": status.max_age_s,
        "trim": status.trim,
    })
}

#[cfg(test)]
mod tests {
    use reclaim::guard::{Goals, TrimReport, Waits};

    use super::*;

    fn standing(trim: TrimReport) -> Status {
        Status {
            mount: "/data".into(),
            pid: 7,
            running_s: 90,
            slowdown: 0.1,
            max_latency_ms: None,
            most: 0.2,
            max_age_s: 600.0,
            goals: Goals::default(),
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
    fn a_trim_says_within_which_time_and_the_time_of_what() {
        let mount = Path::new("/data");
        let text = event(&Event::Trimmed {
            mount,
            bytes: 23 << 30,
            within_s: 60.0,
            busy_s: 0.15,
            summary: None,
        });
        let text = text.unwrap();
        assert!(text.contains("23.0 GiB in the last 60.0 s"), "{text}");
        assert!(text.contains("busy with that for 0.15 s"), "{text}");
    }
}
