//! iostat's and fio's clocks, brought together.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::fmt::Write;

use formats::fio::{Input, series};
use formats::iostat::{self, Log, Moment, Options};
use judge::{JudgeOptions, Verdict, judge};

/// Reads of fio in a second of its run.
fn reads(at: u32) -> u32 {
    3000 + at * 7919 % 997
}

/// A log of iostat of 100 s: fio reads from 12 s to 72 s on sdb, another program all the time on sda.
fn iostat(stamp: impl Fn(u32) -> String) -> String {
    let mut text = "Linux 6.5.0 (dbhost) \t06/19/2024 \t_x86_64_\t(16 CPU)\n\n".to_owned();
    for at in 0..100 {
        let fios = if (12..72).contains(&at) { reads(at) } else { 0 };
        let other = if at < 40 { 20_000 } else { 9_000 } + at * 104_729 % 5003;
        let rows = [("sda", other), ("sdb", fios)];
        let rows = rows.map(|(name, reads)| {
            format!("{name} {reads}.00 {}.00 0.00 0.00 0.40 4.00", reads * 4)
                + &" 0.00".repeat(16)
                + "\n"
        });
        let (stamp, rows) = (stamp(at), rows.concat());
        let header = "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await \
            wareq-sz d/s dkB/s drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util";
        let cpu = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n1.00 0.00 1.00 3.00 0.00 95.00";
        writeln!(text, "{stamp}\n{cpu}\n\n{header}\n{rows}").unwrap();
    }
    text
}

fn warned(verdict: &Verdict, words: &str) -> bool {
    verdict.warnings.iter().any(|one| one.contains(words))
}

/// iostat's local times are half an hour off the full zones, and another drive is busier than fio's.
/// fio's clock shows the zone, and the drive with fio's operations the rest of a second.
#[test]
fn fios_clock_shows_the_zone_of_iostats_times() {
    let text = iostat(|at| {
        let (minutes, seconds) = ((34 + at) / 60, (34 + at) % 60);
        format!("06/19/2024 10:{:02}:{seconds:02} AM", 32 + minutes)
    });
    let lines: String = (12..72)
        .map(|at| format!("{}, {}, 0, 0, 0\n", (at - 11) * 1000, reads(at)))
        .collect();
    let input = Input {
        name: "r_iops.1.log".to_owned(),
        text: lines.as_bytes(),
    };
    let options = Options::default();
    let log = Log::read(text.as_bytes()).unwrap();
    // 05:02:33 UTC: the first report's begin.
    let began_s = 1_718_773_353.0;
    let mut all = series([input], None).unwrap();
    all[0].started_unix_s = Some(began_s + 12.4);
    let record = formats::together(&log, None, &options, all.clone()).unwrap();
    let rows = &record.intervals;
    let first = rows.actors[0].ops.iter().position(|&ops| ops > 0);
    assert_eq!(first, Some(12), "{:?}", rows.at_s);
    assert_eq!(record.head.started_unix_s, began_s);
    let verdict = judge(&record, &JudgeOptions::default());
    assert!(warned(&verdict, "fio's clock shows that it is UTC+5:30"));
    assert!(warned(&verdict, "laid 0.4 s earlier"));
    assert!(
        !warned(&verdict, "iostat's clock isn't known"),
        "{:#?}",
        verdict.warnings
    );
    // Without fio's clock only the operations tell.
    all[0].started_unix_s = None;
    let record = formats::together(&log, None, &options, all).unwrap();
    let verdict = judge(&record, &JudgeOptions::default());
    assert!(warned(&verdict, "S_TIME_FORMAT=ISO"));
}

/// A log of 40 s in which a deletion is discarded in three reports; `before` were another program's.
fn deleted(before: std::ops::Range<u32>) -> String {
    let mut text = "Linux 6.5.0 (dbhost) \t06/19/2024 \t_x86_64_\t(16 CPU)\n\n".to_owned();
    for at in 0..40 {
        let discards = match at {
            20 => 4,
            21 => 30,
            22 => 9,
            _ if before.contains(&at) => 5,
            _ => 0,
        };
        let reads = if discards > 5 { 90 } else { reads(at) };
        writeln!(
            text,
            "2024-06-19T05:00:{:02}Z\nDevice r/s rkB/s r_await w/s wkB/s w_await d/s dkB/s d_await\n\
             sdb {reads}.00 {}.00 0.40 0.00 0.00 0.00 {discards}.00 {}.00 30.00\n",
            at + 1,
            reads * 4,
            discards * 131_072
        )
        .unwrap();
    }
    text
}

/// An exact moment of a deletion lies within the report that its first discards are in, and the
/// report's stamp is its end, without the part of a second.
#[test]
fn the_moment_of_a_deletion_may_be_a_second_late() {
    let judged = |text: &str, at_s: f64| {
        let log = Log::read(text.as_bytes()).unwrap();
        let options = Options {
            deletion: Some(Moment::After(at_s)),
            ..Options::default()
        };
        let record = iostat::record(&log, None, &options).unwrap();
        judge(&record, &JudgeOptions::default())
    };
    let discarded = |text: &str, at_s: f64| {
        let verdict = judged(text, at_s);
        let others = verdict.others.map_or(0, |others| others.bytes);
        (verdict.discard.bytes.unwrap() >> 27, others >> 27)
    };
    let text = deleted(0..0);
    for at_s in [17.5, 19.9, 20.0, 20.4, 21.2, 21.9] {
        assert_eq!(discarded(&text, at_s), (43, 0), "{at_s}");
    }
    // As without it, there is a time after the discards.
    let after = judged(&text, 20.0).foreground[0]
        .recovery
        .ops_per_s
        .unwrap();
    assert!((3000.0..4000.0).contains(&after), "{after}");
    // Later ones are told that it is over.
    let late = judged(&text, 30.0);
    let told = "came before the moment given with --at, the last 7.0 s before it";
    assert!(warned(&late, told), "{:#?}", late.warnings);
    // So is one that is given much too early.
    let told = "first discards came 12.0 s after the moment given with --at";
    assert!(warned(&judged(&text, 8.0), told));
    assert!(!warned(&judged(&text, 17.5), "after the moment given"));
    // What began longer before isn't taken for its own.
    let text = deleted(12..20);
    assert_eq!(discarded(&text, 21.0), (39, 44));
}
