//! What a file system does about discards when space is freed, and where they
//! can be counted.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use linux::SysRoot;
use linux::limit::whole;
use linux::stats::DeviceStats;
use linux::target::Description;
use pace::{DebtMode, Work};
use timeline::record::{DeviceInfo, DeviceKind, DiscardSetting};

use super::pieces::Cutting;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Of what is allowed, so much more may be freed where that saves a cut.
const REST: f64 = 0.125;

/// What makes discards come after something was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Commit {
    /// Nothing: they were sent within the call, or aren't waited for.
    Within,
    /// A commit of the journal, which `fsync` of the file forces (ext4, XFS).
    File,
    /// A commit of the whole file system (btrfs).
    Whole,
}

/// What the freer must know of a file system.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ground {
    pub(crate) mode: DebtMode,
    pub(super) commit: Commit,
    /// What is unlinked is freed after the call, in the background (XFS, whose
    /// inodes are inactivated by a worker since Linux 5.14).
    pub(super) frees_later: bool,
    /// Block groups that have become empty are discarded whole, whatever was discarded in
    /// them: by the commit after the one that the cleaner thread was woken by (btrfs).
    pub(super) again: bool,
    pub(super) cutting: Cutting,
    /// The largest discard that will be sent.
    pub(crate) unit: u64,
    /// The shortest that will.
    pub(crate) granularity: u64,
    /// Names of the devices whose statistics count.
    pub(crate) leaves: Vec<String>,
    /// How many bytes are discarded, over all leaves, for each byte freed.
    pub(crate) copies: f64,
    /// A sentence for the user where a drive's statistics count for a partition.
    pub(crate) by_drive: Option<String>,
    /// Sentences for the user, that one included.
    pub(super) notes: Vec<String>,
}

impl Ground {
    /// Of the file system that was described.
    pub(super) fn of(sys: &SysRoot, found: &Description, block: u64) -> Ground {
        let fs = found.target.fs.as_deref().unwrap_or("");
        let leaves: Vec<&DeviceInfo> = found.devices.iter().filter(|d| d.leaf).collect();
        let mut notes = found.notes.clone();
        let mode = mode(sys, found, &leaves, &mut notes);
        let (counted, by_drive) = counted(sys, &leaves);
        notes.extend(by_drive.clone());
        let top = found.devices.iter().find(|device| device.level == 0);
        let journal = fs == "ext3" || top.is_none_or(|top| has_journal(sys, &top.name));
        let commit = match (mode, fs) {
            (DebtMode::Later | DebtMode::Never, _) => Commit::Within,
            (_, "ext2" | "ext4") if !journal => Commit::Within,
            (_, "ext2" | "ext3" | "ext4" | "xfs") => Commit::File,
            (_, "vfat" | "exfat") => Commit::Within,
            _ => Commit::Whole,
        };
        let block = block.max(512);
        let group = match fs {
            // A group's bitmap is one block.
            "ext2" | "ext3" | "ext4" => block * block * 8,
            _ => 0,
        };
        let own = match fs {
            "ext2" | "ext3" | "ext4" => group,
            "btrfs" if mode == DebtMode::Later => 64 * MIB,
            "btrfs" => GIB,
            _ => 4 * GIB,
        };
        let limits = leaves.iter().map(|leaf| &leaf.discard);
        let largest = limits.clone().map(|limit| limit.max_bytes);
        let granularity = limits.map(|limit| limit.granularity_bytes).max();
        Ground {
            mode,
            commit,
            frees_later: fs == "xfs",
            again: fs == "btrfs" && commit == Commit::Whole,
            cutting: Cutting {
                block,
                group,
                // The longest written extent of btrfs (BTRFS_MAX_EXTENT_SIZE).
                indivisible: if fs == "btrfs" { 128 * MIB } else { 0 },
                skips_unwritten: fs == "xfs",
                rest: REST,
            },
            unit: largest
                .filter(|&bytes| bytes > 0)
                .min()
                .map_or(own, |bytes| own.min(bytes))
                .min(4 * GIB),
            granularity: granularity.unwrap_or(0).max(block),
            copies: copies(sys, found),
            leaves: counted,
            by_drive,
            notes,
        }
    }

