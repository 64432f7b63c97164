//! The iostat logs of 2024 as other options, versions and tools would have written
//! them down: longer intervals, groups, units, JSON in any layout.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod variants;

use formats::iostat::{Log, Options, record};
use judge::verdict::{Finding, Verdict};
use judge::{JudgeOptions, judge};
use testkit::recorded::{CONTROL, EVO, PRO, RAID, RUNS, Sysstat, T500};
use variants::Table;

fn verdict(text: &str) -> Verdict {
    let options = Options::default();
    let log = Log::read(text.as_bytes()).unwrap();
    let record = record(&log, None, &options).unwrap();
    judge(&record, &JudgeOptions::default())
}

/// The part of a verdict that stays the same but for rounding.
fn essence(verdict: &Verdict) -> impl PartialEq + std::fmt::Debug + use<> {
    let round = |x: f64| (x * 100.0).round() / 100.0;
    let of = |f: &judge::verdict::Foreground| {
        let stall = f.stall.map(|s| [s.seconds, s.depth, s.lost_s].map(round));
        (f.actor.clone(), f.baseline.ops_per_s.map(f64::round), stall)
    };
    (
        (verdict.verdict, verdict.reasons.clone()),
        verdict.foreground.iter().map(of).collect::<Vec<_>>(),
        verdict.discard.commands,
    )
}

/// The text as docker's `json-file` has it; it is coloured, and a terminal's.
fn docker(text: &str) -> String {
    let line = |line: &str| {
        let line = format!("\u{1b}[1m{line}\u{1b}[0m\r\n");
        let time = "2024-06-19T05:02:00.123456789Z";
        format!(
            "{}\n",
            serde_json::json!({"log": line, "stream": "stdout", "time": time})
        )
    };
    text.lines().map(line).collect()
}

#[test]
fn dockers_times_serve_where_a_log_has_none() {
    let text =
        "Device r/s rkB/s d/s dkB/s aqu-sz\nsda 2500.00 10000.00 0.00 0.00 7.9\n\n".repeat(8);
    let log = Log::read(docker(&text).as_bytes()).unwrap();
    let record = record(&log, None, &Options::default()).unwrap();
    assert_eq!(record.head.started_unix_s.floor(), 1_718_773_319.0);
}

#[test]
fn the_same_figures_in_another_form() {
    for run in RUNS {
        let text = run.iostat(Sysstat::V12_5);
        let table = Table::read(&text).stamped(1);
        let plain = essence(&verdict(&table.text()));
        let json = table.json();
        let pretty = serde_json::to_string_pretty(&json).unwrap();
        for (what, text) in [
            ("ISO times", table.iso().text()),
            ("a group", table.grouped("ALL").text()),
            ("two groups", table.grouped("a").grouped("all").text()),
            ("a group in JSON", table.grouped("ALL").json().to_string()),
            ("JSON in one line", json.to_string()),
            ("JSON indented", pretty.clone()),
            ("JSON indented by tabs", pretty.replace("  ", "\t")),
            ("JSON, CRLF", pretty.replace('\n', "\r\n")),
            ("docker's json-file", docker(&table.text())),
            ("JSON in docker's json-file", docker(&pretty)),
            (
                "names",
                table
                    .renamed(&["c0d0p1", "mapper/vg-a", "nvme-subsys0n1", "x.y"])
                    .text(),
            ),
        ] {
            let found = verdict(&text);
            let mut found = found;
            if what == "names" {
                let names = found.foreground.iter_mut();
                names
                    .zip(&verdict(&table.text()).foreground)
                    .for_each(|(f, p)| f.actor.clone_from(&p.actor));
            }
            assert_eq!(essence(&found), plain, "{run}: {what}");
        }
        // With units, figures have three digits or so.
        let human = verdict(&table.human());
        assert_eq!(human.verdict, verdict(&table.text()).verdict, "{run}");
    }
}

#[test]
fn two_hundred_devices() {
    let text = EVO.iostat(Sysstat::V12_5);
    let table = Table::read(&text).stamped(1);
    let plain = essence(&verdict(&table.text()));
    assert_eq!(essence(&verdict(&table.with_disks(200).text())), plain);
}

/// Intervals of 2 and 5 s show stalls of a quarter of a minute, wherever the intervals begin.
#[test]
fn intervals_of_a_few_seconds_tell_stalls_that_are_longer() {
    for (run, seconds, lost) in [(EVO, 15.0, 13.7), (T500, 16.9, 16.2)] {
        let text = run.iostat(Sysstat::V12_5);
        let table = Table::read(&text);
        for every in [2, 5] {
            for offset in 0..every {
                let verdict = verdict(&table.averaged(every, offset).stamped(every).text());
                assert_eq!(verdict.verdict, Finding::Stall, "{run} {every} {offset}");
                let stall = verdict.foreground[0].stall.unwrap();
                assert!(
                    (stall.seconds - seconds).abs() < 0.3,
                    "{run} {every} {offset} {stall:?}"
                );
                assert!(
                    (stall.lost_s - lost).abs() < 0.3,
                    "{run} {every} {offset} {stall:?}"
                );
            }
        }
    }
}

/// A stall shorter than two intervals can't be distinguished from a slowdown, and the verdict notes
/// it.
#[test]
fn long_intervals_never_tell_what_was_not_there() {
    for run in RUNS {
        let text = run.iostat(Sysstat::V12_5);
        let table = Table::read(&text);
        for every in [5, 10] {
            for offset in 0..every {
                let verdict = verdict(&table.averaged(every, offset).stamped(every).text());
                let allowed: &[Finding] = match run {
                    EVO | T500 | RAID => {
                        &[Finding::Stall, Finding::Slowdown, Finding::Inconclusive]
                    }
                    PRO => &[Finding::None, Finding::Inconclusive],
                    CONTROL => &[Finding::None],
                    _ => &[],
                };
                let found = format!(
                    "{run} {every} {offset}: {:?} {}",
                    verdict.reasons, verdict.summary
                );
                assert!(allowed.contains(&verdict.verdict), "{found}");
                let base = [57_590.0, 92_080.0, 151_700.0, 102_091.0, 151_303.0];
                let base = base[RUNS.iter().position(|r| *r == run).unwrap()];
                if let Some(rate) = verdict.foreground[0].baseline.ops_per_s {
                    // The T500's falls by 12 % in the seconds before.
                    assert!((rate / base - 1.0).abs() < 0.06, "{found}: {rate}");
                }
                let said = verdict.warnings.join("\n");
                assert!(
                    said.contains(&format!("intervals are {every}.0 s")),
                    "{said}"
                );
            }
        }
    }
}
