//! `--device`: a raw device, behind guards.

use std::fs;
use std::path::Path;

use crate::common::gate::{LOOP_EXT4, Need, beside, lacks, skip};
use crate::common::loop_fs::{Fs, LoopDevice, LoopFs, On, SMALL, must};
use crate::common::run::{Done, run};
use crate::common::sweep;
use crate::quick::{Files, Measured, command, number};

const LOOP: &[Need] = &[Need::Root, Need::File("/dev/loop-control")];
const MIB: u64 = 1 << 20;

fn on_device(device: &Path, arguments: &[&str]) -> Measured {
    let files = Files::new();
    let device = device.to_string_lossy().into_owned();
    let arguments = [&["--device", &device], arguments].concat();
    let done: Done = run(command(&files, &arguments));
    files.read(done)
}

fn first_bytes(device: &Path) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = fs::File::open(device).unwrap();
    file.take(4 * MIB).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn an_empty_device_is_filled_and_discarded() {
    let _turn = beside();
    if lacks(LOOP) {
        return;
    }
    let device = LoopDevice::new(512, On::Tmpfs);
    let arguments = [
        "--destroy-data",
        "--size",
        "128M",
        "--set",
        "deletion.chunk=16M",
    ];
    let measured = on_device(device.path(), &arguments).succeeds();
    let discard = &measured.verdict["discard"];
    assert_eq!(number(&discard["bytes"]), (128 * MIB) as f64);
    assert_eq!(number(&discard["commands"]), 8.0);
    assert_eq!(measured.deletion()["bytes"], 128 * MIB);
    // The loop's image has given the memory back.
    assert!(device.allocated() < 64 * MIB, "{}", device.allocated());
    let target = &measured.head()["target"];
    assert_eq!(target["path"], &*device.path().to_string_lossy());
    assert!(target["mount"].is_null());
}

#[test]
fn without_destroy_data_it_is_not_touched() {
    let _turn = beside();
    if lacks(LOOP) {
        return;
    }
    let device = LoopDevice::new(512, On::Tmpfs);
    on_device(device.path(), &[])
        .done
        .fails_with(2, &["--destroy-data"]);
    assert_eq!(device.allocated(), 0);
}

#[test]
fn a_mounted_device_is_refused() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    fs::write(fs.path().join("thesis.tex"), "years of work").unwrap();
    let device = fs.device().path();
    let arguments = ["--destroy-data", "--force"];
    let measured = on_device(device, &arguments);
    measured
        .done
        .fails_with(2, &["mounted", &fs.path().to_string_lossy()]);
    assert_eq!(
        fs::read_to_string(fs.path().join("thesis.tex")).unwrap(),
        "years of work"
    );
}

#[test]
fn a_device_in_use_is_refused() {
    let _turn = beside();
    if lacks(LOOP) {
        return;
    }
    let lower = LoopDevice::new(512, On::Tmpfs);
    let upper = lower.over();
    let measured = on_device(lower.path(), &["--destroy-data"]);
    drop(upper);
    measured
        .done
        .fails_with(2, &["in use", &lower.path().to_string_lossy()]);
    assert_eq!(lower.allocated(), 0);
}

#[test]
fn swap_space_in_use_is_refused() {
    let _turn = beside();
    if lacks(LOOP) || lacks(&[Need::Tool("mkswap"), Need::Tool("swapon")]) {
        return;
    }
    let device = LoopDevice::new(512, On::Tmpfs);
    let path = device.path().to_string_lossy().into_owned();
    must("mkswap", &[&path]);
    if !sweep::quietly("swapon", &[&path]) {
        return skip("need a kernel that swaps");
    }
    let measured = on_device(device.path(), &["--destroy-data", "--force"]);
    sweep::quietly("swapoff", &[&path]);
    measured.done.fails_with(2, &[&path]);
    assert!(measured.record.is_empty());
}

#[test]
fn a_signature_must_be_told_to_be_overwritten() {
    let _turn = beside();
    if lacks(LOOP)
        || lacks(&[
            Need::Tool("mkfs.xfs"),
            Need::Tool("mkfs.btrfs"),
            Need::Tool("mkfs.ext4"),
        ])
    {
        return;
    }
    for (maker, told) in [
        ("mkfs.ext4", "ext2/3/4"),
        ("mkfs.xfs", "XFS"),
        ("mkfs.btrfs", "btrfs"),
    ] {
        let device = LoopDevice::new(512, On::Tmpfs);
        let path = device.path().to_string_lossy().into_owned();
        let force = if maker == "mkfs.ext4" { "-F" } else { "-f" };
        must(maker, &["-q", force, &path]);
        let before = first_bytes(device.path());
        let measured = on_device(device.path(), &["--destroy-data"]);
        measured.done.fails_with(2, &[told, "--force"]);
        let after = first_bytes(device.path());
        assert!(after == before, "{told}: it was written to");
        on_device(device.path(), &["--destroy-data", "--force"]).succeeds();
        assert!(first_bytes(device.path()) != before);
    }
}

#[test]
fn a_refusal_costs_no_earlier_record() {
    let _turn = beside();
    if lacks(LOOP) || lacks(&[Need::Tool("mkfs.ext4")]) {
        return;
    }
    let device = LoopDevice::new(512, On::Tmpfs);
    let path = device.path().to_string_lossy().into_owned();
    must("mkfs.ext4", &["-q", "-F", &path]);
    for dry in [false, true] {
        let files = Files::new();
        fs::write(files.record(), "precious").unwrap();
        let mut arguments = vec!["--device", &path, "--destroy-data"];
        arguments.extend(dry.then_some("--dry-run"));
        run(command(&files, &arguments)).fails_with(2, &["ext2/3/4", "--force"]);
        assert_eq!(fs::read_to_string(files.record()).unwrap(), "precious");
        assert!(!files.verdict().exists(), "an empty file is left");
    }
}

#[test]
fn what_is_no_block_device_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "mine").unwrap();
    for path in [
        file.path(),
        Path::new("/dev/null"),
        Path::new("/no/such/device"),
    ] {
        let named = path.to_string_lossy().into_owned();
        on_device(path, &["--destroy-data"])
            .done
            .fails_with(2, &[&named]);
    }
    assert_eq!(fs::read_to_string(file.path()).unwrap(), "mine");
}

#[test]
fn a_device_too_small_is_refused() {
    let _turn = beside();
    if lacks(LOOP) {
        return;
    }
    let device = LoopDevice::new(64, On::Tmpfs);
    let measured = on_device(device.path(), &["--destroy-data", "--size", "1G"]);
    measured.done.fails_with(2, &["--size"]);
    assert_eq!(device.allocated(), 0);
}
