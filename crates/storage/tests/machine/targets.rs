//! Targets, counters and files on real file systems.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::files::{self, DirectIo};
use linux::mounts::Mount;
use linux::stats::DeviceStats;
use record::{DeviceKind, DiscardSetting};

use testkit::loop_fs::LoopFs;

use crate::loops::{LoopDevice, can, made, run};

const TOOLS: &[&str] = &["losetup", "mount", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"];
const SIZE: u64 = 64 << 20;

pub(crate) fn write_file(path: &Path, bytes: u64) {
    let mut file = File::create(path).unwrap();
    // XFS preallocates beyond the end of a growing file, and counts that.
    file.set_len(bytes).unwrap();
    let mut block = vec![0u8; 1 << 20];
    for number in 0..bytes >> 20 {
        // Not to be taken for a hole or compressed.
        for (at, byte) in block.iter_mut().enumerate() {
            *byte = (at as u64).wrapping_mul(number * 2 + 0x9e37) as u8;
        }
        file.write_all(&block).unwrap();
    }
    file.sync_all().unwrap();
}

#[test]
fn each_file_system_says_whether_it_discards() {
    if !can(TOOLS) {
        return;
    }
    for (fs, options, expected) in [
        ("ext4", "discard", DiscardSetting::On),
        ("ext4", "nodiscard", DiscardSetting::Off),
        ("xfs", "discard", DiscardSetting::On),
        ("xfs", "nodiscard", DiscardSetting::Off),
        ("btrfs", "discard", DiscardSetting::On),
        ("btrfs", "discard=async", DiscardSetting::Async),
        ("btrfs", "nodiscard", DiscardSetting::Off),
    ] {
        let mounted = made(fs, options);
        let found = storage::describe(mounted.path()).unwrap();
        assert_eq!(
            found.target.discard, expected,
            "{fs} {options}: {:?}",
            found.target.options
        );
        assert_eq!(found.target.fs.as_deref(), Some(fs));
        assert_eq!(found.target.mount.as_deref(), mounted.path().to_str());
        let [device] = &found.devices[..] else {
            panic!("{:?}", found.devices);
        };
        assert_eq!(device.name, mounted.device().name());
        assert_eq!((device.kind, device.leaf), (DeviceKind::Loop, true));
        assert_eq!(device.size_bytes, 512 << 20);
        assert!(device.discard.max_bytes > 0);
    }
}

#[test]
fn btrfs_over_two_devices_and_a_subvolume() {
    if !can(TOOLS) {
        return;
    }
    let mounted = LoopFs::pair("discard", 512);
    let subvolume = mounted.path().join("sub");
    run(
        "btrfs",
        &["subvolume", "create", subvolume.to_str().unwrap()],
    );
    let found = storage::describe(&subvolume).unwrap();
    assert_eq!(found.target.mount.as_deref(), mounted.path().to_str());
    let mut names: Vec<&str> = found
        .devices
        .iter()
        .map(|device| device.name.as_str())
        .collect();
    let mut expected: Vec<&str> = mounted.devices().map(LoopDevice::name).collect();
    names.sort();
    expected.sort();
    assert_eq!(names, expected);
    assert!(
        found
            .devices
            .iter()
            .all(|device| device.leaf && device.level == 0)
    );
}

#[test]
fn a_bind_mount_is_a_mount_of_its_own() {
    if !can(TOOLS) {
        return;
    }
    let mounted = made("ext4", "discard");
    let (from, to) = (mounted.path().join("from a"), mounted.path().join("to"));
    for directory in [&from, &to] {
        std::fs::create_dir(directory).unwrap();
    }
    run(
        "mount",
        &["--bind", from.to_str().unwrap(), to.to_str().unwrap()],
    );
    let bound = Mount::of(&to);
    run("umount", &[to.to_str().unwrap()]);
    let bound = bound.unwrap();
    assert_eq!(
        (bound.mount_point.as_path(), bound.root.as_path()),
        (to.as_path(), Path::new("/from a"))
    );
    assert_eq!(bound.super_option("discard"), Some(""));
    assert_eq!(Mount::of(&from).unwrap().mount_point, mounted.path());
}

#[test]
fn a_loop_on_a_disk_leads_to_the_disk() {
    if !can(TOOLS) {
        return;
    }
    // A loop device whose file is on another one's file system.
    let outer = made("ext4", "nodiscard");
    let image = outer.path().join("image");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let inner = crate::loops::attach(&image);
    let found = storage::describe_device(&inner);
    run("losetup", &["-d", inner.to_str().unwrap()]);
    let found = found.unwrap();
    assert_eq!(found.devices.len(), 2, "{:?}", found.devices);
    assert!(!found.devices[0].leaf && found.devices[1].leaf);
    assert_eq!(found.devices[1].name, outer.device().name());
    assert!(
        found
            .warnings
            .iter()
            .any(|warning| warning.to_string().contains("punch holes")),
        "{:?}",
        found.warnings
    );
}

#[test]
fn counters_see_what_was_deleted() {
    if !can(TOOLS) {
        return;
    }
    for fs in ["ext4", "xfs", "btrfs"] {
        let mounted = made(fs, "discard");
        let path = mounted.path().join("victim");
        write_file(&path, SIZE);
        let freed = files::allocated_bytes(&path.metadata().unwrap());
        let stats = DeviceStats::open(&SysRoot::host(), mounted.device().name()).unwrap();
        let earlier = stats.read().unwrap();
        std::fs::remove_file(&path).unwrap();
        let give_up = Instant::now() + Duration::from_secs(60);
        let did = loop {
            files::syncfs(mounted.path()).unwrap();
            let did = stats.read().unwrap().since(&earlier);
            if did.discard_bytes >= freed || Instant::now() > give_up {
                break did;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        assert!(freed >= SIZE, "{fs}: {freed}");
        // Of each block group (128 MiB) that it freed something in, ext4 may
        // discard all that is free around it (seen with Linux 6.18).
        let most = if fs == "ext4" {
            freed + (256 << 20)
        } else {
            freed / 10 * 11
        };
        let range = freed / 100 * 98..=most;
        assert!(
            range.contains(&did.discard_bytes),
            "{fs}: {did:?} of {freed}"
        );
        assert!(did.discards > 0, "{fs}: {did:?}");
    }
}

#[test]
fn direct_io_works() {
    if !can(TOOLS) {
        return;
    }
    for fs in ["ext4", "xfs", "btrfs"] {
        let mounted = made(fs, "discard");
        let probed = files::probe_direct(mounted.path()).unwrap();
        assert!(matches!(probed, DirectIo::Works(_)), "{fs}: {probed:?}");
    }
}
