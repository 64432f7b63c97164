//! The claims of `trimbench rm` and `fstrim` about other I/O: only what was measured, in every mode.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::gate::{LOOP_EXT4, Need, beside, few, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL, must};
use crate::common::run::{Done, Running, start, trimbench};
use crate::common::schema::Schema;
use crate::fstrim::{fstrim, trimmed};
use crate::lab_drive::{NEEDS, OwnLab};
use crate::rm_place::{ext4, ground, removed, rm, seen, written};

/// Reads what a command wrote with `--json`, and compares it with its schema.
fn json(file: &Path) -> Value {
    static SCHEMA: Schema = Schema::new(include_str!("../../../judge/schema/freed-1.json"));
    SCHEMA.parse(&fs::read_to_string(file).unwrap())
}

/// Removes `big` and returns its output and its JSON.
fn told(here: &Path, arguments: &[&str]) -> (Done, Value) {
    let notes = tempfile::tempdir().unwrap();
    let file = notes.path().join("told.json");
    let to = file.to_string_lossy();
    let done = removed(here, &[arguments, &["big", "--json", &to]].concat());
    (done, json(&file))
}

/// The part of a goal that has this name.
fn goal<'a>(told: &'a Value, name: &str) -> &'a Value {
    let goals = told["file_systems"][0]["goals"].as_array().unwrap();
    goals.iter().find(|goal| goal["goal"] == name).unwrap()
}

#[test]
fn a_missed_goal_that_was_given_exits_with_3_and_is_told() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    written(&here.join("big"), 16);
    let (done, told) = told(here, &["--deadline", "1ms"]);
    done.fails_with(3, &["goal --deadline 1ms missed: it took ", " too much"]);
    assert_eq!(seen(here), [""; 0], "all is freed nevertheless");
    let deadline = goal(&told, "deadline");
    assert_eq!(
        (&deadline["result"], &deadline["given"]),
        (&"missed".into(), &true.into()),
        "{told:#}"
    );
    assert_eq!(
        (&told["exit_code"], &told["result"]),
        (&3.into(), &"done".into())
    );
    let decisions = &told["file_systems"][0]["decisions"];
    assert!(decisions["count"].as_u64() > Some(0), "{told:#}");
}

#[test]
fn what_nobody_measured_is_null_and_never_prints_as_0() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    for way in [
        &["--chunk", "1M", "--sleep", "1ms"][..],
        &["--set", "fsync=false"],
        &["--slowdown", "50%"],
    ] {
        written(&here.join("big"), 4);
        let (done, told) = told(here, way);
        let said = &done.succeeds().stderr;
        assert!(said.contains("other I/O lost: not measured"), "{said}");
        assert!(!said.contains("lost 0.0"), "{said}");
        let system = &told["file_systems"][0];
        assert_eq!(system["readers"], Value::Null, "{told:#}");
        assert_eq!(told["exit_code"], 0);
    }
    // Where no discards are sent nobody looks.
    fs.remount("nodiscard");
    written(&here.join("big"), 4);
    let (done, told) = told(here, &["--slowdown", "50%"]);
    let said = &done.succeeds().stderr;
    assert!(said.contains("goal: not measured"), "{said}");
    assert_eq!(told["file_systems"], Value::Array(Vec::new()));
}

#[test]
fn an_interrupted_deletion_writes_its_json_too() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    written(&here.join("big"), 16);
    let notes = tempfile::tempdir().unwrap();
    let file = notes.path().join("told.json");
    let slowly = [
        "big",
        "--chunk",
        "1M",
        "--sleep",
        "200ms",
        "--json",
        &file.to_string_lossy(),
    ];
    let mut running = start(rm(here, &slowly));
    running.until("out of sight", || !here.join("big").exists());
    running.signal(Signal::INT);
    running.wait().fails_with(130, &["interrupted"]);
    let told = json(&file);
    assert_eq!(told["result"], "interrupted");
    assert_eq!(told["left"].as_array().unwrap().len(), 1, "{told:#}");
}

#[test]
fn a_trim_tells_its_goal_and_writes_json() {
    let Some(fs) = ground(Fs::Ext4, "nodiscard", 512) else {
        return;
    };
    let states = tempfile::tempdir().unwrap();
    let file = states.path().join("told.json");
    let (at, to) = (fs.path().to_string_lossy(), file.to_string_lossy());
    let done = trimmed(states.path(), &["--deadline", "1ms", "--json", &to, &at]);
    done.fails_with(
        3,
        &["goal --deadline 1ms missed", "other I/O lost: not measured"],
    );
    let told = json(&file);
    assert_eq!(told["schema"], "trimbench.fstrim/1");
    let system = &told["file_systems"][0];
    assert_eq!(system["result"], "done", "{told:#}");
    assert!(system["trim"]["windows"].as_u64() > Some(0), "{told:#}");
}

