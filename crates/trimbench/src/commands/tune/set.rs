//! The settings that are kept, and the commands that set them, now and for the next starts.

use std::path::Path;

use experiments::tune::{Advice, Policy, RULES, Target, Trial, rules};
use record::units::names::{quoted, shown};
use record::units::percent_exact;

use crate::systemd;

/// The settings that were kept, or the commands that would set them; and what the next starts
/// need. `slowdown`: the goal of a timer.
pub(super) fn commands_or_done(
    target: &Target,
    advice: &Advice,
    kept: Option<Trial>,
    slowdown: f64,
) -> String {
    let Some(trial) = kept.or(advice.set) else {
        return "\nAll is as it was.\n".to_owned();
    };
    let (commands, later) = (commands(target, &trial), later(target, &trial, slowdown));
    match kept {
        _ if commands.is_empty() && later.is_empty() => {
            "\nAll is as it was, and as it should be.\n".to_owned()
        }
        _ if commands.is_empty() => format!("\nAll is as it was.\n{later}"),
        Some(_) => format!("\nSet:\n{commands}{later}"),
        None => format!(
            "\nAll is as it was. To set it (or the same command with --apply):\n{commands}{later}"
        ),
    }
}

/// A sentence for each drive whose limit isn't what it was, and is so again with the next start
/// only.
pub(super) fn left_changed(target: &Target) -> String {
    let left = target
        .left_changed()
        .into_iter()
        .map(|(drive, now)| format!("But the limit of {drive} is {now} until the next start.\n"));
    left.collect()
}

/// A path as a word of a command.
fn word(path: &Path) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@".contains(c);
    match path.to_str() {
        Some(text) if text.chars().all(plain) => text.to_owned(),
        _ => quoted(path),
    }
}

/// The mount option that a trial needs, if it isn't so already.
fn option(target: &Target, trial: &Trial) -> Option<&'static str> {
    match trial.policy.is_online() {
        online if online == target.is_online() => None,
        true => Some("discard"),
        false => Some("nodiscard"),
    }
}

/// The commands for a trial's settings, as far as they aren't so already.
fn commands(target: &Target, trial: &Trial) -> String {
    let (mut text, limit) = (String::new(), trial.limit_bytes);
    if limit != target.range.now_bytes {
        for drive in &target.drives {
            text += &format!("  echo {limit} > /sys/block/{drive}/queue/discard_max_bytes\n");
        }
    }
    if let Some(option) = option(target, trial) {
        let at = word(&target.mount.mount_point);
        text += &format!("  mount -o remount,{option} {at}\n");
    }
    text
}

/// The settings that the next starts need: a udev rule, the mount option in fstab, a timer.
fn later(target: &Target, trial: &Trial, slowdown: f64) -> String {
    let mut text = String::new();
    let changed = trial.limit_bytes != target.range.now_bytes;
    if let Some(rules) = rules(target, trial.limit_bytes).filter(|_| changed) {
        text += &format!("For the next starts, in {RULES}:\n{rules}");
    }
    if let Some(option) = option(target, trial) {
        let at = shown(&target.mount.mount_point);
        text +=
            &format!("For the next starts, add {option} to the options of {at} in /etc/fstab.\n");
    }
    if trial.policy == Policy::PacedFstrim {
        // It takes the place of the distribution's timer, so it trims all that is mounted.
        let slowdown = percent_exact(slowdown);
        text += &timer(&format!("--slowdown={slowdown}"), systemd::runs());
    }
    text
}

/// The timer that trims, by systemd if that `runs`.
fn timer(goal: &str, runs: bool) -> String {
    if runs {
        return format!("It needs a timer:\n  trimbench fstrim --all --install-timer {goal}\n");
    }
    let program = systemd::own_program().map_or_else(|_| "trimbench".to_owned(), shown);
    let command = [&program, "fstrim", "--all", goal].map(str::to_owned);
    let times = linux::host::weekly(&linux::SysRoot::host());
    let line = systemd::cron_line(&times, &command);
    format!("It needs a line of cron, in /etc/cron.d/trimbench:\n  {line}\n")
}

#[cfg(test)]
mod tests {
    use experiments::tune::{Finding, Range};
    use linux::mounts;
    use record::DiscardSetting;

    use super::*;

    /// ext4 on a drive that this machine hasn't.
    fn target(setting: DiscardSetting) -> Target {
        let line = b"1 0 8:1 / /data rw - ext4 /dev/sda1 rw\n";
        Target {
            directory: "/data".into(),
            mount: mounts::parse(line).remove(0),
            drives: vec!["nosuch0".to_owned()],
            limits_bytes: vec![1 << 30],
            irreversible: Vec::new(),
            range: Range {
                now_bytes: 1 << 30,
                hw_bytes: 1 << 30,
                granularity_bytes: 512,
            },
            setting,
        }
    }

    fn advice(limit_bytes: u64) -> Advice {
        Advice {
            finding: Finding::PacedFstrim,
            set: Some(Trial {
                policy: Policy::PacedFstrim,
                limit_bytes,
            }),
            text: String::new(),
            costs: Vec::new(),
        }
    }

    #[test]
    fn the_advice_is_printed_as_commands_a_rule_and_a_line_of_fstab() {
        let advice = advice(8 << 20);
        let text = commands_or_done(&target(DiscardSetting::On), &advice, None, 0.1);
        for part in [
            "  echo 8388608 > /sys/block/nosuch0/queue/discard_max_bytes\n",
            "61-trimbench-discard.rules:\nACTION==\"add|change\", ",
            "KERNEL==\"nosuch0\", ATTR{queue/discard_max_bytes}=\"8388608\"\n",
            "add nodiscard to the options of /data in /etc/fstab.\n",
        ] {
            assert!(text.contains(part), "{part:?} missing in:\n{text}");
        }
    }

    #[test]
    fn what_is_trimmed_later_needs_a_timer() {
        let advice = advice(1 << 30);
        let by_systemd =
            "It needs a timer:\n  trimbench fstrim --all --install-timer --slowdown=7%\n";
        assert_eq!(timer("--slowdown=7%", true), by_systemd);
        let by_cron = timer("--slowdown=7%", false);
        assert!(
            by_cron.ends_with(" fstrim --all --slowdown=7\\%\n"),
            "{by_cron}"
        );
        let timer = timer("--slowdown=7%", systemd::runs());
        let said = |setting, kept| commands_or_done(&target(setting), &advice, kept, 0.07);
        let to_set = said(DiscardSetting::On, None);
        assert!(
            to_set.contains("--apply):\n  mount -o remount,nodiscard /data\n"),
            "{to_set}"
        );
        assert!(to_set.ends_with(&timer), "{to_set}");
        let set = said(DiscardSetting::On, advice.set);
        assert!(
            set.contains("Set:\n  mount -o") && set.ends_with(&timer),
            "{set}"
        );
        let as_was = said(DiscardSetting::Off, advice.set);
        assert_eq!(as_was, format!("\nAll is as it was.\n{timer}"));
    }
}
