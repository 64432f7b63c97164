//! The HTML report: what it holds, how big it may be, and what a browser makes of it.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use judge::verdict::{Waited, Waiter};
use judge::{JudgeOptions, Verdict, judge};
use record::RunRecord;
use record::waits::{Cause, PhaseWaits, Wait};
use record::*;
use report::html;
use testkit::gate;

/// The names of the browsers that tests/browser/ can drive.
const BROWSERS: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

fn page(record: &RunRecord, verdict: &Verdict) -> String {
    html::report(record, verdict).unwrap()
}

/// A run of the T500's shape with everything a report can show, and hostile names.
fn hostile() -> (RunRecord, Verdict) {
    let name = "r</script><script>alert(1)</script>\u{2028}'\"><img src=x onerror=alert(2)>";
    let (mut record, mut verdict) = (common::T500.record(), common::T500.verdict());
    record.head.actors[0].name = name.into();
    record.head.target.path = format!("/data/{name}");
    record.head.host.name = name.into();
    record.head.scenario = serde_json::json!({ name: [name] });
    verdict.foreground[0].actor = name.into();
    verdict.summary += name;
    verdict.warnings.push(name.into());
    for (phase, ns) in [
        (PhaseName::Baseline, 80_000),
        (PhaseName::Delete, 900_000),
        (PhaseName::Recovery, 85_000),
    ] {
        let mut histogram = latency_histogram();
        for i in 1..5000_u64 {
            histogram.record(ns + ns * i / 1000).unwrap();
        }
        record.histograms.push(PhaseHistogram {
            actor: 0,
            latency: Latency::Response,
            phase,
            part: Part::Main,
            histogram,
        });
    }
    for device in &mut record.intervals.devices {
        for i in 0..device.discards.len() {
            // 200 µs + 15 µs per MiB, in whole milliseconds as the kernel tells it.
            device.discard_ms[i] = device.discards[i] * 2 + device.discards[i] / 8;
        }
    }
    verdict.waits = Some(waits());
    let fit = verdict.fit.as_mut().unwrap();
    (fit.a_us, fit.b_us_per_mib) = (Some(200.0), Some(15.0));
    (record, verdict)
}

/// A reader that waits for longer before the deletion than the deleter in its own discards.
fn waits() -> Waited {
    let phase = |phase, waits: &[(Cause, f64)]| PhaseWaits {
        phase,
        part: Part::Main,
        seconds: 40.0,
        threads: 1,
        waits: waits
            .iter()
            .map(|&(cause, seconds)| Wait {
                cause,
                call: cause.is_blocked().then(|| "io_uring_enter".into()),
                seconds,
                share: seconds / 40.0,
                looks: 100,
                discards: if cause == Cause::InDiscards { 8 } else { 0 },
            })
            .collect(),
    };
    let waiter = |actor: &str, phases| Waiter {
        actor: actor.into(),
        phases,
    };
    let reader = [Cause::Sleep, Cause::Cpu, Cause::Io].map(|cause| (cause, 20.0));
    let named = [PhaseName::Settle, PhaseName::Baseline, PhaseName::Delete];
    Waited {
        sentence: Some("deleter waited.".into()),
        actors: vec![
            waiter("reader", named.map(|name| phase(name, &reader)).to_vec()),
            waiter(
                "deleter",
                vec![phase(PhaseName::Delete, &[(Cause::InDiscards, 21.0)])],
            ),
        ],
        missing: Vec::new(),
    }
}

#[test]
fn waits_of_the_deletion_come_first_by_time_blocked() {
    let (record, verdict) = hostile();
    let text = page(&record, &verdict);
    let text = &text[text.find("id=\"waits-title\"").unwrap()..];
    let at = |row: String| text.find(&row).unwrap_or_else(|| panic!("{row}: {text}"));
    let row = |actor: &str, phase: &str, cause: Cause| {
        let cause = cause.about();
        at(format!("{actor}</th><td>{phase}</td><td>{cause}"))
    };
    let rows = [
        at("deleter</th><td>delete</td><td>8 of its own discards (".into()),
        row("reader", "delete", Cause::Io),
        row("reader", "delete", Cause::Sleep),
        at("<details>".into()),
        row("reader", "settle", Cause::Io),
    ];
    assert!(rows.is_sorted(), "{rows:?}: {text}");
}

