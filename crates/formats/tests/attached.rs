//! Logs as people attach them: through `ts`, docker, journald, a mail, a terminal or grep; of
//! mirrors, mappings and paths; with loads that hang or end.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::fmt::Write;

use formats::fio::{Input, series};
use formats::iostat::{Log, Options, record};
use formats::{Kind, sniff};
use judge::verdict::{Finding, Verdict};
use judge::{JudgeOptions, judge};
use record::RunRecord;

const HEADER: &str = "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     \
    wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     \
    f/s f_await  aqu-sz  %util";

/// A device in one second: reads, KiB written, GB discarded.
#[derive(Clone, Copy, Default)]
struct Second {
    reads: u32,
    written: u32,
    discarded: f64,
}

fn row(name: &str, second: Second) -> String {
    let Second {
        reads,
        written,
        discarded,
    } = second;
    let (discards, dkb) = (discarded * 8.0, discarded * 1e6);
    let size = if discards > 0.0 { 125_000.0 } else { 0.0 };
    format!(
        "{name:<13} {reads:>8}.00 {}.00 0.00 0.00 0.40 4.00 {}.00 {written}.00 0.00 0.00 0.30 8.00 \
         {discards:.2} {dkb:.2} 0.00 0.00 {:.2} {size:.2} 0.00 0.00 8.00 100.00",
        reads * 4,
        written / 8,
        if discards > 0.0 { 120.0 } else { 0.0 }
    )
}

/// Reads of 20,000/s; for five seconds 4 % of them beside discards of 1.5 GB/s.
fn second(at: u32) -> Second {
    let stalled = (30..35).contains(&at);
    Second {
        reads: if stalled {
            800
        } else {
            20_000 + at * 7919 % 101
        },
        written: 40,
        discarded: if stalled { 1.5 } else { 0.0 },
    }
}

/// A log of so many seconds, each with the rows of some devices.
fn log(seconds: u32, rows: impl Fn(u32) -> Vec<String>) -> Vec<(u32, String)> {
    let mut lines = vec![
        (
            0,
            "Linux 6.5.0 (dbhost) \t06/19/2024 \t_x86_64_\t(16 CPU)".to_owned(),
        ),
        (0, String::new()),
    ];
    for at in 0..seconds {
        let mut add = |line: &str| lines.push((at, line.to_owned()));
        add("avg-cpu:  %user   %nice %system %iowait  %steal   %idle");
        add("           1.00    0.00    1.00    3.00    0.00   95.00");
        add("");
        add(HEADER);
        rows(at).iter().for_each(|row| add(row));
        add("");
    }
    lines
}

fn one_drive(at: u32) -> Vec<String> {
    vec![row("sdb", second(at)), row("sda", Second::default())]
}

fn text(lines: &[(u32, String)]) -> String {
    lines.iter().map(|(_, line)| format!("{line}\n")).collect()
}

fn import(text: &str) -> (RunRecord, Verdict) {
    assert_eq!(sniff(text.as_bytes()), Kind::Iostat, "{text:.300}");
    let log = Log::read(text.as_bytes()).unwrap();
    let record = record(&log, None, &Options::default()).unwrap();
    let verdict = judge(&record, &JudgeOptions::default());
    (record, verdict)
}

/// The verdict of [`second`]'s stall.
#[track_caller]
fn stalls(text: &str) -> (RunRecord, Verdict) {
    let (record, verdict) = import(text);
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    let stall = verdict.foreground[0].stall.unwrap();
    assert!((stall.seconds - 5.0).abs() < 0.1, "{stall:?}");
    let bytes = verdict.discard.bytes.unwrap() as f64;
    assert!(
        (bytes / (5.0 * 1.5e6 * 1024.0) - 1.0).abs() < 0.01,
        "{bytes}"
    );
    (record, verdict)
}

fn warned(verdict: &Verdict, words: &str) -> bool {
    verdict
        .warnings
        .iter()
        .any(|warning| warning.contains(words))
}

