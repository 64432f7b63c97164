//! Describes how a storage stack discards freed space, and which devices count the discards.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

use linux::SysRoot;
use pace::{DebtMode, Work};
use record::units::names::shown;
use record::{DeviceInfo, DeviceKind, DiscardSetting};
use storage::counter::{self, Source};
use storage::{Commit, Description, FileSystem, Harm};

use crate::{ReclaimError, Result};

/// The note where the counters of all devices are off.
pub(crate) const UNSEEN: &str = "the devices' statistics are off: what is discarded can't be seen, \
                                 and the rate is held instead";

/// The longest discard in bytes: bio.bi_size has 32 bits (Linux, include/linux/blk_types.h).
const LARGEST: u64 = 4 << 30;

/// The properties of a file system and of the devices below it that a deleter needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// Where it is mounted; `None` of a raw device.
    pub(crate) mount: Option<String>,
    /// Whether and when discards come.
    pub(crate) mode: DebtMode,
    /// The commit that makes them come.
    pub(crate) commit: Commit,
    /// The space of unlinked files is freed after the call, in the background (XFS, whose
    /// inodes are inactivated by a worker since Linux 5.14).
    pub(crate) frees_in_background: bool,
    /// Block groups that have become empty are discarded whole, whatever was discarded in
    /// them: by the commit after the one that woke the cleaner thread (btrfs).
    pub(crate) discards_twice: bool,
    /// btrfs accounts quotas by extent.
    pub(crate) quotas: bool,
    /// The file system.
    pub(crate) file_system: FileSystem,
    /// The size of its blocks in bytes, at least 512.
    pub(crate) block: u64,
    /// The largest discard that will be sent, in bytes.
    pub(crate) unit: u64,
    /// The shortest discard that will be sent, in bytes.
    pub(crate) granularity: u64,
    /// The devices whose statistics count.
    pub(crate) sources: Vec<Source>,
    /// The loop device that the file system lies on, if the sources are drives below it. It counts the
    /// file system's discards apart from others of these drives.
    pub(crate) loop_device: Option<String>,
    /// Sentences about anything odd in the file system and its devices.
    pub(crate) notes: Vec<String>,
}

/// Why nothing is paced on a file system.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Unpaced {
    /// The reason in a sentence.
    #[error("{0}")]
    Because(String),
    /// Nothing is deleted there.
    #[error(transparent)]
    Harm(#[from] Harm),
}

impl From<String> for Unpaced {
    fn from(why: String) -> Unpaced {
        Unpaced::Because(why)
    }
}

impl Stack {
    /// Describes the file system of an open directory.
    ///
    /// # Errors
    /// [`ReclaimError::Target`] or [`ReclaimError::Io`] if it can't be examined.
    pub fn at(on: BorrowedFd<'_>) -> Result<Stack> {
        let (found, block) = described(on)?;
        Ok(Stack::of(&SysRoot::host(), &found, block))
    }

    /// Describes the file system of an open directory, if what is deleted there is to be paced.
    /// Otherwise returns why it isn't.
    pub(crate) fn paced_at(on: BorrowedFd<'_>) -> Result<Stack, Unpaced> {
        let (found, block) = described(on).map_err(|error| error.to_string())?;
        Stack::paced(&SysRoot::host(), &found, block)
    }

    fn paced(sys: &SysRoot, found: &Description, block: u64) -> Result<Stack, Unpaced> {
        // What lies in a lower layer would be copied, all of it, before it could go.
        if FileSystem::named(&found.target) == FileSystem::Overlay {
            let why = "it is an overlay; what is deleted in its upper directory itself is paced";
            return Err(why.to_owned().into());
        }
        match found.target.discard {
            DiscardSetting::On | DiscardSetting::Async => {
                let mount = found.target.mount.as_deref().unwrap_or(&found.target.path);
                let instead = "use rm(1); else mount it with nodiscard first";
                found.unless_harmful(&shown(mount), instead)?;
                Ok(Stack::of(sys, found, block))
            }
            _ if found.warnings.is_empty() => Err("no discards are sent".to_owned().into()),
            _ => {
                let why: Vec<String> = found.warnings.iter().map(ToString::to_string).collect();
                Err(why.join("; ").into())
            }
        }
    }

