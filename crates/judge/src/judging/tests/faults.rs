//! Faults that only look like a TRIM stall must not be called one; real stalls must.

use std::ops::Range;

use super::build::{Actor, Build, Device, Level, assert_inconclusive, drive, level, reader};
use crate::verdict::{Finding, Reason, Verdict};
use crate::{JudgeOptions, judge};
use record::units::{GIB, KIB, MIB};
use record::*;

pub(super) const BASE: f64 = 60_000.0;

/// 8 GiB freed at 5 s; this drive discards them from here to there, and reads go on like this.
pub(super) fn run(interval_s: f64, discards: Range<f64>, reads: Vec<Level>) -> Build {
    let per_s = 64.0 / (discards.end - discards.start);
    // One after the other, each as long as it takes; a fast drive has 64 of them done in 0.4 s.
    let fast = discards.end - discards.start < 0.5;
    let wait_ms = if fast { 1.5 } else { 1e3 / per_s };
    let device = drive(
        vec![level(discards.clone(), per_s)],
        128.0 * MIB as f64,
        wait_ms,
    );
    let mut all = vec![level(0.0..25.0, BASE)];
    all.extend(reads);
    let mut it = Build::new(interval_s, 25.0, reader(all), device).phases(5.0, 15.0, 8 * GIB);
    let zero = it.actors[0].rate[1..].iter().filter(|l| l.per_s == 0.0);
    it.actors[0].hangs = zero.map(|l| l.from_s..l.to_s).collect();
    it
}

pub(super) fn not_a_stall(verdict: &Verdict) {
    assert!(
        !matches!(verdict.verdict, Finding::Stall | Finding::Slowdown),
        "{}\n{:?}",
        verdict.summary,
        verdict.foreground
    );
    assert_eq!(verdict.foreground[0].stall, None, "{}", verdict.summary);
}

#[test]
fn a_freeze_without_discards() {
    for interval_s in [1.0, 0.1, 0.01] {
        let mut it = run(interval_s, 6.0..7.0, vec![level(7.0..9.0, 0.0)]);
        it.devices[0].discards.clear();
        let verdict = it.verdict();
        assert_eq!(verdict.verdict, Finding::None);
        assert_eq!(
            verdict.reasons,
            [Reason::NoDiscards, Reason::DipsWithoutDiscards]
        );
        let dip = verdict.foreground[0].dips[0];
        assert!(
            (dip.seconds - 2.0).abs() < 0.11 && dip.depth < 0.01,
            "{dip:?}"
        );
        // Lone discards of a journal don't change that.
        it.devices[0].discards = vec![level(0.0..25.0, 1.0)];
        it.devices[0].bytes_each = 4.0 * KIB as f64;
        assert_eq!(it.verdict().verdict, Finding::None);
        assert!(it.verdict().reasons.contains(&Reason::NoDiscards));
        // Neither where it isn't known what was freed.
        it.phases.clear();
        it.deletions.clear();
        it.freed.clear();
        let verdict = it.verdict();
        not_a_stall(&verdict);
        assert!(verdict.reasons.contains(&Reason::NoDiscards));
    }
}

#[test]
fn a_hang_beside_the_discards() {
    // The drive is fast and reads don't feel it; something else holds them before or after.
    for interval_s in [1.0, 0.1, 0.01] {
        for (hang, discards) in [
            (5.0..8.0, 8.0..8.4),    // right before
            (5.0..8.0, 7.97..8.37),  // brushing against its end
            (8.4..11.4, 8.0..8.4),   // right after
            (8.35..11.4, 8.0..8.4),  // brushing against their end
            (8.43..12.43, 8.0..8.4), // with a breath between
            (6.0..14.0, 9.0..9.3),   // around them, much longer
        ] {
            let it = run(interval_s, discards.clone(), vec![level(hang.clone(), 0.0)]);
            let verdict = it.verdict();
            println!("{interval_s} {hang:?} {discards:?}: {}", verdict.summary);
            not_a_stall(&verdict);
            assert!(!verdict.foreground[0].dips.is_empty());
        }
    }
}