#[test]
fn hostile_names_stay_text() {
    let (record, verdict) = hostile();
    let text = page(&record, &verdict);
    assert_eq!(text.matches("<script").count(), 1);
    assert_eq!(text.matches("</script>").count(), 1);
    assert!(!text.contains("<img") && !text.contains('\u{2028}'));
    assert!(text.contains("&lt;img src=x onerror=alert(2)&gt;"));
}

#[test]
fn nothing_in_it_leads_to_a_network() {
    let (record, verdict) = hostile();
    let text = page(&record, &verdict);
    for reference in [
        "src=\"",
        "<link",
        "@import",
        "url(",
        "<iframe",
        "fetch(",
        "XMLHttpRequest",
    ] {
        assert!(!text.contains(reference), "{reference}");
    }
    assert!(text.contains("default-src 'none'"));
}

#[test]
fn it_says_what_is_needed_to_repeat_the_run() {
    let (mut record, verdict) = hostile();
    record.head.scenario = serde_json::json!({ "deletion": { "size_bytes": 4_294_967_296_u64 } });
    let text = page(&record, &verdict);
    for told in [
        "4294967296",
        "CT2000T500SSD8",
        "6.12.9",
        "relatime",
        "trimbench 0.1.0",
        "ext4",
    ] {
        assert!(text.contains(told), "{told}");
    }
}

#[test]
fn the_head_has_drive_firmware_and_size() {
    let text = page(&common::SHORT.record(), &common::SHORT.verdict());
    let head = &text[text.find("<header>").unwrap()..text.find("</header>").unwrap()];
    let drive = "<span>CT2000T500SSD8 (nvme0n1), firmware P8CR002, 1.8\u{a0}TiB</span>";
    assert!(head.contains(drive), "{head}");
}

#[test]
fn each_actor_has_a_rate_chart_and_each_event_line_its_words() {
    let (record, verdict) = hostile();
    let text = page(&record, &verdict);
    for told in [
        "<figure id=\"rate-0\">",
        "<figure id=\"rate-1\">",
        "Dashed lines: a deletion began at 81.40\u{a0}s; ",
        "debt paid at 116.50\u{a0}s.",
    ] {
        assert!(text.contains(told), "{told}");
    }
}

#[test]
fn no_number_stands_apart_from_its_unit() {
    let (record, verdict) = hostile();
    let text = page(&record, &verdict);
    let main = &text[text.find("<header>").unwrap()..text.find("<details class=\"wide\"").unwrap()];
    // Text in a chart has no line to end.
    let outside = main.split("<svg aria-hidden").map(|part| {
        let (_, rest) = part.split_once("</svg></div>").unwrap_or(("", part));
        rest
    });
    let main: String = outside.collect();
    let words: Vec<&str> = main.split(' ').collect();
    for pair in words.windows(2) {
        let unit = pair[1]
            .split([',', ';', '.', ')', '<', '/'])
            .next()
            .unwrap();
        let is_unit = ["s", "ms", "µs", "%", "MiB", "GiB", "TiB", "GB"].contains(&unit);
        let number = pair[0].ends_with(|c: char| c.is_ascii_digit());
        assert!(!(number && is_unit), "{pair:?}");
    }
}

#[test]
fn records_without_anything_have_a_page_too() {
    let mut record = common::empty(common::head(true, 0.1));
    for actors in [2, 0] {
        record.head.actors.truncate(actors);
        record.intervals = Intervals::new(actors, 2);
        let verdict = judge(&record, &JudgeOptions::default());
        let text = page(&record, &verdict);
        assert!(text.contains("</html>"));
        browse(&text, &format!("empty-{actors}"));
    }
}

