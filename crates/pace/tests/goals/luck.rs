//! Tests the world beside a deletion: others that delete, readers that start and stop, drives that
//! change.

use std::rc::Rc;
use std::time::Duration;

use pace::{Goal, Pacer, Policy, Work};
use ssd::Time;
use testkit::harness::{Harness, Outcome, Readers};

use crate::judge::{Judged, judge, judge_range};
use crate::table::{Case, START, cases, slow_cases};
use crate::trial::{Deleter, DeleterLog, LogFiles, Sight};

const GOAL: f64 = 0.10;

pub(crate) fn case(label: &str) -> Case {
    cases()
        .into_iter()
        .find(|case| case.label == label)
        .unwrap()
}

fn pacer(case: &Case) -> Pacer {
    let policy = Policy::Adaptive(Goal::slowdown(GOAL));
    Pacer::new(policy, &case.work, None).unwrap()
}

/// A deletion at a goal, seen so, for so many seconds at most.
fn delete(case: &Case, goal: f64, sight: Sight, seconds: f64) -> (Outcome, DeleterLog) {
    let policy = Policy::Adaptive(Goal::slowdown(goal));
    let pacer = Pacer::new(policy, &case.work, None).unwrap();
    let (deleter, log) = Deleter::new(pacer, &case.work, 0, START);
    let harness = case.harness(deleter.seeing(sight));
    let outcome = harness.run(Duration::from_secs_f64(seconds)).unwrap();
    let log = log.borrow().clone();
    (outcome, log)
}

fn holds(what: &str, judged: &Judged) {
    println!("{what}: {judged:?}");
    assert!(judged.worst_window <= GOAL + 0.03, "{what}: {judged:?}");
}

#[test]
fn two_who_delete_hold_one_goal() {
    for label in ["T500", "root disk", "Vertex 2"] {
        let case = case(label);
        let baseline = case.baseline();
        let later = START + Duration::from_millis(700);
        let company = Rc::default();
        let (first, first_log) = Deleter::new(pacer(&case), &case.work, 0, START);
        let (second, second_log) = Deleter::new(pacer(&case), &case.work, 1 << 40, later);
        let harness = case
            .harness(first.sharing(&company))
            .beside(second.sharing(&company));
        let outcome = harness.run(Duration::from_secs(75)).unwrap();
        let window = (2.0 * case.service() / GOAL).max(1.0);
        let judged = judge(&outcome, START, baseline, window, case.service());
        println!("{label}: {judged:?}");
        // What the other has under way can't be seen: one more may come together.
        let unseen = case.service() / window;
        assert!(
            judged.worst_window <= GOAL + 0.03 + unseen,
            "{label}: {judged:?}"
        );
        assert!(judged.mean <= GOAL + 0.02, "{label}: {judged:?}");
        // Neither is kept from going on.
        let both = 2.0 * case.plain().lost / GOAL;
        for log in [first_log, second_log] {
            let end = log.borrow().done.map_or(f64::INFINITY, Time::as_secs_f64);
            println!("{label}: one ends at {end:.1} s, both could at {both:.1} s");
            assert!(end < 1.6 * both, "{label}: {end}, at best {both}");
        }
    }
}

/// A database's own discards are not charged to the deletion beside it.
#[test]
fn a_database_that_drops_log_files_does_not_slow_a_deletion() {
    for label in ["T500", "root disk", "870 EVO"] {
        for goal in [0.1, 0.3] {
            let case = case(label);
            let run = |files| {
                let policy = Policy::Adaptive(Goal::slowdown(goal));
                let pacer = Pacer::new(policy, &case.work, None).unwrap();
                let (deleter, log) = Deleter::new(pacer, &case.work, 0, START);
                let harness = match files {
                    0 => case.harness(deleter),
                    _ => {
                        let log = LogFiles::new(Duration::from_secs(2), files);
                        case.harness(deleter).beside(log)
                    }
                };
                harness.run(Duration::from_secs(60)).unwrap();
                let log = log.borrow();
                let end = log.done.map_or(f64::INFINITY, Time::as_secs_f64);
                (
                    end - START.as_secs_f64(),
                    log.state.unwrap().charged_s.unwrap(),
                )
            };
            let (alone, lost_alone) = run(0);
            for files in [8, 40] {
                let (beside, lost) = run(files);
                let what = format!(
                    "{label} at {goal}, {files} files: {beside:.1} s and {lost:.2} s lost, \
                     alone {alone:.1} s and {lost_alone:.2} s"
                );
                println!("{what}");
                assert!(beside <= 1.5 * alone, "{what}");
                assert!(lost <= 1.3 * lost_alone, "{what}");
            }
        }
    }
}

