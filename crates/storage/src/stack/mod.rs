//! The storage stack under a mount or a device, layer by layer, and what each layer does to
//! discards on their way to the drives.

mod effect;
mod pending;

use std::path::Path;

use linux::SysRoot;
use linux::dm::Tables;
use record::{DeviceInfo, DeviceKind, DiscardLimits, DiscardSetting, Transport};
use serde::Serialize;

pub use effect::{Effect, LayerKind, PARITY_PARAMETER};
pub use pending::Pending;

use crate::{Description, FileSystem, Warning};

/// The stack under a mount or a raw device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stack {
    /// The path that was asked about.
    pub path: String,
    /// The mounted file system; `None` of a raw device.
    pub file_system: Option<Mounted>,
    /// The layers, each once, those above before those below.
    pub layers: Vec<Layer>,
    /// Whether a discard from the top gets to a drive that takes it. It says nothing about
    /// whether the file system sends any.
    pub open: bool,
    /// The layer to mend where discards stop: the lowest that takes none. `None` if they get through.
    pub stops_at: Option<String>,
    /// Facts that could not be found out. JSON has them as sentences.
    #[serde(rename = "notes")]
    pub warnings: Vec<Warning>,
}

/// The file system on top of a stack.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mounted {
    /// Where it is mounted.
    pub mount_point: String,
    /// The mounted device or name.
    pub source: String,
    /// Its type, as `/proc/self/mountinfo` has it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its options.
    pub options: Vec<String>,
    /// Whether the mount's options have it send discards, whatever is below.
    pub sends: DiscardSetting,
    /// When it sends them, in words.
    pub when: &'static str,
    /// Whether it has a journal; only ext4 can be without.
    #[serde(skip)]
    pub journal: bool,
    /// Whether it is a btrfs that accounts full quotas.
    #[serde(skip)]
    pub quotas: bool,
    /// Deleted subvolumes that btrfs' cleaner has not freed yet; 0 where this user may not look.
    #[serde(skip)]
    pub deleted_subvolumes: usize,
    /// Whether it is mounted read-only.
    pub read_only: bool,
    /// Discards that it has not sent yet, where it reports that.
    pub pending: Option<Pending>,
}

impl Mounted {
    /// The file system's rules.
    pub fn rules(&self) -> FileSystem {
        FileSystem::of(&self.kind)
    }

    /// Whether it sends discards when space is freed, at once or later.
    pub fn is_online(&self) -> bool {
        matches!(self.sends, DiscardSetting::On | DiscardSetting::Async)
    }
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Layer {
    /// Its kernel name, e.g. `dm-3`.
    pub name: String,
    /// The name that users know it by: that of the device mapper or the backing file.
    pub label: Option<String>,
    /// Its kind.
    pub kind: LayerKind,
    /// The layers right below it.
    pub below: Vec<String>,
    /// Steps from the top, which has 0.
    pub level: u32,
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// The model of a drive.
    pub model: Option<String>,
    /// Its discard limits.
    pub limits: DiscardLimits,
    /// Its effect on discards.
    pub effect: Effect,
    /// How it changes them, or why they stop; empty where they pass as they are.
    pub why: String,
}

impl Layer {
    /// Whether it takes discards now.
    pub fn takes(&self) -> bool {
        self.limits.max_bytes > 0
    }

    /// Whether it keeps a map of what it holds, or a copy, and answers reads of what was discarded
    /// without the layers below.
    pub fn answers_itself(&self) -> bool {
        use LayerKind::{Bcache, Cache, Loop, Thin, Vdo};
        !self.below.is_empty() && matches!(self.kind, Loop | Thin | Vdo | Cache | Bcache)
    }
}

impl Stack {
    /// The stack of what was described.
    pub fn of(sys: &SysRoot, found: &Description, tables: &Tables) -> Stack {
        let mut layers: Vec<Layer> = Vec::new();
        for device in &found.devices {
            for layer in split(sys, device, tables) {
                if layers.iter().all(|one| one.name != layer.name) {
                    layers.push(layer);
                }
            }
        }
        effect::complete(sys, &mut layers, tables);
        let stops_at = effect::stop_at(&layers);
        Stack {
            path: found.target.path.clone(),
            file_system: found
                .mount
                .as_ref()
                .map(|mount| mounted(sys, mount, found.target.discard, &layers)),
            open: stops_at.is_none() && layers.iter().any(Layer::takes),
            stops_at,
            layers,
            warnings: Vec::new(),
        }
    }

