//! The latency that others may be made to wait, as a canary sees it.

use std::time::Duration;

use crate::cost::Cost;
use crate::feedback::Canary;
use crate::interference::Interference;
use crate::piece::Sizes;
use crate::quantity::{Bytes, Seconds};
use crate::refusal::Refusal;

/// The number of reads of which one may be over the limit.
const ONE_IN: f64 = 1000.0;

/// The fewest of the smallest discards from which their time refuses a latency.
const SURE: f64 = 20.0;

/// Keeps the latency goal where the statistics promise too much.
#[derive(Debug, Clone)]
pub(crate) struct Latency {
    limit: Option<Duration>,
    /// Reads over the limit, forgotten within a thousand reads.
    over: f64,
    /// The factor on the planned time of a discard, 0.02 to 1.
    scale: f64,
    /// Small discards that took longer than the limit, in a row.
    hopeless: u32,
    /// The longest of these.
    longest: Seconds,
    refusal: Option<Refusal>,
    /// No latency is refused any more.
    committed: bool,
}

impl Latency {
    pub(crate) fn new(limit: Option<Duration>) -> Latency {
        Latency {
            limit,
            over: 0.0,
            scale: 1.0,
            hopeless: 0,
            longest: Seconds::ZERO,
            refusal: None,
            committed: false,
        }
    }

    /// Returns the factor on the planned time of a discard, 0.02 to 1.
    pub(crate) fn scale(&self) -> f64 {
        self.scale
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.scale < 0.7
    }

    /// Takes in the canary's reads. Reads that are slow beside no discards don't count.
    pub(crate) fn observe(&mut self, canary: &[Canary], interference: &Interference, loud: bool) {
        let Some(limit) = self.limit else { return };
        for read in canary {
            self.over *= 1.0 - 1.0 / ONE_IN;
            self.scale = (self.scale * (1.0 + 0.05 / ONE_IN)).min(1.0);
            if loud && interference.added(read) > limit {
                self.over += 1.0;
                if self.over > 0.8 {
                    self.scale = (self.scale * 0.7).max(0.02);
                    self.over = 0.0;
                }
            }
        }
    }

    /// Refuses no latency from now on.
    pub(crate) fn commit_to_goal(&mut self) {
        self.committed = true;
    }

    /// Returns why the latency can't be met.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref().filter(|_| !self.committed)
    }

    /// Takes in an acknowledged piece: the size and the time of one of its discards.
    pub(crate) fn landed(&mut self, sizes: &Sizes, cost: &Cost, command: (Bytes, Seconds)) {
        if self.refusal.is_none() {
            self.refusal = self.judge(sizes, cost, command);
        }
    }

    /// Returns what can be held if even small discards take longer than the limit.
    fn judge(&mut self, sizes: &Sizes, cost: &Cost, command: (Bytes, Seconds)) -> Option<Refusal> {
        let asked = self.limit?;
        let limit = Seconds::from(asked);
        let (size, time) = command;
        let least = cost.least_of_smallest(SURE);
        if least > 0.98 * limit {
            return Some(Refusal::latency(asked, least.duration()));
        }
        if time <= limit {
            (self.hopeless, self.longest) = (0, Seconds::ZERO);
            return None;
        }
        self.longest = self.longest.max(time);
        // Far too slow at a small size, or too slow at the smallest.
        let small = size <= Bytes::from(sizes.smallest() * 2)
            || time > 3.0 * limit && size <= Bytes(70_000.0);
        if !small {
            return None;
        }
        self.hopeless += 1;
        let longest = self.longest.duration();
        (self.hopeless >= 2).then(|| Refusal::latency(asked, longest))
    }
}
