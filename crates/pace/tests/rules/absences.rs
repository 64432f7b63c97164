//! A deletion may be stopped for a while: the pacer learns nothing from that time.

use pace::{Feedback, Goal, Pacer, Policy, State, Work};

use crate::world::World;

const GIB: u64 = 1 << 30;

/// Frees for a while, is stopped when a piece is in flight, and then goes on. `takes`: when that
/// piece's discards are done. Returns what the pacer knew before and knows after it.
fn stopped(seconds: f64, takes: f64, marked: bool) -> (State, State) {
    let work = Work::new(64 * GIB, 512);
    let mut pacer = Pacer::new(Policy::Adaptive(Goal::default()), &work, None).unwrap();
    let mut world = World::new(work.bytes, Some(0.001));
    while world.freed < 8 * GIB {
        assert!(world.step(&mut pacer));
    }
    while pacer.state().debt > 0 {
        assert!(world.step(&mut pacer));
    }
    let before = pacer.state();
    world.after = Some(takes);
    let freed = world.freed;
    while world.freed == freed {
        assert!(world.step(&mut pacer));
    }
    world.after = Some(0.001);
    pacer.advise(&world.feedback());
    // The device's time is told as if it had been at the discards all along.
    world.busy += seconds;
    world.pass(seconds);
    for absent in [marked, marked] {
        let seen = Feedback {
            absent,
            ..world.feedback()
        };
        pacer.advise(&seen);
    }
    while pacer.state().debt > 0 {
        assert!(world.step(&mut pacer));
    }
    (before, pacer.state())
}

#[test]
fn a_piece_that_was_in_flight_over_a_stop_teaches_no_cost() {
    let (before, after) = stopped(3.0, 0.001, true);
    let charged = |state: State| state.charged_s.unwrap();
    assert!(after.service_s < before.service_s.map(|seconds| seconds * 2.0));
    assert!(
        charged(after) - charged(before) < 0.1,
        "nobody lost anything"
    );
    let (before, after) = stopped(3.0, 0.001, false);
    assert!(charged(after) - charged(before) > 1.0);
}

#[test]
fn a_stop_is_no_sign_that_discards_do_not_come() {
    let (_, after) = stopped(11.0, 11.5, true);
    assert_eq!((after.written_off, after.answered), (0, true));
    let (_, after) = stopped(11.0, 11.5, false);
    assert!(after.written_off > 0);
}