    /// The same for who trims: it matters not what the mount sends by itself.
    pub(crate) fn trimmed(sys: &SysRoot, found: &Description, block: u64) -> Ground {
        let mut ground = Ground::of(sys, found, block);
        ground.mode = match &ground.leaves[..] {
            [] => DebtMode::Never,
            leaves if leaves.iter().any(|leaf| !counts(sys, leaf)) => DebtMode::Later,
            _ => DebtMode::Commit,
        };
        ground
    }

    /// The work as this file system and its devices shape it.
    pub(crate) fn shape(&self, work: &Work) -> Work {
        Work {
            extents: work
                .extents
                .max(work.bytes.div_ceil(self.unit.max(1)))
                .max(1),
            unit: self.unit.max(1),
            granularity: self.granularity,
            mode: self.mode,
            again: self.again,
            ..*work
        }
    }
}

fn mode(
    sys: &SysRoot,
    found: &Description,
    leaves: &[&DeviceInfo],
    notes: &mut Vec<String>,
) -> DebtMode {
    match found.target.discard {
        DiscardSetting::Off | DiscardSetting::Unsupported => return DebtMode::Never,
        DiscardSetting::Async => return DebtMode::Later,
        DiscardSetting::On | DiscardSetting::Unknown => {}
    }
    if leaves.is_empty() {
        notes.push(
            "no device is known below, so that discards can't be seen: nothing is paced".to_owned(),
        );
        return DebtMode::Never;
    }
    if leaves.iter().any(|leaf| !counts(sys, &leaf.name)) {
        return DebtMode::Later;
    }
    DebtMode::Commit
}

/// Whether a device keeps the counters that its `stat` shows.
fn counts(sys: &SysRoot, device: &str) -> bool {
    let own = class(sys, device);
    // A partition has its drive's queue.
    ["queue/iostats", "../queue/iostats"]
        .iter()
        .find_map(|place| text(own.join(place)))
        .is_none_or(|value| value != "0")
}

/// Names of the devices whose statistics count, each once, and a sentence where they
/// aren't the leaves' own.
fn counted(sys: &SysRoot, leaves: &[&DeviceInfo]) -> (Vec<String>, Option<String>) {
    let (mut names, mut note) = (Vec::new(), None);
    for leaf in leaves {
        let drive = counting_drive(sys, &leaf.name);
        if let Some(drive) = &drive {
            note.get_or_insert_with(|| {
                format!(
                    "{} has no counters of its own: those of {drive} are read, and what others \
                     discard there counts, too",
                    leaf.name
                )
            });
        }
        let name = drive.unwrap_or_else(|| leaf.name.clone());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (names, note)
}

/// The drive that counts for one of its partitions: of an NVMe drive with several paths
/// Linux ≥ 6.3 counts everything there (`nvme_mpath_start_request`, `disk->part0`), and
/// the partition's own `stat` shows not even that it was read to be mounted.
fn counting_drive(sys: &SysRoot, device: &str) -> Option<String> {
    let stat = |name: &str| DeviceStats::open(sys, name).ok()?.read().ok();
    let drive = whole(sys, device).filter(|drive| drive != device)?;
    let own = stat(device)?;
    let counts_there = own.reads == 0 && own.writes == 0 && stat(&drive)?.reads > 0;
    counts_there.then_some(drive)
}

/// Whether an ext4 has a journal: without one, discards are sent within the call.
fn has_journal(sys: &SysRoot, device: &str) -> bool {
    let task = sys.path(format!("/sys/fs/ext4/{device}/journal_task"));
    text(task).is_none_or(|task| task != "<none>")
}

/// How many bytes are discarded for each that is freed: mirrors discard each.
fn copies(sys: &SysRoot, found: &Description) -> f64 {
    let (all, mut known) = (&found.devices, HashMap::new());
    let tops = all.iter().filter(|device| device.level == 0);
    let mut times = mean(tops.map(|top| (top.size_bytes, copies_below(sys, top, all, &mut known))));
    if found.target.fs.as_deref() == Some("btrfs")
        && let Some(top) = found.devices.iter().find(|device| device.level == 0)
    {
        times *= btrfs_copies(sys, &top.name);
    }
    times
}

/// The same of one device: its own, times those of what is below it. `known`: what was
/// looked at; while a device is looked at it counts as 1, so that a loop of them ends.
fn copies_below<'a>(
    sys: &SysRoot,
    device: &'a DeviceInfo,
    all: &'a [DeviceInfo],
    known: &mut HashMap<&'a str, f64>,
) -> f64 {
    if let Some(&times) = known.get(device.name.as_str()) {
        return times;
    }
    known.insert(&device.name, 1.0);
    let own = match device.kind {
        DeviceKind::Md => md_copies(sys, device),
        DeviceKind::Dm => lvm_copies(sys, device, all),
        _ => 1.0,
    };
    let below = all.iter().filter(|one| device.below.contains(&one.name));
    let times = own * mean(below.map(|one| (one.size_bytes, copies_below(sys, one, all, known))));
    known.insert(&device.name, times);
    times
}

