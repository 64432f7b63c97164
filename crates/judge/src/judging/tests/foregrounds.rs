//! Several actors at a time: fast readers beside savers and syncers with a few operations a second.
//! The verdict must name the actor that stalled.

use std::ops::Range;

use super::build::{Actor, Build, assert_inconclusive, drive, level};
use super::faults::{BASE, run};
use crate::verdict::condition::CheckResult;
use crate::verdict::{Finding, Foreground, Reason, Verdict};
use record::units::{GIB, MIB};
use record::{Invocation, LoopKind};

/// An actor that hangs at these times, and goes on after them.
fn actor(name: &str, op: &'static str, per_s: f64, hangs: &[Range<f64>]) -> Actor {
    let mut rate = vec![level(0.0..25.0, per_s)];
    rate.extend(hangs.iter().map(|t| level(t.clone(), 0.0)));
    Actor {
        name: name.into(),
        op,
        loop_kind: LoopKind::Closed { depth: 1 },
        rate,
        hangs: hangs.to_vec(),
    }
}

/// The same in open loop: what was due meanwhile is done right after.
fn open(name: &str, op: &'static str, per_s: f64, hangs: &[Range<f64>]) -> Actor {
    let mut it = actor(name, op, per_s, hangs);
    it.loop_kind = LoopKind::Open {
        rate_per_s: per_s,
        poisson: false,
        depth: 1,
    };
    let late = hangs.iter().map(|t| {
        let due = per_s * (t.end - t.start);
        level(t.end..t.end + 0.02, due / 0.02 + per_s)
    });
    it.rate.extend(late);
    it
}

/// 8 GiB freed at 5 s, discarded during these; the reader is not slowed down.
fn beside_a_reader(discards: Range<f64>, actors: Vec<Actor>) -> Build {
    let mut it = run(0.1, discards, vec![]);
    it.actors.extend(actors);
    it
}

fn seen<'a>(verdict: &'a Verdict, name: &str) -> &'a Foreground {
    let mut of_name = verdict.foreground.iter().filter(|f| f.actor == name);
    of_name.next().unwrap()
}

/// A reader that begins with the deletion, as one of a deleter's own does.
#[test]
fn an_actor_that_began_with_the_deletion_leaves_the_others_their_finding() {
    let late = |per_s| {
        let mut late = actor("late", "read", 0.0, &[]);
        late.rate = vec![level(5.0..12.0, per_s)];
        late
    };
    for per_s in [2.0, 500.0] {
        let verdict = beside_a_reader(6.0..9.0, vec![late(per_s)]).verdict();
        assert_eq!(verdict.verdict, Finding::None, "{}", verdict.summary);
        let mut alone = beside_a_reader(6.0..9.0, vec![late(per_s)]);
        alone.actors.remove(0);
        let verdict = alone.verdict();
        assert_inconclusive(&verdict, Reason::TooFewOperations);
    }
}

#[test]
fn an_open_loop_that_never_kept_up_is_named_with_both_rates() {
    let warned = |does: f64, asked: f64| {
        let mut saver = actor("saver", "save", does, &[]);
        saver.loop_kind = LoopKind::Open {
            rate_per_s: asked,
            poisson: false,
            depth: 1,
        };
        let mut it = beside_a_reader(6.0..9.0, vec![saver]);
        it.actors.remove(0);
        let verdict = it.verdict();
        (verdict.verdict, verdict.summary)
    };
    let (finding, summary) = warned(200.0, 500.0);
    assert_eq!(finding, Finding::Inconclusive);
    let named = "saver was saturated before the deletion (200/s of 500/s): lower its rate";
    assert!(summary.contains(named), "{summary}");
    let (finding, summary) = warned(480.0, 500.0);
    assert_eq!(finding, Finding::None);
    assert!(!summary.contains("saturated"), "{summary}");
    // Two of three operations in five seconds are chance.
    assert!(!warned(0.4, 0.6).1.contains("saturated"));
}

