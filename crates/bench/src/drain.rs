//! When a deletion is over: its discard debt is paid, or nobody will pay it.

use std::time::Duration;

use judge::counting::{SIGNIFICANT, UNPAID, counted};
use record::{DeviceInfo, DeviceInterval};

/// Quiet time after the last significant discard before a deletion counts as over.
pub(crate) const QUIET: Duration = Duration::from_secs(2);

/// Follows one deletion.
#[derive(Debug, Clone)]
pub(crate) struct Drain {
    limit: Duration,
    quiet: Duration,
    discards_expected: bool,
    /// Whether what is freed has to be discarded.
    has_debt: bool,
    /// Whether all discards are others'.
    sends_none: bool,
    /// Most that an interval discarded before: the foreground's own doing.
    background_bytes: u64,
    freed_bytes: u64,
    discarded_bytes: u64,
    last_significant: Option<Duration>,
    returned: Option<Duration>,
    /// The time since which nothing is pending.
    paid: Option<Duration>,
}

/// How far a deletion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It goes on.
    Waiting,
    /// All that was freed has been discarded, and the device has been quiet since.
    Paid,
    /// Discards came, and the device has been quiet since. How much was pending isn't known.
    Quiet,
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
            quiet: QUIET,
            discards_expected,
            has_debt: true,
            sends_none: false,
            background_bytes: 0,
            freed_bytes: 0,
            discarded_bytes: 0,
            last_significant: None,
            returned: None,
            paid: None,
        }
    }

    /// The same for a deletion without a measurable debt, which ends when the discards do. A
    /// continuous one reuses much of its space in new files before it could be discarded.
    /// FITRIM also discards what other programs had freed.
    pub(crate) fn without_debt(limit: Duration, discards_expected: bool) -> Self {
        Drain {
            has_debt: false,
            ..Drain::new(limit, discards_expected)
        }
    }

    /// The same, over after so much quiet time.
    pub(crate) fn quiet_for(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }

    /// Nothing was freed after all, so no discards have to come.
    pub(crate) fn expect_none(&mut self) {
        self.discards_expected = false;
    }

    /// Intervals with at most so many discarded bytes are no sign of the deletion. A
    /// foreground that frees space itself (saves, appends to logs) has such all the time, and
    /// would never be quiet.
    pub(crate) fn beside(mut self, background_bytes: u64) -> Self {
        self.background_bytes = background_bytes;
        self
    }

    /// The same for a deletion that sends no discards: those that come are others', and nobody
    /// waits for their end.
    pub(crate) fn sending_none(mut self) -> Self {
        self.sends_none = true;
        self
    }

    /// Adds an interval that ended at `now`.
    pub(crate) fn interval(&mut self, now: Duration, freed_bytes: u64, discarded_bytes: u64) {
        if self.sends_none {
            self.freed_bytes += freed_bytes;
            return;
        }
        self.freed_bytes += freed_bytes;
        self.discarded_bytes += discarded_bytes;
        let whole = self.freed_bytes.max(self.discarded_bytes);
        let significant = discarded_bytes as f64 >= SIGNIFICANT * whole as f64;
        if discarded_bytes > self.background_bytes && significant {
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

    /// When the debt was paid; `None` while it isn't, or where nothing was pending.
    pub(crate) fn paid_at(&self) -> Option<Duration> {
        let paid = self
            .paid
            .filter(|_| self.has_debt && self.freed_bytes > 0)?;
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
        let quiet = now.saturating_sub(quiet_since) >= self.quiet;
        if self.has_debt && self.is_paid() && quiet {
            State::Paid
        } else if !self.has_debt && self.last_significant.is_some() && quiet {
            State::Quiet
        } else if !self.discards_expected && self.last_significant.is_none() && quiet {
            State::NoneExpected
        } else if now.saturating_sub(returned) < self.limit {
            State::Waiting
        } else if self.has_debt && self.is_paid() {
            // It was never quiet, but nothing is missing.
            State::Paid
        } else if !self.has_debt && self.last_significant.is_some() {
            State::Quiet
        } else {
            State::GaveUp
        }
    }
}

/// Discarded bytes since the deletion began, by device.
#[derive(Debug, Clone)]
pub(crate) struct Discarded {
    devices: Vec<DeviceInfo>,
    bytes: Vec<u64>,
    counted: u64,
}

impl Discarded {
    pub(crate) fn of(devices: &[DeviceInfo]) -> Self {
        Discarded {
            devices: devices.to_vec(),
            bytes: vec![0; devices.len()],
            counted: 0,
        }
    }

    /// Adds an interval; returns the bytes that it adds to those that count.
    pub(crate) fn add(&mut self, interval: &[DeviceInterval]) -> u64 {
        for (bytes, row) in self.bytes.iter_mut().zip(interval) {
            *bytes += row.discard_bytes;
        }
        let before = self.counted;
        self.counted = self.counted.max(self.total());
        self.counted - before
    }

    /// All bytes that count.
    pub(crate) fn bytes(&self) -> u64 {
        self.counted
    }

    fn total(&self) -> u64 {
        let counted = counted(&self.devices, &self.bytes);
        counted.sum(|i| self.bytes[i]) as u64
    }
}

#[cfg(test)]
mod tests {
    use record::DeviceKind;

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
    fn discards_of_others_keep_nobody_waiting_where_the_mount_sends_none() {
        let mut drain = Drain::new(60 * S, false).sending_none();
        drain.interval(S, 8 * GIB, GIB);
        drain.returned(S);
        drain.interval(2 * S, 0, GIB);
        drain.interval(3 * S, 0, GIB);
        assert_eq!(drain.state(3 * S), State::NoneExpected);
        assert_eq!(drain.paid_at(), None);
    }

    #[test]
    fn a_deletion_that_frees_nothing_owes_nothing() {
        let mut drain = Drain::new(60 * S, true);
        drain.returned(S);
        assert_eq!(drain.state(3 * S), State::Paid);
        assert_eq!(drain.paid_at(), None);
    }

    #[test]
    fn without_a_debt_quiet_after_discards_is_the_end() {
        let mut drain = Drain::without_debt(60 * S, true);
        drain.interval(S, 8 * GIB, GIB);
        drain.returned(2 * S);
        assert_eq!(drain.state(3 * S), State::Waiting);
        drain.interval(3 * S, 0, GIB);
        assert_eq!(drain.state(4 * S), State::Waiting);
        assert_eq!(drain.state(5 * S), State::Quiet);
        assert_eq!(drain.paid_at(), None);
    }

    #[test]
    fn without_a_debt_discards_are_still_waited_for_where_they_are_expected() {
        let mut drain = Drain::without_debt(60 * S, true);
        drain.interval(S, 8 * GIB, 0);
        drain.returned(S);
        assert_eq!(drain.state(30 * S), State::Waiting);
        assert_eq!(drain.state(61 * S), State::GaveUp);
        let mut none = Drain::without_debt(60 * S, false);
        none.returned(S);
        assert_eq!(none.state(3 * S), State::NoneExpected);
    }

    #[test]
    fn a_foreground_that_frees_space_itself_keeps_nobody_waiting() {
        let mut drain = Drain::new(60 * S, true).beside(GIB / 2);
        drain.interval(S, 8 * GIB, 8 * GIB);
        drain.returned(S);
        for i in 2..=3 {
            drain.interval(i * S, 0, GIB / 2);
        }
        assert_eq!(drain.state(3 * S), State::Paid);
        // More than ever before the deletion is the deletion's.
        drain.interval(4 * S, 0, GIB);
        assert_eq!(drain.state(4 * S), State::Waiting);
    }

    #[test]
    fn what_is_paid_is_not_given_up() {
        let mut drain = Drain::new(10 * S, true);
        drain.interval(S, 8 * GIB, 8 * GIB);
        drain.returned(S);
        for i in 2..=11 {
            assert_eq!(drain.state(i * S - S / 2), State::Waiting);
            drain.interval(i * S, 0, GIB);
        }
        assert_eq!(drain.state(11 * S), State::Paid);
    }

    fn device(name: &str, level: u32, leaf: bool) -> DeviceInfo {
        DeviceInfo {
            kind: DeviceKind::Loop,
            level,
            leaf,
            ..DeviceInfo::disk(name)
        }
    }

    fn discards(bytes: &[u64]) -> Vec<DeviceInterval> {
        let row = |&discard_bytes| DeviceInterval {
            discard_bytes,
            ..DeviceInterval::default()
        };
        bytes.iter().map(row).collect()
    }

    #[test]
    fn members_of_a_raid_add_up() {
        let tree = [
            device("md0", 0, false),
            device("a", 1, true),
            device("b", 1, true),
        ];
        let mut discarded = Discarded::of(&tree);
        assert_eq!(discarded.add(&discards(&[0, 10, 20])), 30);
        assert_eq!(discarded.add(&discards(&[0, 5, 0])), 5);
        assert_eq!(discarded.bytes(), 35);
    }

    #[test]
    fn a_leaf_that_discards_later_than_the_loop_device_above_counts_alone() {
        let tree = [device("loop0", 0, false), device("sda", 1, true)];
        let mut discarded = Discarded::of(&tree);
        discarded.add(&discards(&[1000, 1000]));
        discarded.add(&discards(&[1000, 0]));
        assert_eq!(discarded.bytes(), 1000);
        discarded.add(&discards(&[0, 1000]));
        assert_eq!(discarded.bytes(), 2000);
    }

    #[test]
    fn where_the_leaf_sees_nothing_the_loop_device_counts() {
        let tree = [device("loop0", 0, false), device("sda", 1, true)];
        let mut discarded = Discarded::of(&tree);
        assert_eq!(discarded.add(&discards(&[1000, 0])), 1000);
        assert_eq!(discarded.add(&discards(&[1000, 8])), 1000);
    }
}