#[test]
fn a_foreground_that_comes_and_goes() {
    for label in ["T500", "root disk", "870 EVO"] {
        let case = case(label);
        let baseline = case.baseline();
        let at = Time::from_secs_f64;
        let during = vec![at(0.0)..at(2.0), at(3.0)..at(5.0), at(5.2)..at(60.0)];
        let (deleter, log) = Deleter::new(pacer(&case), &case.work, 0, START);
        let harness = case.harness(deleter).reading(during.clone());
        let outcome = harness.run(Duration::from_secs(15)).unwrap();
        let done = log.borrow().done.unwrap();
        for times in &during {
            // Windows within the time in which they read, the first included.
            let from = times.start.max(START);
            let to = at(times.end.as_secs_f64() - 1.0).min(done);
            if to <= from {
                continue;
            }
            let judged = judge_range(&outcome, from, to, baseline, 1.0, case.service());
            holds(&format!("{label} from {from}"), &judged);
            assert_eq!(judged.low, 0, "{label}: {judged:?}");
        }
        // What others leave is used: alone it goes faster than beside them.
        let log = log.borrow();
        let alone = |f: &&(Time, u64, pace::Why)| f.0 >= at(2.0) && f.0 < at(3.0);
        let alone: u64 = log.frees.iter().filter(alone).map(|f| f.1).sum();
        let usual = case.work.bytes as f64 / (case.plain().lost / GOAL);
        println!("{label}: {:.1} times as fast alone", alone as f64 / usual);
        assert!(
            alone as f64 > 1.5 * usual,
            "{label}: {alone} beside {usual}"
        );
    }
}

#[test]
fn a_drive_that_becomes_slower() {
    for (label, change) in [
        ("T500", "a=1952us"),
        ("root disk", "b=256us/MiB"),
        ("Vertex 2", "a=100ms"),
        ("T500 1M", "a=1952us"),
    ] {
        let case = case(label);
        let baseline = case.baseline();
        let (deleter, log) = Deleter::new(pacer(&case), &case.work, 0, START);
        let changed = Time::from_secs_f64(4.0);
        let slow = case.card.with(change).unwrap();
        let harness = case
            .harness(deleter)
            .change(changed, slow.figures().clone());
        let outcome = harness.run(Duration::from_secs(60)).unwrap();
        assert!(log.borrow().done.is_some(), "{label}");
        let whole = case.work.bytes / case.work.extents;
        let discard = slow.figures().discard.as_ref().unwrap();
        let service = discard.service(whole, 0, 1).as_secs_f64();
        let window = (2.0 * service / GOAL).max(1.0);
        let end = outcome.discards.last().unwrap().completed;
        let again = changed + Duration::from_secs(2);
        let judge = |from, to| judge_range(&outcome, from, to, baseline, window, service);
        let before = Time::from_secs_f64(4.0 - window);
        holds(&format!("{label} before"), &judge(START, before));
        // The goal holds again within 2 s, and even meanwhile is hardly missed.
        let meanwhile = judge(changed, again);
        println!("{label} meanwhile: {meanwhile:?}");
        assert!(
            meanwhile.worst_window <= GOAL + 0.05,
            "{label}: {meanwhile:?}"
        );
        let after = judge(again, end);
        holds(&format!("{label} after"), &after);
        assert!(
            (GOAL - 0.02..GOAL + 0.02).contains(&after.mean),
            "{label}: {after:?}"
        );
    }
}