#[test]
fn a_stall_and_then_something_else() {
    for interval_s in [0.1, 0.01] {
        let after = |share: f64| vec![level(6.0..9.0, 600.0), level(9.0..14.0, share * BASE)];
        let verdict = run(interval_s, 6.0..9.0, after(0.3)).verdict();
        let foreground = &verdict.foreground[0];
        let stall = foreground.stall.unwrap_or_else(|| panic!("{verdict:?}"));
        assert!((stall.seconds - 3.0).abs() <= 0.21, "{stall:?}");
        assert!(
            (foreground.dips[0].seconds - 5.0).abs() <= 0.21,
            "{:?}",
            foreground.dips
        );
        // When that is as bad as the stall itself, it may have been it all the time.
        let verdict = run(interval_s, 6.0..9.0, after(0.01)).verdict();
        not_a_stall(&verdict);
        assert_eq!(verdict.verdict, Finding::Inconclusive);
        // When nothing completes any more, it is something else, or something worse.
        let verdict = run(interval_s, 6.0..9.0, after(0.0)).verdict();
        assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
        let stall = verdict.foreground[0].stall.unwrap();
        assert!((stall.seconds - 3.0).abs() <= 0.21, "{stall:?}");
    }
}

#[test]
fn a_big_writer_that_starts_with_the_deletion() {
    // A fast drive: 0.1 s of discards, right at the begin of ten slow seconds.
    for interval_s in [1.0, 0.1, 0.01] {
        for share in [0.0, 0.1, 0.3, 0.6] {
            let slow = vec![level(5.0..14.9, share * BASE)];
            let verdict = run(interval_s, 5.05..5.15, slow).verdict();
            println!("{interval_s} {share}: {}", verdict.summary);
            not_a_stall(&verdict);
        }
    }
}

#[test]
fn a_processor_hog_throughout() {
    for interval_s in [1.0, 0.1] {
        // Everything is 40 % slower, from the deletion to the end of its phase.
        let slow = || vec![level(5.0..16.0, 0.6 * BASE)];
        let mut few = run(interval_s, 6.0..7.0, slow());
        few.devices[0].bytes_each = MIB as f64 * 0.5;
        let verdict = few.verdict();
        assert_eq!(verdict.verdict, Finding::None, "{}", verdict.summary);
        assert!(verdict.reasons.contains(&Reason::NoDiscards));
        // With all its discards, but no slower while they run than beside them.
        let verdict = run(interval_s, 7.0..9.0, slow()).verdict();
        not_a_stall(&verdict);
        assert_inconclusive(&verdict, Reason::DipsWithoutDiscards);
        // A big writer that takes 80 % is no stall either.
        let verdict = run(interval_s, 7.0..9.0, vec![level(5.0..16.0, 0.2 * BASE)]).verdict();
        not_a_stall(&verdict);
        // Slower only while discards run: theirs.
        let verdict = run(interval_s, 7.0..10.0, vec![level(7.0..10.0, 0.6 * BASE)]).verdict();
        assert_eq!(verdict.verdict, Finding::Slowdown, "{}", verdict.summary);
        assert!((verdict.foreground[0].ops_ratio.unwrap() - 0.6).abs() < 0.01);
        assert!(
            verdict.summary.contains("slowed reads by 40 %"),
            "{}",
            verdict.summary
        );
    }
}

#[test]
fn discards_that_did_not_come() {
    let mut it = run(0.1, 6.0..6.5, vec![level(6.0..8.0, 0.0)]);
    it.devices[0].discards.clear();
    it.events = vec![(EventKind::DiscardsDidNotCome, 14.9)];
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::None);
    assert!(
        verdict.reasons.contains(&Reason::DiscardsDidNotCome),
        "{:?}",
        verdict.reasons
    );
    assert!(verdict.reasons.contains(&Reason::NoDiscards));
    // A tenth of them came, and did no harm: that doesn't clear the others.
    let mut it = run(0.1, 6.0..6.5, vec![]);
    it.devices[0].bytes_each /= 10.0;
    it.events = vec![(EventKind::DiscardsDidNotCome, 14.9)];
    let verdict = it.verdict();
    assert_inconclusive(&verdict, Reason::DiscardsDidNotCome);
}

