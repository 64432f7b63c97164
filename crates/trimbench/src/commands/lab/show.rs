//! Drives and profiles as text.

use ::lab::{Info, Stats};
use record::units::{bytes, count, names, seconds};
use serde_json::{Value, json};
use ssd::profiles;

use crate::{card, simulated};

pub(super) fn list(drives: &[(Option<Stats>, Info)], as_json: bool) -> String {
    if as_json {
        let with_faults = |(stats, info): &(Option<Stats>, Info)| {
            let mut value = drive(info);
            value["faults"] = json!(stats.as_ref().map(faults));
            value
        };
        return pretty(&drives.iter().map(with_faults).collect());
    }
    if drives.is_empty() {
        return "There are no drives. `trimbench lab up` makes one.\n".to_owned();
    }
    let mut text = String::new();
    for (stats, info) in drives {
        text += &line(info);
        for fault in stats.iter().flat_map(faults) {
            text += &format!("  [{fault}]");
        }
        if let Some(stats) = stats.as_ref().filter(|stats| stats.no_room > 0) {
            text += &format!("  [full: {} writes failed]", count(stats.no_room));
        }
        text += "\n";
    }
    text
}

/// Returns every fault of a drive that was set on purpose, and how often it struck.
pub(super) fn faults(stats: &Stats) -> Vec<String> {
    let set = stats.faults.iter().map(|fault| {
        let over = if fault.over { ", over" } else { "" };
        format!("{}: {} struck{over}", fault.fault, count(fault.struck))
    });
    let hang = stats
        .hangs_for_s
        .map(|left| format!("hang: {} left", seconds(left)));
    let power = (!stats.power).then(|| "power off".to_owned());
    set.chain(hang).chain(power).collect()
}

/// A drive in a line.
pub(super) fn line(info: &Info) -> String {
    let device = match &info.device {
        Some(device) => names::shown(device),
        None => "no device".to_owned(),
    };
    let spec = &info.spec;
    let (size, profile) = (bytes(spec.size_bytes), simulated::profile(info));
    let mut text = format!("{}  {device}  {size}  {profile}", spec.name);
    let changed = card::changed(info);
    if !changed.is_empty() {
        text += &format!(", set by hand: {}", changed.join(", "));
    }
    let limit = spec.store_limit_bytes;
    if let Some(most) = limit.filter(|most| *most < spec.size_bytes) {
        text += &format!("  keeps {} at most", bytes(most));
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
        "set": card::by_hand(info).into_iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "slower": spec.slower,
        "size_bytes": spec.size_bytes,
        "store_limit_bytes": spec.store_limit_bytes,
        "device": info.device,
        "fs": spec.fs.map(|fs| fs.name()),
        "mounts": info.mounts,
        "server": info.server,
        "near": info.trip,
    })
}

pub(super) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// A profile's file, with the figures that it leaves to their defaults as comments.
pub(super) fn profile(card: &ssd::Card) -> String {
    let left_out = ssd::card::KEYS
        .iter()
        .filter(|key| card.note(key.name).is_none());
    let lines = left_out.map(|key| {
        let default = key.default.map(|default| format!(" = {default}"));
        format!(
            "# {}{}: {}\n",
            key.name,
            default.unwrap_or_default(),
            key.about
        )
    });
    let text = card.to_string();
    match lines.collect::<String>() {
        lines if lines.is_empty() => text,
        lines => format!("{text}\n# Not given, so these are the defaults:\n{lines}"),
    }
}

pub(super) fn profiles() -> String {
    let all = profiles::all();
    let width = all.iter().map(|card| card.name().len()).max().unwrap_or(0);
    let line = |card: &ssd::Card| format!("{:width$}  {}\n", card.name(), card.about());
    all.iter().map(line).collect::<String>()
        + "\n`trimbench lab profiles show PROFILE` prints one, each figure with its source, to be \
           copied\nand changed. A part of the name will do where no other has it.\n"
}