/// A process that reads or writes a log a hundred times a second counts as other I/O. It does so,
/// too, if the pauses between two pieces are long.
#[test]
fn few_operations_are_somebodys() {
    for label in ["T500", "870 EVO", "root disk"] {
        let case = case(label);
        let best = case.plain().lost / GOAL;
        let (deleter, log) = Deleter::new(pacer(&case), &case.work, 0, START);
        Harness::new(Readers::Open { per_s: 100.0 }, 3)
            .drive(case.drive(), deleter)
            .run(Duration::from_secs(60))
            .unwrap();
        let took = log.borrow().done.unwrap().since(START).as_secs_f64();
        println!("{label}: {took:.1} s, at the goal {best:.1} s");
        assert!(took > 0.8 * best, "{label}: {took} beside {best}");
    }
}

#[test]
fn with_less_to_see_the_goal_holds_all_the_same() {
    let all = Sight::default();
    for (what, sight) in [
        (
            "nothing of the others",
            Sight {
                others: false,
                ..all
            },
        ),
        (
            "no canary",
            Sight {
                canary: false,
                ..all
            },
        ),
        (
            "neither",
            Sight {
                others: false,
                canary: false,
                ..all
            },
        ),
        ("no times of discards", Sight { busy: false, ..all }),
        ("not how much is left", Sight { left: false, ..all }),
        ("through noise", Sight { noise: 0.2, ..all }),
        (
            "through slow noise",
            Sight {
                noise: 0.2,
                swing: 1.0,
                ..all
            },
        ),
        (
            "through fast noise",
            Sight {
                noise: 0.3,
                swing: 0.005,
                ..all
            },
        ),
        (
            "slow commits",
            Sight {
                commit: Duration::from_millis(15),
                ..all
            },
        ),
    ] {
        for label in ["T500", "root disk", "980 PRO"] {
            let case = case(label);
            let (outcome, log) = delete(&case, GOAL, sight, 14.0);
            let judged = judge(&outcome, START, case.baseline(), 1.0, case.service());
            let what = format!("{label}, {what}");
            let optimum = (case.plain().lost / GOAL).max(case.plain().time);
            println!("{what}: {:.2} of the optimum", judged.time / optimum);
            // Without them the commit's time counts as the device's, until the
            // others show that it isn't.
            let blind = if sight.busy { 0.0 } else { 0.01 };
            assert!(
                judged.worst_window <= GOAL + 0.03 + blind,
                "{what}: {judged:?}"
            );
            assert!(log.done.is_some(), "{what}");
        }
    }
}

#[test]
fn whoever_is_late_catches_up() {
    for label in ["T500", "root disk", "870 EVO", "Vertex 2", "T500 1M"] {
        for goal in [0.05, 0.10, 0.30, 0.50] {
            let case = case(label);
            let sight = Sight {
                late: 0.003,
                ..Sight::default()
            };
            let plain = case.plain();
            let (outcome, _) = delete(&case, goal, sight, plain.lost / goal * 1.6 + 2.0);
            let window = (2.0 * case.service() / goal).max(1.0);
            let judged = judge(&outcome, START, case.baseline(), window, case.service());
            let optimum = plain.lost / goal;
            let what = format!(
                "{label} at {goal}: {:.2} of the optimum, {judged:?}",
                judged.time / optimum
            );
            println!("{what}");
            assert!(judged.worst_window <= goal + 0.03, "{what}");
            assert!(judged.time <= 1.25 * optimum, "{what}");
        }
    }
}

#[test]
fn commits_with_discards_of_their_own_are_few() {
    for label in ["T500", "T500 1M", "870 EVO 1M", "root disk"] {
        for goal in [0.05, 0.10, 0.30] {
            let case = case(label);
            let sight = Sight {
                beside: 3,
                ..Sight::default()
            };
            let plain = case.plain();
            let (outcome, _) = delete(&case, goal, sight, plain.lost / goal * 1.6 + 2.0);
            let judged = judge(&outcome, START, case.baseline(), 1.0, case.service());
            let optimum = plain.lost / goal;
            let what = format!(
                "{label} at {goal}: {:.2} of plain's loss, {:.2} of the optimum, {judged:?}",
                judged.lost / plain.lost,
                judged.time / optimum
            );
            println!("{what}");
            assert!(judged.worst_window <= goal + 0.03, "{what}");
            assert!(judged.low == 0, "{what}");
            assert!(judged.lost <= 1.25 * plain.lost, "{what}");
            assert!(judged.time <= 1.35 * optimum, "{what}");
        }
    }
}

