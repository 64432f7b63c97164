//! Debts that are paid late, in part, by others, or never.

use std::time::Duration;

use pace::{DebtMode, Discards, Feedback, Goal, Pacer, Policy, Space, Why, Work};
use ssd::Time;

use crate::world::World;

const GIB: u64 = 1 << 30;

fn adaptive(work: &Work) -> Pacer {
    Pacer::new(Policy::Adaptive(Goal::default()), work, None).unwrap()
}

#[test]
fn a_device_that_never_answers_is_given_up_after_two_commits() {
    let work = Work::new(64 * GIB, 512);
    let mut pacer = adaptive(&work);
    let mut world = World::new(work.bytes, None);
    assert!(world.run(&mut pacer, 200_000), "{:?}", pacer.state());
    // Twice, and then nothing is expected any more.
    assert_eq!(world.commits, 4);
    let state = pacer.state();
    assert_eq!((state.debt, state.answered), (0, false));
    assert_eq!(state.written_off, work.bytes, "and that is said");
    assert!(world.now < 30.0, "{} s", world.now);
    assert!(world.said.iter().any(|(_, a)| a.why == Why::Unpaced));
}

/// On btrfs: the commit has returned, and what a half-freed extent holds back comes with
/// a later piece.
#[test]
fn what_is_settled_is_not_waited_for() {
    let work = Work::new(4 * GIB, 32);
    let mut pacer = adaptive(&work);
    // Half of each 256 MiB is discarded with the other half.
    let (mut freed, mut discarded, mut commands, mut now) = (0, 0, 0, 0.0);
    loop {
        let advice = pacer.advise(&Feedback {
            now: Time::from_secs_f64(now),
            freed,
            left: Some(work.bytes - freed),
            settled: true,
            discards: Discards {
                commands,
                bytes: discarded,
                busy: Some(Duration::from_millis(commands)),
            },
            ..Feedback::default()
        });
        assert!(
            !advice.commit && advice.why != Why::Debt,
            "{advice:?} at {now}"
        );
        if advice.why == Why::Done {
            break;
        }
        if advice.allow > 0 {
            freed += (work.bytes - freed).min(GIB / 8);
            if freed % (GIB / 4) == 0 {
                (discarded, commands) = (freed, commands + 1);
            }
        }
        now += advice.ask_again.as_secs_f64().max(0.001);
    }
    let state = pacer.state();
    assert_eq!((freed, state.written_off), (work.bytes, 0));
}

#[test]
fn a_caller_that_cannot_commit_comes_to_its_end_too() {
    let work = Work::new(GIB, 8);
    let mut pacer = adaptive(&work);
    let mut world = World::new(work.bytes, None);
    let mut done = false;
    for _ in 0..2_000_000 {
        world.commits = 0;
        if !world.step(&mut pacer) {
            done = true;
            break;
        }
    }
    assert!(done);
}

#[test]
fn half_of_it_shared_is_learned_once() {
    let work = Work::new(64 * GIB, 512);
    let mut pacer = adaptive(&work);
    let mut world = World::new(work.bytes, Some(0.004));
    world.share = 0.5;
    assert!(world.run(&mut pacer, 200_000));
    let state = pacer.state();
    assert!(
        state.answered && world.commits <= 6,
        "{} commits",
        world.commits
    );
    let share = state.written_off as f64 / work.bytes as f64;
    assert!((0.4..0.6).contains(&share), "{share}");
    assert!(world.now < 60.0, "{} s", world.now);
}

#[test]
fn exempt_bytes_are_not_waited_for() {
    let work = Work::new(GIB, 8);
    let mut pacer = adaptive(&work);
    let mut world = World::new(work.bytes, None);
    let mut over = false;
    for _ in 0..100_000 {
        let mut seen = world.feedback();
        seen.exempt = seen.freed;
        let advice = pacer.advise(&seen);
        assert!(!advice.commit && advice.why != Why::Debt, "{advice:?}");
        if advice.why == Why::Done {
            over = true;
            break;
        }
        let freed = advice.allow.min(world.left);
        world.freed += freed;
        world.left -= freed;
        world.now += advice.ask_again.as_secs_f64() + 0.001;
    }
    assert!(over);
    assert_eq!(pacer.state().written_off, 0);
}

#[test]
fn other_peoples_discards_never_pay_more_than_is_owed() {
    let work = Work::new(8 * GIB, 64);
    let mut pacer = adaptive(&work);
    let mut world = World::new(work.bytes, Some(0.01));
    world.others = 1e9;
    // Long before we begin, too.
    for _ in 0..1000 {
        world.now += 0.01;
    }
    assert!(world.run(&mut pacer, 200_000));
    assert_eq!(pacer.state().written_off, 0);
}

#[test]
fn a_plain_rm_of_many_fragments_beside_it_does_not_stop_a_deletion() {
    let work = Work::new(64 * GIB, 512);
    let mut pacer = adaptive(&work);
    let mut world = World::new(work.bytes, Some(0.004));
    (world.others, world.others_size) = (64e6, 64_000);
    while world.now < 40.0 && world.step(&mut pacer) {}
    assert_eq!(world.left, 0, "{:?}", pacer.state());
}

