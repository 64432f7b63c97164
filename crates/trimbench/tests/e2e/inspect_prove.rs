//! `trimbench inspect --prove`: on drives that act on TRIM, ignore it, or do too much.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::gate::{beside, lacks};
use crate::common::loop_fs::{must, names};
use crate::common::run::{as_plain_user, copied_to, run, start, trimbench};
use crate::inspect::conforms;
use crate::lab_drive::{NEEDS, OwnLab};

/// A proof in a directory, as JSON.
#[track_caller]
fn proven(lab: &OwnLab, place: &Path) -> Value {
    let mut command = trimbench();
    command
        .args(["inspect", "--json", "-", "--prove"])
        .arg(place);
    conforms(&run(lab.in_here(command)).succeeds().stdout)
}

/// A drive of this size with ext4 that discards: its name, mount and device.
fn ideal(size: &str) -> (OwnLab, String, PathBuf, PathBuf) {
    let lab = OwnLab::new();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let mount = lab.mount();
    let at = mount.to_str().unwrap();
    let options = [
        "--profile",
        "ideal",
        "--size",
        size,
        "--fs",
        "ext4",
        "--mount",
        at,
        "-o",
        "discard",
    ];
    let device = lab.up(&name, &options);
    (lab, name, mount, device)
}

/// A drive with a file system and a fault: the result, and the findings.
#[track_caller]
fn on_drive(profile: &str, fs: &str, options: &str, fault: &str) -> (String, Vec<String>) {
    let lab = OwnLab::new();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let mount = lab.mount();
    let at = mount.to_str().unwrap();
    let up = [
        "--profile",
        profile,
        "--size",
        "3G",
        "--fs",
        fs,
        "--mount",
        at,
        "-o",
        options,
    ];
    let device = lab.up(&name, &up);
    // Whoever had the loop device before may have switched its counters off.
    let queue = Path::new("/sys/block").join(device.file_name().unwrap());
    std::fs::write(queue.join("queue/iostats"), "1").unwrap();
    if !fault.is_empty() {
        let words: Vec<&str> = fault.split(' ').collect();
        lab.lab(&[&["fault", &name], &words[..]].concat())
            .succeeds();
    }
    let value = proven(&lab, &mount);
    // Shown where the test fails.
    println!("{profile} {fs} {options} {fault}: {value:#}");
    let findings = value["findings"].as_array().unwrap().iter();
    let ids = findings
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    let left = names(&mount);
    assert!(left.iter().all(|one| one == "lost+found"), "{left:?}");
    (value["proof"]["result"].as_str().unwrap().to_owned(), ids)
}

#[test]
fn a_drive_that_acts_on_trim_is_proven_to() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    for (fs, options) in [
        ("ext4", "discard"),
        ("xfs", "discard"),
        ("btrfs", "discard"),
        ("ext4", "nodiscard"),
        ("btrfs", "nodiscard"),
    ] {
        let (result, ids) = on_drive("ideal", fs, options, "");
        assert_eq!(result, "arrives", "{fs} {options}");
        assert!(!ids.contains(&"claims-but-ignores".to_owned()), "{ids:?}");
    }
}

#[test]
fn a_drive_that_ignores_trim_is_found_out() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    for fs in ["ext4", "xfs", "btrfs"] {
        let (result, ids) = on_drive("ideal", fs, "discard", "discard nothing");
        assert_eq!(result, "ignored", "{fs}");
        assert_eq!(ids[0], "claims-but-ignores", "{ids:?}");
    }
}

#[test]
fn a_drive_that_trims_too_much_is_found_out() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let (result, ids) = on_drive("ideal", "ext4", "discard", "discard neighbour 4k");
    assert_eq!(
        (result.as_str(), ids[0].as_str()),
        ("too-much", "trims-too-much")
    );
}

#[test]
fn counters_that_are_off_are_no_proof() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let (lab, name, mount, device) = ideal("3G");
    let queue = Path::new("/sys/block").join(device.file_name().unwrap());
    std::fs::write(queue.join("queue/iostats"), "0").unwrap();
    // Its blocks tell all the same.
    let proof = proven(&lab, &mount);
    lab.lab(&["fault", &name, "discard", "nothing"]).succeeds();
    let ignored = proven(&lab, &mount);
    std::fs::write(queue.join("queue/iostats"), "1").unwrap();
    assert_eq!(proof["proof"]["result"], "arrives", "{proof:#}");
    assert_eq!(ignored["proof"]["result"], "unknown", "{ignored:#}");
}

