//! Raw devices: claimed only when nobody's data can be lost.

use std::os::unix::fs::FileExt;
use std::process::Command;

use linux::files::Caching;
use storage::raw::{RawDevice, RawError, signatures};

use testkit::loop_fs::LoopFs;

use crate::loops::{LoopDevice, attach, can, device, made, partition_table, run};

const TOOLS: &[&str] = &["losetup", "mount", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"];

fn refused(path: &str, overwrite: &[String]) -> RawError {
    RawDevice::claim(path, overwrite).expect_err("should have been refused")
}

#[test]
fn a_blank_device_is_claimed_and_closed_to_others() {
    if !can(TOOLS) {
        return;
    }
    let device = device(64);
    let raw = RawDevice::claim(device.node(), &[]).unwrap();
    assert_eq!(raw.size_bytes(), 64 << 20);
    assert_eq!(raw.name(), device.name());
    assert!(raw.discard().max_bytes > 0);
    let second = refused(device.node(), &[]);
    assert!(matches!(second, RawError::Busy { .. }), "{second}");
    drop(raw);
    run("mkfs.ext4", &["-q", device.node()]);
    let raw = RawDevice::claim(device.node(), &["ext2/3/4".to_owned()]).unwrap();
    // What is opened through the claim can be written, and others can't mount it.
    let file = raw.open(Caching::Buffered).unwrap();
    file.write_all_at(&[7; 4096], 32 << 20).unwrap();
    drop(file);
    let point = tempfile::tempdir().unwrap();
    let mount = Command::new("mount")
        .arg(device.node())
        .arg(point.path())
        .output()
        .unwrap();
    assert!(!mount.status.success(), "a claimed device was mounted");
    drop(raw);
    let holds = refused(device.node(), &[]);
    assert!(matches!(holds, RawError::Signatures { .. }), "{holds}");
}

#[test]
fn what_is_on_it_must_be_allowed() {
    if !can(TOOLS) {
        return;
    }
    let device = device(512);
    run("mkfs.xfs", &["-q", "-f", device.node()]);
    let error = refused(device.node(), &[]).to_string();
    assert!(error.contains("XFS") && error.contains("wipefs"), "{error}");
    let other = ["btrfs".to_owned()];
    refused(device.node(), &other);
    let named = ["XFS".to_owned()];
    let raw = RawDevice::claim(device.node(), &named).unwrap();
    drop(raw);
    // Claiming alone writes nothing.
    refused(device.node(), &[]);
    run("wipefs", &["-q", "--all", device.node()]);
    RawDevice::claim(device.node(), &[]).unwrap();
}

#[test]
fn mounted_devices_are_never_claimed() {
    if !can(TOOLS) {
        return;
    }
    for fs in ["ext4", "xfs", "btrfs"] {
        let mounted = made(fs, "defaults");
        let error = refused(mounted.device().node(), &[]);
        assert!(matches!(error, RawError::InUse { .. }), "{fs}: {error}");
        assert!(error.to_string().contains("mounted"), "{fs}: {error}");
    }
    let pair = LoopFs::pair("defaults", 512);
    for device in pair.devices() {
        refused(device.node(), &[]);
    }
}

#[test]
fn a_drive_with_partitions_is_not_blank_and_a_mounted_one_is_in_use() {
    if !can(&["losetup", "mount", "mkfs.ext4", "addpart", "delpart"]) {
        return;
    }
    let table = partition_table(100 << 11);
    let drive = LoopDevice::starting_with(&table, 128, &["--partscan"]);
    let error = refused(drive.node(), &[]);
    assert!(error.to_string().contains("partition table"), "{error}");
    let partition = format!("{}p1", drive.node());
    if !std::path::Path::new(&partition).exists() {
        // A kernel that doesn't know this kind of table can be told.
        run("addpart", &[drive.node(), "1", "2048", "204800"]);
    }
    run("mkfs.ext4", &["-q", &partition]);
    let point = tempfile::tempdir_in("/dev/shm").unwrap();
    let at = point.path().to_str().unwrap();
    run("mount", &["-o", "discard", &partition, at]);
    let found = storage::describe(at);
    let whole = RawDevice::claim(drive.node(), &[]);
    let own = RawDevice::claim(&partition, &[]);
    run("umount", &[at]);
    run("delpart", &[drive.node(), "1"]);
    for refused in [whole, own] {
        let error = refused.expect_err("should have been refused").to_string();
        assert!(error.contains("p1 is mounted"), "{error}");
    }
    // The partition stands for the drive: its limits, and its own counters.
    let devices = found.unwrap().devices;
    assert_eq!(devices.len(), 1, "{devices:?}");
    assert_eq!(devices[0].name, format!("{}p1", drive.name()));
    assert_eq!(devices[0].kind, record::DeviceKind::Partition);
    assert!(devices[0].leaf && devices[0].discard.max_bytes > 0);
    assert_eq!(devices[0].size_bytes, 100 << 20);
}

#[test]
fn held_devices_are_never_claimed() {
    if !can(TOOLS) {
        return;
    }
    let lower = device(64);
    let upper = attach(lower.path());
    let error = refused(lower.node(), &[]);
    run("losetup", &["-d", upper.to_str().unwrap()]);
    assert!(error.to_string().contains("loop device over"), "{error}");

    let swap = device(64);
    run("mkswap", &[swap.node()]);
    let swapped = Command::new("swapon").arg(swap.node()).output().unwrap();
    if swapped.status.success() {
        let error = refused(swap.node(), &[]);
        run("swapoff", &[swap.node()]);
        assert!(error.to_string().contains("swap"), "{error}");
    } else {
        eprintln!(
            "not tried with swap: {}",
            String::from_utf8_lossy(&swapped.stderr)
        );
    }
}

#[test]
fn read_only_and_empty_devices_and_files_are_refused() {
    if !can(TOOLS) {
        return;
    }
    let read_only = LoopDevice::starting_with(&[], 64, &["--read-only"]);
    let error = refused(read_only.node(), &[]);
    assert!(
        matches!(
            error,
            RawError::ReadOnly { .. } | RawError::NotPermitted { .. }
        ),
        "{error}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    for path in [file.path().to_str().unwrap(), "/dev/null", "/tmp"] {
        let error = refused(path, &[]);
        assert!(matches!(error, RawError::NotABlockDevice { .. }), "{error}");
    }
    let missing = refused("/dev/no-such-device", &[]);
    assert!(missing.to_string().contains("no-such-device"), "{missing}");
    let empty = device(0);
    let error = refused(empty.node(), &[]);
    assert!(matches!(error, RawError::NoSize { .. }), "{error}");
}

#[test]
fn what_the_tools_make_is_recognised() {
    let tools: [(&str, &[&str], &str); 5] = [
        ("mkfs.ext4", &["-q", "-F"], "ext2/3/4"),
        ("mkfs.xfs", &["-q", "-f"], "XFS"),
        ("mkfs.btrfs", &["-q", "-f"], "btrfs"),
        ("mkswap", &[], "swap space"),
        ("mkfs.vfat", &[], "FAT"),
    ];
    let mut tried = 0;
    for (tool, arguments, name) in tools {
        let image = tempfile::NamedTempFile::new().unwrap();
        let size = 512 << 20;
        image.as_file().set_len(size).unwrap();
        match Command::new(tool)
            .args(arguments)
            .arg(image.path())
            .output()
        {
            Ok(output) if output.status.success() => {
                let found = signatures(image.as_file(), size).unwrap();
                assert!(
                    found.iter().any(|one| one.name == name),
                    "{tool}: {found:?}"
                );
                tried += 1;
            }
            other => eprintln!("not tried with {tool}: {other:?}"),
        }
    }
    assert!(
        tried >= 3 || std::env::var_os("CI").is_none(),
        "only {tried} tools"
    );
}
