//! Completions that come early, for a drive whose answers take a way of their own.
//!
//! A block device in software has a round trip to its model: the command has to get there, and the
//! answer back. A reader sees both. If the model completes a command earlier by that round
//! trip, the command takes as long as the card says. It keeps its place among those worked at until
//! its time is over, so the drive's highest rate stays the card's.

use std::time::Duration;

/// How much earlier reads, writes and flushes complete, by the number in flight: 1, 2, 4, and so on
/// to 128 and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeadStart(pub [Duration; HeadStart::STEPS]);

impl HeadStart {
    /// How many numbers in flight it distinguishes.
    pub const STEPS: usize = 8;

    /// The step that a number in flight belongs to: the nearest power of two.
    pub fn step(in_flight: usize) -> usize {
        let nearest = (in_flight.max(1) as f64).log2().round() as usize;
        nearest.min(HeadStart::STEPS - 1)
    }

    /// The one for so many in flight.
    pub fn at(&self, in_flight: usize) -> Duration {
        self.0[HeadStart::step(in_flight)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_belongs_to_the_nearest_power_of_two() {
        let steps: Vec<usize> = [0, 1, 2, 3, 5, 6, 8, 11, 12, 32, 1000]
            .map(HeadStart::step)
            .to_vec();
        assert_eq!(steps, [0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 7]);
    }
}
