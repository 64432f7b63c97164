//! The time of an observation in stretches of one length.

use super::observe::Observation;
use super::report::{Cause, Stretch};
use super::spans::Spans;

/// A timeline's stretches are a second long; in a short observation one of these, in seconds…
const SHORT_S: [f64; 3] = [0.1, 0.2, 0.5];
/// …with at most so many of them.
const MOST_SHORT: f64 = 15.0;

/// The stretches of an observation, with the discards in flight and no waits.
pub(super) fn stretches(observation: &Observation, discards: &Spans) -> Vec<Stretch> {
    let whole_s = (observation.to_s - observation.from_s).max(0.0);
    let fits = |step: &&f64| **step >= 4.0 * observation.period_s && whole_s / **step <= MOST_SHORT;
    let step = SHORT_S.iter().find(fits).copied().unwrap_or(1.0);
    let stretch = |index| {
        let at_s = f64::from(index) * step;
        let length_s = step.min(whole_s - at_s);
        let from = observation.from_s + at_s;
        Stretch {
            at_s,
            length_s,
            discarding_s: discards.covered(from, from + length_s),
            ..Stretch::default()
        }
    };
    (0..(whole_s / step).ceil() as u32).map(stretch).collect()
}

/// Adds a wait that ended at `at_s` to the stretches that it lay in.
pub(super) fn tally(timeline: &mut [Stretch], at_s: f64, cause: Cause, seconds: f64) {
    let from_s = (at_s - seconds).max(0.0);
    let first = timeline.partition_point(|one| one.at_s + one.length_s <= from_s);
    for one in &mut timeline[first..] {
        let part = at_s.min(one.at_s + one.length_s) - from_s.max(one.at_s);
        let sum = match cause {
            _ if part <= 0.0 => return,
            Cause::InDiscards => &mut one.in_discards_s,
            Cause::BehindDiscards => &mut one.behind_discards_s,
            Cause::Cpu => &mut one.cpu_s,
            Cause::Sleep => return,
            _ => &mut one.blocked_s,
        };
        *sum += part;
    }
}
