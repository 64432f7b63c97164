//! Trims whose gain is known.

use super::build::{Actor, Build, Device, drive, level};
use crate::judging::{JudgeOptions, gain::cache_bytes, judge};
use crate::verdict::{Gain, GainDoubt, GainFinding, schema};
use record::{LoopKind, RunRecord};
use serde_json::json;
use testkit::Rng;
use testkit::gate::soak;

/// Length of each of baseline, trim and recovery, in seconds.
const PHASE: usize = 20;

/// A drive whose writes have so many operations in each second of 60; the trim is at 20 to 40 s.
fn trimmed(rate: impl Fn(f64) -> f64) -> RunRecord {
    let levels = (0..3 * PHASE).map(|s| {
        let at = s as f64;
        level(at..at + 1.0, rate(at + 0.5).max(0.0))
    });
    let writer = Actor {
        name: "random".into(),
        op: "write",
        loop_kind: LoopKind::Closed { depth: 8 },
        rate: levels.collect(),
        hangs: vec![],
    };
    record_of(writer, drive(vec![level(20.0..40.0, 20.0)], 1e8, 1.0))
}

fn record_of(writer: Actor, device: Device) -> RunRecord {
    let mut build = Build::new(0.1, 60.0, writer, device).phases(20.0, 40.0, 0);
    build.freed.clear();
    let mut record = build.record();
    record.head.scenario = json!({"deletion": {"method": {"event": {
        "trigger": {"command": {"text": "trimbench fstrim", "argv": ["trimbench", "fstrim"]}},
        "quiet_s": 2.0, "writes_at_most_bytes": 1u64 << 40}}}});
    record
}

fn gain(record: &RunRecord) -> Gain {
    let verdict = judge(record, &JudgeOptions::default());
    schema::assert_conforms(&verdict);
    let gain = verdict.gain.unwrap();
    assert!(verdict.summary.starts_with(&gain.sentence));
    gain
}

/// Noise of seconds that resemble each other: each keeps so much of the last one's deviation.
fn noise(seed: u64, within: f64, keeps: f64) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    let mut bell = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
    let mut last = bell() * within;
    let fresh = within * (1.0 - keeps * keeps).sqrt();
    let mut next = || {
        last = keeps * last + fresh * bell();
        1.0 + last
    };
    (0..3 * PHASE).map(|_| next()).collect()
}

#[test]
fn a_worn_in_drive_gains_what_the_trim_gave_it() {
    let mut held = 0;
    for seed in 0..40 {
        let noise = noise(seed, 0.05, 0.3);
        let rate = |at: f64| noise[at as usize] * if at < 30.0 { 1000.0 } else { 6000.0 };
        let gain = gain(&trimmed(rate));
        assert_eq!(gain.finding, GainFinding::Gained, "{}", gain.sentence);
        assert!(
            gain.sentence.contains("was not trimmed"),
            "{}",
            gain.sentence
        );
        let rate = gain.rate.unwrap();
        assert!((rate.ratio - 6.0).abs() < 0.6, "{rate:?}");
        held += u32::from(rate.low <= 6.0 && 6.0 <= rate.high);
        assert!(gain.trimmed_bytes.unwrap() > 30_000_000_000);
    }
    assert!(held >= 36, "the interval holds the truth in {held} of 40");
}

#[test]
fn noise_alone_is_no_gain() {
    let runs = if soak() { 1000 } else { 40 };
    let kinds = [(0.02, 0.0), (0.05, 0.3), (0.1, 0.7), (0.2, 0.3)];
    for (within, keeps) in kinds {
        let (mut claims, mut nothing) = (0, 0);
        for seed in 0..runs {
            let noise = noise(1000 + seed, within, keeps);
            let gain = gain(&trimmed(|at| 2000.0 * noise[at as usize]));
            claims += u64::from(matches!(
                gain.finding,
                GainFinding::Gained | GainFinding::Slower
            ));
            nothing += u64::from(gain.finding == GainFinding::Nothing);
        }
        println!("{within} {keeps}: {claims} claims, {nothing} nothing of {runs}");
        assert!(
            claims * 20 <= runs,
            "{claims} of {runs} at {within}, {keeps}"
        );
        // What hardly scatters is told.
        assert!(within > 0.02 || nothing * 10 >= runs * 9, "{nothing}");
    }
}

