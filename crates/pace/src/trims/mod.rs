//! Which free space is trimmed, when, and in which order: what `guard` does, and its simulation.
//!
//! The oldest debt comes first, and of one age the longest extent. Space that was just freed is left
//! alone, because much of it is used again at once. A run that is too short to be worth a trim waits
//! longer than others ([`Worth`](crate::Worth)). Until then it may be used again, or more is freed
//! beside it.

use std::cmp::Reverse;
use std::time::Duration;

mod debt;

pub use debt::{Debt, Moment, Pending, Seen, UNKNOWN};

use crate::Goal;

/// Space is trimmed once it has been free for so long: much of it is used again sooner.
pub const FRESH_FOR: Duration = Duration::from_secs(2);

/// Less debt than this, in bytes, waits for [`LITTLE_FOR`], so that a few freed blocks cost no series of
/// trims.
pub const LITTLE: u64 = 64 << 20;

/// How long less debt than [`LITTLE`] waits.
pub const LITTLE_FOR: Duration = Duration::from_secs(30);

/// The slowdown at which space is trimmed while more waits than is allowed.
pub const HURRIED: f64 = 0.5;

/// A run that is too short to be worth a trim waits for this share of the greatest age. All
/// that have waited for almost as long go with it, in one series.
const SHORT_WAITS: f64 = 0.5;

const SHORT_GOES: f64 = 0.375;

/// When debt is trimmed.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Space is trimmed once it has been free for so long.
    pub fresh_for: Duration,
    /// Debt that is older is trimmed faster.
    pub max_age: Duration,
    /// A run of fewer bytes is short.
    pub least_run: u64,
}

impl Rule {
    /// The debt that a series trims now; `hurried`: short runs as well.
    pub fn ripe(&self, now: Moment, hurried: bool) -> Ripe {
        let ago = |span: Duration| now.saturating_sub(span.as_millis() as Moment);
        let before = ago(self.fresh_for);
        if hurried {
            return Ripe::all(before);
        }
        Ripe {
            before,
            least: self.least_run,
            short_before: ago(self.max_age.mul_f64(SHORT_GOES)).min(before),
        }
    }

    /// Whether enough is ripe for a series, or has waited for long enough.
    pub fn is_due(&self, debt: &Debt, now: Moment, hurried: bool) -> bool {
        let waited = |pending: &Pending, at_least: Duration| {
            u128::from(now.saturating_sub(pending.since)) >= at_least.as_millis()
        };
        let mut bytes = 0;
        self.ripe(now, hurried).of(debt).any(|(pending, short)| {
            if short {
                return waited(&pending, self.max_age.mul_f64(SHORT_WAITS));
            }
            bytes += pending.bytes();
            bytes >= LITTLE || waited(&pending, LITTLE_FOR.min(self.max_age / 2))
        })
    }

    /// Whether debt of known age is older than it should get.
    pub fn is_over(&self, debt: &Debt, now: Moment) -> bool {
        let age = debt.oldest().map_or(0, |at| now.saturating_sub(at));
        u128::from(age) > self.max_age.as_millis()
    }
}

/// The goal of a series of trims; `hurried`: while more waits than should.
pub fn goal(goal: Goal, hurried: bool) -> Goal {
    match hurried {
        true => Goal {
            slowdown: goal.slowdown.max(HURRIED),
            max_latency: None,
            ..goal
        },
        false => goal,
    }
}

/// The debt that is to be trimmed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ripe {
    /// Since this moment or before.
    pub before: Moment,
    /// A run of fewer bytes is short.
    pub least: u64,
    /// A short run is ripe only since this moment or before.
    pub short_before: Moment,
}

impl Ripe {
    /// All debt since a moment or before, however short its runs.
    pub fn all(before: Moment) -> Ripe {
        Ripe {
            before,
            least: 0,
            short_before: before,
        }
    }

    /// The ripe debt, ascending, and whether its run is short.
    pub fn of(self, debt: &Debt) -> impl Iterator<Item = (Pending, bool)> + '_ {
        runs(debt, self.least).filter(move |(pending, short)| {
            pending.since
                <= if *short {
                    self.short_before
                } else {
                    self.before
                }
        })
    }
}

/// All debt, ascending, and whether its run has fewer bytes than `least`. Pending extents that touch
/// are one run, whatever their ages.
pub fn runs(debt: &Debt, least: u64) -> impl Iterator<Item = (Pending, bool)> + '_ {
    let mut run = 0..0;
    debt.iter().map(move |pending| {
        if pending.range.start >= run.end {
            run = pending.range.start..end_of_run(debt, pending.range.end);
        }
        let short = run.end - run.start < least;
        (pending, short)
    })
}

/// Where the pending extents end that touch one that ends here.
fn end_of_run(debt: &Debt, mut end: u64) -> u64 {
    for next in debt.within(end..u64::MAX) {
        if next.range.start > end {
            break;
        }
        end = next.range.end;
    }
    end
}

/// Returns the ripe debt in the order of its trims: a known age comes first.
pub fn in_order(debt: &Debt, ripe: Ripe) -> Vec<Pending> {
    let mut all: Vec<Pending> = ripe.of(debt).map(|(pending, _)| pending).collect();
    all.sort_by_key(|pending| {
        let unknown = pending.since == UNKNOWN;
        (
            unknown,
            pending.since,
            Reverse(pending.bytes()),
            pending.range.start,
        )
    });
    all
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use ssd::extents::Extents;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// All of the first 100 MiB is free; what isn't listed was trimmed.
    fn debt(pending: &[(Range<u64>, Moment)]) -> Debt {
        let pending = pending.iter().map(|(range, since)| Pending {
            range: range.start * MIB..range.end * MIB,
            since: *since,
        });
        Debt::noted(Extents::from(0..100 * MIB), pending)
    }

    #[test]
    fn the_oldest_and_of_them_the_longest_is_first_and_unknown_age_last() {
        let debt = debt(&[
            (0..1, 5),
            (2..4, 5),
            (6..7, 3),
            (8..9, UNKNOWN),
            (20..40, 9),
        ]);
        let order: Vec<u64> = in_order(&debt, Ripe::all(8))
            .iter()
            .map(|pending| pending.range.start / MIB)
            .collect();
        assert_eq!(order, [6, 2, 0, 8]);
    }

    #[test]
    fn a_short_run_is_ripe_later_and_touching_extents_are_one_run() {
        let debt = debt(&[(0..1, 5), (2..3, 1), (4..6, 5), (6..8, 9), (8..10, 4)]);
        let found = |before, short_before| -> Vec<u64> {
            let ripe = Ripe {
                before,
                least: 5 * MIB,
                short_before,
            };
            let found = ripe.of(&debt).map(|(pending, _)| pending.range.start / MIB);
            found.collect()
        };
        assert_eq!(found(5, 0), [4, 8]);
        assert_eq!(found(9, 1), [2, 4, 6, 8]);
        let short: Vec<bool> = runs(&debt, 5 * MIB).map(|(_, short)| short).collect();
        assert_eq!(short, [true, true, false, false, false]);
        assert!(runs(&debt, 0).all(|(_, short)| !short));
    }
}
