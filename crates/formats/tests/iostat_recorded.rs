//! The iostat logs of 2024, imported and judged; and
//! the same ones written down differently, which must change nothing.

#![allow(clippy::unwrap_used, reason = "tests may")]

use formats::iostat::{First, Log, Moment, Notes, Options, record};
use judge::verdict::{Finding, Foreground, Reason, Verdict};
use judge::{JudgeOptions, judge};
use record::units::GIB;
use record::{EventKind, PhaseName, RunRecord};
use testkit::recorded::{CONTROL, EVO, PRO, RAID, RUNS, Recorded, Sysstat, T500};

fn import(text: &str, notes: Option<&Notes>, options: &Options) -> RunRecord {
    let log = Log::read(text.as_bytes()).unwrap();
    record(&log, notes, options).unwrap()
}

fn verdict(record: &RunRecord) -> Verdict {
    judge(record, &JudgeOptions::default())
}

/// As it was recorded.
fn text(run: &Recorded) -> String {
    run.iostat(Sysstat::V12_5)
}

/// As a folder is imported: the log with what the script wrote down.
fn folder(run: &Recorded) -> (RunRecord, Verdict) {
    let notes = Notes::parse(&run.notes());
    let record = import(&text(run), Some(&notes), &Options::default());
    let verdict = verdict(&record);
    println!("{run}: {}", verdict.summary);
    for warning in &verdict.warnings {
        println!("    {warning}");
    }
    (record, verdict)
}

fn near(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() <= share
}

/// Base reads per second; the one actor that read.
fn check_none(verdict: &Verdict, base: f64) -> &Foreground {
    assert_eq!(verdict.verdict, Finding::None);
    assert_eq!(verdict.foreground.len(), 1, "one actor");
    let foreground = &verdict.foreground[0];
    let rate = foreground.baseline.ops_per_s.unwrap();
    assert!(near(rate, base, 0.03), "base {rate}");
    foreground
}

/// Base and stalled reads per second, stalled and lost seconds, TRIM rate in GiB/s.
fn check_stall(verdict: &Verdict, base: f64, stalled: f64, seconds: f64, lost: f64, trim: f64) {
    assert_eq!(verdict.verdict, Finding::Stall);
    assert_eq!(verdict.foreground.len(), 1, "one actor");
    let foreground = &verdict.foreground[0];
    let stall = foreground.stall.unwrap();
    let rate = foreground.baseline.ops_per_s.unwrap();
    assert!(near(rate, base, 0.03), "base {rate}");
    assert!(
        near(stall.depth * rate, stalled, 0.03),
        "stalled {}",
        stall.depth * rate
    );
    assert!((stall.seconds - seconds).abs() <= 0.1, "{stall:?}");
    assert!((stall.lost_s - lost).abs() <= 0.1, "{stall:?}");
    let bytes_per_s = verdict.discard.bytes_per_s.unwrap() / GIB as f64;
    assert!(near(bytes_per_s, trim, 0.03), "TRIM {bytes_per_s} GiB/s");
    assert!(!verdict.discard.bytes_per_s_is_lower_bound);
}

#[test]
fn samsung_870_evo() {
    let (record, verdict) = folder(EVO);
    check_stall(&verdict, 57_590.0, 4_832.0, 15.0, 13.7, 71.5);
    assert_eq!(verdict.fit.unwrap().barrier, Some(true));
    assert_eq!(record.head.actors[0].name, "sdb");
    assert_eq!(record.head.actors[0].loop_kind.depth(), 8);
    assert_eq!(record.head.target.fs.as_deref(), Some("ext4"));
    assert_eq!(record.head.host.kernel, "6.5.0-35-generic");
}

#[test]
fn crucial_t500() {
    let (_, verdict) = folder(T500);
    check_stall(&verdict, 92_080.0, 3_920.0, 16.9, 16.2, 61.1);
    assert_eq!(verdict.fit.unwrap().barrier, Some(true));
}

