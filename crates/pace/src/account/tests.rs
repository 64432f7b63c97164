use std::time::Duration;

use ssd::Time;

use super::*;
use crate::feedback::{Canary, Discards, Flushes, Io, Others};

const MIB: u64 = 1 << 20;

/// A drive that is looked at every millisecond: readers at a rate, discards that hold them.
struct World {
    account: Account,
    ms: u64,
    reads: f64,
    freed: u64,
    discarded: u64,
    commands: u64,
    busy_ms: u64,
    flushes: u64,
    own_commits: u64,
    absent: bool,
}

impl World {
    fn new(goal: &Goal) -> World {
        World {
            account: Account::new(Some(goal), false),
            ms: 0,
            reads: 0.0,
            freed: 0,
            discarded: 0,
            commands: 0,
            busy_ms: 0,
            flushes: 0,
            own_commits: 0,
            absent: false,
        }
    }

    fn look(&mut self, canary: &[Canary]) {
        let feedback = Feedback {
            now: Time::from_nanos(self.ms * 1_000_000),
            freed: self.freed,
            discards: Discards {
                commands: self.commands,
                bytes: self.discarded,
                busy: Some(Duration::from_millis(self.busy_ms)),
            },
            flushes: Flushes {
                commands: self.flushes,
                busy: Duration::from_micros(self.flushes * 400),
            },
            own_commits: self.own_commits,
            canary,
            absent: self.absent,
            others: Some(Others {
                reads: Io {
                    ops: self.reads as u64,
                    wait: Duration::from_micros((self.reads * 100.0) as u64),
                },
                writes: 0,
            }),
            ..Feedback::default()
        };
        self.account.take_in(&feedback, false);
    }

    /// So many quiet milliseconds with so many reads each.
    fn quiet(&mut self, ms: u64, reads: f64) {
        for _ in 0..ms {
            self.ms += 1;
            self.reads += reads;
            self.look(&[]);
        }
    }

    /// A discard of a MiB that takes so long, during which nothing is read.
    fn discard(&mut self, ms: u64, ours: bool) {
        if ours {
            self.freed += MIB;
            self.look(&[]);
        }
        for _ in 1..ms {
            self.quiet(1, 0.0);
        }
        self.ms += 1;
        self.commands += 1;
        self.discarded += MIB;
        self.busy_ms += ms;
        self.look(&[]);
    }

    fn canary(&mut self, intended_ms: u64, latency_ms: u64) {
        let read = Canary {
            intended: Time::from_nanos(intended_ms * 1_000_000),
            latency: Duration::from_millis(latency_ms) + Duration::from_micros(100),
        };
        self.look(&[read]);
        self.look(&[]);
    }

    fn judged(&self, goal: &Goal) -> Vec<GoalResult> {
        self.account.judge(goal, Duration::from_millis(self.ms))
    }
}

/// Beside a discard in service, whose time the kernel counts on.
#[test]
fn a_stop_of_the_deletion_is_no_loss_of_the_readers() {
    for marked in [true, false] {
        let goal = Goal::slowdown(0.10);
        let mut world = World::new(&goal);
        world.quiet(300, 10.0);
        for i in 0..100 {
            if i == 50 {
                world.freed += MIB;
                world.look(&[]);
                // Nobody reads while nobody looks.
                world.ms += 5000;
                world.commands += 1;
                world.discarded += MIB;
                world.busy_ms += 5000;
                world.absent = marked;
                world.look(&[]);
                world.look(&[]);
                world.absent = false;
            }
            world.discard(5, true);
            world.quiet(95, 10.0);
        }
        let lost = world.account.observed().readers.unwrap().lost.value;
        assert_eq!(lost < 0.10, marked, "{lost}");
    }
}

