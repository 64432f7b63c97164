//! Deleters that create and drop files all the time: compared with their own
//! seconds without discards, for their writes slow the foreground as well.

use std::ops::Range;

use proptest::prelude::*;

use super::build::{Actor, Build, Device, Level, assert_inconclusive, drive, level, reader};
use crate::judge;
use crate::verdict::{BaselineFrom, Finding, Reason, Verdict};
use record::units::{GIB, MIB};
use record::{EventKind, LoopKind, Part, PhaseName};

/// Reads when nobody disturbs them, and beside the deleter's writes.
const BASE: f64 = 60_000.0;
const BESIDE_WRITES: f64 = 0.6 * BASE;

/// The deleter works from here to there; what is still undiscarded follows until 67 s.
const WORK: Range<f64> = 5.0..65.0;

/// Bursts of discards while it works: one every `every_s`, of `length_s` each.
fn bursts(every_s: f64, length_s: f64) -> Vec<Range<f64>> {
    let count = ((WORK.end - WORK.start) / every_s).floor() as u32;
    (0..count)
        .map(|i| WORK.start + every_s * (f64::from(i) + 0.5))
        .map(|at| at..at + length_s)
        .collect()
}

/// The reads during these times, as a share of the reads beside writes alone.
fn during(times: &[Range<f64>], share: f64) -> Vec<Level> {
    let rate = share * BESIDE_WRITES;
    times.iter().map(|t| level(t.clone(), rate)).collect()
}

/// A record with discards at these times, one after the other, and these reads.
fn run(interval_s: f64, discards: &[Range<f64>], reads: Vec<Level>) -> Build {
    let per_s = 100.0;
    let active: Vec<Level> = discards.iter().map(|t| level(t.clone(), per_s)).collect();
    let active_s: f64 = discards.iter().map(|t| t.end - t.start).sum();
    let bytes = (active_s * per_s) as u64 * 64 * MIB;
    let device = drive(active, 64.0 * MIB as f64, 1e3 / per_s);
    let mut rates = vec![level(0.0..75.0, BASE), level(WORK, BESIDE_WRITES)];
    rates.extend(reads);
    let mut it =
        Build::new(interval_s, 75.0, reader(rates), device).phases(WORK.start, 68.0, bytes);
    it.continuous = true;
    it.deletions[0].2 = WORK.end - WORK.start;
    it.freed = vec![level(WORK, bytes as f64 / (WORK.end - WORK.start))];
    it
}

fn from(verdict: &Verdict) -> Option<BaselineFrom> {
    verdict.foreground[0].baseline_from
}

#[test]
fn what_the_writes_cost_is_not_blamed_on_trim() {
    for interval_s in [1.0, 0.1] {
        let it = run(interval_s, &bursts(5.0, 1.0), vec![]);
        let verdict = it.verdict();
        assert_eq!(verdict.verdict, Finding::None, "{}", verdict.summary);
        assert_eq!(verdict.reasons, []);
        assert_eq!(from(&verdict), Some(BaselineFrom::WithoutDiscards));
        let seen = &verdict.foreground[0];
        assert!((seen.baseline.ops_per_s.unwrap() / BESIDE_WRITES - 1.0).abs() < 0.01);
        assert!((seen.ops_ratio.unwrap() - 1.0).abs() < 0.01);
        assert!((seen.baseline.p50_us.unwrap() - 100.0).abs() < 1.0);
        assert_eq!(seen.baseline.p999_us, None, "not to be told from intervals");
        let before = seen.undisturbed.unwrap();
        assert!((before.ops_per_s.unwrap() / BASE - 1.0).abs() < 0.01);
        assert!(seen.dips.is_empty() && seen.stall.is_none());
        assert!(
            verdict
                .summary
                .contains("100 % of 36,000/s in its seconds without discards went on"),
            "{}",
            verdict.summary
        );
        // The same record of a single deletion: slower than before, and nothing else to go by.
        let once = Build {
            continuous: false,
            ..it
        };
        assert_eq!(from(&once.verdict()), Some(BaselineFrom::Phase));
        assert_eq!(once.verdict().foreground[0].undisturbed, None);
        assert_ne!(once.verdict().verdict, Finding::None);
    }
}

