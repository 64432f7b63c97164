//! `trimbench verify`: healthy places are clean, and each fault of a drive is found and named.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::common::gate::{LOOP_EXT4, beside, lacks, times};
use crate::common::loop_fs::{Fs, LoopDevice, LoopFs, On, SMALL, must};
use crate::common::run::{Done, run, start, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.text()))
}

fn verify(place: &Path, more: &[&str]) -> Done {
    let mut command = trimbench();
    command.arg("verify").arg(place);
    command.args(["--size", "64M", "--json", "-"]).args(more);
    run(command)
}

/// The machine has one drive of a name.
fn name(lab: &OwnLab) -> &str {
    lab.dir().file_name().unwrap().to_str().unwrap()
}

#[test]
fn verify_calls_healthy_file_systems_clean_and_leaves_nothing() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    for (fs, options) in [
        (Fs::Ext4, "discard"),
        (Fs::Xfs, "discard"),
        (Fs::Btrfs, "discard=sync"),
    ] {
        let own = LoopFs::new(fs, options, SMALL, On::Tmpfs);
        let duration = format!("{}s", times(3, 1200));
        let done = verify(own.path(), &["--for", &duration, "--set", "workers=2"]);
        let report = json(done.succeeds());
        assert_eq!(report["outcome"], "clean", "{}", done.text());
        assert!(
            report["operations"]["removals"].as_u64() > Some(0),
            "{}",
            done.text()
        );
        assert!(
            report["operations"]["fstrims"].as_u64() > Some(0),
            "{}",
            done.text()
        );
        assert_eq!(own.names(), Vec::<String>::new());
    }
}

#[test]
fn verify_names_each_fault_of_a_drive() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let device = lab.up(name(&lab), &["--profile", "ideal", "--size", "64M"]);
    for _ in 0..times(1, 25) {
        for (fault, cause) in [
            ("read holes at 5632k+16k", "bad-pattern"),
            ("read flip times 20", "bit-flips"),
            ("read zeros at 9729k+16k", "zeroed"),
            ("read error at 17M+4k", "reported-error"),
            ("write lost times 3", "lost-write"),
            ("write misplaced 1M times 3", "misdirected-write"),
            ("discard neighbour 16k times 40", "wide-trim"),
            ("discard late 200ms rate 50%", "late-trim"),
        ] {
            strike(&lab, &device, fault, cause);
        }
    }
}

/// No finding excludes the cause.
#[track_caller]
fn assert_all_allow(found: &[Value], cause: &str, text: &str) {
    for finding in found {
        let others = finding["other_causes"].as_array().unwrap();
        // A write may have covered what landed in the wrong place before it was read.
        let covered = cause == "misdirected-write" && finding["cause"] == "lost-write";
        let allowed =
            covered || finding["cause"] == cause || others.iter().any(|other| other == cause);
        assert!(allowed, "{}\n{text}", finding["summary"]);
    }
}

fn on_drive<'a>(fs: &'a str, options: &'a str, place: &'a Path) -> [&'a str; 10] {
    let place = place.to_str().unwrap();
    [
        "--profile",
        "ideal",
        "--size",
        "2G",
        "--fs",
        fs,
        "--mount",
        place,
        "-o",
        options,
    ]
}

#[test]
fn verify_excludes_no_true_cause_on_a_file_system() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    for fs in ["ext4", "xfs"] {
        let lab = OwnLab::new();
        let mount = lab.mount();
        lab.up(name(&lab), &on_drive(fs, "discard", &mount));
        let mut findings = 0;
        // A single fault may strike where there are no data.
        for round in 0..10 {
            if findings > 0 && round >= times(1, 10) {
                break;
            }
            for (fault, cause) in [
                ("write lost at 400M+1200M times 3", "lost-write"),
                ("discard neighbour 64k times 3", "wide-trim"),
                ("discard late 500ms at 200M+1600M times 20", "late-trim"),
            ] {
                clear_faults(&lab);
                let mut command = trimbench();
                command.arg("verify").arg(&mount);
                command.args(["--size", "256M", "--for", "3s", "--json", "-"]);
                let running = start(command);
                std::thread::sleep(Duration::from_millis(1500));
                let words = fault.split(' ').collect::<Vec<_>>();
                lab.lab(&[&["fault", name(&lab)], &*words].concat())
                    .succeeds();
                let done = running.wait();
                let report = json(&done);
                let found = report["findings"].as_array().unwrap();
                let text = format!("{fs}, {fault}: {}", done.text());
                println!("{fs}, {fault}: {} findings", found.len());
                assert_all_allow(found, cause, &text);
                findings += found.len();
            }
        }
        assert!(findings > 0, "{fs}: no fault struck any data");
    }
}