#[test]
fn a_save_that_waits_for_discards() {
    // 100/s: ten in an interval, so cells are two intervals long.
    for hang in [7.0..8.0, 7.03..8.03, 7.08..8.11] {
        let saver = actor("saver", "save", 100.0, std::slice::from_ref(&hang));
        let mut it = beside_a_reader(hang.clone(), vec![saver]);
        let verdict = it.verdict();
        assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
        let stall = seen(&verdict, "saver").stall.unwrap();
        assert!((stall.seconds - 1.0).abs() <= 0.2, "{stall:?}");
        let worst_us = (hang.end - hang.start) * 1e6;
        assert!((stall.worst_latency_us.unwrap() / worst_us - 1.0).abs() < 1e-3);
        let longest_us = seen(&verdict, "saver").delete.max_us.unwrap();
        assert!((longest_us / worst_us - 1.0).abs() < 1e-3, "{longest_us}");
        assert_eq!(seen(&verdict, "reader").stall, None);
        assert!(
            verdict.summary.contains("stalled saves (saver) for")
                && verdict
                    .summary
                    .contains("; the longest took 1.0 s), but not reads: TRIM"),
            "{}",
            verdict.summary
        );
        it.devices[0].discards.clear();
        let verdict = it.verdict();
        assert_eq!(verdict.verdict, Finding::None, "{}", verdict.summary);
        assert_eq!(seen(&verdict, "saver").dips.len(), 1);
    }
}

/// The verdict on a record whose scenario says what to look at, and which has one condition.
fn looked_at(it: &Build, look_at: &str, fail_on: &str) -> Verdict {
    let mut record = it.record();
    record.head.scenario["look_at"] = look_at.into();
    record.head.run = Some(Invocation {
        fail_on: vec![fail_on.to_owned()],
        ..Invocation::default()
    });
    let verdict = crate::judge(&record, &crate::JudgeOptions::default());
    crate::verdict::schema::assert_conforms(&verdict);
    verdict
}

#[test]
fn the_sentence_begins_with_the_actor_that_look_at_names() {
    // The log hangs for longer, so the wal's stall is not the worst.
    let log = actor("log", "append", 100.0, &[6.0..8.0]);
    let wal = actor("wal", "fsync", 100.0, &[7.0..8.0]);
    let it = beside_a_reader(6.0..8.0, vec![log, wal]);
    for (look_at, first) in [
        ("", "stalled appends (log) for 2.0 s"),
        ("stall of nobody", "stalled appends (log) for 2.0 s"),
        (
            "stall of wal: how long commits waited",
            "stalled fsyncs (wal) for 1.0 s",
        ),
        (
            "p99 of log, stall of wal",
            "stalled appends (log) for 2.0 s",
        ),
    ] {
        let summary = looked_at(&it, look_at, "stall>1h").summary;
        let sentence = format!("Deleting 8.0 GiB {first}");
        assert!(summary.starts_with(&sentence), "{look_at}: {summary}");
    }
    let summary = looked_at(&it, "stall of reader", "stall>1h").summary;
    assert!(
        summary.starts_with("Deleting 8.0 GiB did not stall reads (reader), whose longest took")
            && summary.contains(", but stalled appends (log) for 2.0 s"),
        "{summary}"
    );
}

#[test]
fn each_condition_is_checked_against_the_record() {
    let log = actor("log", "append", 100.0, &[6.0..8.0]);
    let it = beside_a_reader(6.0..8.0, vec![log]);
    for (condition, actor, result) in [
        ("stall>1s", "log", CheckResult::Held),
        ("stall(log)>1s", "log", CheckResult::Held),
        ("stall(reader)>1s", "reader", CheckResult::Passed),
        ("stall>1h", "log", CheckResult::Passed),
    ] {
        let verdict = looked_at(&it, "", condition);
        let [checked] = &verdict.conditions[..] else {
            panic!("{:?}", verdict.conditions)
        };
        assert_eq!(checked.condition, condition);
        assert_eq!(checked.actor.as_deref(), Some(actor), "{condition}");
        assert_eq!(checked.result, result, "{condition}");
    }
}

