//! Findings of a proof.

use record::Transport;

use super::super::Inspection;
use super::super::prove::{Outcome, Proof, breaks_promise};
use super::Finding;

pub(super) fn of(facts: &Inspection, proof: &Proof) -> Option<Finding> {
    let drive = facts.drives.first()?;
    let virtual_drive = drive.is_virtual() || drive.transport == Transport::Loop;
    let name = match proof.result {
        Outcome::Ignored if !breaks_promise(drive.reads_as()) => return None,
        Outcome::Ignored if virtual_drive => "claims-but-ignores.host",
        Outcome::Ignored => "claims-but-ignores",
        Outcome::TooMuch => "trims-too-much",
        _ => return None,
    };
    let finding = Finding::new(name, &drive.name).with("summary", &proof.summary);
    let raw = proof.raw.unwrap_or_default();
    let value = format!(
        "{} unchanged, {} zeros, {} other",
        record::units::bytes(raw.unchanged_bytes),
        record::units::bytes(raw.zero_bytes),
        record::units::bytes(raw.other_bytes)
    );
    Some(finding.evidence(
        format!("probe in {}", record::units::names::shown(&proof.path)),
        value,
    ))
}
