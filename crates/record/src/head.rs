//! The first line of a record: host, target and scenario.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Written;

/// The schema named in every record's head.
pub const RUN_SCHEMA: &str = "trimbench.run/1";

/// The run's host, target and set-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Always [`RUN_SCHEMA`].
    pub schema: String,
    /// Version of the program that made the record.
    pub version: String,
    /// Wall-clock time of the record's zero, in seconds since 1970 (UTC).
    pub started_unix_s: f64,
    /// How the run was asked for; `None` of imported logs and of older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Invocation>,
    /// The machine.
    pub host: Host,
    /// The file system or device that was tested.
    pub target: Target,
    /// The scenario in full, as the client understood it.
    pub scenario: serde_json::Value,
    /// Nominal length of an interval, in milliseconds.
    pub interval_ms: f64,
    /// Foreground actors; the columns of every interval are in this order.
    pub actors: Vec<ActorInfo>,
    /// Block devices; the columns of every interval are in this order.
    pub devices: Vec<DeviceInfo>,
}

/// How a run was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    /// Tells this run from all others.
    pub id: String,
    /// The command line, without the program's name.
    pub arguments: Vec<String>,
    /// Its `--fail-on` conditions, as crate `judge` parses them.
    #[serde(default)]
    pub fail_on: Vec<String>,
}

/// Where a scenario tells over how many intervals each of the devices' figures is spread.
const SPREAD: &str = "devices_spread_over_intervals";

impl Head {
    /// Over how many intervals each of the devices' figures is spread evenly: more than 1
    /// where an outside program looked at the devices less often than at the actors.
    pub fn devices_spread_over(&self) -> usize {
        let known = self.scenario.get(SPREAD).and_then(|n| n.as_u64());
        usize::try_from(known.unwrap_or(1)).map_or(1, |n| n.max(1))
    }

    /// Notes that each of the devices' figures is spread evenly over so many intervals.
    pub fn spread_devices_over(&mut self, intervals: u32) {
        self.scenario[SPREAD] = intervals.into();
    }
}

/// The machine a run was made on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Host name, or the label that stands for it.
    pub name: String,
    /// The machine's id, hashed; `None` where it is unknown or kept out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Processors online.
    pub cpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

/// The place that a run was made on: a mounted file system or a raw device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The directory or device that was named.
    pub path: String,
    /// Mount point; `None` on a raw device.
    pub mount: Option<String>,
    /// The mount's source, e.g. `/dev/sda2`.
    pub source: Option<String>,
    /// File-system type, e.g. `ext4`.
    pub fs: Option<String>,
    /// Mount options, as the kernel prints them.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether deleting makes the file system send discards.
    pub discard: DiscardSetting,
    /// Size of the file system or device, in bytes.
    pub size_bytes: u64,
    /// Space available before the run, in bytes; `None` on a raw device.
    pub available_bytes: Option<u64>,
    /// The most that the file system discards for what is freed; `None` where that isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discards_at_most: Option<DiscardsAtMost>,
}

/// The most that a file system discards for what is freed: free space beside it, or some of
/// it twice. Discards beyond that are of other processes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DiscardsAtMost {
    /// Bytes for each byte freed.
    pub per_byte: f64,
    /// Bytes beside that.
    pub more_bytes: u64,
}

impl DiscardsAtMost {
    /// Bytes that may be discarded for so many that are freed.
    pub fn of(self, freed_bytes: u64) -> f64 {
        self.per_byte * freed_bytes as f64 + self.more_bytes as f64
    }
}

/// Whether discards will be sent, as far as it is known before a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiscardSetting {
    /// Discards are sent when space is freed.
    On,
    /// Discards are sent later, in the background (btrfs `discard=async`, f2fs).
    Async,
    /// The mount sends none.
    Off,
    /// The mount would, but no device below takes them.
    Unsupported,
    /// Nothing here shows it.
    #[default]
    Unknown,
}

