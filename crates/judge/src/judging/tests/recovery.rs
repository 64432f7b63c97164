//! Stalls that a slow recovery follows.

use super::build::{Build, Device, Level, assert_inconclusive, drive, level, reader};
use super::faults::{BASE, run};
use crate::verdict::{Dip, DipDiscards, Finding, Foreground, Reason};
use record::EventKind;
use record::units::{GIB, MIB};

/// As measured: a simulated 870 EVO, 8 times slower, needs 0.14 s for 1 GiB and recovers slowly.
#[test]
fn a_short_stall_and_a_slow_recovery() {
    const BASE: f64 = 7080.0;
    let verdict = |scatter: f64, longer: usize| {
        let scattered = (0..250).map(|i| (i, [1.0 + scatter, 1.0 - scatter][i % 2] * BASE));
        let stall = [(60, 800.0), (61, 1675.0), (62, 2207.0)];
        let tail = (63..64 + longer).map(|i| (i, 3265.0));
        let rates = scattered.chain(stall).chain(tail).map(|(i, per_s)| {
            let at_s = i as f64 / 10.0;
            level(at_s..at_s + 0.1, per_s)
        });
        let device = drive(vec![level(6.0..6.2, 50.0)], 130e6, 13.7);
        Build::new(0.1, 25.0, reader(rates.collect()), device)
            .phases(5.8, 15.0, GIB)
            .verdict()
    };
    for (scatter, longer) in [(0.0, 0), (0.0, 2), (0.1, 0), (0.1, 2)] {
        let verdict = verdict(scatter, longer);
        let Foreground { dips, stall, .. } = &verdict.foreground[0];
        println!("{scatter} {longer}: {} {dips:?}", verdict.summary);
        // A tail of less than 0.2 s is not listed.
        assert_eq!(dips.len(), longer.min(1));
        for dip in dips {
            assert_eq!(dip.discards, Some(DipDiscards::Before));
            assert!((dip.at_s - 6.2).abs() < 0.01, "{dip:?}");
        }
        if scatter == 0.0 {
            // Just short of two whole intervals.
            assert_eq!(verdict.reasons, [Reason::TooLittleDeleted]);
        } else {
            assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
            assert_eq!(verdict.reasons, []);
            let seconds = stall.unwrap().seconds;
            assert!((seconds - 0.2).abs() < 0.03, "{stall:?}");
        }
    }
}