/// A process that reads from a simulated drive all the time.
struct Reader(Option<Running>);

impl Reader {
    fn new(lab: &OwnLab, name: &str, file: &Path) -> Reader {
        let job = [
            "fio",
            "--name=r",
            "--rw=randread",
            "--ioengine=libaio",
            "--iodepth=8",
            "--bs=4k",
            "--direct=1",
            "--time_based",
            "--runtime=600",
            "--readonly",
            &format!("--filename={}", file.display()),
        ];
        let mut reader: Command = trimbench();
        reader.args(["lab", "exec", name, "--"]).args(job);
        Reader(Some(start(lab.in_here(reader))))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            running.signal(Signal::TERM);
        }
    }
}

/// Discards of 8 ms and more slow a reader down, and rm measures it, whatever paces it.
#[test]
fn what_readers_lose_is_measured_in_every_mode() {
    let _turn = few();
    if lacks(NEEDS) || lacks(&[Need::Tool("fio")]) {
        return;
    }
    let lab = OwnLab::new();
    let mount = lab.mount();
    let name = lab
        .dir()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let at = mount.to_string_lossy().into_owned();
    let kind = "--profile t500 --slower 8 --size 1536M --fs ext4 -o discard --mount";
    lab.up(&name, &kind.split(' ').chain([&*at]).collect::<Vec<_>>());
    written(&mount.join("read"), 16);
    for mode in [
        &["--chunk", "32M", "--sleep", "20ms"][..],
        &["--slowdown", "30%"],
        &["--slowdown", "2%"],
    ] {
        written(&mount.join("big"), 512);
        must("sync", &["-f", &at]);
        let notes = tempfile::tempdir().unwrap();
        let file = notes.path().join("told.json");
        let to = file.to_string_lossy();
        let reader = Reader::new(&lab, &name, &mount.join("read"));
        std::thread::sleep(std::time::Duration::from_secs(1));
        let arguments = [mode, &["big", "--json", &to]].concat();
        let done = start(lab.in_here(rm(&mount, &arguments))).wait();
        drop(reader);
        let told = json(&file);
        let lost = told["file_systems"][0]["readers"]["lost"]["value"].as_f64();
        let canary = told["file_systems"][0]["canary"]["reads"].as_u64();
        // 2 % can't be told from none: the time after the end is looked at, too.
        let around = &told["file_systems"][0]["readers"]["baseline"]["around"];
        let is_vague =
            mode == ["--slowdown", "2%"] && goal(&told, "slowdown")["result"] != "missed";
        assert_eq!(around.is_object(), done.stderr.contains("/s after it)"));
        // A machine that is busy enough leaves the reader nothing.
        if lost.is_none_or(|lost| lost < 0.03 && !is_vague)
            || canary.is_none()
            || is_vague && around.is_null()
        {
            panic!("{mode:?}: {}\n{told:#}", done.text());
        }
        assert!(done.stderr.contains(" of its reads"), "{}", done.text());
    }
}

/// As tuning guides of databases tell people to set it.
fn count(fs: &LoopFs, on: bool) {
    fs::write(fs.device().queue("iostats"), if on { "1" } else { "0" }).unwrap();
}

#[test]
fn where_counters_are_off_the_rate_is_held() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Tmpfs);
    let here = fs.path();
    for on in [true, false] {
        written(&here.join("big"), 128);
        must("sync", &["-f", &here.to_string_lossy()]);
        count(&fs, on);
        let (done, told) = told(here, &["--slowdown", "10%"]);
        count(&fs, true);
        let said = &done.succeeds().stderr;
        let system = &told["file_systems"][0];
        assert_eq!(system["discarded_bytes"].is_null(), !on, "{told:#}");
        for part in ["queue/iostats", "the rate is held", "discards not counted"] {
            assert_eq!(said.contains(part), !on, "{part}: {said}");
        }
        let rows = system["decisions"]["rows"].as_array().unwrap();
        // As far as it is known, somebody reads.
        assert!(on || rows.iter().all(|row| row[1] == "holding"), "{told:#}");
    }
}

