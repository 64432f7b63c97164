//! Surveys a file system before it is trimmed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use linux::SysRoot;
use linux::trim::{Range, fitrim, is_unsupported};
use pace::{DebtMode, Goal, Work};
use record::units::names;
use record::{DeviceInfo, DeviceKind, DiscardSetting};
use storage::layout::{Layout, Trimmed};
use storage::{FileSystem, TrimReach, Warning, counter};

use super::TrimError;
use super::state::{Cursor, Of};
use super::windows::Windows;
use crate::throttle::{Stack, UNSEEN};
use crate::{ReclaimError, directory};

/// A part of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The first byte.
    pub offset: u64,
    /// The length; `u64::MAX`: to the end.
    pub length: u64,
    /// Free extents shorter than this are left alone.
    pub minimum: u64,
}

impl Default for Part {
    /// All of it.
    fn default() -> Part {
        Part {
            offset: 0,
            length: u64::MAX,
            minimum: 0,
        }
    }
}

/// A file system that can be trimmed.
#[derive(Debug)]
pub struct Survey {
    pub(super) path: PathBuf,
    pub(crate) directory: Arc<File>,
    pub(crate) fs: Trimmed,
    pub(super) asked: Part,
    /// Bytes that are free, by the file system's own count.
    pub(super) free: u64,
    /// Bytes of a block.
    pub(super) block: u64,
    size: u64,
    kind: String,
    device: Option<String>,
    source: Option<String>,
    /// Where it is mounted.
    mount: Option<PathBuf>,
    pub(super) stack: Stack,
    states: Option<PathBuf>,
    over_file: bool,
    /// Whether a device on which it lies takes discards.
    pub(crate) takes_discards: bool,
    /// How many bytes all devices discard for each byte freed.
    copies: f64,
    /// Where a drive's statistics count for its partition.
    by_drive: Option<Warning>,
    /// The warning that discards may crash this kernel.
    pub(crate) fault: Option<Warning>,
}

impl Survey {
    /// Surveys the file system of a directory. `states` is the directory of notes on interrupted
    /// trims.
    ///
    /// # Errors
    /// If it is no directory, or can't be examined.
    pub fn of(path: &Path, asked: Part, states: Option<PathBuf>) -> Result<Survey, TrimError> {
        if !path
            .metadata()
            .map_err(ReclaimError::io("examine", path))?
            .is_dir()
        {
            let path = path.to_owned();
            return Err(TrimError::NotADirectory { path });
        }
        let directory = File::open(path).map_err(ReclaimError::io("open", path))?;
        let found = storage::describe(path).map_err(ReclaimError::from)?;
        let fault = found.unless_harmful(&names::shown(path), "use fstrim(8)");
        let fault = fault.map_err(ReclaimError::from)?;
        let sys = SysRoot::host();
        let stat = rustix::fs::fstatvfs(&directory)
            .map_err(ReclaimError::io("tell the space of", path))?;
        let fs = Trimmed::of(&sys, &directory, &found);
        if fs.end == 0 {
            return Err(unsupported(path));
        }
        // As the kernel says of it; ours would find nothing to do there.
        if asked.offset >= fs.end && !matches!(fs.layout, Layout::Chunks(_)) {
            return Err(ReclaimError::io("trim", path)(io::Error::new(
                io::ErrorKind::InvalidInput,
                "Invalid argument: --offset lies behind the end of the file system",
            ))
            .into());
        }
        let tops = || found.devices.iter().filter(|device| device.level == 0);
        Ok(Survey {
            stack: Stack::trimmed(&sys, &found, stat.f_frsize.max(512)),
            path: path.to_owned(),
            directory: Arc::new(directory),
            fs,
            asked,
            block: stat.f_frsize,
            free: stat.f_bfree.saturating_mul(stat.f_frsize),
            size: stat.f_blocks.saturating_mul(stat.f_frsize),
            kind: found.target.fs.clone().unwrap_or_default(),
            device: tops().next().map(|top| top.name.clone()),
            source: found.target.source.clone(),
            mount: found.target.mount.as_ref().map(PathBuf::from),
            over_file: found.devices.iter().any(is_over_file),
            copies: counter::mean_copies(&found.devices),
            by_drive: counter::by_drive(&found.devices),
            fault,
            takes_discards: tops().any(|top| top.discard.max_bytes > 0),
            states,
        })
    }

    /// Asks the kernel to trim nothing, to find out whether it would trim. Only a process that may
    /// trim may ask.
    pub(crate) fn probe(&self) -> Result<(), TrimError> {
        // A range without length: refused, but last, for what is missing is told first.
        let nothing = Range {
            start: 0,
            length: 0,
            minimum: 0,
        };
        match fitrim(&self.directory, nothing) {
            Err(error) if error.kind() != io::ErrorKind::InvalidInput => {
                Err(explained(&self.path, error))
            }
            _ => Ok(()),
        }
    }

