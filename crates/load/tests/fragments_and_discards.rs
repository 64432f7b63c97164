//! A file fragmented on purpose is freed by discards of that size.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use load::deleter::{Device, Discard, Files, Unlink};
use load::{Clock, Deletion, DeletionSpec, Fill, FillReport, FillSpec};

mod support;

const MIB: u64 = 1 << 20;

fn fill(path: &Path, len: u64, extent_bytes: Option<u64>) -> FillReport {
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .expect("create");
    let spec = FillSpec {
        file: Arc::new(file),
        path: path.to_owned(),
        len,
        direct: true,
        extent_bytes,
        seed: 1,
    };
    Fill::start(spec).expect("starts").wait().expect("fills")
}

fn commit(directory: &Path) {
    let root = File::open(directory).expect("open the mount point");
    rustix::fs::syncfs(root).expect("syncfs");
}

fn discards_have_the_extents_size(kind: &str, options: &str) {
    let Some(fs) = support::LoopFs::new(kind, options) else {
        return;
    };
    let path = fs.path().join("victim");
    let (len, extent) = (96 * MIB, MIB);
    let report = fill(&path, len, Some(extent));
    assert_eq!(report.notes, Vec::<String>::new());
    let extents = report.extents.expect("FIEMAP works here");
    assert!((86..=106).contains(&extents), "{extents} extents of 96");
    let stat = std::os::unix::fs::MetadataExt::blocks(&path.metadata().expect("stat")) * 512;
    assert!(stat.abs_diff(len) < len / 50, "{stat} bytes are allocated");

    commit(&fs.path());
    std::thread::sleep(Duration::from_millis(500));
    let before = fs.device().discards();
    let unlink = DeletionSpec {
        method: Unlink { parallel: 1 }.into(),
        files: Files {
            paths: vec![path],
            ..Files::default()
        },
    };
    let deletion = Deletion::start(unlink, Clock::start()).expect("starts");
    let progress = deletion.finish(Duration::from_secs(20)).progress;
    assert_eq!(progress.freed_bytes, stat);
    let begin = Instant::now();
    let (mut count, mut bytes) = (0, 0);
    while bytes < len * 98 / 100 && begin.elapsed() < Duration::from_secs(60) {
        commit(&fs.path());
        std::thread::sleep(Duration::from_millis(100));
        let now = fs.device().discards();
        (count, bytes) = (now.0 - before.0, now.1 - before.1);
    }
    assert!(
        bytes >= len * 98 / 100,
        "only {bytes} of {len} bytes were discarded"
    );
    assert!(
        (86..=120).contains(&count),
        "{count} discards of 96 extents"
    );
    // ext4 discards on from a freed extent to the next block in use.
    let beyond = if kind == "ext4" { 256 * MIB } else { len / 10 };
    assert!(bytes <= len + beyond, "{bytes} bytes were discarded");
    drop(report.spacer);
}

#[test]
fn on_ext4() {
    discards_have_the_extents_size("ext4", "discard");
}

#[test]
fn on_xfs() {
    discards_have_the_extents_size("xfs", "discard");
}

#[test]
fn on_btrfs() {
    discards_have_the_extents_size("btrfs", "discard=sync");
}

#[test]
fn a_plain_file_is_hardly_fragmented() {
    let Some(fs) = support::LoopFs::new("ext4", "discard") else {
        return;
    };
    let report = fill(&fs.path().join("plain"), 96 * MIB, None);
    assert!(
        report.extents.expect("FIEMAP works here") <= 4,
        "{report:?}"
    );
    assert!(report.spacer.is_none());
}

#[test]
fn a_full_disk_is_a_plain_error() {
    let Some(fs) = support::LoopFs::new("ext4", "discard") else {
        return;
    };
    for extent_bytes in [None, Some(MIB)] {
        let path = fs.path().join("too-large");
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .expect("create");
        let spec = FillSpec {
            file: Arc::new(file),
            path: path.clone(),
            len: 4 << 30,
            direct: true,
            extent_bytes,
            seed: 1,
        };
        let error = Fill::start(spec)
            .expect("starts")
            .wait()
            .expect_err("no room");
        assert!(
            matches!(error, load::LoadError::NoSpace { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains("too-large"));
    }
}

#[test]
fn a_raw_device_is_discarded_in_steps() {
    let Some(fs) = support::LoopFs::new("ext4", "discard") else {
        return;
    };
    // A second device over a file on the first.
    let image = fs.path().join("image");
    fill(&image, 64 * MIB, None);
    let output = std::process::Command::new("losetup")
        .args(["--find", "--show"])
        .arg(&image)
        .output()
        .expect("losetup");
    let device = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let file = File::options()
        .read(true)
        .write(true)
        .open(&device)
        .expect("open");
    let step_bytes = 10 * MIB;
    let spec = DeletionSpec {
        method: Discard { step_bytes }.into(),
        files: Files {
            device: Some(Device {
                file: Arc::new(file),
                path: device.clone().into(),
                start: 0,
            }),
            size_bytes: 64 * MIB,
            ..Files::default()
        },
    };
    let deletion = Deletion::start(spec, Clock::start()).expect("starts");
    let outcome = deletion.finish(Duration::from_secs(20));
    let detached = std::process::Command::new("losetup")
        .args(["--detach", &device])
        .status();
    assert!(detached.expect("losetup").success());
    assert_eq!(
        (outcome.first_error, outcome.progress.freed_bytes),
        (None, 64 * MIB)
    );
    let left = std::os::unix::fs::MetadataExt::blocks(&image.metadata().expect("stat")) * 512;
    assert!(left < MIB, "{left} bytes are still allocated");
}
