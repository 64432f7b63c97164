//! Warnings about a target, and the sentence for each.

use std::fmt;
use std::path::PathBuf;

use record::DeviceKind;
use serde::{Serialize, Serializer};
use units::names::shown;

/// A fact about a target or its statistics that limits what a run, a deletion or a trim can do.
/// Shown as a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The mount at `at` is an overlay, so that what is written goes to another file system.
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
    HiddenUpper(PathBuf),
    /// The mount there is read-only.
    ReadOnly(PathBuf),
    /// A mount without `discard` sends none.
    WithoutDiscard {
        /// The mount point.
        at: PathBuf,
        /// Whether the devices below would take them.
        taken: bool,
    },
    /// The mount there sends discards so many seconds after a deletion (btrfs).
    Later {
        /// The mount point.
        at: PathBuf,
        /// The file system's default, in seconds.
        after_s: u32,
    },
    /// The mount there sends discards when it is idle.
    WhenIdle(PathBuf),
    /// A file system keeps its files in memory.
    InMemory {
        /// The mount point.
        at: PathBuf,
        /// The file system's type.
        fs: String,
    },
    /// The options of a file system's mount don't list whether it sends discards.
    Untold {
        /// The mount point.
        at: PathBuf,
        /// The file system's type.
        fs: String,
    },
    /// None of these leaves takes discards.
    NoneTaken(Vec<String>),
    /// Discards stop at a device above others that take them.
    Stopped {
        /// Its kernel name.
        device: String,
        /// Its kind.
        kind: DeviceKind,
    },
    /// Discards stop somewhere.
    NotThrough,
    /// No block device is known under a mount.
    NoDevice {
        /// The mount point.
        at: PathBuf,
        /// The mount's source.
        mounted: String,
        /// The file system's type.
        fs: String,
    },
    /// The file behind a loop device was deleted.
    FileDeleted {
        /// The loop device's kernel name.
        device: String,
        /// The file.
        file: String,
    },
    /// Discards of a loop device go no further than its file's file system.
    OnlyHoles {
        /// The loop device's kernel name.
        device: String,
        /// The file.
        file: String,
        /// Where the file's file system is mounted.
        at: PathBuf,
    },
    /// The mount that holds a loop device's file can't be examined.
    UnknownBelow {
        /// The loop device's kernel name.
        device: String,
        /// The reason.
        why: String,
    },
    /// The counters of the drive of this name are switched off.
    CountersOff(String),
    /// The counters of a drive are read for its partition.
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

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Overlay {
                at,
                upper,
                upper_fs,
                upper_at,
            } => write!(
                f,
                "{} is an overlay; what is written goes to {upper} ({upper_fs} at {})",
                shown(at),
                shown(upper_at)
            ),
            Warning::HiddenUpper(at) => write!(
                f,
                "{} is an overlay whose upper directory can't be seen from here; name a path \
                 outside the overlay to have its devices watched",
                shown(at)
            ),
            Warning::ReadOnly(at) => write!(f, "{} is mounted read-only", shown(at)),
            Warning::WithoutDiscard { at, taken } => write!(
                f,
                "{} is mounted without discard{}",
                shown(at),
                match taken {
                    true => ": deleting sends none, although the devices below take them",
                    false => ", and the devices below would not take any",
                }
            ),
            Warning::Later { at, after_s } => write!(
                f,
                "{} sends discards in the background (discard=async), by default {after_s} s after \
                 the deletion",
                shown(at)
            ),
            Warning::WhenIdle(at) => write!(
                f,
                "{} sends discards in the background, when it is idle",
                shown(at)
            ),
            Warning::InMemory { at, fs } => write!(
                f,
                "{} is {fs}: its files are in memory, and nothing below it takes discards",
                shown(at)
            ),
            Warning::Untold { at, fs } => write!(
                f,
                "whether {fs} at {} sends discards is unknown from its options",
                shown(at)
            ),
            Warning::NoneTaken(leaves) => write!(
                f,
                "no discards can be sent: {} takes none (discard_max_bytes is 0)",
                leaves.join(", ")
            ),
            Warning::Stopped { device, kind } => write!(
                f,
                "discards stop at {device} (discard_max_bytes is 0) although what is below takes \
                 them{}",
                remedy(*kind)
            ),
            Warning::NotThrough => f.write_str("no discards get through to the devices"),
            Warning::NoDevice { at, mounted, fs } => write!(
                f,
                "{mounted} ({fs}) at {} has no known block device",
                shown(at)
            ),
            Warning::FileDeleted { device, file } => write!(
                f,
                "{device} is backed by {file}, which was deleted; what is below it is unknown"
            ),
            Warning::OnlyHoles { device, file, at } => write!(
                f,
                "discards of {device} only punch holes into {file}: {} is mounted without discard \
                 and passes none on",
                shown(at)
            ),
            Warning::UnknownBelow { device, why } => {
                write!(f, "what is below {device} is unknown: {why}")
            }
            Warning::CountersOff(drive) => write!(
                f,
                "{drive} has its counters switched off, so that its discards can't be seen; switch \
                 them on with: echo 1 > /sys/class/block/{drive}/queue/iostats"
            ),
            Warning::CountedByDrive { partition, drive } => write!(
                f,
                "{partition} has no counters of its own: those of {drive} are read, and what \
                 others discard there counts, too"
            ),
        }
    }
}

/// The next step where discards stop at a device of a kind.
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