#[test]
fn a_sync_each_second_that_waits_for_discards() {
    // The 2013 case: two in a row, 7.0 and 9.1 s; the second should have been instant.
    let first = open("syncfs-first", "first", 1.0, &[6.0..13.0]);
    let again = open("syncfs-again", "again", 1.0, &[13.0..22.1]);
    let mut it = beside_a_reader(6.0..22.1, vec![first, again]);
    it.phases[2].2 = 24.0;
    // Nothing is in flight between two of them.
    let mut record = it.record();
    for columns in &mut record.intervals.actors[1..] {
        for us in columns.oldest_us.iter_mut().filter(|us| **us < 1e3) {
            *us = f32::NAN;
        }
    }
    let verdict = crate::judge(&record, &crate::JudgeOptions::default());
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    for (name, worst_s) in [("syncfs-first", 7.0), ("syncfs-again", 9.1)] {
        let stall = seen(&verdict, name).stall.unwrap();
        assert!((stall.seconds - worst_s).abs() <= 0.3, "{name} {stall:?}");
        let worst_us = stall.worst_latency_us.unwrap();
        assert!(
            (worst_us / worst_s / 1e6 - 1.0).abs() < 0.01,
            "{name} {worst_us}"
        );
    }
    let quoted = "stalled repeated syncs (syncfs-again) for";
    assert!(verdict.summary.contains(quoted), "{}", verdict.summary);
    let others = "the longest took 9.1 s), and first syncs (syncfs-first), but not reads";
    assert!(verdict.summary.contains(others), "{}", verdict.summary);
}

/// Reads so fast that no interval ends with one in flight.
#[test]
fn an_open_loop_that_no_interval_catches_in_flight() {
    let mut it = beside_a_reader(6.0..8.0, vec![open("reader", "read", 500.0, &[])]);
    it.actors.remove(0);
    let mut record = it.record();
    record.intervals.actors[0].oldest_us.fill(0.0);
    let verdict = crate::judge(&record, &crate::JudgeOptions::default());
    assert_eq!(verdict.verdict, Finding::None, "{}", verdict.summary);
}

/// Eight saves a second of 125 ms each; during discards each takes a second. None of
/// them is ten times as old as usual, but six of seven don't happen.
#[test]
fn a_sparse_saver_that_gets_slower() {
    for (left, expected) in [(1.0, Finding::Slowdown), (8.0, Finding::Inconclusive)] {
        let mut saver = actor("saver", "save", 8.0, &[]);
        saver.rate.push(level(6.0..12.0, left));
        let mut it = beside_a_reader(6.0..12.0, vec![saver]);
        it.actors.remove(0);
        it.length_s = 30.0;
        it.actors[0].rate[0].to_s = 30.0;
        let mut record = it.record();
        for us in &mut record.intervals.actors[0].p99_us {
            *us = if us.is_nan() { *us } else { 130e3 };
        }
        let verdict = crate::judge(&record, &crate::JudgeOptions::default());
        assert_eq!(verdict.verdict, expected, "{}", verdict.summary);
    }
}

#[test]
fn fifteen_series_and_two_that_suffer() {
    let hang = [7.0..9.0];
    let mut actors = vec![
        actor("saver", "save", 100.0, &hang),
        open("syncfs-first", "first", 1.0, &hang),
    ];
    for i in 0..12 {
        let (op, per_s) = [("write", 2e4), ("metadata", 3e3), ("append-fsync", 300.0)][i % 3];
        actors.push(actor(&format!("other{i}"), op, per_s, &[]));
    }
    let mut it = beside_a_reader(7.0..9.0, actors);
    let verdict = it.verdict();
    assert_eq!(verdict.foreground.len(), 15);
    assert_eq!(verdict.verdict, Finding::Stall);
    let stalled = verdict.foreground.iter().filter(|f| f.stall.is_some());
    assert_eq!(stalled.count(), 2);
    assert!(
        verdict.summary.contains(", but not reads: "),
        "{}",
        verdict.summary
    );
    // All of them.
    for actor in &mut it.actors {
        actor.rate.push(level(7.0..9.0, 0.0));
        actor.hangs = hang.to_vec();
    }
    let verdict = it.verdict();
    assert!(
        verdict.summary.contains("and all 14 others: "),
        "{}",
        verdict.summary
    );
    // Some: the worst is named, and how many more.
    for actor in it.actors.iter_mut().skip(5) {
        actor.rate.pop();
        actor.hangs.clear();
    }
    let verdict = it.verdict();
    assert!(
        verdict.summary.contains("and 4 of 14 others: "),
        "{}",
        verdict.summary
    );
}