    /// Draws the conclusions of a description. `block`: the file system's block size in bytes.
    pub(crate) fn of(sys: &SysRoot, found: &Description, block: u64) -> Stack {
        let fs = FileSystem::named(&found.target);
        let leaves: Vec<&DeviceInfo> = found.devices.iter().filter(|d| d.leaf).collect();
        let odd = found.warnings.iter().chain(&found.counting_warnings);
        let mut notes: Vec<String> = odd.map(ToString::to_string).collect();
        let mode = mode(found, &leaves, &mut notes);
        let sources = counting(sys, counter::leaves(&found.devices));
        notes.extend(off(sys, &leaves, mode));
        let top = found.devices.iter().find(|device| device.level == 0);
        let commit = match mode {
            // Nothing is waited for.
            DebtMode::Deferred | DebtMode::Never => Commit::Within,
            DebtMode::Commit => {
                fs.commit(top.is_none_or(|top| FileSystem::has_journal(sys, &top.name)))
            }
        };
        let block = block.max(512);
        let own = fs.largest_discard_bytes(block, found.target.discard);
        let own = own.unwrap_or(LARGEST).min(LARGEST);
        let limits = leaves.iter().map(|leaf| &leaf.discard);
        let largest = limits.clone().map(|limit| limit.max_bytes);
        let granularity = limits.map(|limit| limit.granularity_bytes).max();
        // Nobody sees its discards come.
        let mode = match mode {
            DebtMode::Commit if sources.is_empty() => DebtMode::Deferred,
            mode => mode,
        };
        Stack {
            mount: found.target.mount.clone(),
            mode,
            commit,
            frees_in_background: fs.frees_in_background(),
            discards_twice: fs.discards_twice() && commit == Commit::Whole,
            quotas: fs == FileSystem::Btrfs
                && top.is_some_and(|top| storage::stack::quotas(sys, &top.name)),
            file_system: fs,
            block,
            unit: largest
                .filter(|&bytes| bytes > 0)
                .min()
                .map_or(own, |bytes| own.min(bytes)),
            granularity: granularity.unwrap_or(0).max(block),
            sources,
            loop_device: loop_device(sys, &found.devices),
            notes,
        }
    }

    /// The same for a trim, which doesn't depend on what the mount sends by itself.
    pub(crate) fn trimmed(sys: &SysRoot, found: &Description, block: u64) -> Stack {
        let stack = Stack::of(sys, found, block);
        let below = found.devices.iter().any(|device| device.leaf);
        let mode = match &stack.sources[..] {
            [] if below => DebtMode::Deferred,
            [] => DebtMode::Never,
            _ => DebtMode::Commit,
        };
        Stack { mode, ..stack }
    }

    /// Returns whether the file system sends its discards when it likes.
    pub(crate) fn discards_later(&self) -> bool {
        self.mode == DebtMode::Deferred && self.commit == Commit::Within
    }

    /// Returns whether the file system sends its discards in the background, so that none of a
    /// deletion can be distinguished.
    pub(crate) fn sends_in_background(&self) -> bool {
        self.discards_later() && self.file_system.queues_discards()
    }

    /// Returns whether the file system sends discards, so that freeing is paced.
    pub fn is_paced(&self) -> bool {
        self.mode != DebtMode::Never
    }

    /// Returns the work as this file system and its devices shape it.
    pub fn shape(&self, work: &Work) -> Work {
        Work {
            extents: work
                .extents
                .max(work.bytes.div_ceil(self.unit.max(1)))
                .max(1),
            unit: self.unit.max(1),
            granularity: self.granularity,
            mode: self.mode,
            discards_twice: self.discards_twice,
            ..*work
        }
    }
}

/// Describes the file system of an open directory. Returns also the size of its blocks in bytes.
fn described(on: BorrowedFd<'_>) -> Result<(Description, u64)> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", on.as_raw_fd()));
    let found = storage::describe(&path)?;
    let stat =
        rustix::fs::fstatvfs(on).map_err(ReclaimError::io("tell the block size of", path))?;
    Ok((found, stat.f_frsize))
}

fn mode(found: &Description, leaves: &[&DeviceInfo], notes: &mut Vec<String>) -> DebtMode {
    match found.target.discard {
        DiscardSetting::Off | DiscardSetting::Unsupported => return DebtMode::Never,
        DiscardSetting::Async => return DebtMode::Deferred,
        DiscardSetting::On | DiscardSetting::Unknown => {}
    }
    if leaves.is_empty() {
        notes.push(
            "no device is known below, so that discards can't be seen: nothing is paced".to_owned(),
        );
        return DebtMode::Never;
    }
    DebtMode::Commit
}

