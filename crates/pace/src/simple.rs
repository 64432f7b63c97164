//! Controllers without feedback, to compare with.

use std::time::Duration;

use ssd::Time;

use crate::meter::Tick;
use crate::pacer::{Advice, Why};
use crate::piece::Sizes;
use crate::quantity::{Bytes, Seconds, SecondsPerByte, Share};

/// Of a chunk so small a part, or less, isn't freed on its own: it would cost a discard, and a
/// commit, as a large one does.
const CRUMB: u64 = 32;

/// Chunk and sleep: what slowrm does.
#[derive(Debug, Clone)]
pub(crate) struct Fixed {
    pub(crate) chunk: u64,
    pub(crate) sleep: Duration,
    freed: u64,
    /// How much of the present chunk is freed.
    used: u64,
    /// When the next chunk may follow, once one was freed.
    due: Time,
}

impl Fixed {
    pub(crate) fn new(chunk: u64, sleep: Duration) -> Fixed {
        Fixed {
            chunk: chunk.max(1),
            sleep,
            freed: 0,
            used: 0,
            due: Time::ZERO,
        }
    }

    pub(crate) fn advise(&mut self, now: Time, freed: u64) -> Advice {
        let more = freed.saturating_sub(self.freed);
        self.freed += more;
        self.used = self.used.saturating_add(more);
        if self.left() <= self.chunk / CRUMB {
            // A file may be more than what was left of a chunk: that is a part of the next.
            self.used = self.used.saturating_sub(self.chunk).min(self.chunk - 1);
            self.due = now + self.sleep;
        }
        let left = self.left();
        if now < self.due {
            return Advice::wait(self.due.since(now), left, Why::Holding);
        }
        Advice::free(left, left, Why::Holding)
    }

    fn left(&self) -> u64 {
        self.chunk.saturating_sub(self.used)
    }
}

/// So many bytes for each second, in pieces.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    pub(crate) bytes_per_s: f64,
    pub(crate) piece: u64,
    start: Option<(Time, u64)>,
}

impl Rate {
    pub(crate) fn new(bytes_per_s: f64, piece: u64) -> Rate {
        let bytes_per_s = if bytes_per_s > 1.0 { bytes_per_s } else { 1.0 };
        Rate {
            bytes_per_s,
            piece: piece.max(1),
            start: None,
        }
    }

    /// Changes the rate from now on.
    pub(crate) fn set(&mut self, now: Time, freed: u64, bytes_per_s: f64, piece: u64) {
        if (bytes_per_s / self.bytes_per_s - 1.0).abs() > 0.01 || piece != self.piece {
            // What is owed to the old rate is kept.
            let ahead = self
                .start
                .map_or(Duration::ZERO, |start| self.due(start, freed).since(now));
            *self = Rate::new(bytes_per_s, piece);
            self.start = Some((now + ahead, freed));
        }
    }

    /// When the next piece is due.
    fn due(&self, (start, freed_before): (Time, u64), freed: u64) -> Time {
        let freed = freed.saturating_sub(freed_before) as f64;
        start + Duration::from_secs_f64((freed / self.bytes_per_s).min(1e9))
    }

    pub(crate) fn advise(&mut self, now: Time, freed: u64, why: Why) -> Advice {
        let start = *self.start.get_or_insert((now, freed));
        let due = self.due(start, freed);
        if now < due {
            return Advice::wait(due.since(now), self.piece, why);
        }
        // Time that wasn't used isn't caught up with by more than a piece.
        if now.since(due).as_secs_f64() * self.bytes_per_s > self.piece as f64 {
            self.start = Some((now, freed));
        }
        Advice::free(self.piece, self.piece, why)
    }
}

// Discards that come long after, or never: no window, a rate.

/// The assumed cost of a byte until discards show it: a MiB in a millisecond, several times what
/// drives of today need.
const ASSUMED: SecondsPerByte = SecondsPerByte(1e-3 / (1 << 20) as f64);

/// The most bytes to free in a second, even where discards cost nothing.
const FASTEST: f64 = 64e9;

/// It is asked all the time while nothing comes. Where it wasn't for so long, discards
/// came: then two debts were given up anew, which takes longer than this.
const CAME: Duration = Duration::from_secs(3);

/// On which terms it is freed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeferredTerms {
    /// The share of the time that discards may take.
    pub(crate) share: Share,
    /// The cost of a byte by a device card.
    pub(crate) per_byte: Option<SecondsPerByte>,
    /// Bytes for each second that a deadline asks for, whatever they cost.
    pub(crate) at_least: f64,
    /// The discards will come; otherwise nothing is seen of them, and the rate doubles
    /// every second.
    pub(crate) expected: bool,
}

/// Frees at the rate at which discards, whenever they come, take no more than
/// the share that they may.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeferredRate {
    rate: Option<Rate>,
    busy: Seconds,
    bytes: Bytes,
    /// Since when nothing has come, and when it was last asked.
    silent: Option<(Time, Time)>,
}