    /// Returns what a trim would do, in a sentence. It doesn't ask the kernel.
    ///
    /// # Errors
    /// [`TrimError::Unsupported`] where nothing can be trimmed, as far as the devices tell.
    pub fn intention(&self) -> Result<String, TrimError> {
        if !self.takes_discards {
            return Err(unsupported(&self.path));
        }
        let way = match &self.fs.layout {
            Layout::Groups { group, .. } => {
                format!("in block groups of {}", record::units::bytes(*group))
            }
            Layout::Allocation { group } => {
                format!(
                    "in pieces of allocation groups of {}",
                    record::units::bytes(*group)
                )
            }
            Layout::Chunks(chunks) => {
                format!("in {} chunks, and all outside of them", chunks.len())
            }
            Layout::Anywhere => "in windows".to_owned(),
            Layout::Whole => "in one call".to_owned(),
        };
        let mut intention = format!(
            "would look at {} of {}, {way}",
            record::units::bytes(self.windows().all()),
            self.kind,
        );
        if let Some(fault) = &self.fault {
            intention += &format!("; {fault}");
        }
        Ok(intention)
    }

    /// Returns where the file system is mounted, if the path is a directory in it: all of it is trimmed
    /// all the same.
    pub fn mounted_above(&self) -> Option<&Path> {
        let mount = self.mount.as_deref()?;
        let is_above = fs::canonicalize(&self.path).is_ok_and(|path| path != mount);
        is_above.then_some(mount)
    }

    /// Returns how many bytes it trims at most, where the free extents aren't known.
    pub fn most_bytes(&self) -> u64 {
        // The last extent is trimmed to its end.
        let beyond = match self.fs.layout {
            Layout::Groups { group, .. } if self.reach() == TrimReach::End => group,
            _ => 0,
        };
        self.free.min(self.windows().all().saturating_add(beyond))
    }

    /// Returns the source of the mount, e.g. `/dev/sda2`.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    pub(super) fn windows(&self) -> Windows {
        let asked = self.asked.offset..self.asked.offset.saturating_add(self.asked.length);
        let mut windows = Windows::new(self.fs.layout.clone(), asked, self.fs.end);
        windows.minimum = self.asked.minimum;
        windows.granularity = self.stack.granularity;
        windows.whole = self.reach() != TrimReach::Part;
        windows.block = self.block.max(1);
        windows
    }

    fn reach(&self) -> TrimReach {
        FileSystem::of(&self.kind).trim_reach(linux::host::kernel_version())
    }

    /// Returns the note of how far it comes, or why there can't be one.
    pub(super) fn cursor(&self) -> Result<Cursor, &'static str> {
        let device = self
            .device
            .as_deref()
            .ok_or("no device is known below it")?;
        let uuid = self.fs.uuid.clone().ok_or(
            "its UUID can't be read: neither from the kernel (Linux 6.9 and later), nor from its superblock",
        )?;
        let states = self
            .states
            .as_deref()
            .ok_or("neither XDG_STATE_HOME nor HOME names a directory for notes")?;
        let of = Of {
            uuid,
            device: identity(&SysRoot::host(), device),
            fs: self.kind.clone(),
            size_bytes: self.size,
            start: self.asked.offset,
            length: self.asked.length,
            minimum: self.asked.minimum,
        };
        let mount = self.mount.as_deref().unwrap_or(&self.path);
        Ok(Cursor::of(states, of, mount))
    }

    pub(crate) fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    pub(super) fn is_counted(&self) -> bool {
        self.stack.mode == DebtMode::Commit
    }

    /// Returns whether the file system reports how much it trimmed: XFS reports the range's length
    /// instead.
    pub(super) fn is_exact(&self) -> bool {
        FileSystem::of(&self.kind).reports_trimmed_bytes()
    }

    /// Returns whether its discards first become holes in a file of another file system.
    pub(super) fn is_over_file(&self) -> bool {
        self.over_file && self.is_counted()
    }

    /// Returns the most that can be discarded.
    pub(super) fn work(&self, goal: Option<Goal>) -> Work {
        let bytes = self.free.min(self.windows().all()).max(1);
        let mut work = self.stack.shape(&Work::new(bytes, 1));
        let has_latency = goal.is_some_and(|goal| goal.max_latency.is_some());
        if has_latency && (self.reach() != TrimReach::Part || self.fs.layout == Layout::Whole) {
            // A free extent goes whole: what the device lets through is the least.
            work.granularity = work.unit;
        }
        work
    }

    /// Returns what the user should know of it, in sentences.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.fault.iter().map(ToString::to_string).collect();
        match &self.fs.layout {
            Layout::Chunks(chunks) => {
                let within: u64 = chunks.iter().map(|chunk| chunk.end - chunk.start).sum();
                let beyond = (self.size as f64 - within as f64 / self.copies) as u64;
                if self.size > within && beyond > 1 << 30 {
                    notes.push(format!(
                        "about {} belong to no chunk: btrfs trims them in one call, which can't be \
                         paced, the first time since it was mounted",
                        record::units::bytes(beyond)
                    ));
                }
            }
            Layout::Whole if FileSystem::of(&self.kind).queues_trims(DiscardSetting::On) => {
                let why = "f2fs is mounted with discard: it sends by itself, when it is idle, what is \
                           trimmed, so that nothing is paced or measured";
                notes.push(why.to_owned());
            }
            Layout::Whole => notes.push(format!(
                "{} can be trimmed in one call only: it isn't paced, and it can't be gone on with",
                self.kind
            )),
            _ => {}
        }
        if self.reach() == TrimReach::Whole {
            let why = "before Linux 6.10 XFS trims each free extent whole: a long one stalls others, \
                       whatever the goal";
            notes.push(why.to_owned());
        }
        notes.extend(self.by_drive.as_ref().map(ToString::to_string));
        if self.stack.is_paced() && !self.is_counted() {
            notes.push(UNSEEN.to_owned());
        }
        notes
    }
}