#[test]
fn text_before_each_line_changes_nothing_and_its_times_serve() {
    let lines = log(60, one_drive);
    let clock = |at: u32| format!("05:{:02}:{:02}", 2 + at / 60, at % 60);
    type Before<'a> = &'a dyn Fn(u32) -> String;
    let before: [(&str, bool, Before<'_>); 10] = [
        ("docker", true, &|at| {
            format!("2024-06-19T{}.123456789Z ", clock(at))
        }),
        ("journald", true, &|at| {
            format!("Jun 19 {} ampere iostat[{}]: ", clock(at), 4711 + at / 30)
        }),
        ("syslog", true, &|at| {
            format!("2024-06-19T{}.5+02:00 box iostat: ", clock(at))
        }),
        ("ts", true, &|at| format!("Jun 19 {} ", clock(at))),
        ("ts %.s", true, &|at| {
            format!("{}.250000 ", 1_718_773_354 + at)
        }),
        ("compose", false, &|_| "db-1  | ".to_owned()),
        ("kubectl", true, &|at| {
            format!("[pod/db-0/io] 2024-06-19T{}.1Z ", clock(at))
        }),
        ("k8s-file", true, &|at| {
            format!("2024-06-19T{}.5+02:00 stdout F ", clock(at))
        }),
        ("a mail", false, &|_| "> > ".to_owned()),
        ("a host", false, &|_| "db7 ".to_owned()),
    ];
    for (what, timed, before) in before {
        let with = |(at, line): &(u32, String)| (*at, format!("{}{line}", before(*at)));
        let mut all: Vec<(u32, String)> = lines.iter().map(with).collect();
        println!("{what}");
        let (_, verdict) = stalls(&text(&all));
        assert_eq!(
            warned(&verdict, "no times"),
            !timed,
            "{what}: {:?}",
            verdict.warnings
        );
        // Mailers and editors cut blanks at the end of lines; other lines stand between.
        all.iter_mut()
            .for_each(|line| line.1 = line.1.trim_end().to_owned());
        all.insert(0, (0, "-- Boot 1234 --".to_owned()));
        stalls(&text(&all));
    }
}

#[test]
fn colours_and_a_terminals_line_ends_lose_no_row() {
    let coloured = |line: &str| {
        let words = line
            .split_inclusive(' ')
            .map(|word| format!("\u{1b}[34;1m{word}\u{1b}[0m"));
        words.collect::<String>()
    };
    let lines = log(60, one_drive);
    let text: String = lines
        .iter()
        .map(|(_, line)| coloured(line) + "\r\r\n")
        .collect();
    let (record, _) = stalls(&format!("Script started on 2024-06-19\n{text}"));
    assert_eq!(record.intervals.len(), 60);
}

#[test]
fn rows_that_grep_left_are_read_by_their_number_of_columns() {
    let lines = log(60, one_drive);
    let rows = || lines.iter().filter(|(_, line)| line.starts_with("sdb"));
    let (record, verdict) = stalls(&text(&rows().cloned().collect::<Vec<_>>()));
    assert_eq!(record.intervals.len(), 60);
    assert!(warned(&verdict, "no header"));
    let timed = rows().map(|(at, line)| (*at, format!("10:{:02}:{:02} {line}", at / 60, at % 60)));
    let (_, verdict) = stalls(&text(&timed.collect::<Vec<_>>()));
    assert!(!warned(&verdict, "no times"), "{:?}", verdict.warnings);
    // A header once, and the rows of two devices.
    let both = lines
        .iter()
        .filter(|(_, line)| line.starts_with("sd"))
        .cloned();
    let once: Vec<_> = std::iter::once((0, HEADER.to_owned()))
        .chain(both)
        .collect();
    let (record, _) = stalls(&text(&once));
    assert_eq!(record.intervals.len(), 60);
    let named = |line: &(u32, String)| match line.1.starts_with("Device") {
        true => (0, format!("Time {}", line.1)),
        false => (
            line.0,
            format!("10:{:02}:{:02} {}", line.0 / 60, line.0 % 60, line.1),
        ),
    };
    stalls(&text(&once.iter().map(named).collect::<Vec<_>>()));
}

#[test]
fn times_on_lines_of_their_own_serve_where_headers_are_left_out() {
    let stamp = |at: u32| {
        (
            at,
            format!("2024-06-19 05:{:02}:{:02}", 2 + at / 60, at % 60),
        )
    };
    let mut lines = Vec::new();
    for line in log(60, one_drive) {
        if line.1.starts_with("avg-cpu") {
            lines.push(stamp(line.0));
        }
        lines.push(line);
    }
    let is = |line: &str, begins: &[&str]| begins.iter().any(|begin| line.starts_with(begin));
    let kept = |begins: &[&str]| -> Vec<(u32, String)> {
        let kept = lines.iter().filter(|line| is(&line.1, begins));
        kept.cloned().collect()
    };
    let one = kept(&["sdb", "2024"]);
    let both = kept(&["sd", "2024"]);
    let mut once = both.clone();
    once.insert(0, (0, HEADER.to_owned()));
    let no_header: Vec<_> = (lines.iter().filter(|line| !is(&line.1, &["Device"])))
        .cloned()
        .collect();
    for lines in [one, both, once, no_header] {
        let (record, verdict) = stalls(&text(&lines));
        assert_eq!(record.intervals.len(), 60);
        assert!(!warned(&verdict, "no times"), "{:?}", verdict.warnings);
    }
}

/// A RAID `md1` of so many drives, each of which reads its share, and writes and discards this
/// share of what the RAID does.
fn raid(drives: u32, share: f64, written: u32) -> String {
    raid_of(drives, share, written, move |_, _| share)
}

/// The same, if `share` tells what part of a second's writes a drive has.
fn raid_of(drives: u32, discarded: f64, written: u32, share: impl Fn(u32, u32) -> f64) -> String {
    let rows = |at: u32| {
        let whole = Second {
            written,
            ..second(at)
        };
        let mut left = whole.reads;
        let mut rows = vec![row(
            "md1",
            Second {
                discarded: 0.0,
                ..whole
            },
        )];
        for drive in 0..drives {
            let reads = match drive + 1 == drives {
                true => left,
                false => whole.reads / drives + (at * 31 + drive * 17) % 200,
            };
            left -= reads.min(left);
            rows.push(row(
                &format!("nvme{drive}n1"),
                Second {
                    reads,
                    written: (f64::from(written) * share(at, drive)) as u32,
                    discarded: whole.discarded * discarded,
                },
            ));
        }
        rows
    };
    text(&log(60, rows))
}

#[test]
fn a_byte_that_mirrors_discard_each_counts_once() {
    for (what, drives, share) in [("RAID 1", 2, 1.0), ("RAID 10", 4, 0.5), ("RAID 0", 2, 0.5)] {
        println!("{what}");
        let (record, verdict) = stalls(&raid(drives, share, 80));
        assert_eq!(record.head.actors[0].name, "md1");
        assert!(warned(
            &verdict,
            "md1 was taken to be made of nvme0n1 and nvme1n1"
        ));
        assert!(!warned(&verdict, "nknown copies"), "{what}");
    }
    let (_, verdict) = import(&raid(2, 1.0, 0));
    assert_eq!(verdict.verdict, Finding::Stall);
    assert!(warned(&verdict, "Unknown copies"), "{:?}", verdict.warnings);
    let told = &verdict.summary;
    assert!(
        told.contains("unknown copies included,") && told.contains("TRIM ran at up to"),
        "{told}"
    );
    // As the user says it.
    let options = Options {
        members: vec![("md1".into(), vec!["nvme0n1".into(), "nvme1n1".into()])],
        ..Options::default()
    };
    let log = Log::read(raid(2, 1.0, 80).as_bytes()).unwrap();
    let verdict = judge(
        &record(&log, None, &options).unwrap(),
        &JudgeOptions::default(),
    );
    let gb = verdict.discard.bytes.unwrap() as f64 / 1e9;
    assert!((gb - 7.68).abs() < 0.1, "{gb}");
}

#[test]
fn parity_is_no_mirror() {
    // Data and parity of a second's writes are on two of the drives, in turn.
    let parity = |drives: u32| {
        raid_of(drives, 1.0 / f64::from(drives - 1), 80, move |at, drive| {
            f64::from(u8::from((drive + at) % drives < 2))
        })
    };
    // Three drives with equal writes, and more that take turns.
    for (text, times) in [
        (raid(3, 0.7, 80), 2.1),
        (parity(4), 4.0 / 3.0),
        (parity(6), 1.2),
    ] {
        let (_, verdict) = import(&text);
        assert_eq!(verdict.verdict, Finding::Stall);
        assert!(warned(&verdict, "Unknown copies"), "{:?}", verdict.warnings);
        let bytes = verdict.discard.bytes.unwrap() as f64 / (5.0 * 1.5e6 * 1024.0);
        assert!((bytes / times - 1.0).abs() < 0.02, "{bytes} {times}");
    }
}

#[test]
fn equal_paths_of_a_drive_are_both_its_paths() {
    for paths in [2, 3] {
        let rows = |at: u32| {
            let second = second(at);
            let path = Second {
                reads: second.reads / paths,
                written: second.written / paths,
                discarded: second.discarded / f64::from(paths),
            };
            let drive = Second {
                reads: path.reads * paths,
                ..second
            };
            let names = (0..paths).map(|path| format!("nvme4c{path}n1"));
            let paths = names.map(|name| row(&name, path));
            std::iter::once(row("nvme4n1", drive))
                .chain(paths)
                .collect()
        };
        let (record, verdict) = stalls(&text(&log(60, rows)));
        assert!(
            warned(&verdict, "nvme4c1n1 were taken to be paths of nvme4n1")
                || warned(&verdict, "nvme4c2n1 were taken to be paths of nvme4n1"),
            "{:?}",
            verdict.warnings
        );
        assert_eq!(record.head.actors[0].name, "nvme4n1");
        assert!(
            record
                .head
                .devices
                .iter()
                .all(|d| d.kind == record::DeviceKind::Disk)
        );
    }
}

#[test]
fn a_mapping_lies_on_a_drive_and_a_path_is_no_member() {
    for (upper, lower, words) in [
        ("dm-0", "nvme0n1", "dm-0 was taken to lie on nvme0n1"),
        ("dm-12", "sda", "dm-12 was taken to lie on sda"),
        (
            "nvme1n1",
            "nvme1c3n1",
            "nvme1c3n1 was taken to be a path of nvme1n1",
        ),
        (
            "nvme0n1p2",
            "nvme0n1",
            "nvme0n1p2 was taken to lie on nvme0n1",
        ),
    ] {
        for order in [[upper, lower], [lower, upper]] {
            let rows = |at| order.map(|name| row(name, second(at))).to_vec();
            let (record, verdict) = stalls(&text(&log(60, rows)));
            assert!(warned(&verdict, words), "{words}: {:?}", verdict.warnings);
            assert_eq!(record.head.actors[0].name, upper);
        }
    }
}

/// A log of one drive with these reads, and GB discarded, at the end of 30 s of 20,000 reads/s.
fn after(tail: &[(u32, f64)]) -> Verdict {
    let rows = |at: u32| {
        let steady = (20_000 + at * 7919 % 101, 0.0);
        let (reads, discarded) = match at.checked_sub(30) {
            Some(i) => tail.get(i as usize).copied().unwrap_or(steady),
            None => steady,
        };
        let written = 0;
        vec![row(
            "sdb",
            Second {
                reads,
                written,
                discarded,
            },
        )]
    };
    let seconds = if tail.last().is_some_and(|last| last.0 < 10_000) {
        30 + tail.len() as u32
    } else {
        60
    };
    import(&text(&log(seconds, rows))).1
}

#[test]
fn a_short_stall_that_goes_on_as_a_silent_hang_is_a_stall() {
    let back = (20_010, 0.0);
    for silent in 1..=10 {
        for first in [500, 8_000] {
            let mut tail = vec![(first, 1.5), (700, 1.5)];
            tail.extend(vec![(0, 0.0); silent]);
            tail.push(back);
            let verdict = after(&tail);
            assert_eq!(
                verdict.verdict,
                Finding::Stall,
                "{silent} {first}: {}",
                verdict.summary
            );
        }
    }
}

#[test]
fn a_hang_beside_a_single_second_of_discards_is_not_blamed_on_them() {
    let mut tail = vec![(9_000, 0.1)];
    tail.extend([(0, 0.0); 12]);
    tail.push((20_010, 0.0));
    assert_ne!(after(&tail).verdict, Finding::Stall);
}

#[test]
fn a_fall_that_nothing_follows_is_the_end_of_the_load() {
    let steady = (20_010, 0.0);
    let stall = [(800, 1.5); 4];
    let after_stall = |end: &[(u32, f64)]| {
        let mut tail = stall.to_vec();
        tail.extend([steady; 12]);
        tail.extend(end);
        after(&tail)
    };
    for end in [
        &[(5_000, 0.0)][..],
        &[(3_000, 0.0), (12, 0.0), (3, 0.0)],
        &[(40, 0.0); 9],
    ] {
        let verdict = after_stall(end);
        assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
        assert!(
            verdict.foreground[0].dips.is_empty(),
            "{:?}",
            verdict.foreground[0].dips
        );
        let after = verdict.foreground[0].recovery.ops_per_s.unwrap();
        assert!(after > 19_000.0, "{after}: the end is no recovery");
    }
    let dip = after_stall(&[(3_000, 0.0), (3_000, 0.0), steady, steady]);
    assert_eq!(
        dip.foreground[0].dips.len(),
        1,
        "one that comes back is a dip"
    );
}

/// fio's logs by name -> the record and its verdict.
fn fio(logs: &[(&str, String)]) -> (RunRecord, Verdict) {
    let inputs = logs.iter().map(|(name, text)| Input {
        name: (*name).to_owned(),
        text: text.as_bytes(),
    });
    let all = series(inputs, None).unwrap();
    let record = formats::fio::record(&all, &formats::Options::default()).unwrap();
    let verdict = judge(&record, &JudgeOptions::default());
    (record, verdict)
}

#[test]
fn a_deletion_that_is_told_by_the_clock_is_at_that_time_of_fios_record() {
    let text: String = (1..60)
        .map(|at| format!("{}, 1000, 0, 4096\n", at * 1000))
        .collect();
    let input = Input {
        name: "r_iops.1.log".to_owned(),
        text: text.as_bytes(),
    };
    let mut all = series([input], None).unwrap();
    all[0].started_unix_s = Some(1.7e9);
    let with = |deletion| {
        let options = Options {
            deletion,
            ..Options::default()
        };
        formats::fio::record(&all, &options).unwrap()
    };
    let zero_s = with(None).head.started_unix_s;
    assert!(zero_s >= 1.7e9, "{zero_s}");
    let told = with(Some(formats::Moment::Unix(zero_s + 20.0)));
    assert_eq!(told.phases, with(Some(formats::Moment::After(20.0))).phases);
    assert_eq!(told.phases[2].at_s, 20.0);
}

#[test]
fn fios_own_trims_are_the_discards() {
    let (mut both, mut reads, mut trims) = (String::new(), String::new(), String::new());
    for at in 1..56 {
        let stalled = (31..36).contains(&at);
        let read = format!(
            "{}, {}, 0, 0, 0\n",
            at * 1000,
            if stalled { 90 } else { 2000 + at % 9 }
        );
        let trim = format!("{}, 12, 2, 0, 0\n", at * 1000);
        both += &(read.clone() + if stalled { &trim } else { "" });
        reads += &read;
        trims += if stalled { &trim } else { "" };
    }
    for logs in [
        vec![("t_iops.1.log", both)],
        vec![("r_iops.1.log.txt", reads), ("t_iops.2.log", trims)],
    ] {
        let (record, verdict) = fio(&logs);
        assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
        assert_eq!(record.head.actors.len(), 1, "the trims are no foreground");
        assert_eq!(
            (verdict.discard.commands, verdict.discard.bytes),
            (Some(60), None)
        );
        assert!(
            verdict.summary.contains("60 discards of unknown size"),
            "{}",
            verdict.summary
        );
    }
}

#[test]
fn a_log_of_bandwidth_alone_says_what_to_add() {
    let text: String = (1..60).map(|at| format!("{at}000, 7931, 0, 0\n")).collect();
    let input = Input {
        name: "b_bw.1.log".to_owned(),
        text: text.as_bytes(),
    };
    let error = series([input], None).unwrap_err().to_string();
    assert!(
        error.contains("--write_iops_log")
            && error.contains("log of bandwidth")
            && error.contains("b_bw.1.log"),
        "{error}"
    );
}

#[test]
fn latencies_of_fio_2_are_microseconds() {
    let mut text = String::new();
    for at in 0..2000 {
        writeln!(
            text,
            "{at}, {}, 0, 4096\n{at}, {}, 0, 4096",
            390 + at % 20,
            410 - at % 20
        )
        .unwrap();
    }
    let (record, verdict) = fio(&[("v_lat.1.log", text)]);
    let p50_us = record.intervals.actors[0].p50_us[5];
    assert!((390.0..410.0).contains(&p50_us), "{p50_us}");
    assert!(warned(&verdict, "microseconds"));
}