impl DeferredRate {
    /// Returns how much may be freed now.
    pub(crate) fn advise(
        &mut self,
        now: Time,
        freed: u64,
        tick: &Tick,
        terms: DeferredTerms,
        sizes: &Sizes,
    ) -> Advice {
        self.busy += tick.busy;
        self.bytes += Bytes::from(tick.bytes);
        if self.bytes > Bytes(64e9) {
            (self.busy, self.bytes) = (self.busy / 2.0, self.bytes / 2.0);
        }
        // A few small discards of a journal tell nothing about a byte.
        let seen = (self.bytes > Bytes(64e6)).then(|| (self.busy + Seconds(0.001)) / self.bytes);
        let cost = seen.or(terms.per_byte).unwrap_or(ASSUMED);
        let mut bytes_per_s = terms.share.0 / cost.0.max(1e-15);
        let (since, _) = self
            .silent
            .filter(|(_, asked)| now.since(*asked) < CAME)
            .unwrap_or((now, now));
        self.silent = Some((since, now));
        if !terms.expected {
            bytes_per_s *= now.since(since).as_secs_f64().min(40.0).exp2();
        }
        let is_late = terms.at_least > bytes_per_s;
        let bytes_per_s = bytes_per_s.max(terms.at_least).min(FASTEST);
        // Ten pieces a second, but no extent is cut for that.
        let piece = ((bytes_per_s / 10.0) as u64).clamp(sizes.whole().0 as u64, u64::MAX >> 1);
        let rate = self
            .rate
            .get_or_insert_with(|| Rate::new(bytes_per_s, piece));
        rate.set(now, freed, bytes_per_s, piece);
        let why = match terms.expected {
            _ if is_late => Why::Deadline,
            true => Why::Holding,
            false => Why::Unpaced,
        };
        let mut advice = rate.advise(now, freed, why);
        advice.ask_again = advice.ask_again.min(Duration::from_secs(1));
        advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::Goal;
    use crate::work::Work;

    const MIB: u64 = 1 << 20;

    const SLEEP: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn small_files_share_a_chunk() {
        let mut fixed = Fixed::new(64 * MIB, SLEEP);
        // What is left of the chunk at once, until next to nothing is.
        for mib in 0..62 {
            let advice = fixed.advise(at(mib), mib * MIB);
            assert_eq!(advice.allow, (64 - mib) * MIB, "{mib}");
            assert_eq!(advice.piece, advice.allow);
        }
        for (now, left) in [(100, 100), (150, 50), (199, 1)] {
            let advice = fixed.advise(at(now), 62 * MIB);
            let wait = Duration::from_millis(left);
            assert_eq!((advice.allow, advice.ask_again), (0, wait), "{now}");
        }
        assert_eq!(fixed.advise(at(200), 62 * MIB).allow, 64 * MIB);
        assert_eq!(fixed.advise(at(201), 63 * MIB).allow, 63 * MIB);
    }

    #[test]
    fn more_than_a_chunk_is_two() {
        let mut fixed = Fixed::new(MIB, SLEEP);
        assert_eq!(fixed.advise(at(0), 0).allow, MIB);
        for now in [5, 105] {
            let advice = fixed.advise(at(now), 7 * MIB);
            assert_eq!((advice.allow, advice.ask_again), (0, SLEEP));
        }
        assert_eq!(fixed.advise(at(205), 7 * MIB).allow, MIB);
        // A counter that falls is none that rises after.
        assert_eq!(fixed.advise(at(206), 0).allow, MIB);
        assert_eq!(fixed.advise(at(207), 7 * MIB).allow, MIB);
    }

    #[test]
    fn files_that_do_not_fit_are_slept_for() {
        let mut fixed = Fixed::new(MIB, SLEEP);
        let (mut now, mut freed) = (0, 0);
        while freed < 90 * MIB {
            match fixed.advise(at(now), freed) {
                Advice {
                    allow: 0,
                    ask_again,
                    ..
                } => now += ask_again.as_millis() as u64,
                _ => freed += MIB * 9 / 10,
            }
        }
        assert!((8900..=9100).contains(&now), "{now} ms for 90 chunks");
    }

    #[test]
    fn the_smallest_chunk_is_a_byte() {
        let mut fixed = Fixed::new(0, Duration::ZERO);
        for freed in 0..10 {
            assert_eq!(fixed.advise(at(freed), freed).allow, 1);
        }
    }

    #[test]
    fn what_came_meanwhile_ends_the_doubling() {
        let sizes = Sizes::new(&Work::new(1 << 40, 1 << 12), &Goal::default(), None);
        let mut later = DeferredRate::default();
        let mut rate = |second: u64| {
            let now = Time::from_nanos(second * 1_000_000_000);
            let terms = DeferredTerms {
                share: Share(0.1),
                per_byte: None,
                at_least: 0.0,
                expected: false,
            };
            later.advise(now, 0, &Tick::default(), terms, &sizes);
            later.rate.as_ref().unwrap().bytes_per_s
        };
        let first = rate(1);
        let last = (2..8).map(&mut rate).last().unwrap();
        assert!(last > 60.0 * first, "{first} {last}");
        // Discards came, and then no more.
        let again = rate(20);
        assert!(again < 1.1 * first, "{first} {again}");
    }
}