pub(crate) fn is_over_file(device: &DeviceInfo) -> bool {
    device.kind == DeviceKind::Loop && !device.leaf
}

fn unsupported(path: &Path) -> TrimError {
    let why = storage::describe(path).map_or(String::new(), |found| {
        match found.devices.iter().find(|d| d.discard.max_bytes == 0) {
            Some(device) => format!(" ({} takes no discards)", device.name),
            None => format!(
                " ({} can't be trimmed; name the mount point of a file system on a drive)",
                found.target.fs.unwrap_or_default()
            ),
        }
    });
    let path = path.to_owned();
    TrimError::Unsupported { path, why }
}

/// Returns the kernel's error with the next step for the user.
pub(super) fn explained(path: &Path, error: io::Error) -> TrimError {
    if is_unsupported(&error) {
        return unsupported(path);
    }
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::PermissionDenied => TrimError::NotPermitted { path },
        io::ErrorKind::ReadOnlyFilesystem => TrimError::ReadOnly { path },
        _ => ReclaimError::io("trim", path)(error).into(),
    }
}

/// Returns the directory of notes on interrupted trims. It is the one that systemd names
/// (`StateDirectory=`), for root `/var/lib/trimbench/fstrim`, otherwise
/// `$XDG_STATE_HOME/trimbench/fstrim`.
pub fn state_directory() -> Option<PathBuf> {
    directory::given("STATE_DIRECTORY").or_else(|| match rustix::process::geteuid().is_root() {
        true => Some(PathBuf::from("/var/lib/trimbench/fstrim")),
        false => directory::of_user("fstrim"),
    })
}

// Finds an identity of a device that is the same after a reboot.

/// The files in which the kernel shows an identity, the most certain first.
const PLACES: [&str; 8] = [
    "dm/uuid",
    "md/uuid",
    "loop/backing_file",
    "wwid",
    "device/wwid",
    "device/serial",
    "serial",
    "device/cid",
];

/// Returns the identity of a device by its kernel name. One without any is identified by that name.
pub(super) fn identity(sys: &SysRoot, device: &str) -> String {
    let own = sys.path("/sys/class/block").join(device.replace('/', "!"));
    let own = fs::canonicalize(&own).unwrap_or(own);
    if let Some(known) = kept_identity(&own) {
        return known;
    }
    let number = text(own.join("partition"));
    let drive = own.parent().and_then(kept_identity);
    match (drive, number) {
        (Some(drive), Some(number)) => format!("{drive} partition {number}"),
        _ => format!("name {device}"),
    }
}

fn kept_identity(device: &Path) -> Option<String> {
    PLACES.iter().find_map(|place| {
        let text = text(device.join(place))?;
        Some(format!("{place} {text}"))
    })
}

fn text(path: PathBuf) -> Option<String> {
    let text = fs::read_to_string(path).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_trim_may_look() {
        if testkit::gate::lacks(&[testkit::gate::Need::Root]) {
            return;
        }
        let looked = std::thread::spawn(|| {
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            Survey::of(Path::new("/"), Part::default(), None).map(|survey| survey.probe())
        });
        let probed = looked.join().unwrap().unwrap();
        assert!(
            matches!(
                probed,
                Err(TrimError::NotPermitted { .. } | TrimError::Unsupported { .. })
            ),
            "{probed:?}"
        );
    }

    #[test]
    fn drives_partitions_and_what_tells_nothing() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join("sys/class/block").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sda/device/wwid", "naa.5002\n");
        put("sda/sda2/partition", "2\n");
        put("vda/serial", "\n");
        put("dm-0/dm/uuid", "LVM-x\n");
        let link = root.path().join("sys/class/block/sda2");
        std::os::unix::fs::symlink("sda/sda2", link).unwrap();
        let sys = SysRoot::at(root.path());
        assert_eq!(identity(&sys, "sda"), "device/wwid naa.5002");
        assert_eq!(identity(&sys, "sda2"), "device/wwid naa.5002 partition 2");
        assert_eq!(identity(&sys, "vda"), "name vda");
        assert_eq!(identity(&sys, "dm-0"), "dm/uuid LVM-x");
        assert_eq!(identity(&sys, "none"), "name none");
    }
}
