//! Drives and profiles as text.

use ::lab::Info;
use serde_json::{Value, json};
use ssd::profiles;
use units::names;

use crate::{card, simulated};

pub(super) fn list(infos: &[Info], as_json: bool) -> String {
    if as_json {
        return pretty(&infos.iter().map(drive).collect());
    }
    if infos.is_empty() {
        return "There are no drives. `trimbench lab up` makes one.\n".to_owned();
    }
    infos.iter().map(|info| line(info) + "\n").collect()
}

/// A drive in a line.
pub(super) fn line(info: &Info) -> String {
    let device = match &info.device {
        Some(device) => names::shown(device),
        None => "no device".to_owned(),
    };
    let spec = &info.spec;
    let mut text = format!(
        "{}  {device}  {}  {}",
        spec.name,
        units::bytes(spec.size_bytes),
        simulated::profile(info),
    );
    let changed = card::changed(info);
    if !changed.is_empty() {
        text += &format!(", set by hand: {}", changed.join(", "));
    }
    if let Some(most) = spec
        .store_limit_bytes
        .filter(|most| *most < spec.size_bytes)
    {
        text += &format!("  keeps {} at most", units::bytes(most));
    }
    if let Some(fs) = spec.fs {
        text += &format!("  {}", fs.name());
    }
    for mount in &info.mounts {
        text += &format!("  on {}", names::shown(mount));
    }
    if !spec.options.is_empty() {
        text += &format!(" ({})", spec.options);
    }
    if info.server.is_none() {
        text += "  its server is gone: every I/O fails; `lab down` takes it down";
    }
    text
}

/// A drive for a program.
pub(super) fn drive(info: &Info) -> Value {
    let spec = &info.spec;
    json!({
        "name": spec.name,
        "profile": spec.card().ok().map(|card| card.name().to_owned()),
        "set": card::changed(info),
        "slower": spec.slower,
        "size_bytes": spec.size_bytes,
        "store_limit_bytes": spec.store_limit_bytes,
        "device": info.device,
        "fs": spec.fs.map(|fs| fs.name()),
        "mounts": info.mounts,
        "server": info.server,
    })
}

pub(super) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

pub(super) fn profiles() -> String {
    let width = profiles::all().iter().map(|c| c.name().len()).max();
    let width = width.unwrap_or(0);
    let mut text: String = profiles::all()
        .iter()
        .map(|card| format!("{:width$}  {}\n", card.name(), card.about()))
        .collect();
    text += "\n`trimbench lab profiles show PROFILE` prints one, each figure with its source, to be \
             copied\nand changed. A part of the name will do where no other has it.\n";
    text
}