#[test]
fn records_with_next_to_nothing() {
    let empty = Build::new(0.1, 0.0, reader(vec![]), drive(vec![], 0.0, 0.0));
    let one = Build::new(
        0.1,
        0.1,
        reader(vec![level(0.0..1.0, BASE)]),
        drive(vec![], 0.0, 0.0),
    );
    let idle = Build::new(0.1, 20.0, reader(vec![]), drive(vec![], 0.0, 0.0));
    let device = drive(vec![level(0.0..0.1, 600.0)], MIB as f64, 1.0);
    let one_discard = Build::new(0.1, 0.1, reader(vec![level(0.0..1.0, BASE)]), device);
    for it in [&empty, &one, &idle, &one_discard] {
        let verdict = it.verdict();
        not_a_stall(&verdict);
        // With phases the same deletion can't be told anything about.
        let mut it = it.clone().phases(0.0, 0.1, GIB);
        it.phases.remove(0);
        not_a_stall(&it.verdict());
    }
    assert_eq!(one_discard.verdict().verdict, Finding::Inconclusive);
    let idle = run(0.1, 6.0..7.0, vec![level(0.0..25.0, 0.0)]).verdict();
    assert_inconclusive(&idle, Reason::TooFewOperations);
    // No device: nobody looked for discards.
    let mut blind = run(0.1, 6.0..7.0, vec![level(6.0..7.0, 0.0)]);
    blind.devices.clear();
    let verdict = blind.verdict();
    not_a_stall(&verdict);
    assert_eq!(verdict.verdict, Finding::Inconclusive);
    assert_eq!(verdict.discard.bytes, None);
    assert!(verdict.warnings[0].contains("could not be watched"));
    // No actor, no device.
    let mut none = run(0.1, 6.0..7.0, vec![]);
    none.actors.clear();
    none.devices.clear();
    not_a_stall_without_actors(&none.verdict());
}

pub(super) fn not_a_stall_without_actors(verdict: &Verdict) {
    assert_eq!(verdict.verdict, Finding::Inconclusive);
    assert!(verdict.foreground.is_empty());
}

#[test]
fn an_interrupted_run() {
    let stalled = || vec![level(6.0..9.0, 600.0)];
    let mut it = run(0.1, 6.0..9.0, stalled());
    it.completed = false;
    it.phases.pop();
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::Stall, "a proven stall stays one");
    assert!(verdict.reasons.contains(&Reason::Interrupted));
    // Stopped before the first discard.
    let mut it = run(0.1, 6.0..9.0, vec![]);
    (it.completed, it.length_s) = (false, 5.8);
    it.phases.pop();
    let verdict = it.verdict();
    assert_inconclusive(&verdict, Reason::Interrupted);
    // Stopped in its baseline: nothing was deleted.
    it.length_s = 4.0;
    it.phases.truncate(1);
    it.deletions.clear();
    it.freed.clear();
    let verdict = it.verdict();
    assert_inconclusive(&verdict, Reason::NoDeletion);
    assert!(verdict.reasons.contains(&Reason::Interrupted));
    // What was said while it ran is kept, and how it ended is told.
    let mut record = it.record();
    record.phases.clear();
    let baseline = Phase {
        name: PhaseName::Baseline,
        part: Part::Control,
        at_s: 0.0,
    };
    record.phases.push(baseline);
    record.events.push(Event {
        at_s: 1.0,
        kind: EventKind::Warning,
        detail: Some("It was loud.".into()),
    });
    for (reason, told, word) in [
        (EndReason::Interrupted, Reason::Interrupted, "interrupted"),
        (EndReason::Failed, Reason::Failed, "failed"),
    ] {
        record.end = Some(End {
            at_s: 4.0,
            reason,
            message: Some("It went wrong.".into()),
            unfinished: vec![],
            lives: Vec::new(),
        });
        let verdict = judge(&record, &JudgeOptions::default());
        crate::verdict::schema::assert_conforms(&verdict);
        assert_eq!(verdict.reasons, [Reason::NoDeletion, told]);
        assert_eq!(verdict.warnings[..2], ["It was loud.", "It went wrong."]);
        assert!(verdict.summary.contains(word), "{}", verdict.summary);
    }
    // Killed in its recovery: the deletion was over.
    let mut it = run(0.1, 6.0..7.0, vec![]);
    (it.completed, it.length_s) = (false, 20.0);
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::None);
    assert_eq!(verdict.reasons, [Reason::Interrupted]);
}

