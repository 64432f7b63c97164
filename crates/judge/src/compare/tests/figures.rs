//! Signs, identity, and differences that can't be distinguished from noise.

use proptest::prelude::*;

use super::make::{MADE, Made, change, compared, figure};
use crate::compare::{Basis, ChangeFinding, Doubt, Figure};
use record::{Latency, Part, PhaseHistogram, PhaseName, RunRecord, latency_histogram};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn groups_that_change_places_turn_the_change_over(
        seed in 1_u64..1000, within in 0.0..0.3, rate in 5000.0..50_000.0,
        stall_s in 0.0..6.0, runs in prop::collection::vec(1_usize..4, 2),
    ) {
        let other = Made { rate, stall_s, within, ..MADE };
        let records = |made: &Made, n: usize| -> Vec<RunRecord> {
            (0..n as u64).map(|i| (*made).seed(seed + i).record()).collect()
        };
        let (a, b) = (records(&MADE, runs[0]), records(&other, runs[1]));
        let there = compared(&[("a", &a), ("b", &b)]);
        let back = compared(&[("b", &b), ("a", &a)]);
        for one in &there.figures {
            let other = back.figures.iter().find(|f| f.figure == one.figure && f.actor == one.actor);
            let (there, back) = (&one.changes[0], &other.unwrap().changes[0]);
            let near = |x: f64, y: f64| (x - y).abs() <= 1e-6 * (x.abs() + y.abs()) + 1e-9;
            prop_assert_eq!(there.absolute.map(|d| -d), back.absolute);
            let both = [there.absolute_low, there.absolute_high, back.absolute_low, back.absolute_high];
            if let [Some(low), Some(high), Some(back_low), Some(back_high)] = both {
                let (before, after) = (one.sides[0].value.unwrap(), one.sides[1].value.unwrap());
                let ratios = [low, high].map(|d| before / (before + d));
                let backs = [back_high, back_low].map(|d| (after + d) / after);
                let turned = before > 0.0 && after > 0.0
                    && near(ratios[0], backs[0]) && near(ratios[1], backs[1]);
                let mirrored = near(low, -back_high) && near(high, -back_low);
                prop_assert!(turned || mirrored, "{there:?} {back:?}");
            }
            prop_assert!(there.relative_low.is_none_or(|low| low >= -1.0), "{there:?}");
            let differs = |f| f == ChangeFinding::Differs;
            prop_assert_eq!(differs(there.finding), differs(back.finding), "{:?}", one.figure);
        }
        prop_assert_eq!(serde_json::to_string(&there).unwrap(),
            serde_json::to_string(&compared(&[("a", &a), ("b", &b)])).unwrap());
    }

    #[test]
    fn what_is_identical_never_differs(
        seed in 1_u64..1000, within in 0.0..0.3, stall_s in 0.0..6.0, n in 1_usize..3,
    ) {
        let made = Made { within, stall_s, between: 0.1, ..MADE };
        let all: Vec<RunRecord> =
            (0..n as u64).map(|i| made.seed(seed + i).record()).collect();
        let comparison = compared(&[("a", &all), ("b", &all), ("c", &all)]);
        for figure in &comparison.figures {
            for change in &figure.changes {
                prop_assert!(change.finding != ChangeFinding::Differs, "{figure:?}");
                prop_assert!(change.absolute.is_none_or(|d| d == 0.0), "{figure:?}");
            }
        }
        prop_assert!(comparison.set_up.iter().all(|d| d.values.windows(2).all(|w| w[0] == w[1])));
    }
}

#[test]
fn a_run_without_discards_lost_nothing() {
    let without = Made {
        discards: false,
        left: 1.0,
        ..MADE
    };
    let (with, without) = (MADE.record(), without.seed(9).record());
    let comparison = compared(&[("discard", &[with]), ("nodiscard", &[without])]);
    for what in [Figure::Lost, Figure::Stall, Figure::Longest] {
        let change = change(&comparison, what);
        assert_eq!(
            change.finding,
            ChangeFinding::Differs,
            "{what:?} {change:?}"
        );
        assert!((change.relative.unwrap() + 1.0).abs() < 1e-9, "{change:?}");
    }
    let trim = change(&comparison, Figure::TrimRate);
    assert_eq!(trim.why, Some(Doubt::NotMeasured));
    let bytes = change(&comparison, Figure::DiscardBytes);
    assert_eq!(
        (bytes.finding, bytes.basis),
        (ChangeFinding::Differs, Basis::Counted)
    );
}

