//! Which part of the discards that a device counted is ours.

use crate::cost::Cost;
use crate::meter::Tick;
use crate::quantity::{Bytes, Seconds};

/// If this share of the discarded bytes is ours, so are all the discards.
const NEARLY_ALL: f64 = 0.95;

/// Beside discards of others, ours are charged with at most so many times their usual time.
const DOUBT: f64 = 1.5;

/// Our part of the discards between two looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OwnDiscards {
    /// How many completed.
    pub(crate) commands: u64,
    /// Bytes they discarded.
    pub(crate) bytes: u64,
    /// For how long the device was at them.
    pub(crate) busy: Seconds,
}

impl OwnDiscards {
    /// All of them are ours.
    pub(crate) fn all(tick: &Tick) -> OwnDiscards {
        OwnDiscards {
            commands: tick.commands,
            bytes: tick.bytes,
            busy: tick.busy,
        }
    }

    /// The part of a tick of which `bytes` were freed by us, in extents of `whole` bytes.
    ///
    /// The time is split by bytes. That charges us too much where the discards of others are
    /// small, so it is no more than [`DOUBT`] times what ours took before.
    pub(crate) fn of(tick: &Tick, bytes: u64, whole: Bytes, cost: &Cost) -> OwnDiscards {
        let share = bytes as f64 / tick.bytes.max(1) as f64;
        if share > NEARLY_ALL {
            return OwnDiscards::all(tick);
        }
        let commands = (Bytes::from(bytes) / whole).ceil();
        let size = Bytes::from(bytes) / commands.max(1.0);
        let expected = cost
            .predict(size)
            .map_or(Seconds::INFINITE, |one| one * commands);
        OwnDiscards {
            commands: (commands as u64).min(tick.commands),
            bytes,
            busy: (tick.busy * share).min(DOUBT * expected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// One discard of ours, 128 MiB in 16 ms, beside 20 log files of 16 MiB in 4 ms each.
    const MIXED: Tick = Tick {
        length: Seconds(0.1),
        busy: Seconds(0.096),
        commands: 21,
        bytes: (128 + 20 * 16) * MIB,
        flushes: 0,
        flushing: Seconds::ZERO,
        commits: 0,
        others: None,
    };

    #[test]
    fn discards_of_others_are_not_charged_to_us() {
        let whole = Bytes::from(128 * MIB);
        let unknown = OwnDiscards::of(&MIXED, 128 * MIB, whole, &Cost::default());
        assert_eq!((unknown.commands, unknown.bytes), (1, 128 * MIB));
        assert!(unknown.busy < 0.3 * MIXED.busy, "{unknown:?}");
        let mut cost = Cost::default();
        cost.learn(4, 4 * 128 * MIB, 4.0 * Seconds(0.016));
        let known = OwnDiscards::of(&MIXED, 128 * MIB, whole, &cost);
        assert!((0.016..=0.024).contains(&known.busy.0), "{known:?}");
    }

    #[test]
    fn nearly_all_is_all() {
        let ours = OwnDiscards::of(&MIXED, MIXED.bytes - MIB, Bytes(1.0), &Cost::default());
        assert_eq!(ours, OwnDiscards::all(&MIXED));
    }
}