#[test]
fn an_open_loop_that_hangs() {
    let open = |rate_per_s: f64, depth| Actor {
        name: "canary".into(),
        op: "read",
        loop_kind: LoopKind::Open {
            rate_per_s,
            poisson: false,
            depth,
        },
        // What was due during the hang is done right after it.
        rate: vec![
            level(0.0..25.0, rate_per_s),
            level(7.03..8.03, 0.0),
            level(8.03..8.05, 51.0 * rate_per_s),
        ],
        hangs: vec![7.03..8.03],
    };
    for (rate, interval_s) in [(1000.0, 0.1), (1000.0, 0.01), (100.0, 0.1), (10.0, 0.1)] {
        let mut it = run(interval_s, 7.03..8.03, vec![]);
        it.actors = vec![open(rate, 1)];
        let verdict = it.verdict();
        println!("{rate}/s at {interval_s} s: {}", verdict.summary);
        assert_eq!(
            verdict.verdict,
            Finding::Stall,
            "{rate} {interval_s} {verdict:?}"
        );
        let stall = verdict.foreground[0].stall.unwrap();
        let tolerance = interval_s + 0.5 / rate;
        assert!((stall.seconds - 1.0).abs() <= tolerance, "{stall:?}");
        assert!((stall.lost_s - 1.0).abs() <= tolerance, "{stall:?}");
        assert!(
            (stall.worst_latency_us.unwrap() - 1e6).abs() < 1e3,
            "{stall:?}"
        );
        it.devices[0].discards.clear();
        not_a_stall(&it.verdict());
        // Beside a reader that feels nothing, the canary is named.
        let mut it = run(interval_s, 7.03..8.03, vec![]);
        it.actors.push(open(rate, 1));
        let verdict = it.verdict();
        assert_eq!(verdict.verdict, Finding::Stall);
        assert!(
            verdict.summary.contains("reads (canary)"),
            "{}",
            verdict.summary
        );
        assert_eq!(verdict.foreground[0].actor, "reader");
    }
    // At one second a hang of a second may lie across two intervals; three seconds can't hide.
    let mut it = run(1.0, 7.0..10.0, vec![]);
    it.actors = vec![open(1000.0, 1)];
    it.actors[0].rate[1] = level(7.0..10.0, 0.0);
    it.actors[0].hangs = vec![7.0..10.0];
    let stall = it.verdict().foreground[0].stall.unwrap();
    assert!((stall.seconds - 3.0).abs() <= 1.0, "{stall:?}");
}