#[test]
fn reads_that_stop_while_discards_run_are_stalled() {
    let times = bursts(5.0, 1.0);
    let verdict = run(0.1, &times, during(&times, 0.02)).verdict();
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    assert_eq!(from(&verdict), Some(BaselineFrom::WithoutDiscards));
    let stall = verdict.foreground[0].stall.unwrap();
    assert!((stall.seconds - 12.0).abs() <= 0.1, "{stall:?}");
    assert!((stall.depth - 0.02).abs() <= 0.005, "{stall:?}");
    assert!((stall.longest_s - 1.0).abs() <= 0.02, "{stall:?}");
    let quoted = "stalled reads for 12.0 s in all, at most 1.0 s at once (to 2.0 % of 36,000/s in its \
                  seconds without discards)";
    assert!(verdict.summary.contains(quoted), "{}", verdict.summary);
    // In intervals of a second.
    let times = bursts(15.0, 4.0);
    let verdict = run(1.0, &times, during(&times, 0.02)).verdict();
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    let stall = verdict.foreground[0].stall.unwrap();
    assert!((stall.seconds - 16.0).abs() <= 1.0, "{stall:?}");
}

#[test]
fn reads_that_slow_down_while_discards_run() {
    let times = bursts(5.0, 1.0);
    let verdict = run(0.1, &times, during(&times, 0.7)).verdict();
    assert_eq!(verdict.verdict, Finding::Slowdown, "{}", verdict.summary);
    assert!((verdict.foreground[0].ops_ratio.unwrap() - 0.7).abs() < 0.01);
    let quoted = "slowed reads by 30 % (from 36,000/s in its seconds without discards)";
    assert!(verdict.summary.contains(quoted), "{}", verdict.summary);
    // In intervals of a second, too, though each burst lies across two.
    let verdict = run(1.0, &times, during(&times, 0.7)).verdict();
    assert_eq!(verdict.verdict, Finding::Slowdown, "{}", verdict.summary);
}

/// Pauses between bursts are no part of the TRIM rate.
#[test]
fn the_trim_rate_is_that_of_the_bursts() {
    for (every_s, length_s) in [(5.0, 1.0), (1.0, 0.5), (2.0, 0.4)] {
        let verdict = run(0.1, &bursts(every_s, length_s), vec![]).verdict();
        let rate = verdict.discard.bytes_per_s.unwrap() / (6400.0 * MIB as f64);
        assert!((rate - 1.0).abs() < 0.05, "{every_s} {rate}");
    }
}

#[test]
fn discards_all_the_time_can_clear_trim_but_not_convict_it() {
    // Spread over the run, a burst each 0.3 s: nothing is without them but an interval here and there.
    let times = bursts(0.3, 0.2);
    for share in [0.02, 0.7] {
        let verdict = run(0.1, &times, vec![level(WORK, share * BASE)]).verdict();
        assert_inconclusive(&verdict, Reason::DiscardsAllTheTime);
        assert!(
            verdict.summary.contains("hardly a second without discards"),
            "{}",
            verdict.summary
        );
        assert_eq!(from(&verdict), Some(BaselineFrom::Phase));
    }
    // With all its writes it loses nothing: then discards don't cost anything either.
    let verdict = run(0.1, &times, vec![level(WORK, 0.99 * BASE)]).verdict();
    assert_eq!(verdict.verdict, Finding::None, "{}", verdict.summary);
    assert!(!verdict.reasons.contains(&Reason::DiscardsAllTheTime));
}

/// The control has the writes and no discards; here it does that to reads.
fn with_control(mut it: Build, reads: f64) -> Build {
    it.length_s = 160.0;
    it.actors[0].rate.push(level(75.0..160.0, BASE));
    it.actors[0].rate.push(level(85.0..145.0, reads));
    for (name, at_s) in [
        (PhaseName::Baseline, 80.0),
        (PhaseName::Delete, 85.0),
        (PhaseName::Recovery, 147.0),
    ] {
        it.phases.push((name, Part::Control, at_s));
    }
    it.deletions.push((Part::Control, 85.0, 60.0, GIB));
    it
}