#[test]
fn readers_that_lose_a_fifth_miss_a_tenth_and_keep_a_quarter() {
    let goal = Goal::slowdown(0.10);
    let mut world = World::new(&goal);
    world.quiet(300, 10.0);
    for _ in 0..100 {
        world.discard(20, true);
        world.quiet(80, 10.0);
    }
    let readers = world.account.observed().readers.unwrap();
    assert!((readers.lost.value - 0.20).abs() < 0.02, "{readers:?}");
    assert!(!readers.open_loop);
    let missed = world.judged(&goal)[0];
    assert_eq!(missed.kept, Kept::Missed, "{missed:?}");
    assert_eq!(missed.witness, Some(Witness::Readers));
    assert_eq!(missed.first_missed_s, Some(0.0));
    let kept = world.judged(&Goal::slowdown(0.25))[0];
    assert_eq!(kept.kept, Kept::Met, "{kept:?}");
}

#[test]
fn what_nobody_measured_is_not_told() {
    let goal = Goal::slowdown(0.10);
    let mut world = World::new(&goal);
    for _ in 0..100 {
        world.discard(20, true);
        world.quiet(80, 0.0);
    }
    let observed = world.account.observed();
    assert_eq!((observed.readers, observed.canary), (None, None));
    assert_eq!(world.judged(&goal)[0].kept, Kept::NotMeasured);
    assert_eq!(world.judged(&goal)[0].measured, None);
}

#[test]
fn pauses_that_are_slower_count_half() {
    let mut world = World::new(&Goal::default());
    world.quiet(300, 10.0);
    for _ in 0..30 {
        world.discard(10, true);
        world.quiet(90, 8.0);
    }
    let readers = world.account.observed().readers.unwrap();
    let slower = readers.slower_pauses.unwrap();
    assert!((slower - 0.2).abs() < 0.02, "{slower}");
    assert!(readers.lost.low < 0.10, "{readers:?}");
    // Or the drive was slow in the pauses because of the deletion. Nobody knows.
    let all = 1.0 - 0.9 * 0.8;
    assert!(readers.lost.high > all, "{readers:?}");
    let middle = f64::midpoint(0.10, all);
    assert!((readers.lost.value - middle).abs() < 0.03, "{readers:?}");
    assert_eq!(world.judged(&Goal::slowdown(0.15))[0].kept, Kept::Unsure);
    assert_eq!(world.judged(&Goal::slowdown(0.35))[0].kept, Kept::Met);
    // And then they end, while discards that never come are waited for.
    world.freed += 100 * MIB;
    world.quiet(3000, 0.0);
    let after = world.account.observed().readers.unwrap();
    assert!((after.lost.value - middle).abs() < 0.03, "{after:?}");
}

#[test]
fn a_deletion_that_works_in_its_pauses_is_seen_against_the_time_before() {
    let goal = Goal::slowdown(0.10);
    let mut world = World::new(&goal);
    world.quiet(3000, 10.0);
    world.account.works_in_pauses();
    world.account.begin();
    // Half of the work comes before anything is known as freed.
    world.quiet(1000, 6.0);
    for _ in 0..20 {
        world.discard(10, true);
        world.quiet(90, 8.0);
    }
    let readers = world.account.observed().readers.unwrap();
    let lost = 1.0 - (6.0 + 2.0 * 0.9 * 8.0) / 30.0;
    assert!((readers.lost.value - lost).abs() < 0.01, "{readers:?}");
    assert!(readers.quiet == Quiet::Before && readers.baseline_per_s > 9900.0);
    let missed = world.judged(&goal)[0];
    assert_eq!(missed.kept, Kept::Missed, "{missed:?}");
    let worst = missed.worst.unwrap();
    assert!((worst.value - 0.4).abs() < 0.01, "{worst:?}");
    // By 8 % a load drifts by itself.
    let unsure = world.judged(&Goal::slowdown(0.25))[0];
    assert_eq!(unsure.kept, Kept::Unsure, "{unsure:?}");
    assert_eq!(world.judged(&Goal::slowdown(0.4))[0].kept, Kept::Met);
}

#[test]
fn readers_are_seen_before_it_beside_others_discards_too() {
    let mut world = World::new(&Goal::slowdown(0.1));
    for _ in 0..30 {
        world.reads += 10.0;
        world.discard(1, false);
    }
    assert!(world.account.reads_before() > 100.0);
}