#[test]
fn a_slow_drive_with_sparse_completions() {
    // 40 discards of 100 ms, one at a time, at 10 ms intervals: most intervals complete none.
    let reads = vec![level(6.0..10.0, 80.0)];
    let mut it = run(0.01, 6.0..10.0, reads);
    it.devices[0].discards = vec![level(6.0..10.0, 10.0)];
    it.devices[0].wait_ms = 100.0;
    it.devices[0].bytes_each = 8.0 * GIB as f64 / 40.0;
    let verdict = it.verdict();
    let stall = verdict.foreground[0]
        .stall
        .unwrap_or_else(|| panic!("{verdict:?}"));
    assert!((stall.seconds - 4.0).abs() <= 0.02, "{stall:?}");
    assert!(verdict.foreground[0].dips.is_empty());
    let rate = verdict.discard.bytes_per_s.unwrap() / GIB as f64;
    assert!((rate - 2.0).abs() < 0.05, "{rate}");
    assert!(!verdict.discard.bytes_per_s_is_lower_bound);
    assert!((verdict.discard.active_s.unwrap() - 4.0).abs() < 0.15);
    // Twenty trims of 50 ms a second, and a slow device at 300 reads/s.
    let mut it = run(0.01, 6.0..10.0, vec![level(6.0..10.0, 20.0)]);
    it.actors[0].rate[0].per_s = 300.0;
    let verdict = it.verdict();
    let stall = verdict.foreground[0]
        .stall
        .unwrap_or_else(|| panic!("{verdict:?}"));
    assert!((stall.seconds - 4.0).abs() <= 0.15, "{stall:?}");
}

#[test]
fn discards_spread_thinly_over_a_long_run() {
    // 20 GiB over 200 s: an interval has 0.05 % of them, and reads nearly stop all the while.
    let device = drive(vec![level(20.0..220.0, 100.0)], MIB as f64, 9.0);
    let rate = vec![level(0.0..260.0, BASE), level(20.0..220.0, 0.02 * BASE)];
    let verdict = Build::new(0.1, 260.0, reader(rate), device).verdict();
    let stall = verdict.foreground[0].stall.unwrap();
    assert!((stall.seconds - 200.0).abs() <= 0.1, "{stall:?}");
    assert!((verdict.discard.active_s.unwrap() - 200.0).abs() < 0.2);
}

#[test]
fn only_the_delete_phase_counts() {
    // Preparing trims 100 GiB, and so does somebody in the recovery; the deletion itself none.
    let mut it = run(
        0.1,
        6.0..7.0,
        vec![level(1.0..2.0, 0.0), level(16.0..18.0, 0.0)],
    );
    it.devices[0].discards = vec![level(1.0..2.0, 800.0), level(16.0..18.0, 400.0)];
    let verdict = it.verdict();
    assert_eq!(
        verdict.verdict,
        Finding::Inconclusive,
        "{}",
        verdict.summary
    );
    assert_eq!(verdict.discard.bytes, Some(0));
    assert!(verdict.reasons.contains(&Reason::ForeignDiscards));
}

#[test]
fn upper_devices_count_when_the_lower_see_nothing() {
    let mut it = run(0.1, 6.0..9.0, vec![level(6.0..9.0, 600.0)]);
    let seen = it.devices[0].clone();
    // A partition on a loop device over a file system that doesn't discard.
    it.devices = vec![
        Device {
            name: "loop0p1".into(),
            leaf: false,
            level: 0,
            ..seen.clone()
        },
        Device {
            name: "loop0".into(),
            leaf: false,
            level: 1,
            ..seen.clone()
        },
        Device {
            name: "sda".into(),
            level: 2,
            discards: vec![],
            ..seen.clone()
        },
    ];
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::Stall);
    assert_eq!(
        verdict.discard.commands,
        Some(64),
        "counted once, not at every level"
    );
    assert!(
        verdict.warnings[0].contains("above"),
        "{:?}",
        verdict.warnings
    );
    // When the leaf sees them, only the leaf counts.
    it.devices[2].discards = seen.discards.clone();
    it.devices[2].bytes_each = seen.bytes_each / 2.0;
    assert_eq!(it.verdict().discard.bytes, Some(4 * GIB));
}

#[test]
fn low_is_settable() {
    let it = run(0.1, 6.0..9.0, vec![level(6.0..9.0, 0.6 * BASE)]);
    assert_eq!(it.verdict().verdict, Finding::Slowdown);
    let verdict = judge(&it.record(), &JudgeOptions { low: 0.7 });
    assert_eq!(verdict.verdict, Finding::Stall);
    assert!((verdict.foreground[0].stall.unwrap().depth - 0.6).abs() < 0.01);
}