/// A hole in a file reads as zeros, whatever became of its blocks.
#[test]
fn a_file_system_in_a_file_proves_nothing_of_the_drive() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let (lab, name, mount, _) = ideal("4G");
    lab.lab(&["fault", &name, "discard", "nothing"]).succeeds();
    let image = mount.join("image");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(3 << 30)
        .unwrap();
    let inner = tempfile::tempdir().unwrap();
    let (image, place) = (image.to_str().unwrap(), inner.path().to_str().unwrap());
    must("mkfs.ext4", &["-q", image]);
    must("mount", &["-o", "loop,discard", image, place]);
    let value = proven(&lab, inner.path());
    must("umount", &[place]);
    let proof = &value["proof"];
    assert_eq!(proof["result"], "counted", "{value:#}");
    let why = proof["raw_missing"].as_str().unwrap();
    assert!(why.contains("(loop device) answers"), "{why}");
}

#[test]
fn a_drive_without_trim_gets_none() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    assert_eq!(on_drive("no-trim", "xfs", "discard", "").0, "not-sent");
}

#[test]
fn a_place_that_can_prove_nothing_is_refused() {
    let refused = |place: &str, code, words: &[&str]| {
        let mut command = trimbench();
        command.args(["inspect", "--prove", place]);
        run(command).fails_with(code, words);
    };
    refused("/dev/null", 2, &["/dev/null", "name a directory"]);
    refused("/dev/shm", 1, &["tmpfs", "name another directory"]);
    refused("/no/such", 2, &["/no/such"]);
    let mut command = trimbench();
    command.args(["inspect", "--prove", "--all"]);
    run(command).fails_with(2, &["cannot be used with"]);
}

#[test]
fn without_root_discards_are_counted_and_no_block_is_read() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let mut command = as_plain_user(&copied_to(folder.path()));
    command
        .args(["inspect", "--json", "-", "--prove"])
        .arg(folder.path());
    let done = run(command);
    if done.code() == Some(1) {
        // A mount without discard can't be trimmed by it.
        done.fails_with(1, &["run as root"]);
        return;
    }
    let value = conforms(&done.succeeds().stdout);
    assert_eq!(value["proof"]["raw"], Value::Null, "{value:#}");
    assert!(
        value["proof"]["raw_missing"]
            .as_str()
            .unwrap()
            .contains("root"),
        "{value:#}"
    );
}

#[test]
fn an_interrupted_proof_leaves_nothing() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let mount = lab.mount();
    let at = mount.to_str().unwrap();
    // Its discards come two minutes later, so that there is time.
    let options = ["--fs", "btrfs", "--mount", at, "-o", "discard=async"];
    lab.up(
        &name,
        &[&["--profile", "ideal", "--size", "3G"], &options[..]].concat(),
    );
    let mut command = trimbench();
    command.args(["inspect", "--prove"]).arg(&mount);
    let mut running = start(lab.in_here(command));
    running.until("the probe", || {
        names(&mount)
            .iter()
            .any(|one| one.starts_with(".trimbench-"))
    });
    running.signal(Signal::INT);
    assert_eq!(running.wait().code(), Some(130));
    assert!(names(&mount).is_empty());
}

#[test]
fn a_forecast_names_what_it_leaves_out_on_btrfs_and_on_a_slowed_drive() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let mount = lab.mount();
    let at = mount.to_str().unwrap();
    let up = [
        "--profile",
        "t500",
        "--size",
        "3G",
        "--fs",
        "btrfs",
        "--mount",
        at,
    ];
    lab.up(
        &name,
        &[&up[..], &["-o", "discard", "--slower", "6"]].concat(),
    );
    let file = mount.join("old");
    std::fs::write(&file, vec![7; 8 << 20]).unwrap();
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    let mut command = trimbench();
    command.args(["inspect", "--profile", "t500", "--if-deleted"]);
    command.arg(&file);
    let text = run(lab.in_here(command)).succeeds().stdout.clone();
    for part in [
        "(on btrfs a rough figure: it frees",
        "6 times slower): the times forecast are those of --profile",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("predicted-stall"), "{text}");
}
