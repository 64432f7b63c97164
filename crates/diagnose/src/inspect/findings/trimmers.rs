//! Findings about who trims, and when.

use storage::stack::Mounted;

use super::super::Inspection;
use super::file_systems::covers;
use super::{Finding, MOUNTS};

/// Machines whose timers elapse within so many seconds trim at once.
const HERD_S: u64 = 3 * 3600;

pub(super) fn of(facts: &Inspection) -> Vec<Finding> {
    let mut found: Vec<Finding> = facts
        .stacks
        .iter()
        .filter(|stack| stack.open)
        .filter_map(|stack| several(facts, stack.file_system.as_ref()?))
        .collect();
    found.extend(herd(facts));
    found
}

fn several(facts: &Inspection, fs: &Mounted) -> Option<Finding> {
    let timers: Vec<_> = facts.policy.trims(&fs.mount_point).collect();
    let mut names: Vec<String> = timers.iter().map(|one| one.name.clone()).collect();
    if fs.is_online() {
        names.insert(0, "the mount's discard".to_owned());
    }
    if names.len() < 2 {
        return None;
    }
    let mut finding = Finding::new(
        "several-trimmers",
        &fs.mount_point,
        format!("trimmed by {}", names.join(" and by ")),
    )
    .evidence(
        MOUNTS,
        format!("{} {}", fs.mount_point, fs.options.join(",")),
    );
    for timer in &timers {
        finding = finding.evidence(&timer.file, covers(timer));
    }
    Some(
        finding
            .cost("free space is discarded more than once, and each time the drive may stall")
            .remedy("keep one: online discard, or a timer"),
    )
}

/// Guests of one host whose timers elapse together.
fn herd(facts: &Inspection) -> Option<Finding> {
    let timer = facts.policy.trimmers.iter().find(|one| {
        one.inactive.is_none() && one.name.ends_with(".timer") && one.random_delay_s < HERD_S
    })?;
    facts.virtual_machine.then(|| {
        Finding::new(
            "timer-herd",
            &timer.name,
            "every machine with this timer trims in the same hours, also all those of one host",
        )
        .evidence(
            &timer.file,
            format!("OnCalendar={}", timer.schedule.as_deref().unwrap_or("")),
        )
        .evidence(
            &timer.file,
            format!("RandomizedDelaySec={} s", timer.random_delay_s),
        )
        .cost("the host's storage gets the discards of all its guests at once")
        .remedy("trimbench fstrim --install-timer: each machine has its own time within half a day")
    })
}
