//! Trees as kernels show them, rebuilt in a temporary directory.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::describe_mount;
use linux::mounts;
use linux::space::Space;

use std::fs;

use super::*;

const EXT4: &str = "ext4 /dev/top rw,discard";
const BTRFS: &str = "btrfs /dev/top rw,ssd,discard";

/// A recorded `/sys` whose device `top` is mounted.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Tree {
        Tree(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) -> &Tree {
        let path = self.0.path().join("sys").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn link(&self, from: &str, to: &str) {
        let sys = self.0.path().join("sys");
        fs::create_dir_all(sys.join(from).parent().unwrap()).unwrap();
        let _ = symlink(sys.join(to), sys.join(from));
    }

    /// A device of `mib` MiB over others, all of which are at `devices/NAME`.
    fn device(&self, name: &str, mib: u64, below: &[&str]) -> &Tree {
        self.write(&format!("devices/{name}/dev"), "8:1\n");
        self.write(
            &format!("devices/{name}/size"),
            &format!("{}\n", mib * 2048),
        );
        self.write(
            &format!("devices/{name}/queue/discard_max_bytes"),
            "2147450880\n",
        );
        self.link(&format!("class/block/{name}"), &format!("devices/{name}"));
        for one in below {
            self.link(
                &format!("devices/{name}/slaves/{one}"),
                &format!("devices/{one}"),
            );
        }
        self
    }

    /// An array of md, of which `there` disks are left.
    fn md(&self, name: &str, level: &str, layout: u32, disks: u32, there: u32) -> &Tree {
        self.write(&format!("devices/{name}/md/level"), &format!("{level}\n"));
        self.write(&format!("devices/{name}/md/layout"), &format!("{layout}\n"));
        self.write(
            &format!("devices/{name}/md/raid_disks"),
            &format!("{disks}\n"),
        );
        for slot in 0..there {
            self.write(&format!("devices/{name}/md/rd{slot}/state"), "in_sync\n");
        }
        self
    }

    fn dm(&self, name: &str, dm_name: &str) -> &Tree {
        self.write(&format!("devices/{name}/dm/name"), &format!("{dm_name}\n"))
    }

    fn described(&self, fs: &str) -> Description {
        self.link("dev/block/8:1", "devices/top");
        self.mounted("8:1", fs)
    }

    fn mounted(&self, device: &str, fs: &str) -> Description {
        let sys = SysRoot::at(self.0.path());
        let mount = mounts::parse(format!("1 1 {device} / /mnt rw - {fs}\n").as_bytes()).remove(0);
        let space = Space {
            size_bytes: 100 << 30,
            available_bytes: 50 << 30,
            block_bytes: 4096,
        };
        describe_mount(&sys, Path::new("/mnt"), mount, space)
    }

    /// Names of the leaves' statistics, each with its copies.
    fn leaves(&self, fs: &str) -> Vec<(String, f64)> {
        let sources = leaves(&self.described(fs).devices).into_iter();
        sources.map(|one| (one.device, one.copies)).collect()
    }
}

fn named<const N: usize>(expected: [(&str, f64); N]) -> Vec<(String, f64)> {
    expected
        .map(|(name, copies)| (name.to_owned(), copies))
        .into()
}

#[test]
fn each_leg_of_an_md_raid1_sees_every_byte() {
    let tree = Tree::new();
    tree.device("top", 64, &["sda", "sdb"])
        .md("top", "raid1", 0, 2, 2);
    tree.device("sda", 64, &[]).device("sdb", 64, &[]);
    assert_eq!(tree.leaves(EXT4), named([("sda", 2.0), ("sdb", 2.0)]));
    assert_eq!(mean_copies(&tree.described(EXT4).devices), 2.0);
}

#[test]
fn other_levels_of_md_see_their_share() {
    let copies = |level: &str, layout, disks, there| {
        let tree = Tree::new();
        tree.device("top", 64, &["sda", "sdb"])
            .md("top", level, layout, disks, there);
        tree.device("sda", 64, &[]).device("sdb", 64, &[]);
        tree.leaves(EXT4)[0].1
    };
    assert_eq!(copies("raid0", 0, 2, 2), 1.0);
    assert_eq!(copies("linear", 0, 2, 2), 1.0);
    // Near 2; far 2; near 3.
    assert_eq!(copies("raid10", 258, 4, 4), 2.0);
    assert_eq!(copies("raid10", 513, 4, 4), 2.0);
    assert_eq!(copies("raid10", 259, 4, 4), 3.0);
    assert!((copies("raid5", 2, 4, 4) - 4.0 / 3.0).abs() < 1e-9);
    assert_eq!(copies("raid6", 2, 4, 4), 2.0);
    // A missing disk discards nothing.
    assert_eq!(copies("raid1", 0, 4, 3), 3.0);
    assert_eq!(copies("raid10", 258, 4, 2), 1.0);
    assert!((copies("raid5", 2, 4, 3) - 1.0).abs() < 1e-9);
}