/// The loop device's are off, those of the drive below it count.
#[test]
fn where_the_drive_below_counts_a_loop_device_need_not() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Disk);
    count(&fs, false);
    written(&fs.path().join("big"), 64);
    must("sync", &["-f", &fs.path().to_string_lossy()]);
    let (done, told) = told(fs.path(), &["--slowdown", "50%"]);
    count(&fs, true);
    let said = &done.succeeds().stderr;
    let system = &told["file_systems"][0];
    // Where the disk below takes no discards, or isn't known, the loop device is the last.
    if !said.contains("queue/iostats") {
        assert!(system["discarded_bytes"].as_u64() > Some(0), "{told:#}");
    }
}

/// Discards of 50 ms and more: what is refused is refused before a name is gone, in units
/// that fit, and what is offered is accepted.
#[test]
fn a_latency_is_refused_before_anything_is_renamed_and_the_offer_holds() {
    let _turn = beside();
    if lacks(NEEDS) {
        return;
    }
    let lab = OwnLab::new();
    let mount = lab.mount();
    let name = lab
        .dir()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let at = mount.to_string_lossy().into_owned();
    let kind = "--profile vertex-2 --size 512M --fs ext4 -o discard --mount";
    lab.up(&name, &kind.split(' ').chain([&*at]).collect::<Vec<_>>());
    written(&mount.join("big"), 16);
    must("sync", &["-f", &at]);
    let with = |limit: &str| {
        let arguments = ["big", "--max-latency", limit];
        start(lab.in_here(rm(&mount, &arguments))).wait()
    };
    let refused = with("6ms");
    refused.fails_with(1, &["a latency of 6.0 ms can't be held", "can be met"]);
    assert_eq!(seen(&mount), ["big"], "{}", refused.text());
    assert!(
        !refused.text().contains("no block device"),
        "{}",
        refused.text()
    );
    let said = &refused.stderr;
    let offer = said.split("--max-latency ").nth(1).unwrap();
    let offer = offer.split_whitespace().next().unwrap();
    assert!(offer.ends_with("ms") && !offer.contains("us"), "{said}");
    let done = with(offer);
    // It may be missed for a moment on a busy machine, but is not refused.
    assert!(matches!(done.code(), Some(0 | 3)), "{}", done.text());
    assert!(!done.text().contains("no block device"), "{}", done.text());
    assert_eq!(seen(&mount), [""; 0], "{}", done.text());
}

/// The first windows are the try: nothing is lost by a refusal, and the command that is printed
/// goes on.
#[test]
fn a_trim_refuses_a_latency_and_prints_a_command_that_goes_on() {
    let _turn = beside();
    if lacks(NEEDS) {
        return;
    }
    let lab = OwnLab::new();
    let mount = lab.mount();
    let name = lab
        .dir()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let at = mount.to_string_lossy().into_owned();
    let kind = "--profile vertex-2 --size 512M --fs ext4 -o nodiscard --mount";
    lab.up(&name, &kind.split(' ').chain([&*at]).collect::<Vec<_>>());
    let states = tempfile::tempdir().unwrap();
    let with = |goal: &[&str]| {
        let arguments = [goal, &[&at]].concat();
        start(lab.in_here(fstrim(states.path(), &arguments))).wait()
    };
    let refused = with(&["--max-latency", "6ms"]);
    refused.fails_with(1, &["a latency of 6.0 ms can't be held", "can be met"]);
    let said = refused.text();
    assert!(!said.contains("no block device"), "{said}");
    let on = said.split("trimbench fstrim --resume ").nth(1).unwrap();
    let goal = on.split_whitespace().next().unwrap();
    assert!(goal.starts_with("--max-latency="), "{said}");
    let done = with(&["--resume", goal]);
    assert!(matches!(done.code(), Some(0 | 3)), "{}", done.text());
}

/// Standard output holds the JSON and nothing else, whatever else is asked for.
#[test]
fn json_goes_to_standard_output_for_a_dash() {
    let Some(fs) = ext4("nodiscard", 512) else {
        return;
    };
    let here = fs.path();
    written(&here.join("big"), 8);
    let told = removed(here, &["big", "--verbose", "--json", "-"]);
    let found: Value = serde_json::from_str(&told.succeeds().stdout).unwrap();
    assert_eq!(
        (&found["schema"], &found["result"]),
        (&"trimbench.rm/1".into(), &"done".into())
    );
    assert!(told.stderr.contains("removed"), "{}", told.text());
    let states = tempfile::tempdir().unwrap();
    let at = here.to_string_lossy();
    let told = trimmed(states.path(), &[&at, "--verbose", "--json", "-"]);
    let found: Value = serde_json::from_str(&told.succeeds().stdout).unwrap();
    assert_eq!(found["schema"], "trimbench.fstrim/1");
    assert!(told.stderr.contains("trimmed"), "{}", told.text());
    assert!(!here.join("-").exists());
}