/// Rates that scatter by 10 %, and discards that do nothing: never a slowdown
/// nor a stall; 20 % less is always seen.
#[test]
fn noise_is_told_from_a_loss() {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    // Twelve uniform numbers make a good bell.
    let mut bell = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    for (left, slowdowns) in [(1.0, 0..=0), (0.8, 99..=100)] {
        let mut found = 0;
        for _ in 0..100 {
            let it = run(0.1, 6.0..8.0, vec![level(6.0..8.0, left * BASE)]);
            let mut record = it.record();
            for ops in &mut record.intervals.actors[0].ops {
                *ops = (f64::from(*ops) * (1.0 + 0.1 * bell())).max(0.0) as u32;
            }
            let verdict = judge(&record, &JudgeOptions::default());
            assert_ne!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
            found += usize::from(verdict.verdict == Finding::Slowdown);
        }
        assert!(slowdowns.contains(&found), "{left}: {found} of 100");
    }
}

/// The sampling thread itself had to wait during the stall: one long interval, and after it all
/// those it had missed, which last no time.
#[test]
fn a_late_sampling_thread() {
    let it = run(0.01, 6.0..6.8, vec![level(6.0..6.8, 600.0)]);
    let mut record = it.record();
    let (late, missed, short_s) = (600, 79, 5e-5);
    let columns = &mut record.intervals;
    let (ops, device) = (&mut columns.actors[0].ops, &mut columns.devices[0]);
    for i in late + 1..=late + missed {
        ops[late] += std::mem::take(&mut ops[i]);
        device.discards[late] += std::mem::take(&mut device.discards[i]);
        device.discard_bytes[late] += std::mem::take(&mut device.discard_bytes[i]);
        device.discard_ms[late] += std::mem::take(&mut device.discard_ms[i]);
        columns.at_s[i] = 6.8 + (i - late - 1) as f64 * short_s;
        columns.seconds[i] = short_s as f32;
    }
    columns.seconds[late] = 0.8;
    let next = late + missed + 1;
    columns.at_s[next] = 6.8 + missed as f64 * short_s;
    columns.seconds[next] = (0.01 - missed as f64 * short_s) as f32;
    let verdict = judge(&record, &JudgeOptions::default());
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    let stall = verdict.foreground[0].stall.unwrap();
    assert!((stall.seconds - 0.8).abs() <= 0.015, "{stall:?}");
    assert!((stall.depth - 0.01).abs() <= 0.01, "{stall:?}");
    assert!(
        verdict.foreground[0].dips.is_empty(),
        "{:?}",
        verdict.foreground[0].dips
    );
}

/// As measured: a hog takes its share by chance when a fast drive's discards come.
#[test]
fn a_hog_that_happens_to_hit_the_discards() {
    let slow = vec![level(5.0..8.0, 0.4 * BASE), level(5.0..5.25, 0.035 * BASE)];
    let mut it = run(0.1, 5.01..5.05, slow);
    it.devices[0].wait_ms = 0.6;
    not_a_stall(&it.verdict());
}

/// As measured: the deletion is discarded at once. Then a big writer fills the drive's queue. A few
/// small discards of other processes wait in it like everything else.
#[test]
fn a_big_writer_and_other_peoples_discards() {
    let mut it = run(0.1, 5.01..5.04, vec![level(5.4..7.4, 0.015 * BASE)]);
    let others = drive(vec![level(6.0..7.4, 70.0)], 0.3 * MIB as f64, 15.0);
    it.devices.push(Device {
        name: "sdb".into(),
        ..others
    });
    let verdict = it.verdict();
    not_a_stall(&verdict);
    assert_eq!(verdict.discard.bytes, Some(8 * GIB), "not those of others");
    assert_eq!(verdict.foreground[0].dips.len(), 1);
    // Where far more is discarded than was said to be freed, that isn't known, and all count.
    it.deletions[0].3 = GIB;
    it.freed.clear();
    assert!(it.verdict().discard.bytes > Some(8 * GIB));
}
