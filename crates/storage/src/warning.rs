//! Warnings about a target, and the sentence for each.

use std::path::PathBuf;

use record::DeviceKind;
use record::units::names::shown;
use serde::{Serialize, Serializer};

/// A fact about a target or its statistics that limits what a run, a deletion or a trim can do.
/// Shown as a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// The mount at `at` is an overlay, so that what is written goes to another file system.
    #[error(
        "{} is an overlay; what is written goes to {upper} ({upper_fs} at {})",
        shown(at),
        shown(upper_at)
    )]
    Overlay {
        /// The overlay's mount point.
        at: PathBuf,
        /// The source of the upper file system's mount.
        upper: String,
        /// Its type.
        upper_fs: String,
        /// Its mount point.
        upper_at: PathBuf,
    },
    /// The upper directory of the overlay mounted there is in another mount namespace.
    #[error(
        "{} is an overlay whose upper directory can't be seen from here; name a path outside the \
         overlay to have its devices watched",
        shown(_0)
    )]
    HiddenUpper(PathBuf),
    /// The mount there is read-only.
    #[error("{} is mounted read-only", shown(_0))]
    ReadOnly(PathBuf),
    /// A mount without `discard` sends none.
    #[error("{} is mounted without discard{}", shown(at), none_sent(*taken))]
    WithoutDiscard {
        /// The mount point.
        at: PathBuf,
        /// Whether the devices below would take them.
        taken: bool,
    },
    /// The mount there sends discards so many seconds after a deletion (btrfs).
    #[error(
        "{} sends discards in the background (discard=async), by default {after_s} s after the \
         deletion",
        shown(at)
    )]
    Later {
        /// The mount point.
        at: PathBuf,
        /// The file system's default, in seconds.
        after_s: u32,
    },
    /// The mount there sends discards when it is idle.
    #[error("{} sends discards in the background, when it is idle", shown(_0))]
    WhenIdle(PathBuf),
    /// A file system keeps its files in memory.
    #[error(
        "{} is {fs}: its files are in memory, and nothing below it takes discards",
        shown(at)
    )]
    InMemory {
        /// The mount point.
        at: PathBuf,
        /// The file system's type.
        fs: String,
    },
    /// The options of a file system's mount don't list whether it sends discards.
    #[error(
        "whether {fs} at {} sends discards is unknown from its options",
        shown(at)
    )]
    UnknownSetting {
        /// The mount point.
        at: PathBuf,
        /// The file system's type.
        fs: String,
    },
    /// None of these leaves takes discards.
    #[error("no discards can be sent: {} takes none (discard_max_bytes is 0)", _0.join(", "))]
    NoneTaken(Vec<String>),
    /// Discards stop at a device above others that take them.
    #[error(
        "discards stop at {device} (discard_max_bytes is 0) although what is below takes them{}",
        remedy(*kind)
    )]
    Stopped {
        /// Its kernel name.
        device: String,
        /// Its kind.
        kind: DeviceKind,
    },
    /// Discards stop somewhere.
    #[error("no discards get through to the devices")]
    NotThrough,
    /// No block device is known under a mount.
    #[error("{mounted} ({fs}) at {} has no known block device", shown(at))]
    NoDevice {
        /// The mount point.
        at: PathBuf,
        /// The mount's source.
        mounted: String,
        /// The file system's type.
        fs: String,
    },
    /// The file behind a loop device was deleted.
    #[error("{device} is backed by {file}, which was deleted; what is below it is unknown")]
    FileDeleted {
        /// The loop device's kernel name.
        device: String,
        /// The file.
        file: String,
    },
    /// Discards of a loop device go no further than its file's file system.
    #[error(
        "discards of {device} only punch holes into {file}: {} is mounted without discard and \
         passes none on",
        shown(at)
    )]
    OnlyHoles {
        /// The loop device's kernel name.
        device: String,
        /// The file.
        file: String,
        /// Where the file's file system is mounted.
        at: PathBuf,
    },
    /// The mount that holds a loop device's file can't be examined.
    #[error("what is below {device} is unknown: {why}")]
    UnknownBelow {
        /// The loop device's kernel name.
        device: String,
        /// The reason.
        why: String,
    },
    /// Discards harm an md array in this kernel.
    #[error(
        "{device} is {level}, and {what}, unless this kernel ({kernel}) has the fix; see {report}"
    )]
    Faulty {
        /// The array's kernel name.
        device: String,
        /// Its level.
        level: String,
        /// The kernel's release.
        kernel: String,
        /// The harm.
        what: &'static str,
        /// The address of a report.
        report: &'static str,
        /// Whether data are lost.
        destroys_data: bool,
    },
    /// The counters of the drive of this name are switched off.
    #[error(
        "{_0} has its counters switched off, so that its discards can't be seen; switch them on \
         with: echo 1 > /sys/class/block/{_0}/queue/iostats"
    )]
    CountersOff(String),
    /// The counters of a drive are read for its partition.
    #[error(
        "{partition} has no counters of its own: those of {drive} are read, and what others \
         discard there counts, too"
    )]
    CountedByDrive {
        /// The partition's kernel name.
        partition: String,
        /// The drive's.
        drive: String,
    },
}

impl Serialize for Warning {
    /// As its sentence.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The next step where discards stop at a device of a kind.
fn none_sent(taken: bool) -> &'static str {
    match taken {
        true => ": deleting sends none, although the devices below take them",
        false => ", and the devices below would not take any",
    }
}

fn remedy(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Dm => {
            "; dm-crypt needs the option allow_discards (crypttab: discard), dm-thin discard_passdown"
        }
        DeviceKind::Md => {
            "; RAID 4, 5 and 6 need the module parameter devices_handle_discard_safely of raid456"
        }
        _ => "",
    }
}
