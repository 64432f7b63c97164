//! The effect of each layer on discards: it passes, reshapes or stops them.

use linux::SysRoot;
use linux::dm::{Tables, Target};
use linux::mounts::Mount;
use record::DiscardSetting;
use serde::Serialize;

use super::Layer;
use crate::FileSystem;

/// The effect of a layer on discards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// They pass as they come.
    Passes,
    /// They pass in another form: smaller, fewer, or as something else.
    Reshapes,
    /// They go no further.
    Stops,
    /// The layer's limit can't be read.
    Unknown,
}

/// Adds to each layer what it does, and how or why.
pub(super) fn complete(sys: &SysRoot, layers: &mut [Layer], tables: &Tables) {
    for index in 0..layers.len() {
        let (effect, why) = of(sys, &layers[index], layers, tables);
        layers[index].effect = effect;
        layers[index].why = why;
    }
}

/// The layer at which every way down ends, if every one does: on the first way the lowest that stops
/// discards by itself.
pub(super) fn stop_at(layers: &[Layer]) -> Option<String> {
    let mut ways: Vec<&Layer> = layers.iter().filter(|layer| layer.level == 0).collect();
    let mut stopped = None;
    let mut seen = Vec::new();
    while let Some(layer) = ways.pop() {
        if seen.contains(&layer.name.as_str()) {
            continue;
        }
        seen.push(&layer.name);
        if layer.effect == Effect::Stops {
            stopped.get_or_insert_with(|| lowest(layers, layer).name.clone());
        } else if layer.below.is_empty() {
            return None;
        }
        if layer.effect != Effect::Stops {
            ways.extend(layers.iter().filter(|one| layer.below.contains(&one.name)));
        }
    }
    stopped
}

/// The layer to mend where one stops discards: a layer that could take them, or the lowest below it
/// that takes none.
fn lowest<'a>(layers: &'a [Layer], from: &'a Layer) -> &'a Layer {
    let mut lowest = from;
    // A layer comes before those below it, so this ends.
    for _ in layers {
        let own = lowest.takes() || lowest.limits.max_hw_bytes > 0;
        let mut below = layers.iter().filter(|one| lowest.below.contains(&one.name));
        let Some(first) = below.next().filter(|_| !own) else {
            break;
        };
        let stops = |one: &Layer| one.effect == Effect::Stops && !one.takes();
        if !stops(first) || !below.all(stops) {
            break;
        }
        lowest = first;
    }
    lowest
}

fn of(sys: &SysRoot, layer: &Layer, all: &[Layer], tables: &Tables) -> (Effect, String) {
    let below: Vec<&Layer> = all
        .iter()
        .filter(|one| layer.below.contains(&one.name))
        .collect();
    let table = table(sys, &layer.name, tables);
    let has = |word: &str| {
        table
            .iter()
            .any(|target| target.parameters.iter().any(|p| p == word))
    };
    if layer.kind == LayerKind::ThinPool
        && below.iter().any(|one| one.takes())
        && (has("no_discard_passdown") || only_frees(layer, all))
    {
        return (
            Effect::Stops,
            "frees blocks of the pool and passes nothing on (no_discard_passdown)".to_owned(),
        );
    }
    if !layer.takes() && !is_known(sys, &layer.name) {
        return (
            Effect::Unknown,
            "discard_max_bytes can't be read".to_owned(),
        );
    }
    if !layer.takes() {
        return (
            Effect::Stops,
            stop(sys, layer, &below, has("ignore_discard")),
        );
    }
    let reshapes = |how: String| (Effect::Reshapes, how);
    match &layer.kind {
        LayerKind::Loop => through_file(sys, layer),
        LayerKind::Thin => reshapes(format!(
            "frees whole blocks of the pool of {}; smaller pieces are dropped",
            record::units::bytes(layer.limits.granularity_bytes)
        )),
        LayerKind::Vdo => reshapes("turns each 4 KiB into work of its own".to_owned()),
        LayerKind::Md(level) if below.len() > 1 && level != "raid1" => {
            reshapes(format!("splits them over {} members", below.len()))
        }
        _ => limited(layer, &below),
    }
}

/// Whether the limit of a device, or of the drive that a partition is on, can be read.
fn is_known(sys: &SysRoot, name: &str) -> bool {
    let own = std::fs::canonicalize(sys.class(name)).unwrap_or_else(|_| sys.class(name));
    let whole = match own.join("partition").exists() {
        true => own.join(".."),
        false => own,
    };
    linux::sysroot::number::<u64>(&whole.join("queue/discard_max_bytes")).is_some()
}

