//! Whose a result is: the run of the program, the machine, the places and the drives.
//!
//! A verdict, an inspection, a removal and a trim carry the same [`Origin`]. A record's is in its
//! head.

use serde::{Deserialize, Serialize};

use crate::{
    DeviceInfo, DeviceKind, DiscardSetting, Head, Host, Invocation, RunRecord, Transport, Written,
};

/// The JSON schema of an origin.
pub const JSON_SCHEMA: &str = include_str!("../schema/origin-1.json");

/// Whose a result is. A field that nobody knows is null.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Tells this run of trimbench from all others.
    pub id: Option<String>,
    /// When it began, as RFC 3339 has it (UTC).
    pub time: Option<String>,
    /// The version of trimbench.
    pub version: Option<String>,
    /// The command line, without the program's name.
    pub arguments: Option<Vec<String>>,
    /// The host's name, or its label.
    pub host: Option<String>,
    /// The machine's id, hashed.
    pub machine_id: Option<String>,
    /// The kernel release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// The file systems and raw devices, each once.
    pub targets: Vec<Target>,
    /// The drives below them, each once.
    pub drives: Vec<Drive>,
}

/// A file system or a raw device, from the path down to the drives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The directory or device that was named.
    pub path: Option<String>,
    /// The mount point; `None` on a raw device.
    pub mount: Option<String>,
    /// The device that is mounted or was named, e.g. `/dev/sda2`.
    pub device: Option<String>,
    /// The block devices below the path, from the top down.
    pub stack: Vec<Layer>,
    /// The names of the drives at the bottom of the stack.
    pub drives: Vec<String>,
    /// The file-system type, e.g. `ext4`; `None` on a raw device.
    pub file_system: Option<String>,
    /// The mount options, as the kernel prints them.
    pub options: Option<Vec<String>>,
    /// Whether deleting makes the file system send discards.
    pub discard: DiscardSetting,
    /// Size of the file system or device, in bytes.
    pub size_bytes: Option<u64>,
}

/// One block device of the stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Kernel name, e.g. `dm-0`.
    pub name: String,
    /// The kind of device.
    pub kind: DeviceKind,
    /// Steps below the path's own device, which has 0.
    pub level: u32,
    /// Names of the devices right below it.
    pub below: Vec<String>,
    /// Size, in bytes.
    pub size_bytes: Option<u64>,
}

/// One drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drive {
    /// Kernel name, e.g. `nvme0n1`. Older records have only its partition's name.
    pub name: String,
    /// Model; of a simulated drive its profile.
    pub model: Option<String>,
    /// Firmware version.
    pub firmware: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// How it is connected.
    pub transport: Option<Transport>,
    /// Size, in bytes.
    pub size_bytes: Option<u64>,
    /// Whether it is a hard disk.
    pub rotational: Option<bool>,
    /// `discard_max_bytes`: the largest discard that the kernel sends; 0 if it sends none.
    pub discard_max_bytes: Option<u64>,
    /// Bytes written over its life when the run began, where it counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<Written>,
    /// Bytes written in the run, by whomever. `None` also where its count lags behind the kernel's: it
    /// may be ten minutes old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
}

impl Origin {
    /// Returns the origin of a record. Imported logs and older records leave fields unknown.
    pub fn of(head: &Head) -> Origin {
        let begun = (head.started_unix_s > 0.0).then_some(head.started_unix_s);
        let mut origin = Origin::new(&head.version, begun, head.run.as_ref(), &head.host);
        origin.add(&head.target, &head.devices);
        origin
    }

    /// Returns the origin of a record that has ended, with the bytes that its drives wrote.
    pub fn of_run(record: &RunRecord) -> Origin {
        let mut origin = Origin::of(&record.head);
        let devices = record.head.devices.iter().enumerate();
        for (index, leaf) in devices.filter(|(_, device)| device.leaf) {
            let name = Drive::of(leaf).name;
            let mut drives = origin.drives.iter_mut();
            if let Some(drive) = drives.find(|one| one.name == name && one.written.is_none()) {
                drive.written = written(record, index);
            }
        }
        origin
    }

    /// Returns one without targets and drives. `begun` is in seconds since 1970.
    pub fn new(version: &str, begun: Option<f64>, run: Option<&Invocation>, host: &Host) -> Origin {
        Origin {
            id: run.map(|run| run.id.clone()),
            time: begun.map(crate::units::utc),
            version: known(version),
            arguments: run.map(|run| run.arguments.clone()),
            host: known(&host.name),
            machine_id: host.machine_id.clone(),
            kernel: known(&host.kernel),
            targets: Vec::new(),
            drives: Vec::new(),
        }
    }

