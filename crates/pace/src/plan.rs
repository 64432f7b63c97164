//! Computes from a device card, before anything is freed: piece, rate, time and the cost for
//! others.

use std::time::Duration;

use record::units::MIB;
use ssd::{Card, Discard};

use crate::goal::Goal;
use crate::quantity::{Bytes, Line, Seconds, SecondsPerByte, Share};
use crate::refusal::Refusal;
use crate::work::Work;

/// The largest loss by one piece. The window of a goal leaves 3 % of a second, and a third of that
/// is kept for chance.
pub(crate) const PIECE_LOSS: Seconds = Seconds(0.020);

/// A read waits no longer than this for a discard that is cut, where cutting is cheap.
pub(crate) const BRIEF: Seconds = Seconds(0.001);

/// The share of an extent's cost for its bytes that the fixed costs of its pieces may reach.
pub(crate) const CUTTING: f64 = 0.10;

/// The plan of a deletion, and its cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Bytes in each piece.
    pub piece: u64,
    /// How many discards that makes.
    pub discards: u64,
    /// Bytes for each second; infinite where nothing is paced.
    pub bytes_per_s: f64,
    /// How long it takes.
    pub time: Duration,
    /// The time of plain deletion on an otherwise idle drive, and its cost for others.
    pub plain: Plain,
    /// The others' time that is lost in all: φ·(n·a + b·B).
    pub lost: Duration,
    /// The longest that one discard can keep a read waiting: φ·S with its jitter.
    pub worst_wait: Duration,
    /// The 99.9th percentile of what is added to an open-loop reader's latency, while it lasts: t
    /// where D(1 − t/S) = 0.1 %. D is the share of the time in which a discard keeps reads waiting,
    /// and S the length of such a wait.
    pub p999_added: Duration,
}

/// The cost of plain deletion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plain {
    /// How long it takes the drive.
    pub time: Duration,
    /// The others' time that is lost.
    pub lost: Duration,
    /// How many discards it makes.
    pub discards: u64,
}

/// Returns the plan to free this work at this goal, and its cost.
///
/// Time and losses are those of the drive. The file system's time to free and to commit comes on
/// top.
///
/// # Errors
/// A [`Refusal`] if the goal can't be met, with a goal that can be.
pub fn plan(card: &Card, work: &Work, goal: &Goal) -> Result<Plan, Refusal> {
    let Some(discard) = &card.figures().discard else {
        return Ok(Plan::unpaced(work));
    };
    let share = goal.share();
    let law = Law::new(discard, Seconds(card.figures().read.latency.as_secs_f64()));
    let whole = work.whole().min(discard.max_bytes);
    let plain_discards = work.bytes.div_ceil(whole.max(1)).max(work.extents);
    let plain_time = law.all(plain_discards, work.bytes);

    let largest = match goal.max_latency {
        None => u64::MAX,
        Some(asked) => law.largest_within(asked, work.smallest())?,
    };
    let cuts = law.cuts(whole, largest);
    let piece = whole.div_ceil(cuts).max(work.smallest().min(whole));
    let discards = if cuts > 1 {
        plain_discards.saturating_mul(cuts)
    } else {
        plain_discards
    };
    let lost = law.phi * law.all(discards, work.bytes);
    let drive = law.all(discards, work.bytes);
    let time = drive.max(lost / share);
    if let Some(asked) = goal.deadline
        && time > Seconds::from(asked)
    {
        let needed = lost / Seconds::from(asked).max(Seconds(1e-9));
        let possible = drive <= Seconds::from(asked);
        return Err(Refusal::Deadline {
            asked,
            slowdown: share.0,
            least: Seconds(time.0.ceil()).duration(),
            needed: if possible {
                (needed * 100.0).ceil() / 100.0
            } else {
                f64::INFINITY
            },
        });
    }
    let held = law.phi * law.one(piece);
    let duty = if time > Seconds::ZERO {
        lost / time
    } else {
        0.0
    };
    Ok(Plan {
        piece,
        discards,
        bytes_per_s: if time > Seconds::ZERO {
            work.bytes as f64 / time.0
        } else {
            f64::INFINITY
        },
        time: time.duration(),
        plain: Plain {
            time: plain_time.duration(),
            lost: (law.phi * plain_time).duration(),
            discards: plain_discards,
        },
        lost: lost.duration(),
        worst_wait: (held * law.worst).duration(),
        p999_added: p999(held, duty).duration(),
    })
}

/// Returns t where D(1 − t/S) = 0.1 %.
fn p999(held: Seconds, duty: f64) -> Seconds {
    if duty <= 0.001 {
        Seconds::ZERO
    } else {
        held * (1.0 - 0.001 / duty)
    }
}

impl Plan {
    /// Returns the plan where nothing is discarded: no read waits for it.
    fn unpaced(work: &Work) -> Plan {
        Plan {
            piece: work.bytes.max(1),
            discards: 0,
            bytes_per_s: f64::INFINITY,
            time: Duration::ZERO,
            plain: Plain {
                time: Duration::ZERO,
                lost: Duration::ZERO,
                discards: 0,
            },
            lost: Duration::ZERO,
            worst_wait: Duration::ZERO,
            p999_added: Duration::ZERO,
        }
    }
}

