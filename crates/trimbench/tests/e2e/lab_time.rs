//! Drives in stretched time, and what was measured on them in the time of the
//! drives they stand for.

use serde_json::Value;

use crate::common::gate::{beside, lacks, undisturbed};
use crate::common::run::{run, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};
use crate::quick::{Files, command_on, conforms};

/// A T500 but for a: the few discards of a small deletion make a stall.
const DRIVE: &str = "--profile t500 --size 4G --slower 4 --set a=75ms --set write.latency=0 \
                     --set write.per_mib=0ns/MiB --fs ext4 -o discard";
const RUN: &str = "--size 2G --set foreground.size=64M --depth 4 --set canary=0 --settle 2s --baseline 2s \
                   --recovery 1s --set phases.interval=100ms";
/// The time of a discard of 128 MiB on it, in seconds.
const SERVICE_S: f64 = 0.075 + 128.0 * 8.17e-6;

fn stall(verdict: &Value) -> &Value {
    let actors = verdict["foreground"].as_array().unwrap();
    &actors.iter().find(|a| a["actor"] == "reader").unwrap()["stall"]
}

#[test]
fn a_slowed_drive_is_told_in_the_time_of_what_it_stands_for() {
    if lacks(NEEDS) {
        return;
    }
    let Some(_turn) = undisturbed() else { return };
    let lab = OwnLab::new();
    let mount = lab.mount();
    let mut drive: Vec<&str> = DRIVE.split_whitespace().collect();
    drive.extend(["--mount", mount.to_str().unwrap()]);
    lab.up(&format!("time-{}", std::process::id()), &drive);
    let files = Files::new();
    let mut arguments: Vec<&str> = RUN.split_whitespace().collect();
    arguments.extend(["--set", "judge.as-drive=true"]);
    let measured = files
        .read(run(lab.in_here(command_on(&mount, &files, &arguments))))
        .succeeds();
    let told = &measured.verdict;
    assert_eq!(told["verdict"], "stall", "{}", measured.done.text());
    assert_eq!(
        told["slower"],
        serde_json::json!({"times": 4.0, "converted": true})
    );
    assert!(told["warnings"].to_string().contains("those of the drive"));

    // The record is as measured, and says what it was measured on.
    let slower = &measured.head()["devices"][0]["slower"];
    assert_eq!(
        *slower,
        serde_json::json!({"times": 4.0, "converted": false})
    );
    let report = |options: &[&str]| -> Value {
        let mut command = trimbench();
        command.arg("report").arg(files.record());
        let done = run({
            command.args(["--format", "json"]).args(options);
            command
        });
        let verdict = serde_json::from_str(&done.succeeds().stdout).unwrap();
        conforms(&verdict);
        verdict
    };
    assert_eq!(report(&["--set", "as-drive=true"]), *told);
    let raw = report(&[]);
    assert_eq!(raw["slower"]["converted"], false);
    assert!(raw["warnings"].to_string().contains("4 times slower"));

    // The drive's own figures, which are the card's.
    let of = |value: &Value| value.as_f64().unwrap();
    let commands = of(&told["discard"]["commands"]);
    let mean = of(&told["discard"]["mean_bytes"]);
    let near = |what: &str, found: f64, card: f64| {
        let share = found / card;
        println!("{what} {found}, by the card {card}: {share:.3}");
        assert!((0.85..1.15).contains(&share), "{what}: {share}: {told:#}");
    };
    let rate = of(&told["discard"]["bytes_per_s"]);
    let seconds = of(&stall(told)["seconds"]);
    near("seconds of the stall", seconds, commands * SERVICE_S);
    near("await", of(&told["discard"]["await_us"]), SERVICE_S * 1e6);
    near("rate", rate, mean / SERVICE_S);

    // As measured all took four times as long.
    let four_times = |slow: f64, fast: f64, what: &str| {
        let times = slow / fast;
        println!("{what}: {times:.3} times");
        assert!((3.6..4.4).contains(&times), "{what}: {times} times");
    };
    four_times(
        rate,
        of(&raw["discard"]["bytes_per_s"]),
        "TRIM rate as measured",
    );
    four_times(of(&stall(&raw)["seconds"]), seconds, "seconds as measured");
}

#[test]
fn real_time_is_no_other_drives() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new();
    run(command_on(
        dir.path(),
        &files,
        &["--set", "judge.as-drive=true", "--dry-run"],
    ))
    .fails_with(2, &["as-drive", "lab up --slower"]);
    assert!(!files.record().exists());
}

#[test]
fn a_drive_can_be_faster() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let quick = ["--profile", "ideal", "--size", "64M", "--slower"];
    lab.up("quick", &[&quick[..], &["0.125"]].concat());
    assert_eq!(lab.list()[0]["slower"], 0.125);
    assert!(
        lab.lab(&["list"])
            .succeeds()
            .stdout
            .contains("8 times faster")
    );
    lab.lab(&[&["up", "never"], &quick[..], &["0"]].concat())
        .fails_with(2, &["0 times slower", "0.001 to 1000"]);
}