/// Clears the faults. Late discards of an earlier one are done by then.
fn clear_faults(lab: &OwnLab) {
    lab.lab(&["fault", name(lab), "clear"]).succeeds();
    std::thread::sleep(Duration::from_millis(600));
}

#[test]
fn verify_keeps_its_result_when_the_drive_is_gone() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let mount = lab.mount();
    lab.up(name(&lab), &on_drive("ext4", "discard", &mount));
    let mut command = trimbench();
    command.arg("verify").arg(&mount);
    command.args(["--size", "64M", "--for", "60s", "--json", "-"]);
    let running = start(command);
    std::thread::sleep(Duration::from_secs(1));
    lab.lab(&["fault", name(&lab), "power", "off"]).succeeds();
    let done = running.wait();
    assert_eq!(done.code(), Some(1), "{}", done.text());
    let report = json(&done);
    assert_eq!(report["outcome"], "incomplete", "{}", done.text());
    let notes = report["notes"].to_string();
    assert!(notes.contains("could not be removed"), "{notes}");
}

#[test]
fn verify_is_not_clean_where_the_kernel_reported_an_error() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let device = lab.up(name(&lab), &["--profile", "ideal", "--size", "64M"]);
    let mut command = trimbench();
    command.arg("verify").arg(&device).arg("--destroy-data");
    command.args(["--size", "64M", "--for", "3s", "--json", "-"]);
    let running = start(command);
    std::thread::sleep(Duration::from_secs(1));
    let fault = ["fault", name(&lab), "read", "error", "times", "1"];
    lab.lab(&fault).succeeds();
    let done = running.wait();
    assert_eq!(done.code(), Some(1), "{}", done.text());
    let report = json(&done);
    assert_eq!(report["outcome"], "errors", "{}", done.text());
    assert_eq!(report["failures"][0]["operation"], "read");
}

/// Switches a fault on at a random time of a test, which must name it.
fn strike(lab: &OwnLab, device: &Path, fault: &str, cause: &str) {
    clear_faults(lab);
    let mut command = trimbench();
    command.arg("verify").arg(device).arg("--destroy-data");
    command.args(["--size", "64M", "--for", "4s", "--json", "-"]);
    let running = start(command);
    std::thread::sleep(Duration::from_millis(fastrand::u64(500..2500)));
    lab.lab(
        &[
            &["fault", name(lab)],
            &*fault.split(' ').collect::<Vec<_>>(),
        ]
        .concat(),
    )
    .succeeds();
    let done = running.wait();
    let report = json(&done);
    let found = report["findings"].as_array().unwrap();
    let named = found.iter().any(|finding| finding["cause"] == cause);
    let mut causes: Vec<String> = found.iter().map(|one| one["cause"].to_string()).collect();
    causes.sort();
    causes.dedup();
    // With --nocapture: the fault matrix.
    println!("{fault} => {}", causes.join(" "));
    assert!(named, "{fault}: {}", done.text());
    assert_all_allow(found, cause, &format!("{fault}: {}", done.text()));
    assert_eq!(done.code(), Some(3), "{fault}");
    assert!(
        found
            .iter()
            .all(|finding| finding["device_sector"].is_u64())
    );
}

