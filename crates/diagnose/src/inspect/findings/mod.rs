//! Findings that deserve attention: rules over the facts of an inspection.
//!
//! Each rule has an identifier, which docs/inspect.md explains. [`RULES`] lists them all, and
//! `findings.toml` has their texts.

mod drives;
mod file_systems;
mod layers;
mod luks;
mod predicted;
mod proven;
mod trimmers;

use std::sync::LazyLock;

use record::units::names::shown;
use serde::Serialize;
use ssd::Card;
use storage::stack::{Layer, LayerKind, Stack};
use toml::Spanned;
use toml::de::DeTable;

use super::Inspection;

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Note,
    /// Space stays untrimmed, or trimming costs more than it need.
    Warning,
    /// Data or the machine are at risk, or TRIM is not what it claims to be.
    Critical,
}

impl Severity {
    /// Its name, as `--fail-on` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

/// One thing that deserves attention.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Its identifier, one of [`RULES`].
    pub id: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// The mount point or device.
    pub subject: String,
    /// The fact, in a sentence.
    pub what: String,
    /// The files that show it.
    pub evidence: Vec<Evidence>,
    /// Its cost.
    pub cost: String,
    /// The command or the step that mends it; `None` where nothing need be done.
    pub remedy: Option<String>,
}

/// A file and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The file.
    pub file: String,
    /// Its value, or the part that matters.
    pub value: String,
}

impl Finding {
    /// A finding with the texts of a rule, or of a case of it (`RULE.CASE`).
    fn new(name: &str, subject: &str) -> Finding {
        let rule = name.split('.').next().unwrap_or(name);
        let known = RULES.iter().find(|(id, _)| *id == rule);
        debug_assert!(known.is_some(), "{rule} is no rule");
        let (id, severity) = known.copied().unwrap_or(("", Severity::Note));
        let text = |key| text(name, key).or_else(|| text(rule, key));
        let owned = |key| text(key).unwrap_or_default().to_owned();
        let finding = Finding {
            id,
            severity,
            subject: subject.to_owned(),
            what: owned("what"),
            evidence: Vec::new(),
            cost: owned("cost"),
            remedy: Some(owned("remedy")).filter(|remedy| !remedy.is_empty()),
        };
        finding
            .with("host-keeps", HOST_KEEPS)
            .with("subject", shown(subject))
    }

    /// Puts a value into the place `{name}` of the texts.
    fn with(mut self, name: &str, value: impl ToString) -> Finding {
        let (place, value) = (format!("{{{name}}}"), value.to_string());
        let texts = [&mut self.what, &mut self.cost].into_iter();
        for text in texts.chain(&mut self.remedy) {
            *text = text.replace(&place, &value);
        }
        self
    }

    /// Adds the value of a file of the queue of the device that it is about.
    fn limit(self, file: &str, value: impl ToString) -> Finding {
        let file = queue(&self.subject, file);
        self.evidence(file, value)
    }

    fn evidence(mut self, file: impl Into<String>, value: impl ToString) -> Finding {
        self.evidence.push(Evidence {
            file: file.into(),
            value: value.to_string(),
        });
        self
    }
}

/// The cost where a host does not learn which blocks its guest has freed.
const HOST_KEEPS: &str = "the host's storage keeps every block that was ever written";

/// The texts of the rules.
static TEXTS: LazyLock<Spanned<DeTable<'static>>> = LazyLock::new(|| {
    DeTable::parse(include_str!("findings.toml")).expect("a test shows that it can be read")
});

/// A text of a rule.
fn text(name: &str, key: &str) -> Option<&'static str> {
    TEXTS
        .get_ref()
        .get(name)?
        .get_ref()
        .get(key)?
        .get_ref()
        .as_str()
}

