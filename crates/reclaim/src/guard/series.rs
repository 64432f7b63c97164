//! One throttled series of trims.

use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use pace::Policy;
use pace::trims::{FRESH_FOR, Moment, Ripe, Rule, UNKNOWN, in_order, runs};
use ssd::extents::Extents;

use super::orders;
use super::pick::window;
use super::status::Waits;
use super::trims::{TrimGuard, now};
use crate::ReclaimError;
use crate::event::{Event, Listener, Reply};
use crate::throttle::{Pacing, Summary};
use crate::trim::{Pieces, TrimError, is_met, refused};

/// How often orders are looked for.
const ORDERS_EVERY: Duration = Duration::from_millis(250);

impl TrimGuard {
    /// Trims the debt that is due. Returns whether anything was trimmed.
    pub(super) fn series(&mut self, due: &Due, listener: &mut Listener<'_>) -> bool {
        let trimmed = self.trimmed;
        let (outcome, summary) = self.trim_series(due, listener);
        if let Some(summary) = &summary {
            self.common.goals.judge(&summary.goals);
            if self.trimmed > trimmed {
                let (bytes, met) = (self.trimmed - trimmed, is_met(&summary.goals));
                self.common.trimmed(bytes, summary.elapsed, met);
            }
        }
        match outcome {
            Ok(()) | Err(TrimError::Reclaim(ReclaimError::Interrupted)) => {}
            Err(error) => self.common.note_once(listener, error.to_string()),
        }
        self.notify_trimmed(summary.as_ref(), listener);
        self.report(true);
        self.trimmed > trimmed
    }

    fn trim_series(
        &mut self,
        due: &Due,
        listener: &mut Listener<'_>,
    ) -> (Result<(), TrimError>, Option<Summary>) {
        let state = match self.common.state().try_clone_to_owned() {
            Ok(state) => state,
            Err(error) => return (Err(refused(self.common.path(), error)), None),
        };
        let mut looked = Instant::now();
        // A waiting order ends a series.
        let mut listener = |event: Event<'_>| {
            if matches!(event, Event::Progress(_)) && looked.elapsed() >= ORDERS_EVERY {
                looked = Instant::now();
                if orders::is_waiting(state.as_fd()) {
                    return Reply::Stop;
                }
            }
            listener(event)
        };
        let ripe = self.ripe_of(due);
        let (bytes, extents) = ripe
            .of(&self.debt)
            .fold((0, 0), |(bytes, extents), (pending, _)| {
                (bytes + pending.bytes(), extents + 1)
            });
        // Another file system may be mounted there meanwhile.
        let root = self.looker.directory().as_raw_fd();
        let pacing = Pacing {
            policy: due.policy,
            ..self.options.pacing.clone()
        };
        let begun = Pieces::begin(
            Path::new(&format!("/proc/self/fd/{root}")),
            bytes,
            extents,
            &pacing,
            &mut |event| self.common.hear_once(event, &mut listener),
        );
        let mut pieces = match begun {
            Ok(begun) => begun,
            Err(error) => return (Err(error), None),
        };
        let outcome = self.trim_pieces(&mut pieces, due, &mut listener);
        (outcome, Some(pieces.end()))
    }

    fn trim_pieces(
        &mut self,
        pieces: &mut Pieces,
        due: &Due,
        listener: &mut Listener<'_>,
    ) -> Result<(), TrimError> {
        loop {
            let queue = in_order(&self.debt, self.ripe_of(due));
            if queue.is_empty() {
                return Ok(());
            }
            let mut left: Extents = queue.iter().map(|pending| pending.range.clone()).collect();
            for piece in queue {
                while let Some(first) = left.within(piece.range.clone()).next() {
                    let allowed = pieces.grant(left.covered(), listener)?;
                    let range = window(self.debt.free(), &left, first, allowed, self.looker.cuts);
                    left.remove(range.clone());
                    self.trim_one(pieces, range, listener)?;
                    if Instant::now() >= self.clock.look_at {
                        break;
                    }
                }
                if Instant::now() >= self.clock.look_at {
                    break;
                }
            }
            self.look(listener);
            self.report(false);
            self.note(false, listener);
            // Another pace is due.
            let over = self.is_over();
            let ends = self.options.between.is_some_and(|hours| !hours.is_now());
            if due.before.is_none() && (over != due.hurried || ends && !over) {
                return Ok(());
            }
        }
    }

    fn trim_one(
        &mut self,
        pieces: &mut Pieces,
        range: std::ops::Range<u64>,
        listener: &mut Listener<'_>,
    ) -> Result<(), TrimError> {
        let holds = self.debt.free().overlap(range.clone());
        match pieces.trim(range.clone(), holds, listener)? {
            Ok(came) => {
                let busy = Duration::from_secs_f64(came.busy.max(0.0));
                self.worth.learn(came.discards, came.bytes, busy);
                self.busy += busy;
                self.discarded += came.bytes;
                self.discards += came.discards;
            }
            // The file system shrank: nothing is there any more.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {}
            // The machine slept, and the kernel may have ended the call early: it stays pending.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(refused(self.common.path(), error)),
        }
        let at = now();
        for paid in self.debt.remove(range) {
            if paid.since != UNKNOWN {
                self.ages.add(paid.bytes(), at.saturating_sub(paid.since));
            }
            self.trimmed += paid.bytes();
        }
        self.windows += 1;
        self.unnoted = true;
        Ok(())
    }
}

// Which debt is due now, how fast it is trimmed, and why the rest waits.

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
        self.rule().is_over(&self.debt, now())
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
        if !self.rule().is_due(&self.debt, now(), hurried) {
            return None;
        }
        let goal = pace::trims::goal(self.options.goal, hurried);
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
            false => self.rule().ripe(now(), hurried),
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
            None => self.rule().ripe(now(), due.hurried),
        }
    }

    fn rule(&self) -> Rule {
        Rule {
            fresh_for: FRESH_FOR,
            max_age: self.options.max_age,
            least_run: self.least_run(),
        }
    }
}