/// One source of foreground load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActorInfo {
    /// Its name, unique in the record, e.g. `reader` or `canary`.
    pub name: String,
    /// The name of each operation, e.g. `read`, `write`, `nop`.
    pub op: String,
    /// Closed or open loop: the word `loop`, with its figures beside it.
    #[serde(flatten)]
    pub loop_kind: LoopKind,
    /// Bytes per operation; 0 where it doesn't apply.
    pub block_bytes: u64,
    /// `random` or `sequential`; `None` where it doesn't apply.
    pub pattern: Option<String>,
    /// Whether it goes past the page cache; `None` where an imported log doesn't tell.
    #[serde(default)]
    pub direct: Option<bool>,
    /// The engine that ran it, e.g. `io_uring`, after any fall-back.
    pub engine: String,
}

/// When an operation is issued, and so what its latency is counted from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "loop", rename_all = "snake_case")]
pub enum LoopKind {
    /// As soon as another finishes; latency counts from submission.
    Closed {
        /// Operations kept in flight.
        depth: u32,
    },
    /// At times set beforehand; latency counts from the intended start.
    Open {
        /// Intended operations per second.
        rate_per_s: f64,
        /// Whether the times are random (Poisson) rather than evenly spaced.
        poisson: bool,
        /// Most operations in flight; those due beyond it wait, and their wait counts.
        depth: u32,
    },
}

impl LoopKind {
    /// An open loop with evenly spaced operations, one in flight at most.
    pub const fn evenly(rate_per_s: f64) -> LoopKind {
        LoopKind::Open {
            rate_per_s,
            poisson: false,
            depth: 1,
        }
    }

    /// Whether latency counts from an intended start.
    pub fn is_open(&self) -> bool {
        matches!(self, LoopKind::Open { .. })
    }

    /// Most operations in flight at once.
    pub fn depth(&self) -> u32 {
        match *self {
            LoopKind::Closed { depth } | LoopKind::Open { depth, .. } => depth,
        }
    }
}

/// One block device of the target's tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Kernel name, e.g. `nvme0n1p2`.
    pub name: String,
    /// Whether it is a disk, a partition or a layer above disks.
    pub kind: DeviceKind,
    /// Steps below the target's own device, which has 0.
    pub level: u32,
    /// Names of the devices right below it in the tree.
    pub below: Vec<String>,
    /// Whether nothing is below it. Verdicts count discards at the leaves.
    pub leaf: bool,
    /// Drive model, where the kernel tells it.
    pub model: Option<String>,
    /// Version of the drive's firmware, where the kernel tells it: two that differ
    /// in it can take TRIM differently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// The drive's serial number, where the kernel shows it and it is not kept out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// How the drive is connected; `None` of md and dm, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    /// Size, in bytes.
    pub size_bytes: u64,
    /// Whether it turns; `None` where the kernel doesn't tell.
    pub rotational: Option<bool>,
    /// I/O scheduler in use; `None` for devices without one.
    pub scheduler: Option<String>,
    /// Its discard limits.
    pub discard: DiscardLimits,
    /// Of a simulated drive whose time is stretched: how much. See
    /// [`as_drive`](crate::as_drive()).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower: Option<Slower>,
    /// Of a simulated drive: the figures of its card that were set by hand, e.g. `discard.phi`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub card: BTreeMap<String, String>,
    /// The drive that a partition is on; `None` of all else and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<WholeDrive>,
    /// How its discards are counted.
    #[serde(default, skip_serializing_if = "Counting::is_plain")]
    pub counting: Counting,
    /// Bytes written over its drive's life when the run began, where the drive counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<Written>,
}

impl DeviceInfo {
    /// A disk of which no more is known than its name.
    pub fn disk(name: impl Into<String>) -> DeviceInfo {
        DeviceInfo {
            name: name.into(),
            kind: DeviceKind::Disk,
            level: 0,
            below: Vec::new(),
            leaf: true,
            model: None,
            firmware: None,
            serial: None,
            transport: None,
            size_bytes: 0,
            rotational: None,
            scheduler: None,
            discard: DiscardLimits::default(),
            slower: None,
            card: BTreeMap::new(),
            counting: Counting::default(),
            drive: None,
            life: None,
        }
    }

    /// Kernel name of the device whose statistics tell what this one did.
    pub fn statistics(&self) -> &str {
        self.counting.statistics_of.as_deref().unwrap_or(&self.name)
    }
}

