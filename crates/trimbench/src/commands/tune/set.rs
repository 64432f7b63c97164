//! The settings that are kept, now and for the next starts.

use std::path::Path;

use experiments::tune::persist::{self, FstabChange, Rule, TIMER, Timer};
use experiments::tune::{Advice, Finding, Policy, Target, Trial};
use record::units::names::{quoted, shown};

use super::args::Details;
use crate::console::{self, Stream};
use crate::exit::Error;

/// Returns the first error, and prints the second at once.
pub(super) fn first_of(first: Result<(), Error>, next: Result<(), Error>) -> Result<(), Error> {
    if let (Err(_), Err(error)) = (&first, &next) {
        console::error(error);
    }
    first.and(next)
}

/// The settings that were kept, or the commands that would set them.
pub(super) fn commands_or_done(
    target: &Target,
    advice: &Advice,
    kept: Option<Trial>,
    persists: bool,
    details: &Details,
) -> String {
    let Some(trial) = kept.or(advice.set) else {
        return "\nAll is as it was.\n".to_owned();
    };
    let commands = commands(target, &trial, &details.etc());
    let timer = timer_command(&trial, persists, details);
    // That isn't among what was set: only --apply=persist writes anything for later.
    let needs = match timer.is_empty() {
        true => String::new(),
        false => format!("It needs a timer, which --apply=persist installs, or:\n{timer}"),
    };
    let apply = if timer.is_empty() { "" } else { "=persist" };
    match kept {
        _ if commands.is_empty() && timer.is_empty() => {
            "\nAll is as it was, and as it should be.\n".to_owned()
        }
        Some(_) if commands.is_empty() => format!("\nAll is as it was. {needs}"),
        Some(_) => format!("\nSet:\n{commands}{needs}"),
        None => format!(
            "\nAll is as it was. To set it (or the same command with --apply{apply}):\n{commands}{timer}{}",
            rules(target, &trial, &details.etc()),
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

/// The commands for a trial's settings, as far as they aren't so already.
fn commands(target: &Target, trial: &Trial, etc: &Path) -> String {
    let (mut text, limit) = (String::new(), trial.limit_bytes);
    if limit != target.range.now_bytes {
        for drive in &target.drives {
            text += &format!("  echo {limit} > /sys/block/{drive}/queue/discard_max_bytes\n");
        }
    }
    if trial.policy.is_online() != target.is_online() {
        let option = match trial.policy.is_online() {
            true => "discard",
            false => "nodiscard",
        };
        // mount(8) would add what a bind mount's line says, and change that mount alone.
        let at = persist::remount_point(target, etc);
        text += &format!("  mount -o remount,{option} {}\n", word(&at));
    }
    text
}

/// The udev rules for the next starts, where the limit is to change.
fn rules(target: &Target, trial: &Trial, etc: &Path) -> String {
    let changed = trial.limit_bytes != target.range.now_bytes;
    let rules = persist::limit_rules(target, trial.limit_bytes, etc).filter(|_| changed);
    rules.map_or_else(String::new, |(path, text)| {
        let path = shown(&path);
        format!("For the next starts (--apply=persist writes it), {path}:\n{text}")
    })
}

/// The commands that install and start the timer which a trial's way needs, unless that was
/// done or `--apply=persist` does it.
fn timer_command(trial: &Trial, persists: bool, details: &Details) -> String {
    if trial.policy != Policy::PacedFstrim || persists {
        return String::new();
    }
    let timer = timer(details);
    let enable = format!("  systemctl enable --now {TIMER}\n");
    match (timer.is_installed(), timer.is_enabled()) {
        (true, true) => String::new(),
        (true, false) => enable,
        (false, _) => format!("  trimbench {}\n{enable}", timer.words.join(" ")),
    }
}

/// The timer with the same goal.
pub(super) fn timer(details: &Details) -> Timer {
    Timer::new(&details.etc(), details.slowdown())
}

/// Makes the settings outlast a restart, whenever they were set: writes a udev rule, and prints how
/// to enable the timer that was installed. It only shows a line of fstab, because a mistake in it
/// keeps a machine from starting.
pub(super) fn persist(
    target: &Target,
    advice: &Advice,
    kept: Option<Trial>,
    timer: Option<String>,
    etc: &Path,
    people: Stream,
) -> Result<(), Error> {
    if kept.is_none() && matches!(advice.finding, Finding::TooFewRuns) {
        people.print("For the next starts nothing is written, for nothing was found out.\n");
        return Ok(());
    }
    // Each is attempted whatever becomes of the others.
    let rule = persist::keep_limit(target, kept, etc);
    let rule = rule.map(|rule| rule.map(|rule| rule_text(target, &rule)));
    let online = kept.map_or(target.is_online(), |trial| trial.policy.is_online());
    let line = persist::fstab_change(target, online, etc);
    let line = line.map(|change| fstab_text(target, &change));
    let mut ended = Ok(());
    let mut nothing = true;
    for part in [Ok(timer), rule, Ok(line)] {
        match part {
            Ok(None) => continue,
            Ok(Some(text)) => people.print(&text),
            Err(error) => ended = first_of(ended, Err(Error::from(error))),
        }
        nothing = false;
    }
    if nothing {
        people.print("For the next starts nothing has to be written.\n");
    }
    ended
}

fn rule_text(target: &Target, rule: &Rule) -> String {
    match rule {
        Rule::Removed(path) => {
            let (path, drives) = (shown(path), target.drives.join(", "));
            format!(
                "Taken out of {path}: its lines on {drives}, which needs no rule for that limit.\n"
            )
        }
        Rule::Written { path, by_name } => {
            let by_name = by_name.iter().map(|name| {
                format!(
                    "udev knows no serial number of {name}, so the rule goes by that name, which \
                     another drive may have after the next start.\n"
                )
            });
            format!("Written: {}\n{}", shown(path), by_name.collect::<String>())
        }
    }
}

fn fstab_text(target: &Target, change: &FstabChange) -> String {
    let at = shown(&target.mount.mount_point);
    let path = shown(&change.path);
    let bind = match change.is_bind {
        false => String::new(),
        true => format!(
            "{at} is a bind mount, on whose line that option has no effect: it belongs on the line that \
             mounts the file system itself.\n"
        ),
    };
    match &change.line {
        Some(line) => format!(
            "In {path} change this line by hand (it is not written to):\n- {}\n+ {}\n{bind}",
            line.is, line.should_be
        ),
        None => format!(
            "{path} has no line for {at} that would have to change; wherever it is mounted from, add \
             the option {}.\n{bind}",
            change.option
        ),
    }
}

#[cfg(test)]
mod tests;
