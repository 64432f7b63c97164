//! `trimbench import`: whose discards count, and at which resolution.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::run::{run, trimbench};
use crate::quick::conforms;

const HEADER: &str = "Device r/s rkB/s r_await w/s wkB/s w_await d/s dkB/s d_await aqu-sz";

/// A second of a device: reads, and GiB discarded.
fn row(name: &str, reads: u32, gib: u32) -> String {
    let (kb, discards, discarded) = (reads * 4, 50 * gib, gib << 20);
    format!(
        "{name} {reads}.00 {kb}.00 0.13 0.00 0.00 0.00 {discards}.00 {discarded}.00 18.00 8.00\n"
    )
}

/// Reports of a second each, of what `devices` did in it.
fn iostat(seconds: u32, devices: impl Fn(u32) -> String) -> String {
    let mut text = String::from("Linux 6.8.0 (db7) \t06/19/2024 \t_x86_64_\t(8 CPU)\n\n");
    for second in 0..seconds {
        writeln!(text, "{HEADER}\n{}", devices(second)).unwrap();
    }
    text
}

fn verdict(arguments: &[&str], path: &Path) -> Value {
    let mut command = trimbench();
    command.args(["import", "--format", "json"]).args(arguments);
    command.arg(path);
    let verdict = serde_json::from_str(&run(command).succeeds().stdout).unwrap();
    conforms(&verdict);
    verdict
}

fn warnings(verdict: &Value) -> String {
    verdict["warnings"].to_string()
}

#[test]
fn import_counts_discards_on_the_foregrounds_own_drive_only() {
    // Two of three files lie on loop devices; their reads reach vda in part. 4 GiB are
    // deleted on vda, while others delete 210 GiB on the loop devices and on sdb.
    let text = iostat(60, |second| {
        let stalled = (30..34).contains(&second);
        let reads = if stalled { 600 } else { 60_000 + second % 7 };
        let others = (10..45).contains(&second);
        row("vda", reads, u32::from(stalled))
            + &row("loop0", 3000 + second % 5, 5 * u32::from(others))
            + &row("loop1", 90 + second % 3, u32::from(others))
            + &row("sdb", 0, u32::from(others))
    });
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("iostat.txt");
    fs::write(&path, text).unwrap();
    for arguments in [
        &[][..],
        &["--set", "device=vda"],
        &["--set", "device=/dev/vda"],
    ] {
        let verdict = verdict(arguments, &path);
        println!("{} {}", verdict["summary"], warnings(&verdict));
        assert_eq!(verdict["verdict"], "stall", "{verdict:#}");
        assert_eq!(verdict["discard"]["bytes"], 4_u64 << 30, "{verdict:#}");
        let told = warnings(&verdict);
        let named = "loop0 175 GiB, loop1 35.0 GiB, sdb 35.0 GiB";
        assert!(told.contains(named), "{told}");
    }
}

#[test]
fn import_takes_a_stack_whose_drive_isnt_told_as_it_is() {
    // Only the loop device is in the log.
    let text = iostat(60, |second| {
        let stalled = (30..34).contains(&second);
        row(
            "loop0",
            if stalled { 90 } else { 9000 + second % 7 },
            u32::from(stalled),
        )
    });
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("iostat.txt");
    fs::write(&path, text).unwrap();
    let verdict = verdict(&[], &path);
    assert_eq!(verdict["verdict"], "stall", "{verdict:#}");
    assert_eq!(verdict["discard"]["bytes"], 4_u64 << 30);
}

/// Reads in each half second, per second: the stall is half a second long.
fn half(i: u32) -> u32 {
    match i {
        60 => 54_682,
        61 => 480,
        62 => 53_288,
        i => 59_900 + i % 90,
    }
}

#[test]
fn fios_half_seconds_show_a_stall_that_iostats_seconds_hide() {
    let devices = |second: u32| {
        let reads = (half(2 * second) + half(2 * second + 1)) / 2;
        row("sda", reads, 2 * u32::from(second == 30))
    };
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("iostat.txt"), iostat(60, devices)).unwrap();
    let log: String = (0..120)
        .map(|i| format!("{}, {}, 0, 0, 0\n", 500 * (i + 1), half(i)))
        .collect();
    fs::write(folder.path().join("r_iops.1.log"), log).unwrap();
    let verdict = verdict(&[], folder.path());
    println!("{}", verdict["summary"]);
    assert_eq!(verdict["verdict"], "stall", "{verdict:#}");
    let stall = &verdict["foreground"][0]["stall"];
    let near = |name: &str, wanted: f64, by: f64| {
        let value = stall[name].as_f64().unwrap();
        assert!((value - wanted).abs() <= by, "{name} {value}");
    };
    near("seconds", 0.5, 0.1);
    near("depth", 0.008, 0.002);
    assert_eq!(verdict["discard"]["bytes"], 2_u64 << 30);
    // One second with discards in it is too little for more than a bound.
    assert_eq!(verdict["discard"]["bytes_per_s_is_lower_bound"], true);
}

#[test]
fn import_names_a_job_of_fios_json_that_has_no_logs() {
    let job = |name: &str| {
        serde_json::json!({
            "jobname": name, "groupid": 0, "error": 0, "job options": {"rw": "randread", "bs": "4k"},
            "read": {"io_bytes": 4096 * 600_000_u64, "total_ios": 600_000, "runtime": 60_000, "iops": 10_000.0}
        })
    };
    let json = serde_json::json!({"fio version": "fio-3.36", "timestamp": 1_718_773_221,
        "jobs": [job("wal"), job("table")]});
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("fio.json"), json.to_string()).unwrap();
    let log: String = (1..=60)
        .map(|s| format!("{}, 10000, 0, 0, 0\n", 1000 * s))
        .collect();
    fs::write(folder.path().join("x_iops.1.log"), log).unwrap();
    let told = warnings(&verdict(&[], folder.path()));
    println!("{told}");
    assert!(
        told.contains("fio's job table did 600,000 operations and has no logs"),
        "{told}"
    );
    assert!(!told.contains("job wal did"), "{told}");
}