/// On btrfs each commit discards blocks of its trees: where a small discard takes
/// as long as a large one, most of what is lost is lost to them.
#[test]
fn commits_that_are_felt_themselves_are_spread_as_well() {
    for goal in [0.10, 0.30] {
        let case = case("Vertex 2");
        let sight = Sight {
            beside: 4,
            whole: true,
            ..Sight::default()
        };
        let (outcome, log) = delete(&case, goal, sight, 200.0);
        // What goes together is one discard, and 4 of the commit's: 0.25 s and what reads lose around them.
        let (window, lump) = (5.0, 5.1 * case.service());
        let judged = judge(&outcome, START, case.baseline(), window, case.service());
        let plain = case.plain();
        let what = format!(
            "at {goal}: {:.2} of plain's loss, {judged:?}",
            judged.lost / plain.lost
        );
        println!("{what}");
        assert!(log.done.is_some(), "{what}");
        // Five times as much if each extent had a commit.
        assert!(judged.lost < plain.lost, "{what}");
        assert!(judged.worst_window <= goal + lump / window, "{what}");
        assert!(judged.mean <= goal + 0.02, "{what}");
        assert!(judged.time <= 1.3 * judged.lost / goal, "{what}");
    }
}

/// btrfs discards whole block groups that have become empty, whatever was discarded in
/// them: what is freed costs twice, and is nobody else's.
#[test]
fn what_is_discarded_twice_is_paced_twice() {
    for (label, goal) in [
        ("T500", 0.10),
        ("T500", 0.30),
        ("870 EVO", 0.10),
        ("870 EVO", 0.30),
    ] {
        let mut case = case(label);
        (case.work.discards_twice, case.work.unit) = (true, 1 << 30);
        let sight = Sight {
            beside: 3,
            whole: true,
            group: 1 << 30,
            ..Sight::default()
        };
        let plain = case.plain();
        let (outcome, log) = delete(&case, goal, sight, plain.lost / goal * 3.0 + 2.0);
        let judged = judge(&outcome, START, case.baseline(), 1.0, case.service());
        let what = format!(
            "{label} at {goal}: {:.2} of plain's loss, {judged:?}",
            judged.lost / plain.lost
        );
        println!("{what}");
        assert!(log.done.is_some(), "{what}");
        let again = log.state.unwrap().discarded_twice as f64;
        assert!(again > 0.8 * case.work.bytes as f64, "{what}: {again}");
        assert!(judged.worst_window <= goal + 0.03, "{what}");
        assert!(judged.mean <= goal + 0.02, "{what}");
        assert_eq!(judged.low, 0, "{what}");
        // It doesn't give way to itself.
        assert!(judged.time <= 1.25 * judged.lost / goal, "{what}");
    }
}

/// A Vertex 2 takes 50 ms for each block of a tree. No pace keeps the goal in an interval beside
/// these, nor in a second beside an emptied group. So each further commit is only a loss.
#[test]
fn where_nothing_holds_whole_groups_are_freed() {
    for goal in [0.10, 0.30] {
        let mut case = case("Vertex 2");
        (case.work.discards_twice, case.work.unit) = (true, 1 << 30);
        let sight = Sight {
            beside: 2,
            whole: true,
            group: 1 << 30,
            ..Sight::default()
        };
        let plain = case.plain();
        let (outcome, log) = delete(&case, goal, sight, plain.lost / goal * 8.0 + 2.0);
        let judged = judge(&outcome, START, case.baseline(), 1.0, case.service());
        let what = format!(
            "{goal}: {:.2} of plain's loss, {judged:?}",
            judged.lost / plain.lost
        );
        println!("{what}");
        assert!(log.done.is_some(), "{what}");
        assert!(judged.mean <= goal + 0.02, "{what}");
        // With pieces of two extents, twice as much.
        assert!(judged.lost <= 0.6 * plain.lost, "{what}");
    }
}