/// `vg/lv`, a `raid1` of LVM: two images and two logs of it, on two drives.
#[test]
fn each_leg_of_an_lvm_mirror_sees_every_byte() {
    let tree = Tree::new();
    let below = ["dm-1", "dm-2", "dm-3", "dm-4"];
    tree.device("top", 64, &below).dm("top", "vg-lv");
    let images = [
        ("dm-1", "vg-lv_rimage_0", "sda"),
        ("dm-2", "vg-lv_rimage_1", "sdb"),
    ];
    let logs = [
        ("dm-3", "vg-lv_rmeta_0", "sda"),
        ("dm-4", "vg-lv_rmeta_1", "sdb"),
    ];
    for ((name, dm_name, drive), mib) in images
        .into_iter()
        .zip([64; 2])
        .chain(logs.into_iter().zip([4; 2]))
    {
        tree.device(name, mib, &[drive]).dm(name, dm_name);
    }
    tree.device("sda", 100, &[]).device("sdb", 100, &[]);
    assert_eq!(tree.leaves(EXT4), named([("sda", 2.0), ("sdb", 2.0)]));
}

#[test]
fn btrfs_counts_by_the_profile_of_its_data() {
    for (profile, copies) in [
        ("data/single", 1.0),
        ("data/raid0", 1.0),
        ("data/raid1", 2.0),
        ("data/raid10", 2.0),
        ("data/raid1c3", 3.0),
        ("data/raid1c4", 4.0),
        ("data/dup", 2.0),
        ("mixed/dup", 2.0),
        ("metadata/dup", 1.0),
    ] {
        let tree = Tree::new();
        tree.device("top", 64, &[]).device("sdb", 64, &[]);
        tree.write(
            &format!("fs/btrfs/uuid/allocation/{profile}/total_bytes"),
            "0\n",
        );
        for device in ["top", "sdb"] {
            tree.link(
                &format!("fs/btrfs/uuid/devices/{device}"),
                &format!("devices/{device}"),
            );
        }
        let own = tree.leaves(BTRFS);
        assert_eq!(own[0], ("top".to_owned(), copies), "{profile}");
    }
}

#[test]
fn raid_0_and_10_spread_data_evenly_and_nothing_else_does() {
    let members = |tree: &Tree, fs: &str| {
        let found = match fs {
            // It has a number of its own, as a file system on several devices has.
            BTRFS => tree.mounted("0:39", fs),
            _ => tree.described(fs),
        };
        over(&SysRoot::at(tree.0.path()), &found.target, &found.devices)
    };
    for (level, expected) in [
        ("raid0", Some(2)),
        ("raid10", Some(2)),
        ("raid1", None),
        ("linear", None),
    ] {
        let tree = Tree::new();
        tree.device("top", 64, &["sda", "sdb"])
            .md("top", level, 0, 2, 2);
        tree.device("sda", 64, &[]).device("sdb", 64, &[]);
        assert_eq!(members(&tree, EXT4), expected, "md {level}");
    }
    for (profiles, expected) in [
        (&["raid0"][..], Some(2)),
        (&["raid1"], None),
        (&["single"], None),
        (&["raid0", "single"], None),
    ] {
        let tree = Tree::new();
        tree.device("top", 64, &[]).device("sdb", 64, &[]);
        for profile in profiles {
            let own = format!("fs/btrfs/uuid/allocation/data/{profile}/total_bytes");
            tree.write(&own, "0\n");
        }
        fs::create_dir(tree.0.path().join("dev")).unwrap();
        fs::write(tree.0.path().join("dev/top"), "").unwrap();
        for device in ["top", "sdb"] {
            tree.link(
                &format!("fs/btrfs/uuid/devices/{device}"),
                &format!("devices/{device}"),
            );
        }
        assert_eq!(members(&tree, BTRFS), expected, "btrfs {profiles:?}");
    }
    let tree = Tree::new();
    tree.device("top", 64, &[]);
    assert_eq!(members(&tree, EXT4), None, "one drive");
}

