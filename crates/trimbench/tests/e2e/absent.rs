//! trimbench isn't always let run: its own absence is nobody else's doing.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::disturb::{Hogs, Quota};
use crate::common::gate::{LOOP_EXT4, alone, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs};
use crate::common::run::{Running, start};
use crate::fstrim::{fstrim, used};
use crate::quick::{Files, Measured, begin, command_on, measure, number};
use crate::rm_place::{SLOW, ext4, rm, written};

/// How long it is stopped: longer than anything else in these runs takes.
const STOP: Duration = Duration::from_secs(2);

/// Stops it for a while, and tells when that began.
fn stop(running: &Running) -> Instant {
    let began = Instant::now();
    running.signal(Signal::STOP);
    std::thread::sleep(STOP);
    running.signal(Signal::CONT);
    began
}

/// The warnings that say this.
fn warned<'a>(measured: &'a Measured, words: &str) -> Vec<&'a str> {
    let warnings = measured.verdict["warnings"].as_array().unwrap().iter();
    let texts = warnings.filter_map(Value::as_str);
    texts.filter(|text| text.contains(words)).collect()
}

#[test]
fn a_run_that_is_stopped_leaves_the_time_out_and_says_so() {
    // The busy loops of other tests would make dips of their own.
    let _turn = alone();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    for phase in ["baseline", "recovery"] {
        stopped_in(&fs, phase);
    }
}

/// A run that is stopped in this phase.
fn stopped_in(fs: &LoopFs, phase: &str) {
    let files = Files::new();
    let arguments = ["--baseline", "1s", "--recovery", "1s"];
    let mut running = begin(fs.path(), &files, &arguments);
    running.until(phase, || files.in_phase(phase));
    std::thread::sleep(Duration::from_millis(200));
    let began = stop(&running);
    let done = running.wait();
    let at_most = began.elapsed();
    let measured = files.read(done).succeeds();
    let text = measured.done.text();
    let absences = measured.verdict["absences"].as_array().unwrap();
    let longest = absences.iter().map(|one| number(&one["seconds"]));
    let longest = longest.fold(0.0, f64::max);
    is_the_stop(longest, at_most, &text);
    let one = absences
        .iter()
        .find(|one| number(&one["seconds"]) == longest);
    assert_eq!(one.unwrap()["cause"], "stopped", "{text}");
    assert_eq!(
        warned(&measured, "itself did not run for").len(),
        1,
        "{text}"
    );
    assert!(
        measured.done.stdout.contains("itself did not run for"),
        "{text}"
    );
    // Nobody waited for it, nor was slow.
    for seen in measured.verdict["foreground"].as_array().unwrap() {
        for dip in seen["dips"].as_array().unwrap() {
            assert!(number(&dip["seconds"]) < STOP.as_secs_f64(), "{text}");
        }
        for part in ["baseline", "delete", "recovery"] {
            let longest_us = number(&seen[part]["max_us"]);
            assert!(longest_us < STOP.as_secs_f64() * 1e6, "{part}: {text}");
        }
    }
    // What it missed is made up for.
    let away = measured
        .lines("interval")
        .filter(|i| !i["absent"].is_null());
    let away_s: f64 = away.map(|interval| number(&interval["seconds"])).sum();
    assert!(measured.phase_s(phase) > away_s + 0.9, "{text}");
}

#[test]
fn a_deletion_that_is_stopped_blames_nobody() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    for busy in [false, true] {
        written(&fs.path().join("big"), 32);
        let report = fs.path().join("lost+found/report.json");
        let report_is = ["--json", &report.to_string_lossy()];
        let arguments = [&["big"], &SLOW[..], &report_is].concat();
        let _hogs = busy.then(Hogs::start);
        let mut running = start(rm(fs.path(), &arguments));
        running.until("the trash", || fs.names().iter().any(|name| name != "big"));
        blames_nobody(running, &report);
    }
}

#[test]
fn a_trim_that_is_stopped_blames_nobody() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    for busy in [false, true] {
        let fs = used(Fs::Ext4);
        let states = tempfile::tempdir().unwrap();
        let report = states.path().join("report");
        let at = fs.path().to_string_lossy();
        let report_is = report.to_string_lossy();
        let arguments = ["--set", "rate=300M", "--json", &report_is, &at];
        let _hogs = busy.then(Hogs::start);
        let mut running = start(fstrim(states.path(), &arguments));
        running.until("its notes", || {
            fs::read_dir(states.path()).unwrap().count() > 0
        });
        blames_nobody(running, &report);
    }
}

/// Stops what frees, and reads in its report that it knows.
fn blames_nobody(running: Running, report: &Path) {
    std::thread::sleep(Duration::from_millis(300));
    let began = stop(&running);
    let done = running.wait();
    let at_most = began.elapsed();
    let text = done.text();
    done.succeeds();
    assert!(text.contains("itself did not run for"), "{text}");
    assert!(text.contains("stopped"), "{text}");
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let file_system = match &report["file_systems"][0]["trim"] {
        Value::Null => &report["file_systems"][0],
        trim => trim,
    };
    let absences = file_system["absences"].as_array().unwrap().iter();
    let longest = absences.map(|one| number(&one["seconds"]));
    is_the_stop(longest.fold(0.0, f64::max), at_most, &text);
    // It is no read's wait, and no loss.
    let waited = file_system["canary"]["max_added_s"].as_f64();
    assert!(waited.unwrap_or(0.0) < STOP.as_secs_f64(), "{text}");
    assert_eq!(number(&file_system["written_off_bytes"]), 0.0, "{text}");
}

/// Whether an absence of so many seconds is the stop. Where others have the processors, the
/// process is away for a while after it, too: `at_most` to its end.
fn is_the_stop(seconds: f64, at_most: Duration, text: &str) {
    let least = STOP.as_secs_f64() * 0.9;
    assert!(
        (least..=at_most.as_secs_f64()).contains(&seconds),
        "{seconds} s: {text}"
    );
}

#[test]
fn a_foreground_without_a_processor_is_a_warning_with_the_figure() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    let hogs = Hogs::start();
    let measured = measure(fs.path(), &["--baseline", "1s"]).succeeds();
    drop(hogs);
    let text = measured.done.text();
    let reader = &measured.verdict["foreground"][0];
    assert!(number(&reader["cpu_wait"]["baseline"]) > 0.05, "{text}");
    assert_eq!(warned(&measured, "waited for a CPU for").len(), 1, "{text}");
}

#[test]
fn a_cgroup_that_has_used_up_its_time_is_told_as_waiting_for_a_processor() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let Some(quota) = Quota::new(20) else {
        eprintln!("skipped: no cpu controller of cgroups");
        return;
    };
    let fs = LoopFs::small();
    let files = Files::new();
    let command = command_on(fs.path(), &files, &["--baseline", "1s"]);
    let measured = files.read(start(quota.inside(&command)).wait()).succeeds();
    let text = measured.done.text();
    let reader = &measured.verdict["foreground"][0];
    assert!(number(&reader["cpu_wait"]["baseline"]) > 0.2, "{text}");
    assert_eq!(warned(&measured, "waited for a CPU for").len(), 1, "{text}");
    for one in measured.verdict["absences"]
        .as_array()
        .into_iter()
        .flatten()
    {
        assert_ne!(one["cause"], "suspended", "{text}");
    }
}