#[test]
fn what_happens_once_needs_repeats() {
    let runs: Vec<RunRecord> = (1..7).map(|seed| MADE.seed(seed).record()).collect();
    let once = compared(&[("a", &runs[..1]), ("b", &runs[1..2])]);
    let worst = change(&once, Figure::Worst);
    assert_eq!(worst.why, Some(Doubt::MeasuredOnce));
    assert!(worst.absolute.is_some() && worst.absolute_low.is_none());
    let repeated = compared(&[("a", &runs[..3]), ("b", &runs[3..])]);
    let worst = change(&repeated, Figure::Worst);
    assert_eq!(worst.basis, Basis::Repeats);
    assert!(worst.absolute_low.is_some());
    // A single run among repeats is taken to scatter as they do.
    let one_run = compared(&[("a", &runs[..5]), ("b", &runs[5..])]);
    assert_eq!(change(&one_run, Figure::Worst).basis, Basis::RepeatsOfOne);
    assert!(
        one_run
            .notes
            .iter()
            .any(|n| n.starts_with("b: a single run"))
    );
}

#[test]
fn discards_that_may_be_others_take_repeats() {
    let mut beside = MADE.record();
    let before = &mut beside.intervals.devices[0];
    (before.discards[50], before.discard_bytes[50]) = (10, 2_000_000_000);
    let comparison = compared(&[("a", &[beside]), ("b", &[MADE.seed(2).record()])]);
    for name in ["bytes", "commands", "trim"] {
        let change = change(&comparison, Figure::named(name).unwrap());
        assert_eq!(change.why, Some(Doubt::MeasuredOnce), "{name}: {change:?}");
    }
    let note = "Figures of discards may include those of others, which came beside: a-0.";
    assert!(comparison.notes.iter().any(|n| n == note), "{comparison:?}");
}

/// A record with so many times 2000 latencies in each phase.
fn with_histograms(seed: u64, slower: f64, times: u64) -> RunRecord {
    let mut record = Made {
        within: 0.1,
        ..MADE
    }
    .seed(seed)
    .record();
    for (phase, factor) in [
        (PhaseName::Baseline, slower),
        (PhaseName::Delete, 3.0),
        (PhaseName::Recovery, 1.0),
    ] {
        let mut histogram = latency_histogram();
        for i in 1..2000_u64 {
            let tail = 1.0 - i as f64 / 2000.0;
            let us = 100.0 * factor * (0.5 / tail).powf(0.177);
            histogram.record_n((us * 1e3) as u64, times).unwrap();
        }
        record.histograms.push(PhaseHistogram {
            actor: 0,
            latency: Latency::Response,
            phase,
            part: Part::Main,
            histogram,
        });
    }
    record
}

#[test]
fn a_percentile_scatters_as_its_intervals_do() {
    let (a, b, c) = (
        with_histograms(1, 1.0, 10),
        with_histograms(2, 1.0, 10),
        with_histograms(3, 1.3, 10),
    );
    let comparison = compared(&[("a", &[a]), ("b", &[b]), ("c", &[c])]);
    for name in ["baseline.p50", "baseline.p99"] {
        let changes = &figure(&comparison, Figure::named(name).unwrap()).changes;
        assert_eq!(changes[0].finding, ChangeFinding::Same, "{:?}", changes[0]);
        let (low, high) = (
            changes[0].relative_low.unwrap(),
            changes[0].relative_high.unwrap(),
        );
        assert!(low < -1e-4 && high > 1e-4, "{:?}", changes[0]);
        assert_eq!(
            changes[1].finding,
            ChangeFinding::Differs,
            "{:?}",
            changes[1]
        );
        assert!((changes[1].relative.unwrap() - 0.3).abs() < 0.01);
    }
}

#[test]
fn a_percentile_of_few_latencies_is_measured_once() {
    let (a, b) = (with_histograms(1, 1.0, 1), with_histograms(2, 1.3, 1));
    let comparison = compared(&[("a", &[a]), ("b", &[b])]);
    // Two latencies are longer than the 99.9th percentile, and twenty than the 99th.
    let longest = change(&comparison, Figure::named("baseline.p999").unwrap());
    assert_eq!(longest.why, Some(Doubt::MeasuredOnce), "{longest:?}");
    let most = change(&comparison, Figure::named("baseline.p99").unwrap());
    let wide = most.relative_high.unwrap() - most.relative_low.unwrap();
    assert!(wide > 0.1, "{most:?}");
}

#[test]
fn latencies_of_one_bucket_have_an_interval() {
    let steady = |us: u64| {
        let mut record = with_histograms(us, 1.0, 10);
        for phase in &mut record.histograms {
            phase.histogram.reset();
            phase.histogram.record_n(1000 * us, 20_000).unwrap();
        }
        record
    };
    let comparison = compared(&[("a", &[steady(100)]), ("b", &[steady(200)])]);
    let change = change(&comparison, Figure::named("baseline.p50").unwrap());
    assert_eq!(change.finding, ChangeFinding::Differs, "{change:?}");
    assert!(change.absolute_low < change.absolute_high, "{change:?}");
}
