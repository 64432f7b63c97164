//! A dip that the control shows, too, isn't blamed on TRIM.

use super::build::{Build, assert_inconclusive, drive, level, reader};
use crate::verdict::{Finding, Reason};
use record::units::{GIB, MIB};
use record::{Part, PhaseName};

const BASE: f64 = 60_000.0;

/// The deletion stalls reads at 6–9 s; its control, from 20 s on, does this to them.
fn with_control(control: f64, seconds: f64, control_discards: f64) -> Build {
    let rate = vec![
        level(0.0..40.0, BASE),
        level(6.0..9.0, 600.0),
        level(26.0..26.0 + seconds, control),
    ];
    let discards = vec![
        level(6.0..9.0, 64.0 / 3.0),
        level(26.0..27.0, control_discards),
    ];
    let device = drive(discards, 128.0 * MIB as f64, 40.0);
    let mut it = Build::new(0.1, 40.0, reader(rate), device).phases(5.0, 12.0, 8 * GIB);
    for (name, at_s) in [
        (PhaseName::Baseline, 20.0),
        (PhaseName::Delete, 25.0),
        (PhaseName::Recovery, 32.0),
    ] {
        it.phases.push((name, Part::Control, at_s));
    }
    it.deletions.push((Part::Control, 25.0, 0.1, 8 * GIB));
    it
}

#[test]
fn a_clean_control_leaves_the_stall() {
    let verdict = with_control(BASE, 1.0, 0.0).verdict();
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    let control = verdict.control.unwrap();
    assert_eq!(control.verdict, Finding::None);
    assert_eq!(control.method.as_deref(), Some("second name"));
    assert_eq!(control.discard_bytes, Some(0));
    assert!(control.foreground[0].dips.is_empty());
    // A short dip of another cause doesn't clear it either.
    let verdict = with_control(600.0, 0.8, 0.0).verdict();
    assert_eq!(verdict.verdict, Finding::Stall);
}

#[test]
fn a_control_that_dips_too_takes_it_back() {
    let verdict = with_control(600.0, 2.5, 0.0).verdict();
    assert_inconclusive(&verdict, Reason::ControlDipsToo);
    assert!(verdict.summary.contains("control"), "{}", verdict.summary);
    assert!(!verdict.control.unwrap().foreground[0].dips.is_empty());
}

#[test]
fn a_control_with_discards_is_left_out() {
    let verdict = with_control(600.0, 2.5, 64.0).verdict();
    assert_eq!(verdict.verdict, Finding::Stall);
    assert!(
        verdict.warnings[0].contains("left out"),
        "{:?}",
        verdict.warnings
    );
}

/// The unlink of a second name frees nothing, and what others discard meanwhile isn't much.
#[test]
fn a_control_beside_a_trickle_still_counts() {
    let mut it = with_control(600.0, 2.5, 0.3);
    it.deletions[1].3 = 0;
    it.devices[0].discards[1] = level(20.0..35.0, 0.4);
    let verdict = it.verdict();
    assert_inconclusive(&verdict, Reason::ControlDipsToo);
}
