//! Plans from cards.

use std::time::Duration;

use pace::{Goal, Refusal, Work, plan};
use ssd::{Card, profiles};

const GIB: u64 = 1 << 30;

fn card(name: &str) -> &'static Card {
    profiles::by_name(name).unwrap()
}

#[track_caller]
fn near(got: Duration, expected: f64) {
    let got = got.as_secs_f64();
    assert!(
        (got / expected - 1.0).abs() < 0.01,
        "{got}, expected {expected}"
    );
}

#[test]
fn a_tebibyte_on_the_measured_drives_takes_as_long_as_it_did() {
    // 8,222 discards of 127.7 MiB on the T500: 16.2 s lost.
    let work = Work::new(1024 * GIB, 8222);
    let plan = plan(card("crucial-t500-2tb"), &work, &Goal::default()).unwrap();
    near(plan.plain.lost, 8222.0 * 976e-6 + 8.17e-6 * 1024.0 * 1024.0);
    assert_eq!(plan.lost, plan.plain.lost, "pacing costs nothing more");
    assert_eq!(plan.discards, 8222);
    near(plan.time, plan.lost.as_secs_f64() * 10.0);
    // p99.9 of an open-loop reader: S(1 - 0.1 %/D).
    let held = plan.worst_wait.as_secs_f64() / 1.02;
    near(plan.p999_added, held * 0.99);
}

#[test]
fn a_latency_cuts_the_pieces_and_says_what_that_costs() {
    let goal = Goal {
        max_latency: Some(Duration::from_micros(1500)),
        ..Goal::default()
    };
    let work = Work::new(64 * GIB, 512);
    let cut = plan(card("crucial-t500-2tb"), &work, &goal).unwrap();
    // (L_max - a)/b is at most 64 MiB here, and cuts are even.
    assert_eq!(cut.piece, (128_u64 << 20).div_ceil(3), "{cut:?}");
    assert!(cut.worst_wait <= Duration::from_micros(1500));
    assert!(cut.lost > cut.plain.lost && cut.discards == 3 * cut.plain.discards);
}

#[test]
fn what_cannot_be_met_is_refused_with_what_can() {
    let work = Work::new(8 * GIB, 64);
    let goal = |latency| Goal {
        max_latency: Some(latency),
        ..Goal::default()
    };
    for name in [
        "ocz-vertex-2",
        "ocz-agility-2",
        "crucial-t500-2tb",
        "samsung-870-evo-2tb",
    ] {
        let Err(Refusal::Latency {
            least, smallest, ..
        }) = plan(card(name), &work, &goal(Duration::from_micros(300)))
        else {
            panic!("{name} was accepted");
        };
        println!("{name}: {smallest:?}, {least:?}");
        // What is said to be possible is, and not much less than that.
        let plan_at = |l| plan(card(name), &work, &goal(l));
        assert!(plan_at(least).unwrap().worst_wait <= least, "{name}");
        assert!(plan_at(least.mul_f64(0.9)).is_err(), "{name}");
    }
    let soon = Goal {
        deadline: Some(Duration::from_secs(5)),
        ..Goal::default()
    };
    let refusal = plan(card("ocz-vertex-2"), &work, &soon).unwrap_err();
    let Refusal::Deadline { least, needed, .. } = refusal else {
        panic!("{refusal}")
    };
    assert_eq!((least, needed), (Duration::from_secs(32), 0.64));
    assert!(
        refusal
            .to_string()
            .contains("--deadline 32s can be met, or --slowdown 64%"),
        "{refusal}"
    );
    let possible = Goal {
        slowdown: needed,
        ..soon
    };
    assert!(plan(card("ocz-vertex-2"), &work, &possible).is_ok());
    // Not even plain deletion is as fast.
    let never = Goal {
        deadline: Some(Duration::from_secs(1)),
        ..Goal::default()
    };
    let said = plan(card("ocz-vertex-2"), &work, &never)
        .unwrap_err()
        .to_string();
    assert!(
        !said.contains("--slowdown inf") && said.contains("--deadline 32s"),
        "{said}"
    );
}

#[test]
fn a_drive_without_discards_needs_no_pace() {
    let work = Work::new(8 * GIB, 64);
    let plan = plan(card("no-trim"), &work, &Goal::default()).unwrap();
    assert_eq!((plan.time, plan.discards), (Duration::ZERO, 0));
}

#[test]
fn every_profile_has_a_plan_for_every_goal() {
    for card in profiles::all() {
        let mut last = f64::INFINITY;
        for slowdown in [0.0, 0.01, 0.05, 0.1, 0.5, 1.0, 7.0, f64::NAN] {
            let work = Work::new(64 * GIB, 512);
            let made = plan(card, &work, &Goal::slowdown(slowdown)).unwrap();
            assert!(made.piece >= 1 && made.lost >= made.plain.lost.mul_f64(0.99));
            let time = made.time.as_secs_f64();
            assert!(
                slowdown.is_nan() || time <= last,
                "{}: less pace, more time",
                card.name()
            );
            last = time;
        }
        let nothing = plan(card, &Work::new(0, 0), &Goal::default()).unwrap();
        assert!(nothing.time < Duration::from_secs(1));
    }
}