/// The cost of discards by a card.
struct Law {
    line: Line,
    phi: Share,
    /// How much longer than the mean a discard can take, as a factor.
    worst: f64,
    /// The drive's time for a read, which is also its time to drain one.
    read: Seconds,
}

impl Law {
    fn new(discard: &Discard, read: Seconds) -> Law {
        let a = discard.a + discard.per_range;
        Law {
            line: Line {
                fixed: Seconds(a.as_secs_f64()),
                per_byte: SecondsPerByte(discard.b.as_nanos() / 1e9 / MIB as f64),
            },
            phi: Share(discard.phi()),
            worst: 1.0 + 2.0 * discard.jitter,
            read,
        }
    }

    fn one(&self, bytes: u64) -> Seconds {
        self.line.at(Bytes::from(bytes))
    }

    fn all(&self, discards: u64, bytes: u64) -> Seconds {
        self.line.fixed * discards as f64 + self.line.per_byte * Bytes::from(bytes)
    }

    /// Returns how long a discard of this size keeps a read waiting, at worst.
    fn held(&self, bytes: u64) -> Seconds {
        if self.phi <= Share::ZERO {
            return Seconds::ZERO;
        }
        self.phi * self.one(bytes) * self.worst + self.read
    }

    /// Returns the largest discard that keeps no read waiting longer than `asked`, in bytes. Such a
    /// wait is φ·(a + b·L) times the jitter's factor, plus the time of a read.
    fn largest_within(&self, asked: Duration, smallest: u64) -> Result<u64, Refusal> {
        let limit = Seconds::from(asked);
        let least = self.held(smallest);
        if least > limit {
            // Rounded up to two digits, so that it is met when asked for.
            let ns = least.0 * 1e9;
            let step = 10_f64.powf(ns.log10().floor() - 1.0);
            let least_ns = ((ns / step).ceil() * step).round();
            return Err(Refusal::Latency {
                asked,
                smallest: least.duration(),
                least: Duration::from_nanos(least_ns as u64),
            });
        }
        let slope = self.line.per_byte * self.phi.0 * self.worst;
        if slope <= SecondsPerByte::ZERO {
            return Ok(u64::MAX);
        }
        let bytes = Bytes::from(smallest) + (limit - least) / slope;
        Ok(bytes.0 as u64)
    }

    /// Returns into how many pieces an extent is cut. The latency needs that many at least. More
    /// keep a piece's loss small, where that costs little.
    fn cuts(&self, whole: u64, largest: u64) -> u64 {
        let must = whole.div_ceil(largest.max(1));
        must.max(cuts(self.line, self.phi, Bytes::from(whole), BRIEF))
    }
}

/// Returns into how many pieces an extent of `whole` bytes is cut.
///
/// One that slows others down for longer than `brief` is cut, so that a read waits that long for a
/// piece. The fixed costs of all pieces are at most [`CUTTING`] of what the bytes cost.
pub(crate) fn cuts(line: Line, phi: Share, whole: Bytes, brief: Seconds) -> u64 {
    let Line { fixed, per_byte } = line;
    let bytes = per_byte * whole;
    if phi * (fixed + bytes) <= brief {
        return 1;
    }
    // Whatever share others lose on average, a read can wait for the whole discard.
    let room = brief - fixed;
    let wanted = match room > Seconds::ZERO {
        true => (bytes / room).ceil(),
        false => f64::INFINITY,
    };
    let cheap = (CUTTING * bytes / fixed.max(Seconds(1e-9))).floor();
    wanted.min(cheap).clamp(1.0, 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of an extent of so many MiB, at a ms + b µs/MiB.
    fn pieces(a_ms: f64, b_us: f64, phi: f64, mib: u64) -> u64 {
        let line = Line {
            fixed: Seconds(a_ms * 1e-3),
            per_byte: SecondsPerByte(b_us * 1e-6 / MIB as f64),
        };
        cuts(line, Share(phi), Bytes::from(mib * MIB), BRIEF)
    }

    #[test]
    fn an_extent_is_cut_as_far_as_fixed_costs_are_a_tenth() {
        // A disk whose discards cost by the byte: a millisecond each.
        assert_eq!(pieces(0.058, 192.0, 1.0, 128), 27);
        // The fixed costs would be more than a tenth: T500, Vertex 2.
        assert_eq!(pieces(0.976, 8.17, 1.0, 128), 1);
        assert_eq!(pieces(50.0, 0.0, 1.0, 2048), 1);
        // 870 EVO on XFS: 2 GiB are 17 ms, and three pieces cost 1.4 ms more than one.
        assert_eq!(pieces(0.481, 8.44, 1.0, 2048), 3);
        // 980 PRO: others lose less than half a millisecond.
        assert_eq!(pieces(0.1, 0.59, 0.2, 4096), 1);
    }
}