#[test]
fn a_trend_that_was_there_before_is_no_gain() {
    for seed in 0..10 {
        let noise = noise(seed, 0.02, 0.0);
        let rising = |at: f64| 1000.0 * (1.0 + at / 30.0) * noise[at as usize];
        let rises = gain(&trimmed(rising));
        let unsure = [Some(GainDoubt::Trend), Some(GainDoubt::TooNoisy)];
        assert!(unsure.contains(&rises.why), "{}", rises.sentence);
        // It gets faster, ever slower so.
        let settling = |at: f64| 3000.0 * (1.0 - (-at / 20.0).exp() * 0.6) * noise[at as usize];
        let settles = gain(&trimmed(settling));
        assert_ne!(settles.finding, GainFinding::Gained, "{}", settles.sentence);
    }
    // A trim's own effect shows beside a trend.
    let both = |at: f64| 1000.0 * (1.0 + at / 100.0) * if at < 30.0 { 1.0 } else { 5.0 };
    assert_eq!(gain(&trimmed(both)).finding, GainFinding::Gained);
}

#[test]
fn much_noise_is_inconclusive_with_the_next_step() {
    let noise = noise(5, 0.5, 0.8);
    let gain = gain(&trimmed(|at| 1000.0 * noise[at as usize].max(0.1)));
    assert_eq!(gain.finding, GainFinding::Inconclusive, "{}", gain.sentence);
    assert!(gain.sentence.contains("phases."), "{}", gain.sentence);
}

#[test]
fn without_discards_there_is_no_gain_whatever_the_rates() {
    let mut record = trimmed(|at| if at < 30.0 { 1000.0 } else { 6000.0 });
    for device in &mut record.intervals.devices {
        device.discard_bytes.fill(0);
        device.discards.fill(0);
    }
    let gain = gain(&record);
    assert_eq!(gain.why, Some(GainDoubt::NotTrimmed), "{}", gain.sentence);
    assert!(gain.sentence.contains("trimbench inspect"));
}

#[test]
fn a_cache_that_recovered_is_not_the_trims_gain() {
    // Fast until 10 s; empty again after the trim, and full once more at 50 s.
    let recovered = |full_at: f64| {
        move |at: f64| match at {
            at if at < 10.0 => 9000.0,
            at if at > 40.0 && at < full_at => 9000.0,
            _ => 1000.0,
        }
    };
    let with_settle = |rate: &dyn Fn(f64) -> f64| {
        // The first 10 s are those of settling.
        let mut record = trimmed(rate);
        record.phases[0].at_s = 10.0;
        gain(&record)
    };
    let again = with_settle(&recovered(50.0));
    assert!(again.cache_bytes.is_some());
    assert_eq!(again.why, Some(GainDoubt::Cache), "{}", again.sentence);
    assert!(again.sentence.contains("writes-at-most"));
}

#[test]
fn a_step_shows_the_cache_and_a_dip_does_not() {
    let mut bytes = vec![500.0; 12];
    bytes.extend([100.0; 12]);
    assert_eq!(cache_bytes(&bytes), Some(6000));
    bytes.truncate(12);
    assert_eq!(cache_bytes(&bytes), None);
    let dip: Vec<f64> = (0..30)
        .map(|i| if (10..15).contains(&i) { 50.0 } else { 500.0 })
        .collect();
    assert_eq!(cache_bytes(&dip), None);
    assert_eq!(cache_bytes(&[]), None);
}
