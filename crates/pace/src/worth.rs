//! Which free runs are worth a trim of their own.
//!
//! A drive that doesn't learn of a free run may copy its bytes once more when it cleans its flash. So
//! a trim should take no longer than writing those bytes would. S = a + b·L makes a short run the
//! dearest for each byte: it waits until more is freed beside it, or until it is used again.

use std::time::Duration;

use crate::cost::Cost;
use crate::quantity::{Bytes, Seconds};

/// Bytes a second that a drive is taken to write at least: about half of what a SATA link moves.
const WRITTEN_PER_S: f64 = (256 << 20) as f64;

/// A run of so many bytes is worth a trim, whatever it costs.
const ALWAYS: f64 = (64 << 20) as f64;

/// The file systems' block, in bytes.
const BLOCK: u64 = 4096;

/// The costs of trims, and the shortest run that is worth one.
#[derive(Debug, Clone, Default)]
pub struct Worth {
    cost: Cost,
}

impl Worth {
    /// So many discards with so many bytes in all kept the device busy for so long.
    pub fn learn(&mut self, commands: u64, bytes: u64, busy: Duration) {
        self.cost.learn(commands, bytes, Seconds::from(busy));
    }

    /// Returns the shortest run whose trim takes no longer than writing it, in bytes. It is a whole
    /// number of blocks, at most 64 MiB. It is 0 while no cost is known, or where every block is
    /// worth a trim.
    pub fn least_run(&self) -> u64 {
        let mut run = ALWAYS;
        // A longer run costs no less, so this falls to the longest that is just worth it.
        for _ in 0..32 {
            let Some(time) = self.cost.predict(Bytes(run)) else {
                return 0;
            };
            run = (time.0 * WRITTEN_PER_S).min(run);
        }
        (run as u64 / BLOCK) * BLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn least(card: &str, sizes: &[u64]) -> u64 {
        let card = ssd::profiles::by_name(card).unwrap();
        let discard = card.figures().discard.as_ref().unwrap();
        let mut worth = Worth::default();
        assert_eq!(worth.least_run(), 0);
        for &bytes in sizes {
            worth.learn(20, 20 * bytes, discard.service(bytes, 0, 1) * 20);
        }
        worth.least_run()
    }

    #[test]
    fn a_run_is_worth_a_trim_that_is_no_dearer_than_writing_it() {
        let both = [64 << 10, 128 * MIB];
        // 50 ms, 976 us and 481 us for a short one.
        let vertex = least("ocz-vertex-2", &both);
        assert!((12 * MIB..14 * MIB).contains(&vertex), "{vertex}");
        let t500 = least("crucial-t500-2tb", &both);
        assert!((240 << 10..270 << 10).contains(&t500), "{t500}");
        let evo = least("samsung-870-evo-2tb", &both);
        assert!((116 << 10..136 << 10).contains(&evo), "{evo}");
        assert_eq!(least("ideal", &both), 0);
    }

    #[test]
    fn one_size_bounds_what_others_cost() {
        // A whole group takes 2 ms, so a short run takes no more.
        let t500 = least("crucial-t500-2tb", &[128 * MIB]);
        assert!((400 << 10..600 << 10).contains(&t500), "{t500}");
        let few = least("crucial-t500-2tb", &[4096]);
        assert!((240 << 10..2 * MIB).contains(&few), "{few}");
        let mut slow = Worth::default();
        slow.learn(1, 4096, Duration::from_secs(10));
        assert_eq!(slow.least_run(), 64 * MIB);
    }
}
