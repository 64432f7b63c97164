//! Findings of a proof.

use storage::drive::Transport;

use super::super::Inspection;
use super::super::prove::{Outcome, Proof, breaks_promise};
use super::Finding;

pub(super) fn of(facts: &Inspection, proof: &Proof) -> Option<Finding> {
    let drive = facts.drives.first()?;
    let finding = match proof.result {
        Outcome::Ignored if breaks_promise(drive.reads_as()) => {
            let virtual_drive = drive.is_virtual() || drive.transport == Transport::Loop;
            let remedy = match virtual_drive {
                true => "on the host: discard=unmap (QEMU), and storage that supports holes",
                false => "do not count on TRIM here; look for newer firmware",
            };
            Finding::new("claims-but-ignores", &drive.name, &proof.summary)
                .cost("freed space is never free for the drive, and deleted data can still be read")
                .remedy(remedy)
        }
        Outcome::TooMuch => Finding::new("trims-too-much", &drive.name, &proof.summary)
            .cost("TRIM destroys data that was not deleted")
            .remedy("mount without discard, stop timers that trim, restore from a backup"),
        _ => return None,
    };
    let raw = proof.raw.unwrap_or_default();
    let value = format!(
        "{} unchanged, {} zeros, {} other",
        units::bytes(raw.unchanged_bytes),
        units::bytes(raw.zero_bytes),
        units::bytes(raw.other_bytes)
    );
    Some(finding.evidence(
        format!("probe in {}", units::names::shown(&proof.path)),
        value,
    ))
}
