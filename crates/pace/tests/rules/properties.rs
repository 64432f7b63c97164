//! Properties that hold for any feedback.

use std::time::Duration;

use pace::{Canary, Discards, Feedback, Flushes, Goal, Io, Others, Pacer, Policy, Why, Work};
use proptest::prelude::*;
use ssd::Time;

use crate::world::World;

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Burst),
        (1_u64..1 << 30, 0_u64..200).prop_map(|(chunk, ms)| Policy::Fixed {
            chunk,
            sleep: Duration::from_millis(ms),
        }),
        (1e6..1e11, 1_u64..1 << 30)
            .prop_map(|(bytes_per_s, piece)| Policy::Rate { bytes_per_s, piece }),
        goals().prop_map(Policy::Adaptive),
    ]
}

fn goals() -> impl Strategy<Value = Goal> {
    (
        0.01..1.0_f64,
        prop::option::of(3_u64..100),
        prop::option::of(1_u64..100),
    )
        .prop_map(|(slowdown, ms, s)| Goal {
            slowdown,
            max_latency: ms.map(Duration::from_millis),
            deadline: s.map(Duration::from_secs),
            max_pressure: ms.map(|ms| ms as f64 / 100.0),
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every policy comes to its end on every device, freeing what there is.
    #[test]
    fn it_ends(policy in policies(), mib in 1_u64..4096, extents in 1_u64..64,
               after in prop::option::of(0.0..0.2_f64), share in 0.0..1.0_f64) {
        let work = Work::new(mib << 20, extents);
        let mut pacer = Pacer::new(policy, &work, None).unwrap();
        let mut world = World::new(work.bytes, after);
        world.share = share;
        // Fixed and rate take what they were told to take.
        let blind = matches!(policy, Policy::Fixed { .. } | Policy::Rate { .. });
        let over = world.run(&mut pacer, 400_000);
        prop_assert!(over || blind, "{:?} {:?}", pacer.state(), world.said.last());
        let refused = pacer.refusal().is_some();
        prop_assert!(!over || refused || world.left == 0);
    }

    /// Unless it is urgent or free of charge, only one piece is in flight.
    #[test]
    fn no_more_than_the_window_is_in_flight(goal in goals(), mib in 64_u64..4096, extents in 1_u64..64,
                                            after in 0.0..0.2_f64) {
        let goal = Goal { deadline: None, slowdown: goal.slowdown.min(0.9), ..goal };
        let work = Work::new(mib << 20, extents);
        let mut pacer = Pacer::new(Policy::Adaptive(goal), &work, None).unwrap();
        let mut world = World::new(work.bytes, Some(after));
        for _ in 0..20_000 {
            let pending = pacer.state().debt;
            if !world.step(&mut pacer) {
                break;
            }
            let (_, advice) = world.said.last().unwrap();
            if advice.allow > 0 {
                prop_assert_eq!(pacer.state().debt, 0, "asked {:?} with {} pending", advice, pending);
                prop_assert!(advice.piece <= advice.allow && advice.piece >= 1);
            }
        }
    }

    /// The same feedback gives the same advice, and no feedback breaks the pacer.
    #[test]
    fn deterministic_whatever_is_told(goal in goals(), told in prop::collection::vec(
        (any::<u32>(), any::<u32>(), any::<u32>(), any::<u16>(), prop::option::of(any::<u32>()), any::<u8>()), 1..60)) {
        let work = Work::new(64 << 30, 512);
        let mut one = Pacer::new(Policy::Adaptive(goal), &work, None).unwrap();
        let mut other = one.clone();
        for (now, freed, bytes, busy, ops, canary) in told {
            let reads = [Canary {
                intended: Time::from_nanos(u64::from(now)),
                latency: Duration::from_micros(u64::from(canary) * 100),
            }];
            // Times and counters that fall, too.
            let seen = Feedback {
                sent_since: Some(Time::from_nanos(u64::from(freed))),
                now: Time::from_nanos(u64::from(now) * 10),
                freed: u64::from(freed) << 8,
                exempt: u64::from(bytes) << 2,
                left: (canary % 3 > 0).then_some(u64::from(canary % 2) * 1000),
                pressure: (busy % 3 > 0).then(|| Duration::from_micros(u64::from(bytes))),
                commits: u64::from(canary % 7),
                settled: canary % 5 == 0,
                own_commits: u64::from(canary % 4),
                flushes: Flushes {
                    commands: u64::from(busy % 100),
                    busy: Duration::from_millis(u64::from(bytes)),
                },
                discards: Discards {
                    commands: u64::from(bytes % 1000),
                    bytes: u64::from(bytes) << 8,
                    busy: (busy % 5 > 0).then(|| Duration::from_millis(u64::from(busy))),
                },
                absent: canary % 11 == 0,
                canary: &reads[..usize::from(canary % 2)],
                others: ops.map(|ops| Others {
                    reads: Io {
                        ops: u64::from(ops),
                        wait: Duration::from_micros(u64::from(ops)),
                    },
                    writes: 0,
                }),
                space: None,
                deleters_beside: u32::from(canary % 4),
            };
            let advice = one.advise(&seen);
            prop_assert_eq!(advice, other.advise(&seen));
            prop_assert!(advice.piece >= 1);
            prop_assert!(advice.allow == 0 || !advice.commit);
            prop_assert!(advice.allow > 0 || advice.commit || advice.ask_again > Duration::ZERO
                || matches!(advice.why, Why::Done | Why::Refused), "{:?}", advice);
        }
    }

    /// Nor does a drive that takes long for each discard, which others use for theirs, too.
    #[test]
    fn slow_drives_that_others_discard_on_break_nothing(
        goal in goals(), again in any::<bool>(), extents in 1_u64..512, service_ms in 1_u64..400,
        steps in prop::collection::vec((0_u64..700, 0_u64..5, 0_u64..40, any::<bool>()), 1..200)) {
        let work = Work { discards_twice: again, ..Work::new(64 << 30, extents) };
        let mut pacer = Pacer::new(Policy::Adaptive(goal), &work, None).unwrap();
        let (mut now, mut freed, mut commits, mut discards) = (Time::ZERO, 0, 0, Discards::default());
        let mut busy = Duration::ZERO;
        for (ms, times, theirs, pays) in steps {
            let seen = Feedback {
                now, freed, commits, discards: Discards { busy: Some(busy), ..discards },
                left: Some(work.bytes - freed), ..Feedback::default()
            };
            let advice = pacer.advise(&seen);
            prop_assert!(advice.piece >= 1);
            let piece = advice.allow.min(work.bytes - freed).min(1 << 30);
            freed += piece;
            commits += u64::from(advice.commit);
            let commands = theirs + u64::from(pays) * 3;
            discards.commands += commands;
            discards.bytes += (theirs << 20) + if pays { times * piece.max(16 << 20) } else { 0 };
            busy += Duration::from_millis(service_ms * commands);
            now += Duration::from_millis(ms);
        }
    }

    /// A higher goal is never slower by more than chance.
    #[test]
    fn more_may_be_lost_so_less_time_is_taken(low in 0.02..0.4_f64, more in 1.5..3.0_f64) {
        let time = |share| {
            let work = Work::new(16 << 30, 128);
            let mut pacer = Pacer::new(Policy::Adaptive(Goal::slowdown(share)), &work, None).unwrap();
            let mut world = World::new(work.bytes, Some(0.004));
            assert!(world.run(&mut pacer, 100_000));
            world.now
        };
        let (slow, fast) = (time(low), time(low * more));
        prop_assert!(fast <= slow * 1.05, "{low}: {slow} s, {}: {fast} s", low * more);
    }
}