/// An actor with too few operations for a finding leaves the findings of the others as they are.
#[test]
fn a_sparse_actor_does_not_hide_the_others() {
    let rare = actor("rare", "append-fsync", 0.5, &[]);
    let verdict = beside_a_reader(7.0..9.0, vec![rare.clone()]).verdict();
    assert_eq!(verdict.verdict, Finding::None, "{}", verdict.summary);
    assert!(
        verdict.summary.contains("did not stall reads"),
        "{}",
        verdict.summary
    );
    let mut alone = beside_a_reader(7.0..9.0, vec![rare]);
    alone.actors.remove(0);
    let verdict = alone.verdict();
    assert_eq!(verdict.verdict, Finding::Inconclusive);
    assert_eq!(verdict.reasons, [Reason::TooFewOperations]);
}

/// An outside program's log has no ages: what it tells of a stall is judged by its rate all the same.
#[test]
fn a_series_without_latencies_is_judged() {
    let mut it = run(0.1, 6.0..9.0, vec![level(6.0..9.0, 0.01 * BASE)]);
    it.completed = false;
    let mut record = it.record();
    let actor = &mut record.intervals.actors[0];
    for columns in [&mut actor.max_us, &mut actor.oldest_us, &mut actor.p99_us] {
        columns.fill(f32::NAN);
    }
    let options = crate::JudgeOptions::default();
    let verdict = crate::judge(&record, &options);
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    let stall = verdict.foreground[0].stall.unwrap();
    assert!((stall.seconds - 3.0).abs() <= 0.1, "{stall:?}");
    assert_eq!(stall.worst_latency_us, None, "nobody told");
    assert_eq!(verdict.foreground[0].baseline.p99_us, None);
}

/// Writers and savers that stall one after the other, each beside its own discards.
#[test]
fn the_worst_is_the_one_that_lost_most() {
    let device = drive(
        vec![level(6.0..7.0, 30.0), level(9.0..12.0, 30.0)],
        GIB as f64 / 15.0,
        33.0,
    );
    let reader = actor("reader", "read", BASE, &[]);
    let mut it = Build::new(0.1, 25.0, reader, device).phases(5.0, 15.0, 8 * GIB);
    it.actors.push(actor("writer", "write", 2e4, &[6.0..7.0]));
    it.actors.push(actor("saver", "save", 100.0, &[9.0..12.0]));
    let verdict = it.verdict();
    let quoted = "stalled saves (saver) for 3.0 s";
    assert!(verdict.summary.contains(quoted), "{}", verdict.summary);
    let others = "the longest took 3.0 s), and writes (writer), but not reads: TRIM";
    assert!(verdict.summary.contains(others), "{}", verdict.summary);
}

#[test]
fn a_reader_that_was_slow_for_another_reason_is_not_cleared_by_a_canary() {
    // A tenth of a second of discards amid three seconds of reads that hardly go on.
    let slow = 6.5..9.5;
    let mut it = run(0.1, 7.0..7.1, vec![level(slow.clone(), BASE / 50.0)]);
    it.actors.push(open("canary", "read", 1000.0, &[]));
    it.actors.push(actor("saver", "save", 200.0, &[7.0..7.4]));
    let verdict = it.verdict();
    assert_eq!(seen(&verdict, "reader").dips.len(), 1);
    assert!(
        !verdict.summary.contains("not reads"),
        "{}",
        verdict.summary
    );
    it.actors.retain(|a| a.name != "saver");
    let verdict = it.verdict();
    assert_eq!(
        verdict.verdict,
        Finding::Inconclusive,
        "{}",
        verdict.summary
    );
    assert!(
        verdict.reasons.contains(&Reason::DipsWithoutDiscards),
        "{verdict:?}"
    );
}

/// btrfs discards the emptied blocks of its trees, 16 KiB each, before the file's space. Where a
/// drive takes as long for each, readers wait from the first on.
#[test]
fn small_discards_that_take_as_long_as_large_ones_stall_too() {
    let reader = open("reader", "read", 500.0, &[5.0..14.4]);
    let small = drive(vec![level(5.0..11.4, 1.0 / 0.6)], 16_384.0, 600.0);
    let mut it = Build::new(0.1, 20.0, reader, small).phases(5.0, 15.0, 512 * MIB);
    let large = drive(
        vec![level(11.4..14.4, 1.0 / 0.6)],
        103.0 * MIB as f64,
        610.0,
    );
    it.devices.push(large);
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    let stalled_s = seen(&verdict, "reader").stall.as_ref().unwrap().seconds;
    assert!((9.0..9.6).contains(&stalled_s), "{stalled_s}");
}
