//! Findings about encrypted devices: the kernel's state, and the line of `/etc/crypttab` that makes
//! it at the next start.

use record::units::names::{quoted, shown};
use storage::stack::{Layer, LayerKind, Stack};

use super::super::{CryptLine, Inspection};
use super::Finding;
use super::layers::below_takes;

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

/// A finding of a layer with its label.
fn labelled(name: &str, layer: &Layer) -> Finding {
    let label = shown(layer.label.as_deref().unwrap_or(&layer.name));
    let finding = Finding::new(name, &layer.name).with("label", label);
    finding.limit("discard_max_bytes", layer.limits.max_bytes)
}

fn blocks(layer: &Layer, line: Option<&CryptLine>) -> Finding {
    let Some(line) = line else {
        return labelled("luks-blocks", layer);
    };
    let next = match line.allows_discards {
        true => {
            "the initramfs may hold an older crypttab: update-initramfs -u (Debian) or dracut -f"
                .to_owned()
        }
        false => mended(line),
    };
    with_line(labelled("luks-blocks.listed", layer), line).with("next", next)
}

fn not_kept(layer: &Layer, line: &CryptLine) -> Finding {
    with_line(labelled("luks-not-kept", layer), line).with("mended", mended(line))
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