#[test]
fn verify_explains_damage_far_from_discards_by_one_cause_in_its_headline() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let device = lab.up(name(&lab), &["--profile", "ideal", "--size", "64M"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let json = elsewhere.path().join("result.json");
    let mut command = trimbench();
    command.arg("verify").arg(&device).arg("--destroy-data");
    command
        .args(["--size", "64M", "--for", "4s", "--json"])
        .arg(&json);
    let running = start(command);
    std::thread::sleep(Duration::from_secs(1));
    lab.lab(&["fault", name(&lab), "discard", "neighbour", "640k"])
        .succeeds();
    let done = running.wait();
    assert_eq!(done.code(), Some(3), "{}", done.text());
    let headline = done.stdout.lines().next().unwrap();
    assert!(
        headline.starts_with("CORRUPT") && headline.contains("the drive trims up to "),
        "{headline}"
    );
    let report: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let causes = report["causes"].as_array().unwrap();
    let places = |cause: &Value| cause["findings"].as_u64().unwrap();
    let all: u64 = causes.iter().map(places).sum();
    assert_eq!(causes[0]["cause"], "wide-trim", "{causes:?}");
    assert!(places(&causes[0]) * 20 > all * 19, "{causes:?}");
    let reach = causes[0]["reach_bytes"].as_u64().unwrap();
    assert!((256 << 10..=640 << 10).contains(&reach), "{reach}");
    assert_eq!(
        done.stdout.matches(" is damaged: ").count(),
        5,
        "{}",
        done.text()
    );
}

#[test]
fn verify_finds_flipped_bits_of_files_with_their_sector() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let mount = lab.mount();
    lab.up(name(&lab), &on_drive("ext4", "discard", &mount));
    // The file system reads its own blocks as well, and would see their damage itself. So only
    // one in a hundred reads is damaged, and only its first bit.
    lab.lab(&["fault", name(&lab), "read", "flip", "rate", "1%"])
        .succeeds();
    let done = verify(
        &mount,
        &["--for", "3s", "--set", "fstrim=false", "--set", "rate=200M"],
    );
    lab.lab(&["fault", name(&lab), "clear"]).succeeds();
    let report = json(&done);
    assert_eq!(report["outcome"], "corrupt", "{}", done.text());
    assert_eq!(done.code(), Some(3));
    let first = &report["findings"][0];
    assert_eq!(first["pattern"]["kind"], "bit-flips", "{}", done.text());
    assert!(first["device_sector"].is_u64(), "{}", done.text());
    assert_eq!(report["operations"]["fstrims"], 0);
}

#[test]
fn verify_removes_what_a_killed_one_left() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let own = LoopFs::small();
    let mut command = trimbench();
    command.arg("verify").arg(own.path());
    command.args(["--size", "64M", "--for", "60s"]);
    let mut running = start(command);
    running.until("it works", || {
        let names = own.names();
        let made = names.first().map(|name| own.path().join(name));
        made.is_some_and(|made| made.join("slot-000016").exists())
    });
    drop(running);
    assert_eq!(own.names().len(), 1);
    let done = verify(own.path(), &["--for", "1s"]);
    assert_eq!(json(done.succeeds())["outcome"], "clean", "{}", done.text());
    assert_eq!(own.names(), Vec::<String>::new());
}

#[test]
fn verify_refuses_what_it_may_not_touch() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let signed = LoopDevice::new(256, On::Tmpfs);
    must("mkfs.ext4", &["-q", signed.path().to_str().unwrap()]);
    verify(signed.path(), &["--destroy-data"]).fails_with(2, &["ext2/3/4", "--force"]);
    let forced = ["--destroy-data", "--for", "1s", "--force"];
    verify(signed.path(), &forced).succeeds();
    let mut start = [0; 2048];
    let device = fs::File::open(signed.path()).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&device, &mut start, 0).unwrap();
    assert_ne!(start[0x438..0x43a], [0x53, 0xef], "the signature is there");
    let own = LoopFs::small();
    let device = own.device().path();
    verify(device, &[]).fails_with(2, &["--destroy-data"]);
    verify(device, &["--destroy-data"]).fails_with(2, &["in use"]);
    verify(device, &["--destroy-data", "--force"]).fails_with(2, &["in use"]);
    verify(own.path(), &["--destroy-data"]).fails_with(2, &["not a block device"]);
    let file = own.path().join("file");
    fs::write(&file, "x").unwrap();
    verify(&file, &[]).fails_with(2, &["is not a directory"]);
    verify(Path::new("/no/such"), &[]).fails_with(2, &["/no/such"]);
    verify(own.path(), &["--size", "1T"]).fails_with(2, &["--size"]);
    verify(Path::new("/dev/shm"), &[]).fails_with(2, &["in memory"]);
}
