//! Findings about who trims, and when.

use storage::stack::Mounted;

use super::super::Inspection;
use super::super::policy::Trimmer;
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
    let online = format!("{} {}", fs.mount_point, fs.options.join(","));
    let finding = Finding::new("several-trimmers", &fs.mount_point)
        .with("names", names.join(" and by "))
        .evidence(MOUNTS, online);
    let add = |finding: Finding, timer: &&Trimmer| finding.evidence(&timer.file, covers(timer));
    Some(timers.iter().fold(finding, add))
}

/// Guests of one host whose timers elapse together.
fn herd(facts: &Inspection) -> Option<Finding> {
    let timer = facts.policy.trimmers.iter().find(|one| {
        one.inactive.is_none() && one.name.ends_with(".timer") && one.random_delay_s < HERD_S
    })?;
    facts.virtual_machine.then(|| {
        let when = format!("OnCalendar={}", timer.schedule.as_deref().unwrap_or(""));
        let delay = format!("RandomizedDelaySec={} s", timer.random_delay_s);
        Finding::new("timer-herd", &timer.name)
            .evidence(&timer.file, when)
            .evidence(&timer.file, delay)
    })
}
