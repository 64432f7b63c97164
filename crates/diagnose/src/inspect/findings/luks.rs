//! Findings about encrypted devices: the kernel's state, and the line of `/etc/crypttab` that makes
//! it at the next start.

use storage::stack::{Layer, LayerKind, Stack};
use units::names::{quoted, shown};

use super::super::{CryptLine, Inspection};
use super::layers::below_takes;
use super::{Finding, queue};

/// The table's file.
const TABLE: &str = "/etc/crypttab";

/// A device that passes no discards on, or one that won't after the next start.
pub(super) fn of(facts: &Inspection, stack: &Stack, layer: &Layer) -> Option<Finding> {
    if layer.kind != LayerKind::Crypt || !below_takes(stack, layer) {
        return None;
    }
    let line = facts.crypttab.iter().find(|line| line.device == layer.name);
    match (layer.takes(), line) {
        (false, _) => Some(blocks(layer, line)),
        (true, Some(line)) if !line.allows_discards => Some(not_kept(layer, line)),
        (true, _) => None,
    }
}

fn blocks(layer: &Layer, line: Option<&CryptLine>) -> Finding {
    let label = layer.label.as_deref().unwrap_or(&layer.name);
    let finding = Finding::new(
        "luks-blocks",
        &layer.name,
        format!("{label} passes no discards on"),
    )
    .evidence(queue(&layer.name, "discard_max_bytes"), 0)
    .cost("nothing above it is ever trimmed; allowing discards shows which blocks are free");
    let now = format!("cryptsetup refresh --allow-discards {}", shown(label));
    match line {
        Some(line) if line.allows_discards => with_line(finding, line).remedy(format!(
            "{now}; the initramfs may hold an older crypttab: update-initramfs -u (Debian) or \
             dracut -f"
        )),
        Some(line) => with_line(finding, line).remedy(format!("{now}; {}", mended(line))),
        None => finding.remedy(format!(
            "cryptsetup refresh --allow-discards --persistent {} (LUKS1: discard in {TABLE})",
            shown(label)
        )),
    }
}

fn not_kept(layer: &Layer, line: &CryptLine) -> Finding {
    let label = layer.label.as_deref().unwrap_or(&layer.name);
    let finding = Finding::new(
        "luks-not-kept",
        &layer.name,
        format!("{label} passes discards on, and its line in {TABLE} lacks discard"),
    )
    .evidence(
        queue(&layer.name, "discard_max_bytes"),
        layer.limits.max_bytes,
    );
    with_line(finding, line)
        .cost(
            "discards stop at the next start, unless the LUKS2 header keeps the flag (cryptsetup \
             luksDump prints it)",
        )
        .remedy(mended(line))
}

fn with_line(finding: Finding, line: &CryptLine) -> Finding {
    let has = match line.allows_discards {
        true => "discard",
        false => "no discard",
    };
    finding.evidence(format!("{TABLE}:{}", line.line), has)
}

/// The command that adds the option to the right line.
fn mended(line: &CryptLine) -> String {
    let text = line.with_discard.replace('\\', "\\\\");
    format!(
        "sed -i {} {TABLE}",
        quoted(format!("{}c {text}", line.line))
    )
}