/// Of devices' sizes and copies: what a byte has on average. 1 where there are none.
fn mean(devices: impl Iterator<Item = (u64, f64)>) -> f64 {
    let (mut bytes, mut copies) = (0.0, 0.0);
    for (size, times) in devices {
        // Of a size that isn't told they weigh the same.
        let size = size.max(1) as f64;
        bytes += size;
        copies += size * times;
    }
    if bytes > 0.0 { copies / bytes } else { 1.0 }
}

fn md_copies(sys: &SysRoot, device: &DeviceInfo) -> f64 {
    let directory = class(sys, &device.name).join("md");
    let number = |file: &str| -> Option<f64> { text(directory.join(file))?.parse().ok() };
    let disks = number("raid_disks")
        .unwrap_or(device.below.len() as f64)
        .max(1.0);
    let whole = match text(directory.join("level")).as_deref() {
        Some("raid1") => disks,
        Some("raid10") => {
            // Near and far copies: the low two bytes of the layout.
            let layout = number("layout").unwrap_or(258.0) as u64;
            ((layout & 0xff) * (layout >> 8 & 0xff)).max(1) as f64
        }
        Some("raid4" | "raid5") if disks > 1.0 => disks / (disks - 1.0),
        Some("raid6") if disks > 2.0 => disks / (disks - 2.0),
        _ => 1.0,
    };
    // A disk that is missing discards nothing; one that is being rebuilt does.
    let slots = fs::read_dir(&directory).into_iter().flatten().flatten();
    let there = slots.filter(|slot| is_slot(&slot.file_name().to_string_lossy()));
    match there.count() as f64 {
        0.0 => whole,
        there => whole * (there / disks).min(1.0),
    }
}

/// `rd0` and so on link to the disks that an array has (Documentation/admin-guide/md.rst).
fn is_slot(name: &str) -> bool {
    name.strip_prefix("rd")
        .is_some_and(|number| number.parse::<u32>().is_ok())
}

/// By how much larger the images of a mirror or RAID of LVM are than the whole.
fn lvm_copies(sys: &SysRoot, device: &DeviceInfo, all: &[DeviceInfo]) -> f64 {
    let is_image = |name: &str| {
        let name = text(class(sys, name).join("dm/name")).unwrap_or_default();
        name.contains("_rimage_") || name.contains("_mimage_")
    };
    let below = all.iter().filter(|one| device.below.contains(&one.name));
    let images = below.filter(|one| is_image(&one.name));
    let bytes: u64 = images.map(|one| one.size_bytes).sum();
    (bytes as f64 / device.size_bytes.max(1) as f64).max(1.0)
}

/// By the profile in which a btrfs keeps its data.
fn btrfs_copies(sys: &SysRoot, device: &str) -> f64 {
    let Ok(all) = fs::read_dir(sys.path("/sys/fs/btrfs")) else {
        return 1.0;
    };
    let ours = all
        .flatten()
        .map(|entry| entry.path())
        .find(|one| one.join("devices").join(device.replace('/', "!")).exists());
    let Some(ours) = ours else { return 1.0 };
    let data = ours.join("allocation/data");
    let has = |profile: &str| data.join(profile).is_dir();
    match () {
        () if has("raid1c4") => 4.0,
        () if has("raid1c3") => 3.0,
        () if has("raid1") || has("raid10") || has("dup") => 2.0,
        () => 1.0,
    }
}

fn class(sys: &SysRoot, device: &str) -> PathBuf {
    let own = sys.path("/sys/class/block").join(device.replace('/', "!"));
    // So that `..` is the drive of a partition.
    fs::canonicalize(&own).unwrap_or(own)
}

