//! trimbench itself does not always run: what it didn't see is nobody's doing.

use std::ops::Range;

use super::build::level;
use super::faults::run;
use crate::verdict::{Finding, Reason, Verdict};
use crate::{JudgeOptions, judge};
use record::absence::{Absent, Cause};
use record::*;

/// The record of a run that was stopped meanwhile: one interval, written when it continued, in
/// which its actors have no figures. Not `marked`: as a version writes it that knows of no stops.
fn stopped(record: &RunRecord, when: Range<f64>, marked: bool) -> RunRecord {
    let mut cut = RunRecord::new(record.head.clone()).unwrap();
    let mut away: Option<Interval> = None;
    for line in record.lines().skip(1) {
        let Line::Interval(interval) = line else {
            if let (Line::End(_), Some(long)) = (&line, away.take()) {
                cut.push(&Line::Interval(long)).unwrap();
            }
            cut.push(&line).unwrap();
            continue;
        };
        let end_s = interval.at_s + interval.seconds;
        if end_s <= when.start + 1e-6 || interval.at_s >= when.end - 1e-6 {
            if let Some(long) = away.take() {
                cut.push(&Line::Interval(long)).unwrap();
            }
            cut.push(&Line::Interval(interval)).unwrap();
            continue;
        }
        away = Some(match away {
            None => interval,
            Some(long) => joined(long, &interval),
        });
        let long = away.as_mut().unwrap();
        if marked {
            long.actors.fill(None);
            long.absent = Some(Absent {
                seconds: when.end - when.start,
                cause: Cause::Stopped,
            });
        } else {
            let stuck = |actor: &mut ActorInterval| actor.ops = 8;
            long.actors.iter_mut().flatten().for_each(stuck);
        }
    }
    cut
}

fn joined(mut long: Interval, next: &Interval) -> Interval {
    long.seconds += next.seconds;
    long.freed_bytes += next.freed_bytes;
    for (sum, more) in long.devices.iter_mut().zip(&next.devices) {
        sum.discards += more.discards;
        sum.discard_bytes += more.discard_bytes;
        sum.discard_ms += more.discard_ms;
    }
    long
}

fn judged(record: &RunRecord) -> Verdict {
    let verdict = judge(record, &JudgeOptions::default());
    crate::verdict::schema::assert_conforms(&verdict);
    verdict
}

/// 8 GiB deleted at 5 s, discarded from 6 s to 9 s; reads stop meanwhile, or don't.
fn deleted(stalls: bool) -> RunRecord {
    let stall = stalls.then(|| level(6.0..9.0, 600.0));
    run(0.1, 6.0..9.0, stall.into_iter().collect()).record()
}

#[test]
fn a_stop_is_no_dip() {
    let whole = judged(&deleted(true));
    let blamed = judged(&stopped(&deleted(true), 11.0..14.0, false));
    assert_eq!(blamed.foreground[0].dips.len(), 1);
    let verdict = judged(&stopped(&deleted(true), 11.0..14.0, true));
    assert_eq!(verdict.verdict, Finding::Stall);
    assert_eq!(verdict.foreground[0].dips, []);
    assert_eq!(verdict.foreground[0].stall, whole.foreground[0].stall);
    assert_eq!(verdict.absences.len(), 1);
    let said = "trimbench itself did not run for 3.0 s (stopped) at 11.0 s. All figures leave \
                out that time, and I/O that was in flight.";
    assert!(verdict.warnings.iter().any(|w| w == said), "{verdict:?}");
    assert_eq!(whole.absences, []);
}

#[test]
fn a_stop_while_it_discards_shortens_what_was_seen_and_changes_no_rate() {
    let whole = judged(&deleted(false));
    let verdict = judged(&stopped(&deleted(false), 7.0..8.0, true));
    assert_eq!(whole.verdict, Finding::None);
    assert_eq!(verdict.verdict, Finding::None, "{verdict:?}");
    assert_eq!(verdict.foreground[0].dips, []);
    let near = |a: Option<f64>, b: Option<f64>| (a.unwrap() / b.unwrap() - 1.0).abs() < 0.05;
    let (discard, before) = (&verdict.discard, &whole.discard);
    assert!(near(discard.bytes_per_s, before.bytes_per_s), "{discard:?}");
    assert_eq!(discard.bytes, before.bytes);
    assert!((before.active_s.unwrap() - discard.active_s.unwrap() - 1.0).abs() < 0.15);
    // Seconds later the verdict rests on the rest of a stall.
    let stall = judged(&stopped(&deleted(true), 7.0..8.0, true));
    assert_eq!(stall.verdict, Finding::Stall);
    assert!((stall.foreground[0].stall.unwrap().seconds - 2.0).abs() < 0.3);
}

#[test]
fn who_was_away_while_it_discarded_knows_nothing() {
    for stalls in [true, false] {
        let verdict = judged(&stopped(&deleted(stalls), 5.9..9.2, true));
        assert_eq!(verdict.verdict, Finding::Inconclusive, "{verdict:?}");
        assert!(verdict.reasons.contains(&Reason::Absent), "{verdict:?}");
        let summary = &verdict.summary;
        assert!(
            summary.contains("trimbench itself did not run"),
            "{summary}"
        );
    }
}

/// The same record with this share of waiting in each interval before 5 s and after.
fn waiting(before: f64, after: f64) -> Verdict {
    let record = deleted(true);
    let mut slowed = RunRecord::new(record.head.clone()).unwrap();
    for mut line in record.lines().skip(1) {
        if let Line::Interval(interval) = &mut line {
            let share = if interval.at_s < 5.0 { before } else { after };
            interval.cpu_wait = vec![Some(share)];
        }
        slowed.push(&line).unwrap();
    }
    judged(&slowed)
}

#[test]
fn a_foreground_short_of_processors_is_a_warning_with_the_figure() {
    let verdict = waiting(0.31, 0.02);
    let wait = verdict.foreground[0].cpu_wait.unwrap();
    assert!((wait.baseline.unwrap() - 0.31).abs() < 1e-3);
    assert!((wait.delete.unwrap() - 0.02).abs() < 1e-3);
    let said = |w: &String| {
        w.starts_with(
            "reader waited for a CPU for 31 % of its time before and 2.0 % during the deletion, ",
        )
    };
    assert!(verdict.warnings.iter().any(said), "{verdict:?}");
    let little = waiting(0.04, 0.04);
    assert!(!little.warnings.iter().any(|w| w.contains("CPU")));
    assert!(little.foreground[0].cpu_wait.is_some());
    assert_eq!(judged(&deleted(true)).foreground[0].cpu_wait, None);
}