#[test]
fn crucial_t500_raid0() {
    let (record, verdict) = folder(RAID);
    check_stall(&verdict, 151_700.0, 519.0, 4.75, 4.73, 220.0);
    assert_eq!(record.head.actors[0].name, "md0");
    let whole = record
        .head
        .devices
        .iter()
        .find(|d| d.name == "md0")
        .unwrap();
    assert_eq!(whole.below, ["nvme0n1", "nvme1n1"]);
    let said = record.events.iter().filter_map(|e| e.detail.as_deref());
    assert!(said.into_iter().any(|s| s.contains("nvme0n1 and nvme1n1")));
    let named = Options {
        members: vec![(
            "md0".to_owned(),
            vec!["nvme1n1".to_owned(), "nvme0n1".to_owned()],
        )],
        ..Options::default()
    };
    let again = import(&text(RAID), None, &named);
    check_stall(&self::verdict(&again), 151_700.0, 519.0, 4.75, 4.73, 220.0);
}

#[test]
fn samsung_980_pro() {
    let (_, verdict) = folder(PRO);
    let foreground = check_none(&verdict, 102_091.0);
    assert!(foreground.stall.is_none());
    assert!(
        (foreground.lost_s.unwrap() - 0.086).abs() < 0.02,
        "{:?}",
        foreground.lost_s
    );
    assert!(verdict.discard.bytes_per_s_is_lower_bound);
    assert!(verdict.discard.bytes_per_s.unwrap() >= 500.0 * GIB as f64);
}

#[test]
fn crucial_t500_without_discards() {
    let (record, verdict) = folder(CONTROL);
    let foreground = check_none(&verdict, 151_303.0);
    assert!(
        !foreground.dips.is_empty(),
        "the slow seconds after the big write are told"
    );
    let target = &record.head.target;
    assert_eq!(target.discard, record::DiscardSetting::Off);
}

/// The part of a verdict that stays the same however a log is written: all but names and warnings.
fn essence(verdict: &Verdict) -> impl PartialEq + std::fmt::Debug + use<> {
    let round = |x: f64| (x * 100.0).round() / 100.0;
    let foreground: Vec<_> = verdict
        .foreground
        .iter()
        .map(|f| {
            let rate = f.baseline.ops_per_s.map(|r| r.round());
            let stall = f.stall.map(|s| [s.seconds, s.depth, s.lost_s].map(round));
            (rate, stall, f.dips.len())
        })
        .collect();
    let trim = verdict
        .discard
        .bytes_per_s
        .map(|b| round(b / GIB as f64 / 10.0));
    (
        verdict.verdict,
        verdict.reasons.clone(),
        foreground,
        trim,
        verdict.discard.commands,
    )
}

/// The tokens of a line put in another order, the first left in place.
fn reordered(line: &str) -> String {
    let mut tokens: Vec<&str> = line.split_whitespace().collect();
    if tokens.len() == 23 {
        tokens[1..].reverse();
    }
    tokens.join("  ")
}

fn by_line(text: &str, mut change: impl FnMut(&str) -> String) -> String {
    text.lines().map(|line| change(line) + "\n").collect()
}

/// Rows of each report in the opposite order.
fn rows_reversed(text: &str) -> String {
    let mut out = String::new();
    let mut rows: Vec<&str> = Vec::new();
    let mut in_rows = false;
    for line in text.lines().chain([""]) {
        if line.is_empty() {
            rows.drain(..)
                .rev()
                .for_each(|row| out += &format!("{row}\n"));
            in_rows = false;
        }
        if in_rows {
            rows.push(line);
        } else {
            out += &format!("{line}\n");
        }
        in_rows |= line.starts_with("Device");
    }
    out
}

/// Rates of bytes in kB or sectors instead of MB.
fn in_unit(text: &str, unit: &str, factor: f64) -> String {
    let header = text.lines().find(|l| l.starts_with("Device")).unwrap();
    let places: Vec<usize> = header
        .split_whitespace()
        .enumerate()
        .filter(|(_, token)| token.ends_with("MB/s"))
        .map(|(i, _)| i)
        .collect();
    by_line(text, |line| {
        if line.starts_with("Device") {
            return line.replace("MB/s", &format!("{unit}/s"));
        }
        let mut tokens: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if tokens.len() != 23 {
            return line.to_owned();
        }
        for &place in &places {
            tokens[place] = format!("{:.2}", tokens[place].parse::<f64>().unwrap() * factor);
        }
        tokens.join(" ")
    })
}

/// A row more in each report, made of one that is there.
fn with_row(text: &str, beside: &str, row: impl Fn(usize, &[&str]) -> String) -> String {
    let mut report = 0;
    by_line(text, |line| {
        let tokens: Vec<&str> = line.split_whitespace().collect();
        if tokens.first() != Some(&beside) {
            return line.to_owned();
        }
        report += 1;
        format!("{}\n{line}", row(report, &tokens))
    })
}