#[test]
fn what_an_imported_log_does_not_tell_has_no_chart() {
    let (mut record, verdict) = (common::T500.record(), common::T500.verdict());
    record.intervals.freed_bytes.fill(0);
    for actor in &mut record.intervals.actors {
        for column in [&mut actor.p50_us, &mut actor.p99_us, &mut actor.max_us] {
            column.fill(f32::NAN);
        }
        actor.oldest_us.fill(f32::NAN);
    }
    record.phases.clear();
    record.events.clear();
    let mut verdict = verdict;
    for seen in &mut verdict.foreground {
        let beside = seen.discarding.as_mut().unwrap();
        for figures in [&mut seen.baseline, beside, &mut seen.recovery] {
            *figures = judge::verdict::Figures {
                ops_per_s: figures.ops_per_s,
                ..Default::default()
            };
        }
    }
    let text = page(&record, &verdict);
    assert!(!text.contains("p99.9<") && !text.contains("<td>–</td><td class"));
    for missing in ["latency-0", "debt", "queue"] {
        assert!(
            !text.contains(&format!("<figure id=\"{missing}\"")),
            "{missing}"
        );
    }
    browse(&text, "imported");
}

#[test]
fn an_hour_at_10_ms_with_four_actors_stays_below_15_mb() {
    let record = common::hour();
    assert!(record.intervals.len() > 350_000);
    let verdict = judge(&record, &JudgeOptions::default());
    let text = page(&record, &verdict);
    let megabytes = text.len() as f64 / 1e6;
    println!("an hour at 10 ms with four actors: {megabytes:.2} MB");
    assert!(megabytes < 15.0, "{megabytes} MB");
    browse(&text, "hour");
}

#[test]
fn a_browser_shows_what_is_embedded() {
    let (record, verdict) = hostile();
    browse(&page(&record, &verdict), "hostile");
    let (record, verdict) = (common::SHORT.record(), common::SHORT.verdict());
    browse(&page(&record, &verdict), "short");
}

#[test]
fn the_browser_notices_what_is_wrong() {
    let page = page(&common::SHORT.record(), &common::SHORT.verdict());
    for (name, right, wrong) in [
        (
            "value",
            "found[1] / chart.tall",
            "found[1] / chart.tall + .1",
        ),
        ("percentile", "([x]) => x === near", "([x]) => x !== near"),
        (
            "console",
            "\nlet view",
            "\nconsole.error('noticed');\nlet view",
        ),
        (
            "network",
            "\nlet view",
            "\nfetch('http://localhost:65000/');\nlet view",
        ),
        ("zoom", "overTime.forEach(draw);", "draw(overTime[0]);"),
        ("script", ".plot > svg {", ".plot > svg { width: 1px;"),
        ("phone", ".note {", ".note { min-width: 40rem;"),
        ("rows", ".overflow {", ".overflow { max-height: 9rem;"),
        (
            "words",
            "overflow-wrap: break-word; }",
            "} .overflow thead th { min-width: 0 !important; }",
        ),
        (
            "labels",
            "setAttribute(name, place(chart, begin))",
            "setAttribute(name, '1%')",
        ),
        ("events", "<text data-at", "<text data-was"),
    ] {
        assert!(page.contains(right), "{name}");
        if let Some(told) = look(&page.replace(right, wrong), &format!("wrong-{name}")) {
            assert!(!told.status.success(), "{name} went unnoticed");
        }
    }
}

/// Lets a browser look at a page that is as it should be.
#[track_caller]
fn browse(text: &str, name: &str) {
    let Some(told) = look(text, name) else { return };
    let out = String::from_utf8_lossy(&told.stdout);
    print!("{out}");
    let err = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{out}{err}");
}

/// Returns the browser's findings; screenshots are left in the target directory. Without a
/// browser or python3 it prints a line, and fails where `CI` is set.
#[track_caller]
fn look(text: &str, name: &str) -> Option<Output> {
    if std::env::var_os("TRIMBENCH_QUICK").is_some() {
        gate::skip("for make test");
        return None;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/report.py");
    let shots = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    std::fs::create_dir_all(&shots).unwrap();
    let path = shots.join(format!("{name}.html"));
    std::fs::write(&path, text).unwrap();
    let Some(browser) = BROWSERS.into_iter().find(|name| answers(name)) else {
        gate::skip("need Chromium or Chrome");
        return None;
    };
    if gate::lacks(&[gate::Need::Tool("python3")]) {
        return None;
    }
    let mut command = Command::new("python3");
    command.arg(here).arg(browser).args([&path, &shots]);
    Some(command.output().unwrap())
}

fn answers(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}
