//! Which debt is due now, how fast it is trimmed, and why the rest waits.

use std::time::Duration;

use pace::{Goal, Policy};

use super::HURRIED;
use super::debt::{Moment, Pending};
use super::pick::{Ripe, runs};
use super::status::Waits;
use super::trims::{TrimGuard, now};

/// Space is trimmed once it has been free for so long: much of it is used again sooner.
pub const FRESH_FOR: Duration = Duration::from_secs(2);

/// Less debt than this, in bytes, waits for [`LITTLE_FOR`], so that a few freed blocks cost no series of
/// trims.
pub const LITTLE: u64 = 64 << 20;
/// How long less debt than [`LITTLE`] waits.
pub const LITTLE_FOR: Duration = Duration::from_secs(30);

/// A run that is too short to be worth a trim waits for this share of `max-age`. All
/// that have waited for almost as long go with it, in one series.
const SHORT_WAITS: f64 = 0.5;
const SHORT_GOES: f64 = 0.375;

/// A series of trims.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub(super) policy: Policy,
    /// All debt since before this is trimmed; `None`: what is ripe, which moves on with the time.
    pub(super) before: Option<Moment>,
    /// Faster than the goal allows.
    pub(super) hurried: bool,
}

impl Due {
    pub(super) fn up_to(before: Moment, policy: Policy) -> Due {
        Due {
            policy,
            before: Some(before),
            hurried: false,
        }
    }
}

impl TrimGuard {
    pub(super) fn is_over(&self) -> bool {
        let age = self.debt.oldest().map_or(0, |at| now().saturating_sub(at));
        u128::from(age) > self.options.max_age.as_millis()
            || self.debt.known_bytes() as f64 > self.looker.size as f64 * self.options.most
    }

    /// Returns the debt that is due now, and how it is trimmed.
    pub(super) fn due(&self) -> Option<Due> {
        if self.debt.bytes() == 0 {
            return None;
        }
        if self.common.orders.drain {
            return Some(Due::up_to(self.drained_up_to, Policy::Burst));
        }
        let hurried = self.is_over();
        if !hurried && self.is_outside_hours() {
            return None;
        }
        if !self.is_worth_a_series(hurried) {
            return None;
        }
        let goal = self.options.goal;
        let goal = match hurried {
            true => Goal {
                slowdown: goal.slowdown.max(HURRIED),
                max_latency: None,
                deadline: goal.deadline,
            },
            false => goal,
        };
        Some(Due {
            policy: Policy::Adaptive(goal),
            before: None,
            hurried,
        })
    }

    fn is_outside_hours(&self) -> bool {
        self.options.between.is_some_and(|hours| !hours.is_now())
    }

    /// Returns why debt waits.
    pub(super) fn waits(&self) -> Waits {
        let mut waits = Waits::default();
        let hurried = self.is_over();
        let ripe = match self.common.orders.drain {
            true => Ripe::all(self.drained_up_to),
            false => self.ripe(hurried),
        };
        let mut ripe_bytes = 0;
        for (pending, short) in runs(&self.debt, ripe.least) {
            match () {
                () if pending.since > ripe.before => waits.fresh_bytes += pending.bytes(),
                () if short && pending.since > ripe.short_before => {
                    waits.short_bytes += pending.bytes()
                }
                () => ripe_bytes += pending.bytes(),
            }
        }
        match () {
            () if self.due().is_some() => waits.due_bytes = ripe_bytes,
            () if !hurried && self.is_outside_hours() => waits.hours_bytes = ripe_bytes,
            () => waits.little_bytes = ripe_bytes,
        }
        waits
    }

    /// Runs of fewer bytes are short.
    pub(super) fn least_run(&self) -> u64 {
        let measured = || self.worth.least_run();
        self.options.min_run.unwrap_or_else(measured)
    }

    /// Returns the debt that a series trims now.
    pub(super) fn ripe_of(&self, due: &Due) -> Ripe {
        match due.before {
            Some(before) => Ripe::all(before),
            None => self.ripe(due.hurried),
        }
    }

    fn ripe(&self, hurried: bool) -> Ripe {
        let now = now();
        let before = now.saturating_sub(FRESH_FOR.as_millis() as Moment);
        if hurried {
            return Ripe::all(before);
        }
        let short = self.options.max_age.mul_f64(SHORT_GOES);
        Ripe {
            before,
            least: self.least_run(),
            short_before: now.saturating_sub(short.as_millis() as Moment).min(before),
        }
    }

    /// Whether enough is ripe, or has waited for long enough.
    fn is_worth_a_series(&self, hurried: bool) -> bool {
        let (now, max_age) = (now(), self.options.max_age);
        let waited = |pending: &Pending, at_least: Duration| {
            u128::from(now.saturating_sub(pending.since)) >= at_least.as_millis()
        };
        let mut bytes = 0;
        self.ripe(hurried).of(&self.debt).any(|(pending, short)| {
            if short {
                return waited(&pending, max_age.mul_f64(SHORT_WAITS));
            }
            bytes += pending.bytes();
            bytes >= LITTLE || waited(&pending, LITTLE_FOR.min(max_age / 2))
        })
    }
}