/// How the discards of a device are counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counting {
    /// Kernel name of the device whose statistics are read for it, where those are not its
    /// own: of a partition of an NVMe drive with several paths the drive's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics_of: Option<String>,
    /// How many bytes devices of its level discard for each byte freed, at least 1: 2 below a
    /// mirror of two.
    #[serde(default = "one")]
    pub copies: f64,
    /// Whether that number is not known, so that its discards may count each byte several times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown_copies: bool,
    /// Whether its discards aren't counted: its counters are switched off (`queue/iostats` is 0), or
    /// a log has no columns of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub off: bool,
    /// Whether the sizes of its discards are unknown: their bytes are 0 then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_sizes: bool,
}

impl Default for Counting {
    fn default() -> Self {
        Counting {
            statistics_of: None,
            copies: one(),
            unknown_copies: false,
            off: false,
            no_sizes: false,
        }
    }
}

impl Counting {
    fn is_plain(&self) -> bool {
        *self == Counting::default()
    }
}

fn one() -> f64 {
    1.0
}

/// The drive that a partition is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeDrive {
    /// Kernel name, e.g. `nvme0n1`.
    pub name: String,
    /// Size, in bytes; 0 if the kernel does not tell.
    pub size_bytes: u64,
}

/// How a simulated drive's time differs from that of the drive it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slower {
    /// How many times slower it was; below 1 it was faster.
    pub times: f64,
    /// Whether the record's times and rates are those of the drive it stands
    /// for, converted, and not as they were measured.
    pub converted: bool,
}

impl Slower {
    /// How many times slower or faster it was: 4 times slower, or 3 times faster.
    pub fn in_words(&self) -> (f64, &'static str) {
        match self.times < 1.0 {
            // 1/3 isn't exact.
            true => ((1e6 / self.times).round() / 1e6, "faster"),
            false => (self.times, "slower"),
        }
    }
}

/// Kinds of block devices, as far as they matter to discards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A whole drive.
    #[default]
    Disk,
    /// A partition of one.
    Partition,
    /// A loop device over a file.
    Loop,
    /// Software RAID.
    Md,
    /// Device mapper.
    Dm,
}

crate::kinds! {
    /// How a drive is connected.
    pub enum Transport["transport"] {
        /// NVMe.
        Nvme = "nvme",
        /// SATA through libata.
        Ata = "ata",
        /// SCSI, SAS, iSCSI, or SATA behind such a controller.
        Scsi = "scsi",
        /// USB.
        Usb = "usb",
        /// virtio, from a hypervisor.
        Virtio = "virtio",
        /// A disk of Xen's, from a hypervisor.
        Xen = "xen",
        /// MMC and SD.
        Mmc = "mmc",
        /// Compressed memory (zram).
        Memory = "memory",
        /// A loop device over a file.
        Loop = "loop",
        /// A drive of `trimbench lab`.
        Simulated = "simulated",
        /// Any other.
        Other = "other",
    }
}

/// The limits of discards in `/sys/block/X/queue`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscardLimits {
    /// `discard_granularity`, in bytes.
    pub granularity_bytes: u64,
    /// `discard_max_bytes`: the largest the kernel sends now; 0 = none are sent.
    pub max_bytes: u64,
    /// `discard_max_hw_bytes`: the largest the device takes.
    pub max_hw_bytes: u64,
    /// `max_discard_segments`: ranges per command.
    pub max_segments: u64,
    /// Of an ATA drive: whether TRIM goes through its queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ata_trim: Option<AtaTrim>,
}

crate::kinds! {
    /// How Linux sends TRIM to an ATA drive: the file `trim` of its `ata_device`
    /// (drivers/ata/libata-transport.c).
    pub enum AtaTrim["word for TRIM"] {
        /// The drive has none.
        Unsupported = "unsupported",
        /// It has, and the kernel knows that it must not be used.
        ForcedUnsupported = "forced_unsupported",
        /// It takes TRIM through its queue, and the kernel knows that it must not.
        ForcedUnqueued = "forced_unqueued",
        /// Beside other commands, through the drive's queue.
        Queued = "queued",
        /// Alone: when every other command is done.
        Unqueued = "unqueued",
    }
}

impl AtaTrim {
    /// Whether each TRIM waits until the drive is empty, and runs alone.
    pub fn runs_alone(self) -> bool {
        matches!(self, AtaTrim::ForcedUnqueued | AtaTrim::Unqueued)
    }
}