#[test]
fn a_look_after_the_end_settles_slow_pauses() {
    let goal = Goal::slowdown(0.15);
    let mut world = World::new(&goal);
    world.quiet(300, 10.0);
    for _ in 0..60 {
        world.discard(10, true);
        world.quiet(90, 8.0);
    }
    let vague = world.judged(&goal)[0];
    assert_eq!(vague.kept, Kept::Unsure, "{vague:?}");
    assert!(vague.worst.is_none(), "{vague:?}");
    // The pauses were slow because of the deletion, for after it they are not.
    world.account.ends();
    world.quiet(1500, 10.0);
    let before = world.account.observed();
    world.discard(500, false);
    world.quiet(1500, 10.0);
    let observed = world.account.observed();
    assert_eq!((observed.own, observed.others), (before.own, before.others));
    assert!((observed.seconds - before.seconds).abs() < 1e-9);
    let readers = observed.readers.unwrap();
    let Quiet::Around { after_per_s, .. } = readers.quiet else {
        panic!("{readers:?}");
    };
    assert!((after_per_s - 10_000.0).abs() < 50.0, "{after_per_s}");
    assert!((readers.lost.value - 0.28).abs() < 0.01, "{readers:?}");
    assert!(readers.lost.high - readers.lost.low < 0.2, "{readers:?}");
    let missed = world.judged(&goal)[0];
    assert_eq!(missed.kept, Kept::Missed);
    assert!((missed.worst.unwrap().value - 0.28).abs() < 0.02);
    // A load that fell all the time is no open loop, and nobody knows what the deletion cost it.
    let mut world = World::new(&goal);
    world.quiet(300, 13.0);
    for _ in 0..60 {
        world.discard(10, true);
        world.quiet(90, 10.0);
    }
    world.account.ends();
    world.quiet(3000, 7.0);
    let readers = world.account.observed().readers.unwrap();
    assert!(!readers.open_loop && readers.lost.low == 0.0, "{readers:?}");
    assert!((readers.lost.high - (1.0 - 9.0 / 13.0)).abs() < 0.02);
    assert_eq!(world.judged(&goal)[0].kept, Kept::Unsure);
    // Who has left by then shows nothing.
    let mut world = World::new(&goal);
    world.quiet(300, 10.0);
    for _ in 0..60 {
        world.discard(10, true);
        world.quiet(90, 8.0);
    }
    world.account.ends();
    world.quiet(3000, 0.0);
    assert_eq!(world.judged(&goal)[0], vague);
}

#[test]
fn readers_that_read_more_beside_discards_than_without_have_no_loss() {
    let goal = Goal::slowdown(0.10);
    let mut world = World::new(&goal);
    world.quiet(300, 10.0);
    for _ in 0..3 {
        // Just before each discard they are faster than in the pauses on the whole.
        world.quiet(1000, 2.0);
        world.quiet(1500, 10.0);
        world.freed += MIB;
        world.look(&[]);
        world.quiet(2999, 8.0);
        world.ms += 1;
        world.commands += 1;
        world.discarded += MIB;
        world.busy_ms += 3000;
        world.look(&[]);
    }
    world.quiet(100, 10.0);
    let readers = world.account.observed().readers;
    assert!(readers.is_none(), "{readers:?}");
}

#[test]
fn readers_that_end_lose_nothing_from_then_on() {
    let goal = Goal::slowdown(0.10);
    let judged = |back: bool| {
        let mut world = World::new(&goal);
        world.quiet(300, 10.0);
        for at in 0..100 {
            world.discard(5, true);
            // Somebody else reads a little after 6 s.
            world.quiet(
                95,
                if at < 60 || back && at > 80 {
                    10.0
                } else {
                    0.1
                },
            );
        }
        (
            world.account.observed().readers.unwrap(),
            world.judged(&goal)[0],
        )
    };
    let (readers, goal_kept) = judged(false);
    let left = readers.left_s.unwrap();
    assert!((left - 6.0).abs() < 0.2, "{readers:?}");
    assert!((readers.lost.value - 0.05).abs() < 0.02, "{readers:?}");
    assert!(readers.during_per_s > 9000.0, "{readers:?}");
    assert_eq!(goal_kept.kept, Kept::Met, "{goal_kept:?}");
    assert!(goal_kept.first_missed_s.is_none(), "{goal_kept:?}");
    // Those who come back never left.
    assert_eq!(judged(true).0.left_s, None);
}

