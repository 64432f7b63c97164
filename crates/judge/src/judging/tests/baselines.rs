//! Where a baseline is taken, and when there is none.

use super::build::{Build, Level, drive, level, reader};
use super::faults::{BASE, not_a_stall, run};
use crate::verdict::{BaselineFrom, Finding, Reason};
use record::units::MIB;

#[test]
fn a_noisy_baseline_proves_nothing() {
    // Reads stop every other interval, with and without discards.
    let mut levels: Vec<Level> = Vec::new();
    for i in 0..125 {
        let at = f64::from(i) * 0.2;
        levels.push(level(at..at + 0.1, 0.0));
    }
    not_a_stall(&run(0.1, 6.0..9.0, levels).verdict());
}

#[test]
fn without_a_steady_stretch_the_recovery_serves() {
    // Two seconds before the first discard aren't enough.
    let device = drive(vec![level(2.0..6.0, 16.0)], 128.0 * MIB as f64, 60.0);
    let rate = vec![level(0.0..30.0, BASE), level(2.0..6.0, 600.0)];
    let mut it = Build::new(0.1, 30.0, reader(rate), device);
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::Stall);
    assert_eq!(
        verdict.foreground[0].baseline_from,
        Some(BaselineFrom::Recovery)
    );
    // And without that: nothing to compare with.
    it.length_s = 8.0;
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::Inconclusive);
    assert_eq!(verdict.reasons, [Reason::NoSteadyBaseline]);
}

/// The phases of a log are made from the moment of its deletion.
#[test]
fn a_drifting_phase_of_a_log_gives_way_to_a_steady_stretch() {
    let verdict = run(
        0.1,
        7.0..9.0,
        vec![level(0.0..4.5, 0.2 * BASE), level(7.0..9.0, 600.0)],
    );
    let seen = &verdict.verdict().foreground[0];
    assert_eq!(seen.baseline_from, Some(BaselineFrom::Recovery));
    assert!((seen.baseline.ops_per_s.unwrap() / BASE - 1.0).abs() < 0.02);
}

#[test]
fn a_deleter_that_disturbs_before_its_discards_come_spoils_no_baseline() {
    // It works from 9.4 s, discards come at 10 s, and the drive stays slower.
    let device = drive(vec![level(10.0..14.0, 16.0)], 128.0 * MIB as f64, 60.0);
    let rate = vec![
        level(0.0..9.4, BASE),
        level(9.4..10.0, BASE * 0.5),
        level(10.0..14.0, 600.0),
        level(14.0..30.0, BASE * 0.6),
    ];
    let seen = &Build::new(0.1, 30.0, reader(rate), device).verdict();
    let seen = &seen.foreground[0];
    assert_eq!(seen.baseline_from, Some(BaselineFrom::BeforeFirstDiscard));
    assert!((seen.baseline.ops_per_s.unwrap() / BASE - 1.0).abs() < 0.02);
}