/// Keeps the devices whose counters are on. Each stands for its share of those that are off.
fn counting(sys: &SysRoot, all: Vec<Source>) -> Vec<Source> {
    let count = all.len() as f64;
    let mut on = all;
    on.retain(|source| counter::counts(sys, &source.device));
    let share = on.len() as f64 / count.max(1.0);
    for source in &mut on {
        source.copies *= share;
    }
    on
}

/// Returns a sentence where counters are off.
fn off(sys: &SysRoot, leaves: &[&DeviceInfo], mode: DebtMode) -> Option<String> {
    let is_off = |leaf: &&&DeviceInfo| !counter::counts(sys, &leaf.name);
    let off = leaves.iter().filter(is_off);
    let names: Vec<String> = off.map(|leaf| leaf.name.clone()).collect();
    if names.is_empty() || mode == DebtMode::Never {
        return None;
    }
    Some(match names.len() == leaves.len() {
        true => UNSEEN.to_owned(),
        false => format!(
            "the counters of {} are off: those of the other devices stand for them",
            names.join(", ")
        ),
    })
}

/// The only device that the file system lies on, if it is a loop device over drives that are known.
fn loop_device(sys: &SysRoot, devices: &[DeviceInfo]) -> Option<String> {
    let mut tops = devices.iter().filter(|device| device.level == 0);
    let (Some(top), None) = (tops.next(), tops.next()) else {
        return None;
    };
    let counts = top.kind == DeviceKind::Loop && !top.leaf && counter::counts(sys, &top.name);
    counts.then(|| top.name.clone())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use linux::mounts;
    use linux::space::Space;
    use storage::describe_mount;

    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    /// Describes a mount on a machine with these files.
    fn stack(mount: &str, files: &[(&str, &str)]) -> Stack {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let device = root.path().join("sys/class/block/sdx");
        let link = root.path().join("sys/dev/block/8:1");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&device, link).unwrap();
        described(root.path(), mount)
    }

    /// Describes a mount on the machine below `root`.
    fn described(root: &Path, mount: &str) -> Stack {
        let sys = SysRoot::at(root);
        let mount = mounts::parse(mount.as_bytes()).remove(0);
        let space = Space {
            size_bytes: 100 * GIB,
            available_bytes: 50 * GIB,
            block_bytes: 4096,
        };
        let found = describe_mount(&sys, Path::new("/mnt"), mount, space);
        Stack::of(&sys, &found, 4096)
    }

    #[test]
    fn nothing_is_deleted_where_its_discards_destroy_data() {
        let paced = |options: &str, kernel: &str| {
            let line = format!("1 0 9:3 / /data rw - ext4 /dev/md3 {options}\n");
            let machine = testkit::Machine::new(&line);
            machine.device("virtual/block/md3", "9:3", Some(GIB));
            machine.write("sys/devices/virtual/block/md3/md/level", "raid10\n");
            machine.write("proc/sys/kernel/osrelease", kernel);
            let sys = SysRoot::at(machine.root());
            let mount = mounts::list(&sys).unwrap().remove(0);
            let space = Space::of(Path::new("/")).unwrap();
            let found = describe_mount(&sys, Path::new("/data/dump"), mount, space);
            Stack::paced(&sys, &found, 4096)
        };
        let refused = paced("rw,discard", "5.4.0-57-generic\n").unwrap_err();
        assert!(matches!(refused, Unpaced::Harm(_)), "{refused}");
        let refused = refused.to_string();
        assert!(refused.starts_with("/data: md3 is raid10"), "{refused}");
        // No discards are sent, or they crash at most.
        let off = paced("rw", "5.4.0-57-generic\n").unwrap_err();
        assert!(matches!(off, Unpaced::Because(_)), "{off}");
        let noted = paced("rw,discard", "6.9.1\n").unwrap().notes;
        assert!(noted[0].contains("bugs/2117395"), "{noted:?}");
    }

    #[test]
    fn a_loop_device_counts_apart_if_drives_below_it_count_too() {
        let loop_device = |image: &str, iostats: &str| {
            let machine = testkit::Machine::new(
                "1 0 254:0 / / rw - ext4 /dev/vda rw,discard\n2 1 0:25 / /dev/shm rw - tmpfs tmpfs rw\n\
                 3 1 7:3 / /mnt rw - xfs /dev/loop3 rw,discard\n",
            );
            machine.device("pci/vda", "254:0", Some(GIB));
            machine.device("virtual/block/loop3", "7:3", Some(GIB));
            let at = "sys/devices/virtual/block/loop3";
            machine.write(&format!("{at}/loop/backing_file"), image);
            machine.write(&format!("{at}/queue/iostats"), iostats);
            let sys = SysRoot::at(machine.root());
            let mount = mounts::list(&sys).unwrap().remove(2);
            let space = Space::of(Path::new("/")).unwrap();
            let found = describe_mount(&sys, Path::new("/mnt"), mount, space);
            Stack::of(&sys, &found, 4096).loop_device
        };
        assert_eq!(loop_device("/disk.img\n", "1\n").as_deref(), Some("loop3"));
        assert_eq!(loop_device("/disk.img\n", "0\n"), None);
        assert_eq!(loop_device("/dev/shm/disk.img\n", "1\n"), None);
    }

    const SDX: [(&str, &str); 4] = [
        ("/sys/class/block/sdx/dev", "8:1\n"),
        ("/sys/class/block/sdx/queue/discard_granularity", "4096\n"),
        (
            "/sys/class/block/sdx/queue/discard_max_bytes",
            "2147450880\n",
        ),
        (
            "/sys/class/block/sdx/queue/discard_max_hw_bytes",
            "2147450880\n",
        ),
    ];

    fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        SDX.iter().chain(more).copied().collect()
    }

    const EXT4: &str = "1 1 8:1 / /mnt rw - ext4 /dev/sdx rw,discard\n";

    #[test]
    fn ext4_with_and_without_a_journal() {
        let task = "/sys/fs/ext4/sdx/journal_task";
        let with_journal = stack(EXT4, &with(&[(task, "123\n")]));
        assert_eq!(with_journal.commit, Commit::File);
        assert_eq!(with_journal.mode, DebtMode::Commit);
        assert_eq!(with_journal.unit, 128 * MIB);
        assert_eq!(with_journal.sources[0].device, "sdx");
        let without = stack(EXT4, &with(&[(task, "<none>\n")]));
        assert_eq!(
            (without.commit, without.mode),
            (Commit::Within, DebtMode::Commit)
        );
        // ext2, as ext4's code mounts it, has none.
        let ext2 = EXT4.replace("ext4", "ext2");
        let ext2 = stack(&ext2, &with(&[(task, "<none>\n")]));
        assert_eq!((ext2.commit, ext2.unit), (Commit::Within, 128 * MIB));
        // Unknown: a needless fsync is the lesser evil.
        assert_eq!(stack(EXT4, &SDX).commit, Commit::File);
    }

    #[test]
    fn other_file_systems_and_mounts_without_discard() {
        let of = |line: &str| stack(line, &SDX);
        let xfs = of("1 1 8:1 / /mnt rw - xfs /dev/sdx rw,discard\n");
        assert_eq!((xfs.commit, xfs.unit), (Commit::File, 2_147_450_880));
        let sync = of("1 1 8:1 / /mnt rw - btrfs /dev/sdx rw,ssd,discard\n");
        assert_eq!((sync.commit, sync.unit), (Commit::Whole, GIB));
        let later = of("1 1 8:1 / /mnt rw - btrfs /dev/sdx rw,ssd,discard=async\n");
        assert_eq!(
            (later.mode, later.commit),
            (DebtMode::Deferred, Commit::Within)
        );
        let off = of("1 1 8:1 / /mnt rw - ext4 /dev/sdx rw\n");
        assert_eq!(off.mode, DebtMode::Never);
        assert!(
            off.notes
                .iter()
                .any(|note| note.contains("without discard"))
        );
        let tmpfs = of("1 1 0:30 / /mnt rw - tmpfs tmpfs rw\n");
        assert_eq!(tmpfs.mode, DebtMode::Never);
    }

    #[test]
    fn where_all_counters_are_off_the_rate_is_held() {
        let blind = stack(
            EXT4,
            &with(&[("/sys/class/block/sdx/queue/iostats", "0\n")]),
        );
        assert_eq!(
            (blind.mode, blind.commit),
            (DebtMode::Deferred, Commit::File)
        );
        assert!(blind.notes.iter().any(|note| note == UNSEEN), "{blind:?}");
        assert!(!blind.discards_later());
    }
}