    /// The stack of a path under which nothing is known.
    pub fn unknown(path: &Path) -> Stack {
        Stack {
            path: path.to_string_lossy().into_owned(),
            file_system: None,
            layers: Vec::new(),
            open: false,
            stops_at: None,
            warnings: Vec::new(),
        }
    }

    /// The layer of this name.
    pub fn layer(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.name == name)
    }

    /// The layers that nothing is below.
    pub fn drives(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| layer.below.is_empty())
    }

    /// Whether files that are deleted there now are discarded.
    pub fn trims_online(&self) -> bool {
        self.open && self.file_system.as_ref().is_some_and(Mounted::is_online)
    }

    /// The mount point, or the path of a raw device.
    pub fn subject(&self) -> &str {
        self.file_system
            .as_ref()
            .map_or(&self.path, |fs| &fs.mount_point)
    }
}

fn mounted(
    sys: &SysRoot,
    mount: &linux::mounts::Mount,
    written: DiscardSetting,
    layers: &[Layer],
) -> Mounted {
    let rules = FileSystem::mounted(mount);
    let sends = match (rules.discard_setting(mount), written) {
        // Files written to an overlay are on the file system below.
        (
            DiscardSetting::Unknown,
            DiscardSetting::On | DiscardSetting::Async | DiscardSetting::Off,
        ) => written,
        (own, _) => own,
    };
    let top = layers.iter().find(|layer| layer.level == 0);
    let journal = top.is_none_or(|top| FileSystem::has_journal(sys, &top.name));
    Mounted {
        mount_point: mount.mount_point.to_string_lossy().into_owned(),
        source: mount.source.clone(),
        kind: mount.fs.clone(),
        options: mount.options(),
        sends,
        when: rules.when(sends, journal),
        journal,
        quotas: rules == FileSystem::Btrfs && top.is_some_and(|top| quotas(sys, &top.name)),
        deleted_subvolumes: match rules == FileSystem::Btrfs && sys.is_host() {
            true => deleted_subvolumes(&mount.mount_point),
            false => 0,
        },
        read_only: mount.read_only(),
        pending: top.and_then(|top| Pending::of(sys, rules, &top.name)),
    }
}

fn deleted_subvolumes(at: &Path) -> usize {
    let pending = std::fs::File::open(at).and_then(linux::subvolume::pending);
    pending.map_or(0, |all| all.len())
}

/// Returns whether the btrfs on a device accounts quotas by extent (`qgroups/mode`, Linux 6.7; simple quotas
/// cost little).
pub fn quotas(sys: &SysRoot, device: &str) -> bool {
    let Some(uuid) = crate::devices::btrfs_uuid(sys, device) else {
        return false;
    };
    let line = |file: &str| sys.line(format!("/sys/fs/btrfs/{uuid}/qgroups/{file}"));
    line("enabled").as_deref() == Some("1") && line("mode").as_deref() != Some("squota")
}

/// A device as layers: a partition is one above its drive.
fn split(sys: &SysRoot, device: &DeviceInfo, tables: &Tables) -> Vec<Layer> {
    let layer = |name: &str, below: &[String], level: u32, size_bytes: u64| Layer {
        name: name.to_owned(),
        label: label(sys, name),
        kind: match device.transport {
            Some(Transport::Simulated) if below.is_empty() => LayerKind::Simulated,
            _ => LayerKind::of(sys, name, below, tables),
        },
        below: below.to_vec(),
        level,
        size_bytes,
        model: None,
        limits: device.discard,
        effect: Effect::Passes,
        why: String::new(),
    };
    let level = device.level * 2;
    let Some(drive) = &device.drive else {
        let mut only = layer(&device.name, &device.below, level, device.size_bytes);
        only.model.clone_from(&device.model);
        return vec![only];
    };
    let own = layer(
        &device.name,
        std::slice::from_ref(&drive.name),
        level,
        device.size_bytes,
    );
    let mut whole = layer(&drive.name, &device.below, level + 1, drive.size_bytes);
    whole.model.clone_from(&device.model);
    debug_assert_eq!(device.kind, DeviceKind::Partition);
    vec![own, whole]
}

fn label(sys: &SysRoot, name: &str) -> Option<String> {
    sys.attribute(name, "dm/name")
        .or_else(|| sys.attribute(name, "loop/backing_file"))
}

#[cfg(test)]
mod tests;