/// Every rule with its severity.
pub const RULES: [(&str, Severity); 34] = [
    ("amplified", Severity::Warning),
    ("btrfs-deleted", Severity::Note),
    ("btrfs-quotas", Severity::Note),
    ("btrfs-sync", Severity::Warning),
    ("claims-but-ignores", Severity::Critical),
    ("disabled-at-runtime", Severity::Warning),
    ("discard-in-caller", Severity::Warning),
    ("ext4-rediscards", Severity::Warning),
    ("firmware-wedges", Severity::Critical),
    ("fs-not-issuing", Severity::Note),
    ("hdd-trimmed", Severity::Note),
    ("host-blocks", Severity::Warning),
    ("host-may-ignore", Severity::Note),
    ("luks-blocks", Severity::Warning),
    ("luks-not-kept", Severity::Note),
    ("max-lowered", Severity::Note),
    ("md-discard-fault", Severity::Critical),
    ("nothing-trims", Severity::Warning),
    ("option-inert", Severity::Warning),
    ("predicted-stall", Severity::Warning),
    ("raid5-off", Severity::Warning),
    ("raid5-splits", Severity::Note),
    ("several-trimmers", Severity::Note),
    ("thin-granularity", Severity::Note),
    ("thin-no-passdown", Severity::Warning),
    ("thin-removed-lv", Severity::Note),
    ("timer-herd", Severity::Note),
    ("timer-misses-mount", Severity::Warning),
    ("trim-capped", Severity::Note),
    ("trim-unqueued", Severity::Note),
    ("trims-recorded-slow", Severity::Warning),
    ("trims-too-much", Severity::Critical),
    ("usb-lbpme", Severity::Warning),
    ("vdo-flood", Severity::Warning),
];

/// All findings, the gravest first. `card`: the drive's, for what TRIM will cost.
pub(super) fn find(facts: &Inspection, card: Option<&Card>) -> Vec<Finding> {
    let mut found = Vec::new();
    for stack in &facts.stacks {
        found.extend(file_systems::of(facts, stack));
        found.extend(layers::of(facts, stack));
        found.extend(card.and_then(|card| predicted::of(facts, stack, card)));
    }
    for drive in &facts.drives {
        found.extend(drives::of(facts, drive));
    }
    found.extend(trimmers::of(facts));
    found.extend(
        facts
            .proof
            .as_ref()
            .and_then(|proof| proven::of(facts, proof)),
    );
    found.retain(|one| !does_harm(facts, one));
    // A layer that several stacks share is reported once.
    let mut once: Vec<Finding> = Vec::new();
    for finding in found {
        if once
            .iter()
            .all(|one| (one.id, &one.subject) != (finding.id, &finding.subject))
        {
            once.push(finding);
        }
    }
    let mut once = paths_once(facts, once);
    once.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    once
}

/// Findings whose remedy sends no discards.
const WITHOUT_DISCARDS: [&str; 5] = [
    "btrfs-quotas",
    "claims-but-ignores",
    "firmware-wedges",
    "md-discard-fault",
    "trims-too-much",
];

/// Whether discards do harm on an array of this stack.
fn is_risky(facts: &Inspection, stack: &Stack) -> bool {
    let mut layers = stack.layers.iter();
    layers.any(|layer| layers::fault(facts, stack, layer).is_some())
}

/// Whether the remedy of a finding would send discards where they do harm.
fn does_harm(facts: &Inspection, finding: &Finding) -> bool {
    let about = |stack: &Stack| {
        finding.id == "timer-herd"
            || stack.subject() == finding.subject
            || stack.layer(&finding.subject).is_some()
    };
    let sends = finding.remedy.is_some() && !WITHOUT_DISCARDS.contains(&finding.id);
    let mut stacks = facts.stacks.iter();
    sends && stacks.any(|stack| is_risky(facts, stack) && about(stack))
}

/// Merges the equal findings of one LUN's paths.
fn paths_once(facts: &Inspection, found: Vec<Finding>) -> Vec<Finding> {
    let layers = facts.stacks.iter().flat_map(|stack| &stack.layers);
    let luns: Vec<&Layer> = layers
        .filter(|one| one.kind == LayerKind::Multipath)
        .collect();
    let values = |one: &Finding| -> Vec<String> {
        let all = one.evidence.iter();
        all.map(|one| one.value.clone()).collect()
    };
    let mut merged: Vec<Finding> = Vec::new();
    for finding in found {
        let lun = luns.iter().find(|lun| lun.below.contains(&finding.subject));
        let same = |one: &&mut Finding| {
            let first = one.subject.split(", ").next().unwrap_or_default();
            let together = lun.is_some_and(|lun| lun.below.iter().any(|path| path == first));
            together && one.id == finding.id && values(one) == values(&finding)
        };
        match merged.iter_mut().find(same) {
            Some(one) => one.subject = format!("{}, {}", one.subject, finding.subject),
            None => merged.push(finding),
        }
    }
    merged
}

/// The file of a device's queue.
fn queue(device: &str, file: &str) -> String {
    let device = linux::sysroot::directory_name(device);
    format!("/sys/block/{device}/queue/{file}")
}

/// The file that has the mounts' options.
const MOUNTS: &str = "/proc/self/mountinfo";

#[cfg(test)]
mod tests;