/// A byte has as many copies as there are along its path: LVM over a mirror and a drive.
#[test]
fn what_lies_beside_a_mirror_counts_by_itself() {
    let tree = Tree::new();
    tree.device("top", 80, &["md0", "sdc"]).dm("top", "vg-lv");
    tree.device("md0", 60, &["sda", "sdb"])
        .md("md0", "raid1", 0, 2, 2);
    for (name, mib) in [("sda", 60), ("sdb", 60), ("sdc", 20)] {
        tree.device(name, mib, &[]);
    }
    let mut leaves = tree.leaves(EXT4);
    leaves.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(leaves, named([("sda", 2.0), ("sdb", 2.0), ("sdc", 1.0)]));
    assert_eq!(mean_copies(&tree.described(EXT4).devices), 1.75);
}

#[test]
fn mirrors_of_mirrors_multiply_and_a_loop_of_devices_ends() {
    let tree = Tree::new();
    tree.device("top", 64, &["md0", "md1"])
        .md("top", "raid1", 0, 2, 2);
    tree.device("md0", 64, &["sda", "sdb", "top"])
        .md("md0", "raid1", 0, 2, 2);
    tree.device("md1", 64, &["sdc"]).md("md1", "raid0", 0, 1, 1);
    for name in ["sda", "sdb", "sdc"] {
        tree.device(name, 64, &[]);
    }
    let mut leaves = tree.leaves(EXT4);
    leaves.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(leaves, named([("sda", 4.0), ("sdb", 4.0), ("sdc", 2.0)]));
}

/// Of an NVMe drive with several paths Linux counts everything at the drive.
#[test]
fn a_drive_counts_for_its_partitions_that_do_not() {
    let tree = Tree::new();
    tree.device("nvme0n1", 64, &[])
        .device("nvme0n1/top", 32, &[])
        .device("nvme0n1/other", 32, &[]);
    for part in ["top", "other"] {
        tree.write(&format!("devices/nvme0n1/{part}/partition"), "1\n");
        fs::remove_dir_all(
            tree.0
                .path()
                .join(format!("sys/devices/nvme0n1/{part}/queue")),
        )
        .unwrap();
        tree.link(
            &format!("class/block/{part}"),
            &format!("devices/nvme0n1/{part}"),
        );
    }
    tree.link("dev/block/8:1", "devices/nvme0n1/top");
    // A btrfs on both: the drive counts once.
    for part in ["top", "other"] {
        tree.link(
            &format!("fs/btrfs/uuid/devices/{part}"),
            &format!("devices/nvme0n1/{part}"),
        );
    }
    let stat = |drive: u64, own: u64| {
        for (place, reads) in [("", drive), ("/top", own), ("/other", own)] {
            let text = format!("{reads} 0 8 1 0 0 0 0 0 1 1\n");
            tree.write(&format!("devices/nvme0n1{place}/stat"), &text);
        }
        tree.described("btrfs /dev/top rw,ssd,discard")
    };
    let by_drive = stat(100, 0);
    assert_eq!(leaves(&by_drive.devices), [Source::single("nvme0n1")]);
    assert_eq!(by_drive.devices[0].statistics(), "nvme0n1");
    assert!(
        by_drive
            .counting_warnings
            .iter()
            .any(|note| note.to_string().contains("no counters of its own"))
    );
    for (drive, own) in [(0, 0), (100, 5)] {
        let by_itself = stat(drive, own);
        assert_eq!(leaves(&by_itself.devices)[0], Source::single("top"));
        assert!(
            !by_itself
                .counting_warnings
                .iter()
                .any(|note| note.to_string().contains("counters"))
        );
    }
}

#[test]
fn counters_that_are_switched_off_are_seen() {
    let tree = Tree::new();
    tree.device("sda", 64, &[]);
    let sys = SysRoot::at(tree.0.path());
    assert!(counts(&sys, "sda"));
    for (value, expected) in [("1\n", true), ("0\n", false)] {
        tree.write("devices/sda/queue/iostats", value);
        assert_eq!(counts(&sys, "sda"), expected);
    }
}