    /// Adds a target with its drives, unless it is there already.
    pub fn add(&mut self, target: &crate::Target, devices: &[DeviceInfo]) {
        let drives = self.add_drives(devices);
        let target = Target::of(target, devices, drives);
        let is_same = |one: &Target| match &target.mount {
            Some(_) => one.mount == target.mount,
            None => one.path == target.path,
        };
        if !self.targets.iter().any(is_same) {
            self.targets.push(target);
        }
    }

    /// Adds the drives at the bottom, each once however many of its partitions are there, and returns
    /// their names.
    pub fn add_drives(&mut self, devices: &[DeviceInfo]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for drive in devices.iter().filter(|one| one.leaf).map(Drive::of) {
            if !names.contains(&drive.name) {
                names.push(drive.name.clone());
            }
            if self.drives.iter().all(|known| known.name != drive.name) {
                self.drives.push(drive);
            }
        }
        names
    }
}

impl Target {
    fn of(target: &crate::Target, devices: &[DeviceInfo], drives: Vec<String>) -> Target {
        let mounted = target.mount.is_some();
        let named = || known(&target.path).filter(|_| !devices.is_empty() && !mounted);
        Target {
            path: known(&target.path),
            mount: target.mount.clone(),
            device: target.source.clone().or_else(named),
            stack: devices.iter().map(Layer::of).collect(),
            drives,
            file_system: target.fs.clone(),
            options: mounted.then(|| target.options.clone()),
            discard: target.discard,
            size_bytes: above_zero(target.size_bytes),
        }
    }
}

impl Layer {
    fn of(device: &DeviceInfo) -> Layer {
        Layer {
            name: device.name.clone(),
            kind: device.kind,
            level: device.level,
            below: device.below.clone(),
            size_bytes: above_zero(device.size_bytes),
        }
    }
}

/// A drive that counts less than this share of what must have been written hasn't counted all. (It
/// doesn't count Write Zeroes, and the kernel does: then less is known than could be.)
const KEEPS_UP: f64 = 0.9;
/// A drive writes to flash later, and of its own accord: below this the ratio tells little.
const TELLS_BYTES: u64 = 1 << 30;

impl Drive {
    fn of(leaf: &DeviceInfo) -> Drive {
        let (name, size_bytes) = match &leaf.drive {
            Some(drive) => (&drive.name, above_zero(drive.size_bytes)),
            None if leaf.kind == DeviceKind::Partition => (&leaf.name, None),
            None => (&leaf.name, above_zero(leaf.size_bytes)),
        };
        let limits = leaf.discard;
        Drive {
            name: name.clone(),
            model: leaf.model.clone(),
            firmware: leaf.firmware.clone(),
            serial: leaf.serial.clone(),
            transport: leaf.transport,
            size_bytes,
            rotational: leaf.rotational,
            // An imported log has no limits at all.
            discard_max_bytes: (limits != Default::default()).then_some(limits.max_bytes),
            life: leaf.life,
            written: None,
        }
    }

    /// Bytes written to flash in the run for each byte of the host; `None` also if the host wrote less
    /// than 1 GiB.
    pub fn write_amplification(&self) -> Option<f64> {
        let tells = |written: &Written| written.host_written_bytes >= Some(TELLS_BYTES);
        self.written.filter(tells)?.amplification()
    }
}

/// The bytes that a device's drive counted in the run.
fn written(record: &RunRecord, index: usize) -> Option<Written> {
    let now = record.end.as_ref()?.lives.get(index).copied().flatten()?;
    let written = now.since(&record.head.devices[index].life?);
    let host = written.host_written_bytes?;
    let all = |counted: u64, bytes: u64| counted as f64 >= KEEPS_UP * bytes as f64;
    let by_kernel = record.intervals.devices[index].write_bytes.iter();
    let by_kernel = by_kernel.fold(0, |sum: u64, &bytes| sum.saturating_add(bytes));
    let flash = written.flash_written_bytes;
    all(host, by_kernel).then_some(Written {
        flash_written_bytes: flash.filter(|&flash| all(flash, host)),
        ..written
    })
}

fn known(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn above_zero(bytes: u64) -> Option<u64> {
    (bytes > 0).then_some(bytes)
}