#[test]
fn discards_two_minutes_later_are_paced_by_their_rate() {
    let mut work = Work::new(64 * GIB, 512);
    work.mode = DebtMode::Deferred;
    let mut pacer = adaptive(&work);
    let mut world = World::new(work.bytes, Some(120.0));
    assert!(world.run(&mut pacer, 200_000));
    assert_eq!(world.commits, 0);
    assert!(world.said.iter().all(|(_, a)| a.why != Why::Debt));
    // It assumes 1 ms for each MiB until it sees what they cost: at 10 %, 100 MiB/s.
    let first: Vec<_> = world
        .said
        .iter()
        .filter(|(at, a)| *at < 60.0 && a.allow > 0)
        .collect();
    let bytes: u64 = first.iter().map(|(_, a)| a.allow).sum();
    let rate = bytes as f64 / 60.0 / (1 << 20) as f64;
    assert!((90.0..130.0).contains(&rate), "{rate} MiB/s");
    assert!(
        world.now < 600.0,
        "faster once it sees them: {} s",
        world.now
    );
}

#[test]
fn nothing_is_paced_where_nothing_is_discarded() {
    let mut work = Work::new(64 * GIB, 512);
    work.mode = DebtMode::Never;
    let mut pacer = adaptive(&work);
    let mut world = World::new(work.bytes, None);
    assert!(world.run(&mut pacer, 10));
    assert!(world.now < 0.1);
    assert_eq!(pacer.state().written_off, 0);
}

#[test]
fn a_full_file_system_is_urgent() {
    let work = Work::new(64 * GIB, 512);
    let time = |free| {
        let mut pacer = adaptive(&work);
        let mut world = World::new(work.bytes, Some(0.004));
        world.space = Some(Space {
            free,
            size: 100 * GIB,
        });
        assert!(world.run(&mut pacer, 200_000));
        let urgent = world.said.iter().any(|(_, a)| a.why == Why::Urgent);
        (world.now, urgent)
    };
    let (plenty, calm) = time(50 * GIB);
    let (little, urgent) = time(3 * GIB);
    let (none, _) = time(0);
    println!("{plenty:.1} s, {little:.1} s, {none:.1} s");
    assert!(!calm && urgent);
    assert!(
        little < plenty * 0.5 && none < plenty * 0.2,
        "{plenty} {little} {none}"
    );
}

#[test]
fn a_deadline_lifts_the_pace_and_says_so() {
    let work = Work::new(64 * GIB, 512);
    let goal = Goal {
        deadline: Some(Duration::from_secs(4)),
        ..Goal::default()
    };
    let mut pacer = Pacer::new(Policy::Adaptive(goal), &work, None).unwrap();
    let mut world = World::new(work.bytes, Some(0.004));
    assert!(world.run(&mut pacer, 200_000));
    // Nor is it done much sooner, at a higher cost for others.
    assert!((3.0..4.4).contains(&world.now), "{} s", world.now);
    assert!(world.said.iter().any(|(_, a)| a.why == Why::Deadline));
}

#[test]
fn a_deadline_is_kept_where_discards_come_two_minutes_later() {
    let mut work = Work::new(64 * GIB, 512);
    work.mode = DebtMode::Deferred;
    let goal = Goal {
        deadline: Some(Duration::from_secs(60)),
        ..Goal::default()
    };
    let mut pacer = Pacer::new(Policy::Adaptive(goal), &work, None).unwrap();
    let mut world = World::new(work.bytes, Some(120.0));
    assert!(world.run(&mut pacer, 200_000));
    assert!((50.0..64.0).contains(&world.now), "{} s", world.now);
    assert!(world.said.iter().any(|(_, a)| a.why == Why::Deadline));
}

#[test]
fn a_latency_is_held_even_if_all_throughput_may_be_lost() {
    let work = Work::new(8 * GIB, 64);
    let goal = Goal {
        slowdown: 1.0,
        max_latency: Some(Duration::from_millis(5)),
        ..Goal::default()
    };
    let mut pacer = Pacer::new(Policy::Adaptive(goal), &work, None).unwrap();
    let mut world = World::new(work.bytes, Some(0.004));
    assert!(world.run(&mut pacer, 200_000));
    assert!(world.said.iter().all(|(_, a)| a.allow < work.bytes));
    // Nor is it given up because time runs out.
    let late = Goal {
        deadline: Some(Duration::from_millis(50)),
        ..goal
    };
    let mut pacer = Pacer::new(Policy::Adaptive(late), &work, None).unwrap();
    let mut world = World::new(work.bytes, Some(0.004));
    assert!(world.run(&mut pacer, 200_000));
    assert!(world.said.iter().all(|(_, a)| a.allow < work.bytes));
    // Without one nothing is paced.
    let free = Policy::Adaptive(Goal::slowdown(1.0));
    let mut pacer = Pacer::new(free, &work, None).unwrap();
    let first = pacer.advise(&World::new(work.bytes, Some(0.004)).feedback());
    assert_eq!((first.allow, first.why), (u64::MAX, Why::Unpaced));
}

#[test]
fn an_allowance_that_is_not_used_is_given_again() {
    let work = Work::new(8 * GIB, 64);
    let mut pacer = adaptive(&work);
    let mut world = World::new(work.bytes, Some(0.004));
    let first = pacer.advise(&world.feedback());
    for _ in 0..1000 {
        world.now += 0.001;
        assert_eq!(pacer.advise(&world.feedback()).allow, first.allow);
    }
}