#[test]
fn a_control_tells_writes_from_discards() {
    let all_the_time = || run(0.1, &bursts(0.3, 0.2), vec![level(WORK, 0.02 * BASE)]);
    // The writes alone do nothing of the kind.
    let verdict = with_control(all_the_time(), BESIDE_WRITES).verdict();
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    assert!(
        verdict
            .summary
            .contains("before it, with none of its writes"),
        "{}",
        verdict.summary
    );
    // They do the same.
    let verdict = with_control(all_the_time(), 0.02 * BASE).verdict();
    assert_inconclusive(&verdict, Reason::ControlDipsToo);
    assert!(!verdict.reasons.contains(&Reason::DiscardsAllTheTime));
    // A stall told from the seconds without discards stands, although the control's
    // writes slow reads, too: it is compared with its own delete phase as well.
    let times = bursts(5.0, 1.0);
    let stalled = run(0.1, &times, during(&times, 0.02));
    let verdict = with_control(stalled, 0.4 * BASE).verdict();
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    let control = verdict.control.unwrap();
    assert_eq!(
        control.foreground[0].baseline_from,
        Some(BaselineFrom::WithoutDiscards)
    );
}

/// A compaction that writes at full speed and drops its input right then.
#[test]
fn writes_that_come_with_the_discards() {
    let written = |it: &Build, with: u64, without: u64| {
        let mut record = it.record();
        let columns = &mut record.intervals.devices[0];
        for (bytes, &discards) in columns.write_bytes.iter_mut().zip(&columns.discards) {
            *bytes = if discards > 0 { with } else { without };
        }
        judge(&record, &crate::JudgeOptions::default())
    };
    let times = bursts(5.0, 1.0);
    let slower = run(0.1, &times, during(&times, 0.7));
    let verdict = written(&slower, 30 * MIB, 30 * MIB);
    assert_eq!(verdict.verdict, Finding::Slowdown);
    let verdict = written(&slower, 30 * MIB, 10 * MIB);
    crate::verdict::schema::assert_conforms(&verdict);
    assert_eq!(
        verdict.verdict,
        Finding::Inconclusive,
        "{}",
        verdict.summary
    );
    assert_eq!(verdict.reasons, [Reason::MoreWritesWithDiscards]);
    assert!(
        verdict.summary.contains("wrote far more"),
        "{}",
        verdict.summary
    );
    // A control with the same writes settles it.
    let verdict = written(&with_control(slower, BESIDE_WRITES), 30 * MIB, 10 * MIB);
    assert_eq!(verdict.verdict, Finding::Slowdown, "{}", verdict.summary);
    // Reads that nearly stop are no matter of some writes, but it is said.
    let stalled = run(0.1, &times, during(&times, 0.02));
    let verdict = written(&stalled, 30 * MIB, 10 * MIB);
    assert_eq!(verdict.verdict, Finding::Stall);
    assert!(
        verdict.warnings[0].contains("wrote far more"),
        "{:?}",
        verdict.warnings
    );
    assert!(written(&stalled, 30 * MIB, 20 * MIB).warnings.is_empty());
}

#[test]
fn dips_without_discards_are_not_trim() {
    // Reads stop in the middle between two bursts, and go on during them.
    let times = bursts(5.0, 1.0);
    let between: Vec<Range<f64>> = times
        .iter()
        .map(|t| t.start + 2.5..t.end + 2.3)
        .filter(|t| t.end < WORK.end)
        .collect();
    let verdict = run(0.1, &times, during(&between, 0.02)).verdict();
    assert_eq!(verdict.verdict, Finding::None, "{}", verdict.summary);
    assert!(verdict.reasons.contains(&Reason::DipsWithoutDiscards));
    assert_eq!(verdict.foreground[0].dips.len(), between.len());
    // They stop as often during bursts as between them: the writes' doing.
    let often: Vec<Range<f64>> = (0..150)
        .map(|i| WORK.start + 0.4 * f64::from(i))
        .map(|at| at..at + 0.2)
        .collect();
    let verdict = run(0.1, &times, during(&often, 0.02)).verdict();
    assert!(
        !matches!(verdict.verdict, Finding::Stall | Finding::Slowdown),
        "{}",
        verdict.summary
    );
}

