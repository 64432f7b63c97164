//! Whatever a record says, judging it neither panics nor makes figures up.

use proptest::prelude::*;

use super::build::{Build, drive, reader};
use crate::verdict::schema::assert_conforms;
use crate::verdict::{Finding, Verdict};
use crate::{JudgeOptions, judge};
use record::*;

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0_u64..10, 0_u64..100_000, Just(u64::MAX)]
}

fn latency() -> impl Strategy<Value = Option<f64>> {
    proptest::option::of(prop_oneof![Just(0.0), 0.0_f64..1e4, 0.0_f64..1e9])
}

fn actor() -> impl Strategy<Value = Option<ActorInterval>> {
    let row = (count(), count(), latency(), latency(), latency()).prop_map(
        |(ops, errors, p99_us, max_us, oldest_us)| ActorInterval {
            ops,
            errors: errors / 1000,
            p99_us,
            max_us,
            oldest_us,
            ..ActorInterval::default()
        },
    );
    proptest::option::weighted(0.9, row)
}

fn device() -> impl Strategy<Value = DeviceInterval> {
    let bytes = prop_oneof![Just(0), 0_u64..1 << 40, Just(u64::MAX)];
    (count(), bytes, count()).prop_map(|(discards, discard_bytes, discard_ms)| DeviceInterval {
        discards,
        discard_bytes,
        discard_ms,
        ..DeviceInterval::default()
    })
}

fn interval() -> impl Strategy<Value = (f64, Interval)> {
    let freed = prop_oneof![Just(0), 0_u64..1 << 40, Just(u64::MAX)];
    (
        0.0_f64..2.0,
        0.001_f64..3.0,
        actor(),
        actor(),
        device(),
        device(),
        freed,
    )
        .prop_map(|(gap_s, seconds, a, b, c, d, freed_bytes)| {
            let (actors, devices) = (vec![a, b], vec![c, d]);
            (
                gap_s,
                Interval {
                    at_s: 0.0,
                    seconds,
                    actors,
                    devices,
                    freed_bytes,
                    ..Interval::default()
                },
            )
        })
}

fn phase() -> impl Strategy<Value = (PhaseName, Part, f64)> {
    use PhaseName::{Baseline, Delete, Prepare, Recovery, Settle};
    let name = proptest::sample::select(vec![Prepare, Settle, Baseline, Delete, Recovery]);
    let part = prop_oneof![3 => Just(Part::Main), 1 => Just(Part::Control)];
    (name, part, 0.0_f64..20.0)
}

fn head(open: bool, leaf: bool) -> RunRecord {
    let mut it = Build::new(0.1, 0.0, reader(vec![]), drive(vec![], 0.0, 0.0));
    it.actors.push(reader(vec![]));
    if open {
        it.actors[1].loop_kind = LoopKind::Open {
            rate_per_s: 100.0,
            poisson: true,
            depth: 1,
        };
    }
    it.devices.push(it.devices[0].clone());
    it.devices[1].leaf = leaf;
    it.completed = false;
    it.record()
}

fn check(verdict: &Verdict) {
    assert_conforms(verdict);
    let stalled = verdict.foreground.iter().any(|f| f.stall.is_some());
    assert!(verdict.verdict != Finding::Stall || stalled);
    for foreground in &verdict.foreground {
        for stall in foreground.stall.iter() {
            assert!(stall.seconds.is_finite() && stall.longest_s <= stall.seconds);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_record_can_be_judged(
        intervals in proptest::collection::vec(interval(), 0..60),
        phases in proptest::collection::vec(phase(), 0..8),
        deletion in proptest::option::of((0.0_f64..20.0, 0.0_f64..5.0, 0_u64..1 << 40)),
        control in proptest::option::of((0.0_f64..20.0, 0.0_f64..20.0)),
        began in proptest::option::of(0.0_f64..20.0),
        (open, leaf, completed, continuous) in any::<(bool, bool, bool, bool)>(),
        low in 0.0_f64..=1.0,
    ) {
        let mut record = head(open, leaf);
        let mut at_s = 0.0;
        for (gap_s, mut interval) in intervals {
            interval.at_s = at_s;
            at_s += interval.seconds + gap_s;
            record.push(&Line::Interval(interval)).unwrap();
        }
        let mut phases = phases;
        phases.sort_by(|a, b| a.2.total_cmp(&b.2));
        for (name, part, at_s) in phases {
            record.push(&Line::Phase(Phase { name, part, at_s })).unwrap();
        }
        if let Some(at_s) = began {
            let kind = EventKind::ContinuousDeletionBegan;
            record.push(&Line::Event(Event { at_s, kind, detail: None })).unwrap();
        }
        if let Some((at_s, seconds)) = control {
            let line = DeletionLine {
                part: Part::Control, at_s, seconds, bytes: 0, files: 1, continuous, ..DeletionLine::default()
            };
            record.push(&Line::Deletion(line)).unwrap();
        }
        if let Some((at_s, seconds, bytes)) = deletion {
            let line = DeletionLine { part: Part::Main, at_s, seconds, bytes, files: 1, continuous, ..DeletionLine::default() };
            record.push(&Line::Deletion(line)).unwrap();
        }
        if completed {
            let unfinished = vec![Unfinished { actor: 1, operations: 1, oldest_us: 1e5 }];
            let reason = EndReason::Completed;
            record.push(&Line::End(End { at_s, reason, message: None, unfinished, lives: Vec::new() })).unwrap();
        }
        check(&judge(&record, &JudgeOptions { low }));
    }
}

/// Eight hours at 100 ms with four actors, discards all the while.
#[test]
fn eight_hours_are_judged_in_seconds() {
    let mut it = Build::new(0.1, 0.0, reader(vec![]), drive(vec![], 0.0, 0.0));
    for _ in 1..4 {
        it.actors.push(reader(vec![]));
    }
    it.completed = false;
    let mut record = it.record();
    for i in 0..8 * 36_000_u32 {
        let calm = i < 300;
        let ops = if calm || i % 10 > 5 {
            5000 + u64::from(i % 97)
        } else {
            100
        };
        let row = ActorInterval {
            ops,
            p99_us: Some(100.0),
            ..ActorInterval::default()
        };
        let discards = if calm { 0 } else { 5 };
        let device = DeviceInterval {
            discards,
            discard_bytes: discards << 20,
            discard_ms: 2 * discards,
            ..DeviceInterval::default()
        };
        let interval = Interval {
            at_s: f64::from(i) * 0.1,
            seconds: 0.1,
            actors: vec![Some(row); 4],
            devices: vec![device],
            freed_bytes: 5 << 20,
            ..Interval::default()
        };
        record.push(&Line::Interval(interval)).unwrap();
    }
    let begun = std::time::Instant::now();
    let verdict = judge(&record, &JudgeOptions::default());
    println!("{:?}: {}", begun.elapsed(), verdict.summary);
    check(&verdict);
}
