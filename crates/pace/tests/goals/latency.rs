//! Latencies that must be held, in virtual time.

use std::time::Duration;

use pace::{Goal, Pacer, Policy};
use testkit::harness::{Harness, Outcome, Readers};

use crate::judge::added;
use crate::luck::case;
use crate::table::{CANARY, Case, START};
use crate::trial::{Deleter, DeleterLog};

/// Readers in an open loop, below what the drive can.
fn open(case: &Case, goal: Goal, known: bool) -> (Outcome, DeleterLog) {
    let card = known.then_some(&case.card);
    let pacer = Pacer::new(Policy::Adaptive(goal), &case.work, card).unwrap();
    open_with(case, pacer)
}

fn open_with(case: &Case, pacer: Pacer) -> (Outcome, DeleterLog) {
    let (deleter, log) = Deleter::new(pacer, &case.work, 0, START);
    let outcome = Harness::new(Readers::Open { per_s: 2000.0 }, 3)
        .canary(CANARY)
        .lingering(Duration::ZERO)
        .drive(case.drive(), deleter)
        .run(Duration::from_secs(45))
        .unwrap();
    let log = log.borrow().clone();
    (outcome, log)
}

fn latency(ms: f64) -> Goal {
    Goal {
        max_latency: Some(Duration::from_secs_f64(ms / 1e3)),
        ..Goal::default()
    }
}

#[test]
fn an_accepted_latency_is_held() {
    for known in [false, true] {
        for (label, ms) in [
            ("T500", 5.0),
            ("T500", 1.8),
            ("870 EVO", 1.0),
            ("root disk", 5.0),
            ("root disk", 1.0),
            ("980 PRO", 1.0),
            ("Vertex 2", 60.0),
            ("XtremIO", 20.0),
        ] {
            let case = case(label);
            let (outcome, log) = open(&case, latency(ms), known);
            let p999 = added(&outcome, START, 0.999);
            let end = log
                .done
                .map_or(f64::INFINITY, |t| t.since(START).as_secs_f64());
            let what =
                format!("{label}, {ms} ms, card {known}: p99.9 {p999:?}, done in {end:.1} s");
            println!("{what}");
            assert!(p999.as_secs_f64() <= ms / 1e3, "{what}");
            assert!(!log.refused && end.is_finite(), "{what} {:?}", log.state);
        }
    }
}

#[test]
fn a_latency_that_cannot_be_held_is_refused() {
    let case = case("Vertex 2");
    let policy = Policy::Adaptive(latency(5.0));
    let refusal = Pacer::new(policy, &case.work, Some(&case.card)).unwrap_err();
    let said = refusal.to_string();
    assert!(
        said.contains("50.1 ms") && said.contains("--max-latency 51ms"),
        "{said}"
    );
    // Without a card after the second small piece.
    let (_, log) = open(&case, latency(5.0), false);
    assert!(log.refused && log.frees.len() <= 2, "{:?}", log.frees);
    let freed: u64 = log.frees.iter().map(|f| f.1).sum();
    assert!(freed < 1 << 20, "{freed}");
}

#[test]
fn what_was_begun_goes_on_though_the_latency_cannot_be_held() {
    let case = case("Vertex 2");
    let mut pacer = Pacer::new(Policy::Adaptive(latency(5.0)), &case.work, None).unwrap();
    pacer.commit_to_goal();
    let (_, log) = open_with(&case, pacer);
    let late = log.frees.iter().filter(|free| free.0.as_secs_f64() > 40.0);
    assert!(!log.refused && late.count() > 0, "{:?}", log.state);
}

/// On drives whose discards cost by the byte, a read waits for a small piece. Where a discard costs
/// the same whatever its size, extents stay whole.
#[test]
fn the_default_goal_keeps_the_tail_short_where_cutting_is_cheap() {
    let run = |label: &str| {
        let case = case(label);
        let (outcome, log) = open(&case, Goal::slowdown(0.10), false);
        let p999 = added(&outcome, START, 0.999);
        let most = added(&outcome, START, 1.0);
        println!(
            "{label}: p99.9 {p999:?}, most {most:?}, {} pieces",
            log.frees.len()
        );
        assert!(log.done.is_some(), "{label} {:?}", log.state);
        (p999, most, log.frees.len() as u64, case.work.extents)
    };
    let (p999, most, ..) = run("root disk");
    assert!(p999 <= Duration::from_millis(4) && most <= Duration::from_millis(8));
    for label in ["T500", "870 EVO"] {
        let (.., pieces, extents) = run(label);
        assert!(
            pieces < extents + extents / 4 + 16,
            "{label}: {pieces} of {extents}"
        );
    }
}

/// A goal with one limit more may be slower, and never faster.
#[test]
fn no_goal_is_slower_than_the_same_with_a_limit_more() {
    for label in ["root disk", "T500", "870 EVO"] {
        let case = case(label);
        let time = |goal| {
            let (_, log) = open(&case, goal, false);
            log.done
                .map_or(f64::INFINITY, |done| done.since(START).as_secs_f64())
        };
        let (one, both) = (
            time(Goal::slowdown(0.10)),
            time(Goal {
                slowdown: 0.10,
                ..latency(5.0)
            }),
        );
        println!("{label}: {one:.2} s, with a limit more {both:.2} s");
        assert!(one <= both * 1.05, "{label}: {one} s instead of {both} s");
    }
}