/// A drive's only partition, as `iostat -p` lists it.
fn with_partition(text: &str, of: &str) -> String {
    with_row(text, of, |_, row| format!("{of}p1 {}", row[1..].join(" ")))
}

/// A volume on a device, which counts no discards.
fn with_volume(text: &str, on: &str) -> String {
    with_row(text, on, |_, row| {
        format!(
            "vg-data {} 0 0 0 0 0 0 {}",
            row[1..13].join(" "),
            row[19..].join(" ")
        )
    })
}

/// A disk that is written to all the time and trimmed now and then.
fn with_system_disk(text: &str) -> String {
    with_row(text, "loop0", |report, _| {
        let discards = if report % 10 == 3 {
            "5.00 20.00"
        } else {
            "0.00 0.00"
        };
        let zeros = "0.00 ".repeat(4);
        format!(
            "sys 0.00 0.00 {zeros}{}.00 0.50 {zeros}{discards} {zeros} 0.00 0.00 0.10 1.00",
            20 + report % 7
        )
    })
}

/// Every report with a time, from just before midnight on.
fn with_times(text: &str, start_s: u32, format: fn(u32) -> String) -> String {
    let mut at_s = start_s;
    by_line(text, |line| line.to_owned())
        .split_inclusive('\n')
        .map(|line| {
            if line.starts_with("avg-cpu") {
                at_s += 1;
                format!("{}\n{line}", format(at_s % 86_400))
            } else {
                line.to_owned()
            }
        })
        .collect()
}