/// Whether a pool's volumes take discards and the pool has no limit: Linux gives it none without
/// passdown (`pool_ctr` in drivers/md/dm-thin.c, Linux 6.1). So it is known without the table.
fn only_frees(pool: &Layer, all: &[Layer]) -> bool {
    let takes = |one: &Layer| one.kind == LayerKind::Thin && one.takes();
    !pool.takes()
        && all
            .iter()
            .any(|one| takes(one) && one.below.contains(&pool.name))
}

/// A layer whose limits are tighter than those below it.
fn limited(layer: &Layer, below: &[&Layer]) -> (Effect, String) {
    let mut how = Vec::new();
    let least = below
        .iter()
        .map(|one| one.limits.max_bytes)
        .filter(|&max| max > 0)
        .min();
    if least.is_some_and(|least| layer.limits.max_bytes < least) {
        how.push(format!(
            "cuts them at {}",
            record::units::bytes(layer.limits.max_bytes)
        ));
    }
    let finest = below.iter().map(|one| one.limits.granularity_bytes).max();
    if finest.is_some_and(|finest| finest > 0 && layer.limits.granularity_bytes > finest) {
        let granularity = record::units::bytes(layer.limits.granularity_bytes);
        how.push(format!("drops pieces below {granularity}"));
    }
    match how.is_empty() {
        true => (Effect::Passes, String::new()),
        false => (Effect::Reshapes, how.join(", ")),
    }
}

/// A loop device turns discards into holes of its file.
fn through_file(sys: &SysRoot, layer: &Layer) -> (Effect, String) {
    let file = layer.label.clone().unwrap_or_default();
    let mount = Mount::of_in(sys, &file).ok();
    let shown = record::units::names::shown(&file);
    let off = mount
        .filter(|mount| FileSystem::mounted(mount).discard_setting(mount) == DiscardSetting::Off);
    match off {
        Some(mount) => (
            Effect::Stops,
            format!(
                "makes holes in its file; {} is mounted without discard and passes none on",
                record::units::names::shown(&mount.mount_point)
            ),
        ),
        None => (Effect::Reshapes, format!("makes holes in {shown}")),
    }
}

/// Why a layer takes no discards.
fn stop(sys: &SysRoot, layer: &Layer, below: &[&Layer], ignored: bool) -> String {
    let hardware = layer.limits.max_hw_bytes;
    if hardware > 0 {
        return format!(
            "switched off: discard_max_bytes is 0, the device takes {}",
            record::units::bytes(hardware)
        );
    }
    if !below.is_empty() && below.iter().all(|one| !one.takes()) {
        return "nothing below takes discards".to_owned();
    }
    match &layer.kind {
        LayerKind::Crypt => "dm-crypt passes none on without allow_discards".to_owned(),
        kind if kind.has_parity() => match sys.line(PARITY_PARAMETER) {
            Some(value) => format!("devices_handle_discard_safely is {value}"),
            None => "md passes none on without devices_handle_discard_safely".to_owned(),
        },
        LayerKind::Thin | LayerKind::ThinPool if ignored => {
            "the pool ignores discards (ignore_discard)".to_owned()
        }
        _ if below.is_empty() => "takes no discards (discard_max_bytes is 0)".to_owned(),
        _ => "passes none on (discard_max_bytes is 0)".to_owned(),
    }
}

/// The file of the parameter that has RAID 4, 5 and 6 of md pass discards on.
pub const PARITY_PARAMETER: &str = "/sys/module/raid456/parameters/devices_handle_discard_safely";

// The kind of a layer, from its directory in `/sys` and its table.

/// The kind of a layer, as far as it treats discards in its own way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// A partition.
    Partition,
    /// A loop device over a file.
    Loop,
    /// A drive of `trimbench lab`.
    Simulated,
    /// dm-crypt, with LUKS or without.
    Crypt,
    /// LVM or dm linear or striped: passes bytes on.
    Linear,
    /// A thin volume.
    Thin,
    /// The pool of thin volumes.
    ThinPool,
    /// dm-cache.
    Cache,
    /// VDO.
    Vdo,
    /// Several paths to one drive.
    Multipath,
    /// A mirror or RAID of LVM.
    DmRaid,
    /// Any other target of the device mapper.
    OtherDm,
    /// Software RAID, with its level.
    Md(String),
    /// bcache.
    Bcache,
    /// A drive.
    Drive,
}

