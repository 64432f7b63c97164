//! One throttled series of trims.

use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use ssd::extents::Extents;

use super::debt::UNKNOWN;
use super::due::Due;
use super::orders;
use super::pick::{in_order, window};
use super::trims::{TrimGuard, now};
use crate::ReclaimError;
use crate::event::{Event, Listener, Reply};
use crate::throttle::{Pacing, Summary};
use crate::trim::{Pieces, TrimError, refused};

/// How often orders are looked for.
const ORDERS_EVERY: Duration = Duration::from_millis(250);

impl TrimGuard {
    /// Trims the debt that is due. Returns whether anything was trimmed.
    pub(super) fn series(&mut self, due: &Due, listener: &mut Listener<'_>) -> bool {
        let trimmed = self.trimmed;
        let (outcome, summary) = self.trim_series(due, listener);
        if let Some(summary) = &summary {
            self.common.goals.judge(summary);
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
