//! `trimbench fstrim --install-timer --quiet`: in the quietest window of the week.

use std::fs;
use std::path::Path;

use diagnose::watch::update::{DeviceUpdate, Update};
use record::DeviceInterval;
use serde_json::json;

use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On};
use crate::common::run::{Done, run};
use crate::fstrim::{fstrim, verify};

/// 2026-10-11, a Sunday, 0:00 UTC. Two weeks later clocks go back in Europe.
const SUNDAY: i64 = 1_791_676_800;
const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

/// A log of `watch --json` of so many days, which is quiet from Saturday 23:30 to Sunday 1:30 in Berlin.
fn log(days: i64) -> String {
    let lines = (1..=days * 96).map(|quarter| {
        let unix_s = SUNDAY + quarter * 900;
        let summer = unix_s <= SUNDAY + 14 * 86_400 + 3600;
        let local = unix_s - 900 + if summer { 7200 } else { 3600 };
        let is_quiet = (local - SUNDAY + 1800).rem_euclid(7 * 86_400) < 7200;
        let reads = if is_quiet { 10_800 } else { 360_000 };
        let did = DeviceInterval {
            reads,
            read_bytes: reads * 4096,
            read_ms: reads,
            ..DeviceInterval::default()
        };
        let device = DeviceUpdate::by_statistics("sda".into(), &did, (0, 0), 900.0, 0.0);
        let update = Update {
            unix_s: unix_s as f64,
            ..Update::of((quarter * 900) as f64, 900.0, vec![device])
        };
        serde_json::to_string(&update).unwrap() + "\n"
    });
    lines.collect()
}

/// Installs a timer into this place by a history there.
fn install(place: &Path, history: &str, more: &[&str]) -> Done {
    let file = place.join("history.json");
    fs::write(&file, history).unwrap();
    let settings = [
        format!("history={}", file.display()),
        format!("unit-dir={}", place.display()),
        "replace=true".to_owned(),
    ];
    let settings = settings.iter().flat_map(|one| ["--set", one]);
    let mut words = vec!["--install-timer", "--quiet"];
    words.extend(settings.chain(more.iter().copied()));
    let mut command = fstrim(place, &words);
    command.env("TZ", BERLIN);
    run(command)
}

fn timer(place: &Path) -> String {
    fs::read_to_string(place.join("trimbench-fstrim.timer")).unwrap()
}

#[test]
fn the_timer_is_in_the_quietest_window_by_a_log_of_watch() {
    let place = tempfile::tempdir().unwrap();
    let done = install(place.path(), &log(28), &["--deadline", "25m", "/data"]);
    let why = "The quietest window is Sat 23:30–Sun 01:30, with I/O at most 12/s in 28 days of history. \
               The trim takes at most 25 min.\n";
    assert!(done.succeeds().stdout.ends_with(why), "{}", done.text());
    let timer = timer(place.path());
    for line in [
        "OnCalendar=Sat *-*-* 23:30:00\n",
        "RandomizedDelaySec=95min\n",
        "FixedRandomDelay=true\n",
        "within the window",
    ] {
        assert!(timer.contains(line), "{line}: {timer}");
    }
    assert!(
        !timer.contains("Persistent") && !timer.contains("weekly"),
        "{timer}"
    );
    verify(place.path());
    // No four hours are as quiet.
    let longer = install(place.path(), &log(28), &["--deadline", "4h", "/data"]);
    let why =
        "in 28 days of history; no window so long is quieter than the rest of the week. The trim";
    assert!(longer.succeeds().stdout.contains(why), "{}", longer.text());
    // One after the other.
    let both = install(
        place.path(),
        &log(28),
        &["--deadline", "25m", "/data", "/srv"],
    );
    assert!(
        both.succeeds().stdout.contains("takes at most 50 min."),
        "{}",
        both.text()
    );
}

#[test]
fn a_trim_at_a_rate_is_as_long_as_what_is_free() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let made = LoopFs::new(Fs::Ext4, "nodiscard", 256, On::Tmpfs);
    let place = tempfile::tempdir().unwrap();
    // 230 MiB or so take 78 minutes.
    let more = ["--set", "rate=50k", made.path().to_str().unwrap()];
    let done = install(place.path(), &log(28), &more);
    assert!(
        done.succeeds().stdout.contains("The trim takes about 7"),
        "{}",
        done.text()
    );
    assert!(timer(place.path()).contains("OnCalendar=Sat *-*-* 23:30:00\n"));
}

#[test]
fn prometheus_answer_is_a_history() {
    let values: Vec<_> = (1..=21 * 96)
        .map(|quarter| {
            let busy = !(12..18).contains(&((quarter - 1) % 672));
            (SUNDAY + quarter * 900, if busy { "300" } else { "2.5" })
        })
        .collect();
    let answer = json!({"status": "success", "data": {"resultType": "matrix", "result": [
        {"metric": {"device": "sda"}, "values": values},
        {"metric": {"device": "sdb"}, "values": []},
    ]}});
    let place = tempfile::tempdir().unwrap();
    let done = install(
        place.path(),
        &answer.to_string(),
        &["--deadline", "30m", "/"],
    );
    // From 3:00 to 4:30 UTC, in summer and one week of winter: 5:00 to 5:30 in both.
    let why = "Sun 05:00–05:30, with I/O at most 2.5/s";
    assert!(done.succeeds().stdout.contains(why), "{}", done.text());
}

#[test]
fn an_unknown_window_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let refused = |history: &str, more: &[&str], words: &[&str]| {
        install(place.path(), history, more).fails_with(2, words);
        assert!(!place.path().join("trimbench-fstrim.timer").exists());
    };
    let short = [
        "covers 144 h 00 min, and a week is needed",
        "trimbench watch --quiet",
    ];
    refused(&log(6), &["--deadline", "1h", "/"], &short);
    refused(
        &log(28),
        &["--deadline", "200h", "/"],
        &["takes 200 h", "no stretch"],
    );
    refused(
        &log(28),
        &["/"],
        &["how long a trim takes is unknown", "--deadline"],
    );
    refused(
        "I/O\n",
        &["--deadline", "1h", "/"],
        &["history.json", "neither a log"],
    );
    refused("", &["--deadline", "1h", "/"], &["is empty or damaged"]);
    let cut =
        r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"#;
    refused(cut, &["--deadline", "1h", "/"], &["is empty or damaged"]);
    let missing = [
        "--install-timer",
        "--quiet",
        "--set",
        "history=missing.json",
        "--deadline",
        "1h",
        "/",
    ];
    run(fstrim(place.path(), &missing)).fails_with(2, &["missing.json: can't be read"]);
    for words in [
        &["--install-timer", "--quiet", "/"][..],
        &["--install-timer", "--set", "history=x", "/"],
        &["--set", "history=x", "/"],
    ] {
        run(fstrim(place.path(), words)).fails_with(2, &["need each other"]);
    }
}