fn clock(s: u32) -> String {
    format!("Time: {:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

#[test]
fn how_it_is_written_down_changes_nothing() {
    for run in RUNS {
        let text = text(run);
        let plain = essence(&verdict(&import(&text, None, &Options::default())));
        let report = text.find("avg-cpu").unwrap();
        let second = report + 1 + text[report + 1..].find("avg-cpu").unwrap();
        let one = &text[report..second];
        let zeroed = by_line(one, |line| match line.split_whitespace().count() {
            23 if !line.starts_with("Device") => {
                let name = line.split(' ').next().unwrap();
                format!("{name}{}", " 0.00".repeat(22))
            }
            _ => line.to_owned(),
        });
        let top = match run {
            EVO => "sdb",
            RAID => "md0",
            _ => "nvme0n1",
        };
        let versions = [
            ("columns", by_line(&text, reordered)),
            ("rows", rows_reversed(&text)),
            ("kB", in_unit(&text, "kB", 1024.0)),
            ("sectors", in_unit(&text, "sec", 2048.0)),
            (
                "commas",
                by_line(&text, |line| match line.starts_with("Linux") {
                    true => line.to_owned(),
                    false => line.replace('.', ","),
                }),
            ),
            ("CRLF", text.replace('\n', "\r\n")),
            (
                "names",
                text.replace("md0 ", "zz9 ")
                    .replace("nvme0n1 ", "a ")
                    .replace("sdb ", "q "),
            ),
            (
                "idle prefix",
                text[..report].to_owned() + &zeroed.repeat(7) + &text[report..],
            ),
            ("no banner", text[report..].to_owned()),
            (
                "partitions",
                with_partition(&with_partition(&text, "nvme0n1"), "nvme1n1"),
            ),
            ("volume", with_volume(&text, top)),
            ("system disk", with_system_disk(&text)),
            ("times", with_times(&text, 86_370, clock)),
            (
                "foreign lines",
                text.replace("avg-cpu", "fio: hello 7\navg-cpu"),
            ),
            (
                "no CPU",
                by_line(&text, |line| {
                    let cpu = line.starts_with("avg-cpu") || line.starts_with("   ");
                    if cpu { String::new() } else { line.to_owned() }
                }),
            ),
        ];
        for (what, text) in versions {
            let record = import(&text, None, &Options::default());
            assert_eq!(essence(&verdict(&record)), plain, "{run}: {what}");
        }
    }
}

#[test]
fn without_columns_of_discards_nothing_is_told_of_trim() {
    for (run, version) in RUNS
        .into_iter()
        .flat_map(|run| [Sysstat::V11_5, Sysstat::V12_0].map(|version| (run, version)))
    {
        let old = run.iostat(version);
        let record = import(&old, None, &Options::default());
        let verdict = verdict(&record);
        assert_eq!(verdict.verdict, Finding::Inconclusive, "{run} {version:?}");
        assert_eq!(verdict.reasons[0], Reason::CountersOff, "{run} {version:?}");
        let names = |record: &RunRecord| -> Vec<String> {
            record
                .head
                .devices
                .iter()
                .map(|device| device.name.clone())
                .collect()
        };
        let new = import(&text(run), None, &Options::default());
        assert_eq!(names(&record), names(&new), "{run} {version:?}");
    }
}

#[test]
fn versions_with_discards_judge_alike() {
    for run in RUNS {
        let judged = |version| {
            let record = import(&run.iostat(version), None, &Options::default());
            essence(&verdict(&record))
        };
        assert_eq!(judged(Sysstat::V12_1), judged(Sysstat::V12_5), "{run}");
    }
}

#[test]
fn averages_since_boot_are_recognised() {
    for run in RUNS {
        let text = text(run);
        let reports = import(&text, None, &Options::default()).intervals.len();
        assert_eq!(reports, 90, "{run}: recorded with -y");
        let first = text.find("avg-cpu").unwrap();
        let second = first + 1 + text[first + 1..].find("avg-cpu").unwrap();
        let average = by_line(&text[first..second], |line| {
            let tokens: Vec<&str> = line.split_whitespace().collect();
            if tokens.len() != 23 || tokens[0] == "Device" {
                return line.to_owned();
            }
            let rate = |i: usize| format!("{:.2}", 0.37 * i as f64);
            let rates: Vec<String> = (1..23).map(rate).collect();
            format!("{} {}", tokens[0], rates.join(" "))
        });
        let text = text[..first].to_owned() + &average + &text[first..];
        assert_eq!(
            import(&text, None, &Options::default()).intervals.len(),
            90,
            "{run}"
        );
        let keep = Options {
            first: First::Keep,
            ..Options::default()
        };
        assert_eq!(import(&text, None, &keep).intervals.len(), 91, "{run}");
    }
}

#[test]
fn a_deletion_whose_time_is_told_has_phases() {
    let text = text(EVO);
    let options = Options {
        deletion: Some(Moment::After(15.0)),
        ..Options::default()
    };
    let record = import(&text, None, &options);
    let verdict = verdict(&record);
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    assert!(near(
        verdict.foreground[0].baseline.ops_per_s.unwrap(),
        57_590.0,
        0.05
    ));
}

/// The stamp of an interval is its end.
#[test]
fn a_moment_within_the_error_of_the_stamps_is_that_of_the_discards() {
    let text = text(EVO);
    let begins = |after_s: Option<f64>| {
        let options = Options {
            deletion: after_s.map(Moment::After),
            ..Options::default()
        };
        let record = import(&text, None, &options);
        let all = &record.intervals;
        let mut rows = 0..all.len();
        let first = rows.find(|&i| all.devices.iter().any(|device| device.discards[i] > 0));
        let warned = (record.events.iter()).any(|event| {
            let detail = event.detail.as_deref().unwrap_or_default();
            detail.starts_with("Discards began")
        });
        let mut phases = record.phases.iter();
        let delete = phases.find(|phase| phase.name == PhaseName::Delete);
        (
            all.at_s[first.unwrap()],
            delete.map(|phase| phase.at_s),
            warned,
        )
    };
    let (first_s, none, warned) = begins(None);
    assert_eq!((none, warned), (None, false));
    assert_eq!(begins(Some(first_s + 1.0)), (first_s, Some(first_s), true));
    let later_s = first_s + 3.0;
    assert_eq!(begins(Some(later_s)).1, Some(later_s));
    let earlier_s = first_s - 0.5;
    assert_eq!(begins(Some(earlier_s)), (first_s, Some(earlier_s), false));
}

#[test]
fn a_log_that_was_cut_off_is_judged_as_far_as_it_goes() {
    let text = text(T500);
    let record = import(&text[..text.len() - 500], None, &Options::default());
    assert_eq!(record.intervals.len(), 89);
    let warned = record
        .events
        .iter()
        .filter(|e| e.kind == EventKind::Warning);
    let warned: Vec<&str> = warned.filter_map(|e| e.detail.as_deref()).collect();
    assert!(warned.iter().any(|w| w.contains("cut off")), "{warned:?}");
    assert_eq!(verdict(&record).verdict, Finding::Stall);
}