impl LayerKind {
    /// The kind of a device by its kernel name. `below`: the devices under it.
    pub(super) fn of(sys: &SysRoot, name: &str, below: &[String], tables: &Tables) -> LayerKind {
        let own = sys.class(name);
        if own.join("partition").exists() {
            return LayerKind::Partition;
        }
        if own.join("md").is_dir() {
            return LayerKind::Md(sys.attribute(name, "md/level").unwrap_or_default());
        }
        if own.join("dm").is_dir() {
            return dm(sys, name, below, tables);
        }
        // The drives below it have such a directory, too.
        if name.starts_with("bcache") && own.join("bcache").is_dir() {
            return LayerKind::Bcache;
        }
        if own.join("loop").is_dir() {
            return LayerKind::Loop;
        }
        LayerKind::Drive
    }

    /// The words for it in a picture.
    pub fn words(&self) -> String {
        match self {
            LayerKind::Partition => "partition",
            LayerKind::Loop => "loop device",
            LayerKind::Simulated => "simulated drive",
            LayerKind::Crypt => "dm-crypt",
            LayerKind::Linear => "LVM volume",
            LayerKind::Thin => "thin volume",
            LayerKind::ThinPool => "thin pool",
            LayerKind::Cache => "dm-cache",
            LayerKind::Vdo => "VDO",
            LayerKind::Multipath => "multipath",
            LayerKind::DmRaid => "LVM RAID",
            LayerKind::OtherDm => "device-mapper device",
            LayerKind::Md(level) if level.is_empty() => "md array",
            LayerKind::Md(level) => return format!("md {level}"),
            LayerKind::Bcache => "bcache",
            LayerKind::Drive => "drive",
        }
        .to_owned()
    }

    /// Whether it is a RAID 4, 5 or 6 of md, whose discards raw reads of a stripe must survive.
    pub fn has_parity(&self) -> bool {
        matches!(self, LayerKind::Md(level) if matches!(level.as_str(), "raid4" | "raid5" | "raid6"))
    }
}

fn dm(sys: &SysRoot, name: &str, below: &[String], tables: &Tables) -> LayerKind {
    let uuid = sys.attribute(name, "dm/uuid").unwrap_or_default();
    if uuid.starts_with("CRYPT-") && !uuid.starts_with("CRYPT-VERITY") {
        return LayerKind::Crypt;
    }
    let table = table(sys, name, tables);
    if let Some(target) = table.first() {
        return match target.kind.as_str() {
            "crypt" => LayerKind::Crypt,
            "linear" | "striped" => linear(sys, below),
            "thin" => LayerKind::Thin,
            "thin-pool" => LayerKind::ThinPool,
            "cache" => LayerKind::Cache,
            "vdo" => LayerKind::Vdo,
            "multipath" => LayerKind::Multipath,
            "raid" | "mirror" => LayerKind::DmRaid,
            _ => LayerKind::OtherDm,
        };
    }
    // Without root only names and identifiers are there (lvm2, lib/activate/dev_manager.c).
    let is = |name: &str, suffix: &str| {
        sys.attribute(name, "dm/uuid")
            .is_some_and(|uuid| uuid.ends_with(suffix))
    };
    let label_has = |name: &String, part: &str| {
        sys.attribute(name, "dm/name")
            .is_some_and(|label| label.contains(part))
    };
    match () {
        () if uuid.starts_with("mpath-") => LayerKind::Multipath,
        () if uuid.ends_with("-tpool") => LayerKind::ThinPool,
        () if uuid.starts_with("VDO-") || uuid.ends_with("-vpool") => LayerKind::Vdo,
        () if below.iter().any(|one| is(one, "-tpool")) => LayerKind::Thin,
        () if below.iter().any(|one| is(one, "-cdata")) => LayerKind::Cache,
        () if below.iter().any(|one| label_has(one, "_rimage_")) => LayerKind::DmRaid,
        () if uuid.starts_with("LVM-") => LayerKind::Linear,
        () => LayerKind::OtherDm,
    }
}

/// The `-pool` device that LVM shows for a pool is linear over the pool itself.
fn linear(sys: &SysRoot, below: &[String]) -> LayerKind {
    let image = |name: &String| {
        sys.attribute(name, "dm/name")
            .is_some_and(|label| label.contains("_rimage_"))
    };
    match below.iter().any(image) {
        true => LayerKind::DmRaid,
        false => LayerKind::Linear,
    }
}

/// A device's table; empty where it isn't known.
pub(super) fn table<'a>(sys: &SysRoot, name: &str, tables: &'a Tables) -> &'a [Target] {
    let label = sys.attribute(name, "dm/name").unwrap_or_default();
    tables.get(&label).map_or(&[], Vec::as_slice)
}