#[test]
fn no_discards_is_as_with_a_single_deletion() {
    let mut it = run(0.1, &bursts(5.0, 1.0), vec![]);
    it.devices[0].discards.clear();
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::None);
    assert_eq!(verdict.reasons, [Reason::NoDiscards]);
    assert_eq!(from(&verdict), Some(BaselineFrom::Phase));
}

/// The last call returned and the writes are over; what is still discarded then
/// is compared with the time before the writes.
#[test]
fn the_drain_belongs_to_the_deletion() {
    let drain = 65.2..67.2;
    let verdict = run(
        0.1,
        std::slice::from_ref(&drain),
        vec![level(drain.clone(), 0.02 * BASE)],
    )
    .verdict();
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    assert_eq!(from(&verdict), Some(BaselineFrom::Phase));
    let stall = verdict.foreground[0].stall.unwrap();
    assert!((stall.seconds - 2.0).abs() < 0.1, "{stall:?}");
    // Beside bursts that came before, it is one stall more; and where only writes slow
    // reads, a drain at full speed hides no slowdown in the bursts.
    let mut times = bursts(5.0, 1.0);
    times.push(drain.clone());
    let mut reads = during(&times[..12], 0.02);
    reads.push(level(drain.clone(), 0.02 * BASE));
    let verdict = run(0.1, &times, reads).verdict();
    assert_eq!(from(&verdict), Some(BaselineFrom::WithoutDiscards));
    let stall = verdict.foreground[0].stall.unwrap();
    assert!((stall.seconds - 14.0).abs() < 0.2, "{stall:?}");
    let slower = during(&times[..12], 0.85);
    let verdict = run(0.1, &times, slower).verdict();
    assert_eq!(verdict.verdict, Finding::Slowdown, "{}", verdict.summary);
    assert!((verdict.foreground[0].ops_ratio.unwrap() - 0.85).abs() < 0.01);
}

/// One compaction of the lowest level discards nine tenths of all; the small
/// ones stall reads, too, and are no seconds without discards.
#[test]
fn small_compactions_beside_a_huge_one_count() {
    let times = bursts(5.0, 1.0);
    let mut it = run(0.1, &times, during(&times, 0.02));
    let huge = Device {
        name: "sdb".into(),
        bytes_each: 4096.0 * GIB as f64,
        ..drive(vec![level(63.0..64.0, 100.0)], 0.0, 10.0)
    };
    it.devices.push(huge);
    it.actors[0].rate.push(level(63.0..64.0, 0.02 * BASE));
    let verdict = it.verdict();
    let stall = verdict.foreground[0].stall.unwrap();
    assert!((stall.seconds - 12.5).abs() < 0.2, "{stall:?}");
    // A journal's own commits are still none of them.
    it.devices.truncate(1);
    let journal = Device {
        name: "sdb".into(),
        ..drive(vec![level(WORK, 1.0)], 4096.0, 1.0)
    };
    it.devices.push(journal);
    let discard = it.verdict().discard;
    assert!(
        (discard.active_s.unwrap() - 12.0).abs() < 0.2,
        "{discard:?}"
    );
}

/// A file that is dropped before it was written back frees no blocks that anybody counts. So the
/// record has fewer bytes freed than discarded. All bursts count.
#[test]
fn discards_beyond_what_was_counted_are_its_own() {
    let times = bursts(5.0, 1.0);
    let mut it = run(0.1, &times, during(&times, 0.02));
    it.deletions[0].3 = it.deletions[0].3 * 6 / 10;
    let verdict = it.verdict();
    let stall = verdict.foreground[0].stall.unwrap();
    assert!((stall.seconds - 12.0).abs() <= 0.1, "{stall:?}");
    assert_eq!(verdict.discard.bytes, Some(75 * GIB));
}