#[test]
fn commits_that_cost_more_than_what_they_free_end_all_the_same() {
    let case = case("T500 1M");
    let sight = Sight {
        beside: 40,
        ..Sight::default()
    };
    let (outcome, log) = delete(&case, 0.3, sight, 60.0);
    let plain = case.plain();
    let judged = judge(&outcome, START, case.baseline(), 1.0, case.service());
    println!(
        "{:.2} of plain's loss, {judged:?}",
        judged.lost / plain.lost
    );
    assert!(log.done.is_some(), "{judged:?}");
    // Forty times if each extent had a commit.
    assert!(judged.lost < 3.5 * plain.lost, "{judged:?}");
}

/// A survey promises the fewest extents that a file can lie in.
#[test]
fn announced_short_extents_keep_the_goal() {
    let case = cases()
        .into_iter()
        .find(|case| case.label == "870 EVO 1M")
        .unwrap();
    let promised = Work::new(case.work.bytes, case.work.bytes.div_ceil(128 << 20));
    let slow = case.with(&["a=22ms"]);
    let worst = |announced: bool| {
        let policy = Policy::Adaptive(Goal::slowdown(0.3));
        let mut pacer = Pacer::new(policy, &promised, None).unwrap();
        if announced {
            pacer.expect_extents(1 << 20);
        }
        let (deleter, _) = Deleter::new(pacer, &slow.work, 0, START);
        let outcome = slow.harness(deleter).run(Duration::from_secs(6)).unwrap();
        judge(&outcome, START, slow.baseline(), 1.0, slow.service())
    };
    let (announced, not) = (worst(true), worst(false));
    println!("{announced:?}, not announced: {not:?}");
    assert!(
        announced.worst_window <= 0.33 && announced.low == 0,
        "{announced:?}"
    );
    assert!(not.worst_window > 0.4, "{not:?}");
}

#[test]
fn nobody_would_see_it_swing() {
    for label in ["T500", "870 EVO", "root disk", "T500 1M"] {
        let case = case(label);
        let baseline = case.baseline();
        let (outcome, _) = delete(&case, GOAL, Sight::default(), 12.0);
        let end = outcome.discards.last().unwrap().completed.as_secs_f64();
        let half = Duration::from_millis(500);
        let intervals = outcome.intervals(half);
        // From the first half second on, without the last.
        let while_it_lasts = intervals.iter().skip(1).take((end / 0.5) as usize - 2);
        let losses: Vec<f64> = while_it_lasts
            .map(|i| 1.0 - i.reads as f64 / (baseline * 0.5))
            .collect();
        let most = losses.iter().copied().fold(0.0, f64::max);
        let least = losses.iter().copied().fold(1.0, f64::min);
        println!("{label}: between {least:.3} and {most:.3}");
        // A piece more or less, and a little.
        let piece = case.service() / 0.5;
        assert!(most - least <= 0.03 + 1.5 * piece, "{label}: {losses:.3?}");
    }
}

/// A drive that runs flushes alone keeps reads waiting for two of them with each commit. On this
/// one they take longer than a discard of 128 MiB.
#[test]
fn commits_whose_flushes_are_felt_are_few() {
    let all = cases().into_iter().chain(slow_cases());
    for (case, goal) in all
        .filter(|case| case.label.contains("870"))
        .flat_map(|case| [0.05, 0.10, 0.30].map(|goal| (case.clone(), goal)))
    {
        let sight = Sight {
            flushes: 2,
            ..Sight::default()
        };
        let (outcome, _) = delete(&case, goal, sight, 60.0);
        let plain = case.plain();
        let judged = judge(&outcome, START, case.baseline(), 1.0, case.service());
        let what = format!(
            "{} at {goal}: {:.2} of plain's loss, {judged:?}",
            case.label,
            judged.lost / plain.lost
        );
        println!("{what}");
        assert!(judged.worst_window <= goal + 0.03, "{what}");
        assert!(judged.low == 0, "{what}");
        // With a commit for each discard of the fast one 2.3 times.
        assert!(judged.lost <= 1.25 * plain.lost, "{what}");
        assert!(judged.time <= 1.35 * plain.lost / goal, "{what}");
    }
}
