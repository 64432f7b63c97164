//! When a deletion is over: its discard debt is paid, or nobody will pay it.

use std::time::Duration;

use timeline::judge::counting::{SIGNIFICANT, UNPAID};

/// Quiet time after the last significant discard before a deletion counts as over.
const QUIET: Duration = Duration::from_secs(2);

/// Follows one deletion.
#[derive(Debug, Clone)]
pub(crate) struct Drain {
    limit: Duration,
    discards_expected: bool,
    freed_bytes: u64,
    discarded_bytes: u64,
    last_significant: Option<Duration>,
    returned: Option<Duration>,
    /// Since when nothing is owed.
    paid: Option<Duration>,
}

/// How far a deletion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It goes on.
    Waiting,
    /// All that was freed has been discarded, and the device has been quiet since.
    Paid,
    /// The limit has passed, and discards are still missing.
    GaveUp,
    /// No discards came where none were expected.
    NoneExpected,
}

impl Drain {
    /// Follows a deletion that begins now. `limit` counts from the last deletion
    /// call's return; where no discards are expected, two quiet seconds are enough.
    pub(crate) fn new(limit: Duration, discards_expected: bool) -> Self {
        Drain {
            limit,
            discards_expected,
            freed_bytes: 0,
            discarded_bytes: 0,
            last_significant: None,
            returned: None,
            paid: None,
        }
    }

    /// Adds an interval that ended at `now`.
    pub(crate) fn interval(&mut self, now: Duration, freed_bytes: u64, discarded_bytes: u64) {
        self.freed_bytes += freed_bytes;
        self.discarded_bytes += discarded_bytes;
        let whole = self.freed_bytes.max(self.discarded_bytes);
        if discarded_bytes > 0 && discarded_bytes as f64 >= SIGNIFICANT * whole as f64 {
            self.last_significant = Some(now);
        }
        self.paid = self.is_paid().then(|| self.paid.unwrap_or(now));
    }

    /// The last call (and the forced commit, if any) has returned.
    pub(crate) fn returned(&mut self, now: Duration) {
        self.returned = Some(now);
    }

    /// Bytes freed and not yet discarded.
    pub(crate) fn debt_bytes(&self) -> u64 {
        self.freed_bytes.saturating_sub(self.discarded_bytes)
    }

    /// When the debt was paid; `None` while it isn't, or where nothing was owed.
    pub(crate) fn paid_at(&self) -> Option<Duration> {
        let paid = self.paid.filter(|_| self.freed_bytes > 0)?;
        self.returned.map(|returned| paid.max(returned))
    }

    fn is_paid(&self) -> bool {
        self.debt_bytes() as f64 <= UNPAID * self.freed_bytes as f64
    }

    /// Whether the debt is paid or gone.
    pub(crate) fn state(&self, now: Duration) -> State {
        let Some(returned) = self.returned else {
            return State::Waiting;
        };
        let quiet_since = self
            .last_significant
            .map_or(returned, |at| at.max(returned));
        let quiet = now.saturating_sub(quiet_since) >= QUIET;
        if self.is_paid() && quiet {
            State::Paid
        } else if !self.discards_expected && self.last_significant.is_none() && quiet {
            State::NoneExpected
        } else if now.saturating_sub(returned) >= self.limit {
            State::GaveUp
        } else {
            State::Waiting
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);
    const GIB: u64 = 1 << 30;

    #[test]
    fn paid_two_seconds_after_the_last_discard() {
        let mut drain = Drain::new(60 * S, true);
        drain.interval(S, 8 * GIB, 0);
        drain.returned(S);
        drain.interval(2 * S, 0, 4 * GIB);
        assert_eq!(drain.debt_bytes(), 4 * GIB);
        drain.interval(3 * S, 0, 4 * GIB - (1 << 20));
        assert_eq!(drain.state(4 * S), State::Waiting);
        assert_eq!(drain.state(5 * S), State::Paid);
        assert_eq!(drain.paid_at(), Some(3 * S));
    }

    #[test]
    fn a_journals_own_discards_keep_nobody_waiting() {
        let mut drain = Drain::new(60 * S, true);
        drain.interval(S, 8 * GIB, 8 * GIB);
        drain.returned(S);
        drain.interval(2 * S, 0, 4096);
        assert_eq!(drain.state(3 * S), State::Paid);
    }

    #[test]
    fn discards_that_never_come_are_waited_for_until_the_limit() {
        let mut drain = Drain::new(60 * S, true);
        drain.interval(S, 8 * GIB, 0);
        assert_eq!(drain.state(100 * S), State::Waiting, "calls still running");
        drain.returned(S);
        assert_eq!(drain.state(60 * S), State::Waiting);
        assert_eq!(drain.state(61 * S), State::GaveUp);
    }

    #[test]
    fn where_none_are_expected_two_quiet_seconds_do() {
        let mut drain = Drain::new(60 * S, false);
        drain.interval(S, 8 * GIB, 0);
        drain.returned(S);
        assert_eq!(drain.state(2 * S), State::Waiting);
        assert_eq!(drain.state(3 * S), State::NoneExpected);
    }

    #[test]
    fn a_deletion_that_frees_nothing_owes_nothing() {
        let mut drain = Drain::new(60 * S, true);
        drain.returned(S);
        assert_eq!(drain.state(3 * S), State::Paid);
        assert_eq!(drain.paid_at(), None);
    }
}
