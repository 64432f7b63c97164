//! The end of a deletion: waits for its last discards, and looks at others once more if it is not
//! certain what they lost.

use std::time::{Duration, Instant};

use pace::{Account, GoalResult, Kept, Witness};

use super::{LONG_BASELINE, Summary, Throttle, counters_failed};
use crate::Result;
use crate::event::Listener;

/// The longest wait for discards that may belong to another process.
const LONGEST_LAST: Duration = Duration::from_secs(4);

/// How often the counters are read to learn whether discards are done, and after how long
/// without any they count as done.
pub(super) const SETTLE: Duration = Duration::from_micros(500);
const SILENT: Duration = Duration::from_millis(50);

/// A file system sends the first discards of a commit within this.
const SENT_WITHIN: Duration = Duration::from_millis(50);

/// As [`SILENT`], at the end and while nothing is in flight. ext4 sends its discards from a worker
/// that the commit wakes, XFS from the end of the log's I/O (Linux 6.18).
const SILENT_LAST: Duration = Duration::from_millis(20);

/// How long a discard may take, in seconds, before any was measured.
const UNKNOWN: f64 = 0.05;

/// How often others are looked at after it.
const EACH_LOOK: Duration = Duration::from_millis(10);

impl Throttle {
    /// Waits until the discards are done that were sent and not waited for. Returns false where
    /// that stays unknown because another process writes all the time.
    pub(crate) fn settle(&mut self, listener: &mut Listener<'_>) -> Result<bool> {
        let usual = self.pacer.state().service_s.unwrap_or(UNKNOWN) * 8.0;
        let silent = SILENT.max(Duration::from_secs_f64(usual.clamp(0.0, 2.0)));
        let mut before = self.monitor.counters.discards().commands;
        let began = Instant::now();
        let mut changed = began;
        let mut quiet = 0;
        // Beside a process that writes all the time, a silence of discards must do.
        while quiet < 2 && changed.elapsed() < silent && began.elapsed() < LONGEST_LAST {
            self.pause(SETTLE, listener)?;
            self.monitor.counters.read().map_err(counters_failed)?;
            let now = self.monitor.counters.discards().commands;
            if now != before {
                (before, changed) = (now, Instant::now());
            }
            quiet = match self.monitor.counters.writes_in_flight() {
                Some(0) => quiet + 1,
                _ => 0,
            };
        }
        Ok(quiet >= 2)
    }

    /// Waits for the discards that are sent within a moment, and gives up those that are not.
    pub(crate) fn settle_debt(&mut self, listener: &mut Listener<'_>) -> Result<()> {
        self.pause(SENT_WITHIN, listener)?;
        self.settle(listener)?;
        self.ledger.settled = true;
        self.observe()
    }

    /// Waits until the debt is paid or written off, and returns what the deletion came to. If it is not
    /// certain whether a goal was met, it looks at others for 3 s more.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`] if `listener` ends it, or [`ReclaimError::Io`] if counters or a
    /// commit fail.
    ///
    /// [`ReclaimError::Interrupted`]: crate::ReclaimError::Interrupted
    /// [`ReclaimError::Io`]: crate::ReclaimError::Io
    pub fn finish(mut self, listener: &mut Listener<'_>) -> Result<Summary> {
        self.pay(listener)?;
        self.report(listener, true)?;
        let mut summary = self.summary();
        let is_unsure = |goal: &GoalResult| {
            let on_others = matches!(goal.witness, Some(Witness::Readers | Witness::Flushers));
            goal.kept == Kept::Unsure && on_others
        };
        if summary.goals.iter().any(is_unsure) {
            self.look_afterwards(listener);
            if let (Some(account), Some(goal)) = (&self.account, &self.goal) {
                let goals = account.judge(goal, summary.elapsed);
                summary = summary.with_a_look_after(goals, &account.observed());
            }
        }
        Ok(summary)
    }

    /// Looks at the others for a while without the deletion. An interrupt ends only the look.
    fn look_afterwards(&mut self, listener: &mut Listener<'_>) {
        self.account.as_mut().map(Account::ends);
        let began = Instant::now();
        while began.elapsed() < LONG_BASELINE
            && self.pause(EACH_LOOK, listener).is_ok()
            && self.observe().is_ok()
        {}
    }

    /// Waits until the debt is paid or written off.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn pay(&mut self, listener: &mut Listener<'_>) -> Result<()> {
        self.wait(0, listener).map(drop)
    }

    /// Waits until no more discards come, where the devices counted more than was freed. Discards
    /// of other free space, or of another process, may have come before this deletion's last one.
    pub(crate) fn last_discards(&mut self, listener: &mut Listener<'_>) -> Result<()> {
        let began = Instant::now();
        let mut before = self.monitor.counters.discards();
        let mut changed = began;
        // The kernel counts a discard when it is done.
        let usual = self.pacer.state().service_s.unwrap_or(0.0) * 4.0;
        let silent = SILENT.max(Duration::from_secs_f64(usual.clamp(0.0, 1.0)));
        let mut in_flight = true;
        while self.is_paced()
            && before.bytes > self.ledger.due()
            && changed.elapsed() < if in_flight { silent } else { SILENT_LAST }
            && began.elapsed() < LONGEST_LAST
        {
            self.pause(SETTLE * 8, listener)?;
            self.monitor.counters.read().map_err(counters_failed)?;
            let now = self.monitor.counters.discards();
            in_flight = self.monitor.counters.writes_in_flight() != Some(0);
            if now.commands != before.commands {
                (before, changed) = (now, Instant::now());
            }
        }
        Ok(())
    }
}