fn text(path: PathBuf) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use linux::mounts;
    use linux::space::Space;
    use linux::target::describe_mount;

    use super::*;

    /// A machine with these files, and what is told of its mount.
    fn ground(mount: &str, files: &[(&str, &str)]) -> Ground {
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

    /// What is told of a mount there.
    fn described(root: &Path, mount: &str) -> Ground {
        let sys = SysRoot::at(root);
        let mount = mounts::parse(mount.as_bytes()).remove(0);
        let space = Space {
            size_bytes: 100 * GIB,
            available_bytes: 50 * GIB,
            block_bytes: 4096,
        };
        let found = describe_mount(&sys, Path::new("/mnt"), mount, space);
        Ground::of(&sys, &found, 4096)
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
        let with_journal = ground(EXT4, &with(&[(task, "123\n")]));
        assert_eq!(with_journal.commit, Commit::File);
        assert_eq!(with_journal.mode, DebtMode::Commit);
        assert_eq!(with_journal.unit, 128 * MIB);
        assert_eq!(with_journal.cutting.group, 128 * MIB);
        assert_eq!(with_journal.leaves, ["sdx"]);
        let without = ground(EXT4, &with(&[(task, "<none>\n")]));
        assert_eq!(
            (without.commit, without.mode),
            (Commit::Within, DebtMode::Commit)
        );
        // ext2, as ext4's code mounts it, has none.
        let ext2 = EXT4.replace("ext4", "ext2");
        let ext2 = ground(&ext2, &with(&[(task, "<none>\n")]));
        assert_eq!((ext2.commit, ext2.unit), (Commit::Within, 128 * MIB));
        // Unknown: a needless fsync is the lesser evil.
        assert_eq!(ground(EXT4, &SDX).commit, Commit::File);
    }

    #[test]
    fn other_file_systems_and_mounts_without_discard() {
        let of = |line: &str| ground(line, &SDX);
        let xfs = of("1 1 8:1 / /mnt rw - xfs /dev/sdx rw,discard\n");
        assert_eq!((xfs.commit, xfs.unit), (Commit::File, 2_147_450_880));
        let sync = of("1 1 8:1 / /mnt rw - btrfs /dev/sdx rw,ssd,discard\n");
        assert_eq!((sync.commit, sync.unit), (Commit::Whole, GIB));
        assert_eq!(sync.cutting.indivisible, 128 * MIB);
        let later = of("1 1 8:1 / /mnt rw - btrfs /dev/sdx rw,ssd,discard=async\n");
        assert_eq!(
            (later.mode, later.commit),
            (DebtMode::Later, Commit::Within)
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
    fn counters_that_are_off_leave_the_rate() {
        let blind = ground(
            EXT4,
            &with(&[("/sys/class/block/sdx/queue/iostats", "0\n")]),
        );
        assert_eq!(blind.mode, DebtMode::Later);
    }

    #[test]
    fn a_drive_counts_for_a_partition_that_does_not() {
        let root = tempfile::tempdir().unwrap();
        let drive = root.path().join("sys/devices/d");
        let part = drive.join("sdx");
        let link = |place: &Path, name: &str| {
            let link = root.path().join("sys").join(name);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(place, link).unwrap();
        };
        fs::create_dir_all(drive.join("queue")).unwrap();
        fs::create_dir_all(&part).unwrap();
        fs::write(part.join("partition"), "1\n").unwrap();
        link(&drive, "class/block/d");
        link(&part, "class/block/sdx");
        link(&part, "dev/block/8:1");
        let told = |drives: u64, own: u64| {
            for (place, reads) in [(&drive, drives), (&part, own)] {
                let text = format!("{reads} 0 8 1 0 0 0 0 0 1 1\n");
                fs::write(place.join("stat"), text).unwrap();
            }
            described(root.path(), EXT4)
        };
        let by_drive = told(100, 0);
        assert_eq!(by_drive.leaves, ["d"]);
        assert!(by_drive.notes.contains(&by_drive.by_drive.unwrap()));
        for (drives, own) in [(0, 0), (100, 5)] {
            let by_itself = told(drives, own);
            assert_eq!(by_itself.leaves, ["sdx"]);
            assert_eq!(by_itself.by_drive, None);
        }
    }

    #[test]
    fn so_do_those_of_lvm() {
        let image = |name: &str| {
            [
                (format!("/sys/class/block/{name}/dev"), "253:1\n".to_owned()),
                (format!("/sys/class/block/{name}/size"), "2048\n".to_owned()),
                (
                    format!("/sys/class/block/{name}/dm/name"),
                    format!("vg-lv_rimage_{name}\n"),
                ),
                (
                    format!("/sys/class/block/sdx/slaves/{name}/x"),
                    String::new(),
                ),
            ]
        };
        let own = [
            ("/sys/class/block/sdx/size".to_owned(), "2048\n".to_owned()),
            (
                "/sys/class/block/sdx/dm/name".to_owned(),
                "vg-lv\n".to_owned(),
            ),
        ];
        let all: Vec<_> = own
            .into_iter()
            .chain(image("dm-1"))
            .chain(image("dm-2"))
            .collect();
        let more = all
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()));
        let files: Vec<_> = SDX.iter().copied().chain(more).collect();
        assert_eq!(ground(EXT4, &files).copies, 2.0);
    }

    #[test]
    fn mirrors_discard_each() {
        let with_disks = |level: &str, layout: &str, there: u32| {
            let more = [
                ("/sys/class/block/sdx/md/level", level),
                ("/sys/class/block/sdx/md/raid_disks", "4\n"),
                ("/sys/class/block/sdx/md/layout", layout),
            ];
            let slots: Vec<_> = (0..there)
                .map(|n| format!("/sys/class/block/sdx/md/rd{n}/x"))
                .collect();
            let slots = slots.iter().map(|slot| (slot.as_str(), ""));
            let files: Vec<(&str, &str)> = SDX.iter().copied().chain(more).chain(slots).collect();
            ground(EXT4, &files).copies
        };
        let md = |level: &str, layout: &str| with_disks(level, layout, 4);
        assert_eq!(md("raid1\n", "0\n"), 4.0);
        assert_eq!(md("raid10\n", "258\n"), 2.0);
        assert_eq!(md("raid0\n", "0\n"), 1.0);
        assert!((md("raid5\n", "2\n") - 4.0 / 3.0).abs() < 1e-9);
        assert_eq!(with_disks("raid1\n", "0\n", 3), 3.0);
        assert_eq!(with_disks("raid10\n", "258\n", 2), 1.0);
        assert!((with_disks("raid5\n", "2\n", 3) - 1.0).abs() < 1e-9);
        let dup = [
            ("/sys/fs/btrfs/uuid/devices/sdx/x", ""),
            ("/sys/fs/btrfs/uuid/allocation/data/raid1/total_bytes", "0"),
        ];
        let btrfs = "1 1 8:1 / /mnt rw - btrfs /dev/sdx rw,ssd,discard\n";
        assert_eq!(ground(btrfs, &with(&dup)).copies, 2.0);
    }

    /// What lies beside each other has as many copies as there are along one path.
    #[test]
    fn mirrors_beside_each_other_are_not_multiplied() {
        let copies = |own: &str, level: &str, sizes: [&str; 2], second: &str| {
            let mut files = vec![
                (format!("sdx/{own}"), level),
                // A loop of devices ends.
                ("md0-a/slaves/sdx/x".to_owned(), ""),
            ];
            for (name, size, level) in [("md0", sizes[0], "raid1"), ("md1", sizes[1], second)] {
                files.extend([
                    (format!("sdx/slaves/{name}/x"), ""),
                    (format!("{name}/size"), size),
                    (format!("{name}/md/level"), level),
                    (format!("{name}/md/raid_disks"), "2"),
                    (format!("{name}/slaves/{name}-a/x"), ""),
                ]);
            }
            let place = |(file, text): (String, _)| (format!("/sys/class/block/{file}"), text);
            let files: Vec<(String, &str)> = files.into_iter().map(place).collect();
            let more = files.iter().map(|(path, text)| (path.as_str(), *text));
            let files: Vec<_> = SDX.iter().copied().chain(more).collect();
            ground(EXT4, &files).copies
        };
        let alike = ["2048", "2048"];
        assert_eq!(copies("dm/name", "vg-lv", alike, "raid1"), 2.0);
        assert_eq!(copies("md/level", "raid0", alike, "raid1"), 2.0);
        // One above the other they are.
        assert_eq!(copies("md/level", "raid1", alike, "raid1"), 4.0);
        assert_eq!(copies("md/level", "raid1", alike, "raid0"), 3.0);
        assert_eq!(copies("dm/name", "vg-lv", ["6144", "2048"], "raid0"), 1.75);
    }
}
