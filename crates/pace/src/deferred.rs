//! Discards that come long after, or never: no window, a rate.

use std::time::Duration;

use ssd::Time;

use crate::meter::Tick;
use crate::pacer::{Advice, Why};
use crate::piece::Sizes;
use crate::quantity::{Bytes, Seconds, SecondsPerByte, Share};
use crate::simple::Rate;

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