/// Savers' cells are two intervals long, and so is the guard: what still waits right
/// after a burst is no baseline.
#[test]
fn the_wake_of_a_burst_is_left_out() {
    let times = bursts(5.0, 1.0);
    let wake: Vec<Range<f64>> = times.iter().map(|t| t.start..t.end + 0.15).collect();
    let mut rate = vec![level(0.0..75.0, 100.0)];
    rate.extend(wake.iter().map(|t| level(t.clone(), 0.0)));
    let mut it = run(0.1, &times, vec![]);
    it.actors.push(Actor {
        name: "saver".into(),
        op: "save",
        loop_kind: LoopKind::Closed { depth: 1 },
        rate,
        hangs: wake,
    });
    let verdict = it.verdict();
    let saver = &verdict.foreground[1];
    assert_eq!(saver.baseline.max_us, Some(1e3), "usual");
    assert!(saver.delete.max_us.unwrap() > 1.1e6);
    assert!((saver.baseline.ops_per_s.unwrap() - 100.0).abs() < 1.0);
}

/// Hundreds of small discards, spread evenly over an hour or a minute: all count.
#[test]
fn small_discards_spread_evenly_are_significant() {
    for (interval_s, every_s) in [(0.1, 1.0), (0.1, 3.0), (0.01, 1.0)] {
        let times = bursts(every_s, 0.1);
        let mut it = run(interval_s, &times, vec![]);
        it.devices[0].bytes_each = 0.1 * MIB as f64;
        it.devices[0].wait_ms = 1.0;
        it.deletions[0].3 = times.len() as u64 * MIB;
        let verdict = it.verdict();
        let active_s = verdict.discard.active_s.unwrap();
        let expected = 0.1 * times.len() as f64;
        assert!(
            active_s > expected - 0.01 && active_s < 2.5 * expected,
            "{active_s}"
        );
        assert_eq!(from(&verdict), Some(BaselineFrom::WithoutDiscards));
    }
}

/// A run that was killed has no deletion line to say that it went on all the time.
#[test]
fn a_killed_run_says_so_by_its_event() {
    let times = bursts(5.0, 1.0);
    let mut it = run(0.1, &times, vec![]);
    (it.completed, it.length_s) = (false, 40.0);
    it.deletions.clear();
    it.phases.truncate(2);
    it.events = vec![(EventKind::ContinuousDeletionBegan, WORK.start)];
    let verdict = it.verdict();
    assert_eq!(from(&verdict), Some(BaselineFrom::WithoutDiscards));
    assert_eq!(verdict.verdict, Finding::Inconclusive);
    assert_eq!(verdict.reasons, [Reason::Interrupted]);
    // Told by nothing, the writes are taken for discards.
    it.events.clear();
    assert_eq!(from(&it.verdict()), Some(BaselineFrom::Phase));
}