#[test]
fn a_late_read_is_told_by_what_was_in_service() {
    let goal = Goal {
        max_latency: Some(Duration::from_millis(5)),
        ..Goal::default()
    };
    let mut world = World::new(&goal);
    world.canary(0, 0);
    for round in 0..30 {
        world.discard(20, true);
        world.quiet(80, 10.0);
        world.canary(world.ms - 1, 0);
        // Something else holds up a read.
        if round == 10 {
            world.canary(world.ms - 40, 40);
        }
    }
    let before = world.judged(&goal)[1];
    assert_eq!(before.kept, Kept::Met, "{before:?}");
    let canary = world.account.observed().canary.unwrap();
    assert_eq!(canary.over.unwrap().nothing, 1, "{canary:?}");
    assert!(canary.max_added > Duration::from_millis(39), "{canary:?}");
    // And then our own discard does.
    world.discard(20, true);
    world.canary(world.ms - 19, 19);
    let after = world.judged(&goal)[1];
    assert_eq!(after.kept, Kept::Missed, "{after:?}");
    assert_eq!(after.witness, Some(Witness::Canary));
    let canary = world.account.observed().canary.unwrap();
    assert_eq!(canary.over.unwrap().our_discards, 1, "{canary:?}");
    assert!(after.first_missed_s.unwrap() > 2.9, "{after:?}");
}

#[test]
fn discards_beyond_what_was_freed_are_others() {
    let mut world = World::new(&Goal::default());
    world.discard(10, true);
    world.quiet(50, 0.0);
    world.discarded += 800 * MIB;
    world.commands += 1;
    world.busy_ms += 30;
    world.ms += 30;
    world.look(&[]);
    let observed = world.account.observed();
    assert!(observed.others.bytes > 450 * MIB, "{observed:?}");
    assert!(observed.own.bytes <= 3 * MIB, "{observed:?}");
    assert!(observed.others.seconds > 0.02, "{observed:?}");
}

#[test]
fn a_deadline_is_judged_by_the_clock() {
    let goal = Goal {
        deadline: Some(Duration::from_secs(1)),
        ..Goal::default()
    };
    let account = Account::new(Some(&goal), false);
    let kept = |ms| account.judge(&goal, Duration::from_millis(ms))[1].kept;
    assert_eq!((kept(900), kept(1100)), (Kept::Met, Kept::Missed));
}

#[test]
fn long_deletions_keep_few_windows() {
    let mut world = World::new(&Goal::default());
    world.freed = 1;
    for _ in 0..10_000 {
        world.ms += 1000;
        world.reads += 1000.0;
        world.look(&[]);
    }
    let readers = &world.account.readers;
    let losses: Vec<Worst> = readers.losses().collect();
    assert!(losses.len() <= 4096 && losses[0].length_s == 4.0);
    assert!(losses.iter().all(|window| window.value < 0.01));
}

/// A program that only syncs, once a millisecond: discards stop it for a fifth of the time.
#[test]
fn a_goal_is_judged_by_flushes_where_nobody_reads() {
    let goal = Goal::slowdown(0.1);
    let mut world = World::new(&goal);
    let syncs = |world: &mut World, ms: u64| {
        for _ in 0..ms {
            world.flushes += 1;
            world.quiet(1, 0.0);
        }
    };
    syncs(&mut world, 500);
    for _ in 0..100 {
        // Our own commits are nobody's loss and nobody's gain.
        world.own_commits += 1;
        world.flushes += 2;
        world.discard(4, true);
        syncs(&mut world, 16);
    }
    let result = world.account.judge(&goal, Duration::from_secs(3))[0];
    let lost = result.measured.unwrap();
    assert_eq!(result.witness, Some(Witness::Flushers), "{result:?}");
    assert_eq!(result.kept, Kept::Missed, "{result:?}");
    assert!((lost.value - 0.2).abs() < 0.04, "{lost:?}");
}