/// Discards are completed in two seconds of a log. Then nothing is completed any more, neither
/// reads nor discards, until the drive comes back.
#[test]
fn a_short_stall_that_goes_on_as_a_silent_hang_is_a_stall() {
    const BASE: f64 = 20_000.0;
    let mut wrong = Vec::new();
    for (begin_s, silent_s) in [0.0, 0.3, 0.6].into_iter().flat_map(|begin_s| {
        let silent_s = [0.7, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
        silent_s.map(|silent_s| (begin_s, silent_s))
    }) {
        for wait_ms in [0.0, 90.0] {
            let begun_s = 30.0 + begin_s;
            let (quiet_s, end_s) = (32.0, 32.0 + silent_s);
            let rate = vec![
                level(0.0..60.0, BASE),
                level(begun_s..quiet_s, 900.0),
                level(quiet_s..end_s, 0.0),
            ];
            let device = drive(vec![level(begun_s..quiet_s, 11.0)], 128e6, wait_ms);
            let verdict = Build::new(1.0, 60.0, reader(rate), device).verdict();
            let told = format!("{begin_s} {silent_s} {wait_ms}: {}", verdict.summary);
            println!("{told}");
            // Less than two whole seconds of discards prove nothing about a long hang.
            let right = match begin_s < 0.5 || silent_s <= 2.0 {
                true => verdict.verdict == Finding::Stall,
                false => verdict.verdict != Finding::Slowdown,
            };
            if !right {
                wrong.push(told);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Reads stand still for longer than discards were in service, and again without any.
#[test]
fn a_dip_that_begins_beside_discards_is_partly_without() {
    for (silent_s, wait_ms) in [(5.0, 0.0), (5.0, 130.0), (9.0, 130.0)] {
        let rate = vec![
            level(0.0..70.0, 15_000.0),
            level(30.0..32.0, 500.0),
            level(32.0..32.0 + silent_s, 0.0),
            level(55.0..58.0, 0.0),
        ];
        let device = drive(vec![level(30.0..32.0, 7.0)], 100e6, wait_ms);
        let verdict = Build::new(1.0, 70.0, reader(rate), device).verdict();
        let dips = verdict.foreground[0].dips.iter();
        let kinds: Vec<_> = dips.map(|dip| dip.discards).collect();
        assert_eq!(
            kinds,
            [Some(DipDiscards::Partly), None],
            "{}",
            verdict.summary
        );
        assert_inconclusive(&verdict, Reason::DipsWithoutDiscards);
    }
}

/// Many small discards, none of which is a thousandth of what was freed, outlast the delete phase.
#[test]
fn a_stall_whose_discards_go_on_after_the_limit_lasted_at_least_so_long() {
    let slow = vec![level(6.0..22.0, 0.05 * BASE)];
    let mut it = run(0.01, 6.0..22.0, slow);
    it.devices = vec![drive(vec![level(6.0..22.0, 512.0)], MIB as f64, 1.95)];
    it.events = vec![(EventKind::DiscardsDidNotCome, 14.99)];
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    // More than half came in time.
    assert_eq!(verdict.reasons, [Reason::DiscardsDidNotCome]);
    assert!(
        verdict.summary.contains("for at least 9.0 s"),
        "{}",
        verdict.summary
    );
    let dips = &verdict.foreground[0].dips;
    assert!(!dips.is_empty());
    let unsure = |dip: &Dip| dip.discards == Some(DipDiscards::Unsure);
    assert!(dips.iter().all(unsure), "{dips:?}");
    // Where they end with the phase, the same is a slow recovery.
    it.devices[0].discards = vec![level(6.0..15.0, 905.0)];
    (it.devices[0].wait_ms, it.events) = (1.1, vec![]);
    let verdict = it.verdict();
    let dips = &verdict.foreground[0].dips;
    assert_eq!(dips[0].discards, Some(DipDiscards::Before), "{dips:?}");
    assert!(!verdict.summary.contains("at least"), "{}", verdict.summary);
}

/// A drive takes as long for a few KiB as for much. A service frees a little now and then, before
/// the deletion, beside it and after it.
#[test]
fn a_dip_beside_small_discards_is_never_without_discards() {
    let small = [2.0..2.3, 11.0..11.4, 16.0..16.3];
    let mut rate = vec![level(0.0..25.0, BASE), level(6.0..9.0, 0.03 * BASE)];
    rate.extend(small.iter().map(|at| level(at.clone(), 0.02 * BASE)));
    let device = drive(vec![level(6.0..9.0, 20.0)], 144e6, 50.0);
    let mut beside = drive(
        small.iter().map(|at| level(at.clone(), 10.0)).collect(),
        8192.0,
        100.0,
    );
    beside.name = "sdb".into();
    let mut it = Build::new(0.1, 25.0, reader(rate), device).phases(5.0, 15.0, 8 * GIB);
    it.devices.push(beside);
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    let dips = &verdict.foreground[0].dips;
    assert_eq!(dips.len(), 3, "{dips:?}");
    let is_small = |dip: &Dip| dip.discards == Some(DipDiscards::Small);
    assert!(dips.iter().all(is_small), "{dips:?}");
    // The same dips without them.
    it.devices.pop();
    let verdict = it.verdict();
    let dips = &verdict.foreground[0].dips;
    assert!(dips.iter().all(|dip| dip.discards.is_none()), "{dips:?}");
    // A stall that is found needs no other cause.
    assert_eq!(verdict.reasons, []);
}

#[test]
fn a_slow_recovery_beside_small_discards_is_not_without_any() {
    let rate = vec![
        level(0.0..25.0, BASE),
        level(6.0..9.0, 0.03 * BASE),
        level(9.0..11.0, 0.4 * BASE),
    ];
    let device = drive(vec![level(6.0..9.0, 20.0)], 144e6, 50.0);
    let mut it = Build::new(0.1, 25.0, reader(rate), device).phases(5.0, 15.0, 8 * GIB);
    let dips = |it: &Build| it.verdict().foreground[0].dips.clone();
    assert_eq!(dips(&it)[0].discards, Some(DipDiscards::Before));
    it.devices[0].discards.push(level(10.2..10.8, 10.0));
    let mut record = it.record();
    for i in 102..108 {
        record.intervals.devices[0].discard_bytes[i] = 4096;
    }
    let verdict = crate::judge(&record, &crate::JudgeOptions::default());
    let dips = &verdict.foreground[0].dips;
    assert_eq!(dips[0].discards, Some(DipDiscards::Small), "{dips:?}");
}

#[test]
fn a_baseline_that_loses_time_to_discards_is_warned_of() {
    let warned = |discards: Vec<Level>, dipped: bool| {
        let mut rate = vec![level(0.0..25.0, BASE), level(6.0..9.0, 0.03 * BASE)];
        let slow = |from: f64| level(from..from + 0.06, 0.0);
        rate.extend(
            (0..6)
                .filter(|_| dipped)
                .map(|i| slow(0.5 + 0.7 * f64::from(i))),
        );
        let device = drive(vec![level(6.0..9.0, 20.0)], 400e6, 50.0);
        let mut it = Build::new(0.1, 25.0, reader(rate), device).phases(5.0, 15.0, 8 * GIB);
        let beside = drive(discards, 4096.0, 60.0);
        it.devices.push(Device {
            name: "sdb".into(),
            ..beside
        });
        let warnings = it.verdict().warnings.into_iter();
        let of_baseline = |text: &String| text.contains("of its time beside discards");
        warnings.filter(of_baseline).collect::<Vec<String>>()
    };
    let each = || (0..6).map(|i| 0.5 + 0.7 * f64::from(i));
    let discards = || {
        each()
            .map(|at| level(at - 0.04..at + 0.06, 10.0))
            .collect::<Vec<Level>>()
    };
    let seen = warned(discards(), true);
    assert!(seen.len() == 1 && seen[0].contains("lost 7"), "{seen:?}");
    let whose = "did not send: another program's. The verdict may count";
    assert!(seen[0].contains(whose), "{seen:?}");
    // Discards that slow nothing, and a loss without discards.
    assert_eq!(warned(discards(), false), [""; 0]);
    assert_eq!(warned(vec![], true), [""; 0]);
}
