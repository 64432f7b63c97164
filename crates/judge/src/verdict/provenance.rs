//! Which run a verdict is of, and what the run was made on.

use serde::{Deserialize, Serialize};

use record::{DeviceInfo, DeviceKind, DiscardSetting, Head, RunRecord, Written};

/// The run that a verdict is of. Imported logs and older records leave fields unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Tells this run from all others.
    pub id: Option<String>,
    /// When it began, as RFC 3339 has it (UTC).
    pub time: Option<String>,
    /// The version of trimbench that made the record.
    pub version: Option<String>,
    /// The command line, without the program's name.
    pub arguments: Option<Vec<String>>,
}

/// The target of a run, from the path down to the drives.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The directory or device that was named.
    pub path: Option<String>,
    /// The mount point; `None` on a raw device.
    pub mount: Option<String>,
    /// The device that is mounted or was named, e.g. `/dev/sda2`.
    pub device: Option<String>,
    /// The block devices below the path, from the top down.
    pub stack: Vec<Layer>,
    /// The drives at the bottom of the stack.
    pub drives: Vec<Drive>,
    /// The file-system type, e.g. `ext4`; `None` on a raw device.
    pub file_system: Option<String>,
    /// The mount options, as the kernel prints them.
    pub options: Option<Vec<String>>,
    /// Whether deleting makes the file system send discards.
    pub discard: DiscardSetting,
    /// Size of the file system or device, in bytes.
    pub size_bytes: Option<u64>,
    /// The kernel release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// The host's name.
    pub host: Option<String>,
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drive {
    /// Kernel name, e.g. `nvme0n1`. Older records have only its partition's name.
    pub name: String,
    /// Model; of a simulated drive its profile.
    pub model: Option<String>,
    /// Firmware version.
    pub firmware: Option<String>,
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
    /// Bytes written to flash in the run for each byte of the host; `None` also if the host wrote less
    /// than 1 GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_amplification: Option<f64>,
}

impl Run {
    /// Returns the run that a record is of.
    pub fn of(head: &Head) -> Run {
        let run = head.run.as_ref();
        Run {
            id: run.map(|run| run.id.clone()),
            time: (head.started_unix_s > 0.0).then(|| record::units::utc(head.started_unix_s)),
            version: known(&head.version),
            arguments: run.map(|run| run.arguments.clone()),
        }
    }
}

impl Target {
    /// Returns the target of a record's run.
    pub fn of(record: &RunRecord) -> Target {
        let head = &record.head;
        let target = &head.target;
        let mounted = target.mount.is_some();
        let named = || known(&target.path).filter(|_| !head.devices.is_empty() && !mounted);
        Target {
            path: known(&target.path),
            mount: target.mount.clone(),
            device: target.source.clone().or_else(named),
            stack: head.devices.iter().map(Layer::of).collect(),
            drives: drives(record),
            file_system: target.fs.clone(),
            options: mounted.then(|| target.options.clone()),
            discard: target.discard,
            size_bytes: above_zero(target.size_bytes),
            kernel: known(&head.host.kernel),
            host: known(&head.host.name),
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
    fn of(leaf: &DeviceInfo, written: Option<Written>) -> Drive {
        let (name, size_bytes) = match &leaf.drive {
            Some(drive) => (&drive.name, above_zero(drive.size_bytes)),
            None if leaf.kind == DeviceKind::Partition => (&leaf.name, None),
            None => (&leaf.name, above_zero(leaf.size_bytes)),
        };
        let limits = leaf.discard;
        let tells = |written: &Written| written.host_written_bytes >= Some(TELLS_BYTES);
        Drive {
            name: name.clone(),
            model: leaf.model.clone(),
            firmware: leaf.firmware.clone(),
            size_bytes,
            rotational: leaf.rotational,
            // An imported log has no limits at all.
            discard_max_bytes: (limits != Default::default()).then_some(limits.max_bytes),
            life: leaf.life,
            written,
            write_amplification: written.filter(tells).and_then(|all| all.amplification()),
        }
    }
}

/// The drives at the bottom, each once however many of its partitions are there.
fn drives(record: &RunRecord) -> Vec<Drive> {
    let mut drives: Vec<Drive> = Vec::new();
    let devices = record.head.devices.iter().enumerate();
    for (index, leaf) in devices.filter(|(_, device)| device.leaf) {
        let drive = Drive::of(leaf, written(record, index));
        if drives.iter().all(|known| known.name != drive.name) {
            drives.push(drive);
        }
    }
    drives
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