/// Twenty an interval are needed for a rate: a saver at 25/s has cells of 0.8 s, which
/// don't fit between bursts that come every two seconds. The age of its oldest tells.
#[test]
fn an_actor_too_sparse_for_the_gaps_is_told_by_age() {
    for (every_s, per_s) in [(2.0, 25.0), (2.0, 400.0), (10.0, 25.0)] {
        let times = bursts(every_s, 0.8);
        let mut it = run(0.1, &times, vec![]);
        let mut rate = vec![level(0.0..75.0, per_s)];
        rate.extend(times.iter().map(|t| level(t.clone(), 0.0)));
        it.actors.push(Actor {
            name: "saver".into(),
            op: "save",
            loop_kind: LoopKind::Closed { depth: 1 },
            rate,
            hangs: times.clone(),
        });
        let verdict = it.verdict();
        println!("{every_s} {per_s}: {}", verdict.summary);
        assert_eq!(verdict.verdict, Finding::Stall);
        let saver = &verdict.foreground[1];
        assert_eq!(saver.baseline_from, Some(BaselineFrom::WithoutDiscards));
        let stall = saver.stall.unwrap();
        let expected = 0.8 * times.len() as f64;
        assert!((stall.seconds / expected - 1.0).abs() < 0.25, "{stall:?}");
        assert!((stall.worst_latency_us.unwrap() / 0.8e6 - 1.0).abs() < 0.01);
        assert!(
            verdict.summary.contains("but not reads"),
            "{}",
            verdict.summary
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_does_not_matter_changes_nothing(
        shift in 0.0_f64..1e5,
        share in prop_oneof![0.0_f64..0.4, 0.6_f64..0.8, 0.97_f64..1.0],
        first: bool,
        name in "[a-z]{1,8}",
    ) {
        let times = bursts(5.0, 1.0);
        let mut plain = run(0.1, &times, during(&times, share));
        plain.devices.push(Device { name: "idle".into(), ..drive(vec![], 0.0, 0.0) });
        let writer = level(0.0..75.0, 9e4);
        plain.actors.push(Actor { name: "writer".into(), op: "write", ..reader(vec![writer]) });
        let mut other = plain.clone();
        other.shift_s = shift;
        other.devices.reverse();
        other.devices[0].name.clone_from(&name);
        if first {
            other.actors.swap(0, 1);
        }
        let (a, b) = (plain.verdict(), other.verdict());
        prop_assert_eq!(a.verdict, b.verdict);
        prop_assert_eq!(&a.reasons, &b.reasons);
        let figures = |v: &Verdict| {
            let seen = v.foreground.iter().find(|f| f.op == "read").unwrap().clone();
            let stall = seen.stall.map_or([0.0; 3], |s| [s.seconds, s.depth, s.lost_s]);
            (stall, seen.baseline.ops_per_s.unwrap() / BASE, seen.ops_ratio.unwrap())
        };
        let ((sa, ba, ra), (sb, bb, rb)) = (figures(&a), figures(&b));
        for (a, b) in sa.into_iter().chain([ba, ra]).zip(sb.into_iter().chain([bb, rb])) {
            prop_assert!((a - b).abs() <= 2e-3, "{} {}", a, b);
        }
        let expected = match share {
            s if s < 0.5 => Finding::Stall,
            s if s < 0.9 => Finding::Slowdown,
            _ => Finding::None,
        };
        prop_assert_eq!(a.verdict, expected);
    }
}

/// Rates that scatter by 10 %, as beside any writer: no loss is made up, and 20 % is always seen.
#[test]
fn noise_is_told_from_a_loss() {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let times = bursts(5.0, 0.5);
    for (left, expected) in [(1.0, Finding::None), (0.8, Finding::Slowdown)] {
        let record = run(0.1, &times, during(&times, left)).record();
        for _ in 0..50 {
            let mut noisy = record.clone();
            for ops in &mut noisy.intervals.actors[0].ops {
                let bell = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                *ops = (f64::from(*ops) * (1.0 + 0.1 * bell)).max(0.0) as u32;
            }
            let verdict = judge(&noisy, &crate::JudgeOptions::default());
            assert_eq!(verdict.verdict, expected, "{}", verdict.summary);
        }
    }
}

/// A drive that gets slower by a third over the run, say because its cache is full:
/// bursts lie all along, so that is no baseline that drifts.
#[test]
fn a_drift_hits_both_alike() {
    let times = bursts(5.0, 1.0);
    for (left, expected) in [(1.0, Finding::None), (0.8, Finding::Slowdown)] {
        let mut record = run(0.1, &times, during(&times, left)).record();
        for (i, ops) in record.intervals.actors[0].ops.iter_mut().enumerate() {
            *ops = (f64::from(*ops) * (1.0 - i as f64 / 2000.0)) as u32;
        }
        let verdict = judge(&record, &crate::JudgeOptions::default());
        assert_eq!(verdict.verdict, expected, "{}", verdict.summary);
        assert!(verdict.warnings.is_empty(), "{:?}", verdict.warnings);
    }
}

#[test]
fn as_settable_as_the_others() {
    let times = bursts(5.0, 1.0);
    let it = run(0.1, &times, during(&times, 0.6));
    assert_eq!(it.verdict().verdict, Finding::Slowdown);
    let verdict = judge(&it.record(), &crate::JudgeOptions { low: 0.7 });
    assert_eq!(verdict.verdict, Finding::Stall);
}
