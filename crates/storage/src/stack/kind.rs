//! The kind of a layer, from its directory in `/sys` and its table.

use linux::SysRoot;
use linux::dm::{Tables, Target};
use serde::Serialize;

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
