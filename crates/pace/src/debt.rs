//! Freed space that is still to be discarded.
//!
//! `fsync` returns before discards are done: ext4 and XFS return before their kernel threads issue
//! them. A program can observe only the debt: bytes freed less bytes discarded.
//!
//! - The debt must not trust each discard: others discard too, and their surplus doesn't pay for
//!   us.
//! - The debt must not wait for ever: shared extents, short ranges and layers that swallow discards
//!   never pay.

use std::time::Duration;

use ssd::Time;

use crate::work::{GROUP, SMALLEST_GROUP, Work};

/// When a file system sends the discards of what was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DebtMode {
    /// After the commit or the log's checkpoint, or within it: ext4, XFS,
    /// btrfs with `discard=sync`, f2fs.
    Commit,
    /// Long after, at its own pace: btrfs with `discard=async` waits 120 s. The
    /// debt isn't waited for; what is freed is paced by its rate.
    Deferred,
    /// Never: mounted without, or the device takes none. Nothing is paced.
    Never,
}

/// The share of what was freed that counts as nothing: journals and file systems
/// round.
const ROUNDING: f64 = 1.0 / 128.0;

/// The least time without any payment until a commit is forced.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest.
const LONGEST_PATIENCE: Duration = Duration::from_secs(15);

/// The longest extent that can be free in part and isn't discarded before the rest is, in bytes. It
/// is twice the longest of btrfs (256 MiB, preallocated), for two can lie together.
const LONGEST_HELD: f64 = (512 << 20) as f64;

/// Freed space that is still to be discarded.
///
/// The debt expects that a share of what is freed will be discarded, at first all of it. When
/// nothing was paid for a while, even after two forced commits, it writes off the rest. The share
/// learns from that. After two write-offs in a row without any payment, it expects nothing until
/// discards come.
#[derive(Debug, Clone)]
pub struct Debt {
    mode: DebtMode,
    /// Bytes, fractions of them included.
    pending: f64,
    /// The highest debt since it was last paid, in bytes, and the bytes freed for it.
    peak: f64,
    raw: f64,
    freed: u64,
    exempt: u64,
    discarded: u64,
    given_up: f64,
    /// The share of freed bytes that is expected to be discarded.
    expected: f64,
    /// Paid since the last write-off.
    paid: f64,
    /// Write-offs in a row without any payment.
    unanswered: u32,
    /// The last payment, new debt, or forced commit.
    changed: Time,
    /// Forced commits reported so far, and their number when the waiting began.
    commits: u64,
    commits_before: u64,
    patience: Duration,
    begun: bool,
}

/// The next step about a debt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// No discard is pending.
    Paid,
    /// Wait for more discards.
    Wait,
    /// Force a commit.
    Commit,
}

impl Debt {
    /// Creates an empty debt.
    pub fn new(mode: DebtMode) -> Debt {
        Debt {
            mode,
            pending: 0.0,
            peak: 0.0,
            raw: 0.0,
            freed: 0,
            exempt: 0,
            discarded: 0,
            given_up: 0.0,
            expected: 1.0,
            paid: 0.0,
            unanswered: 0,
            changed: Time::ZERO,
            commits: 0,
            commits_before: 0,
            patience: PATIENCE,
            begun: false,
        }
    }

    /// Returns the bytes that are still expected to be discarded.
    pub fn bytes(&self) -> u64 {
        self.pending.round() as u64
    }

    /// Returns the bytes whose discards were given up: shared, swallowed, reused at once.
    pub fn written_off(&self) -> u64 {
        self.given_up.round() as u64
    }

    /// Returns whether the file system sends discards at all, as far as the debt can observe.
    pub fn is_answered(&self) -> bool {
        self.mode != DebtMode::Never && self.unanswered < 2
    }

    /// Returns the share of the last debt that is still pending, and whether any was paid.
    pub(crate) fn share_left(&self) -> (f64, bool) {
        let left = if self.peak > 0.0 {
            self.pending / self.peak
        } else {
            0.0
        };
        (left, self.pending < self.peak)
    }

    /// Returns how long no payment, new debt or forced commit has come.
    pub(crate) fn silent(&self, now: Time) -> Duration {
        now.since(self.changed)
    }

    /// Takes in the counters of one moment: bytes freed so far, of them those
    /// that are exempt, and bytes discarded by the device, by whomever. Returns
    /// how many of the discarded bytes paid for ours.
    pub fn update(&mut self, now: Time, freed: u64, exempt: u64, discarded: u64) -> u64 {
        if !self.begun {
            self.begun = true;
            (self.freed, self.exempt, self.discarded) = (freed, exempt, discarded);
            self.changed = now;
        }
        let freed_now = freed.saturating_sub(self.freed);
        let exempt_now = exempt.saturating_sub(self.exempt).min(freed_now);
        let came = discarded.saturating_sub(self.discarded) as f64;
        (self.freed, self.exempt, self.discarded) = (freed, exempt, discarded);
        let new = freed_now - exempt_now;
        if new > 0 {
            self.owe(now, new);
        }
        if came > 0.0 { self.pay(now, came) } else { 0 }
    }

    fn owe(&mut self, now: Time, bytes: u64) {
        if !self.is_answered() {
            if self.mode != DebtMode::Never {
                self.given_up += bytes as f64;
            }
            return;
        }
        if self.pending <= 0.0 {
            self.peak = 0.0;
            self.raw = 0.0;
            self.commits_before = self.commits;
        }
        let expected = bytes as f64 * self.expected;
        self.pending += expected;
        self.raw += bytes as f64;
        self.given_up += bytes as f64 - expected;
        self.peak = self.peak.max(self.pending);
        self.changed = self.changed.max(now);
        self.round();
    }

    /// Clears a debt that is a rounding error: journals and file systems round.
    fn round(&mut self) {
        if self.pending <= self.raw * ROUNDING {
            self.pending = 0.0;
        }
    }

    fn pay(&mut self, now: Time, came: f64) -> u64 {
        let paid = came.min(self.pending);
        self.pending -= paid;
        self.paid += paid;
        // Others discard too: only a little of the surplus is a sign that more
        // of ours is discarded than was thought.
        let surplus = (came - paid).min(paid);
        if surplus > 0.0 {
            self.expected = (self.expected * (1.0 + 0.1 * surplus / (paid + 1.0))).min(1.0);
        }
        if self.mode != DebtMode::Never && self.unanswered >= 2 {
            // They come after all. What was freed since isn't told apart.
            self.expected = 1.0;
        }
        if paid > self.peak * ROUNDING || self.unanswered >= 2 {
            self.unanswered = 0;
            self.changed = now;
            self.commits_before = self.commits;
        }
        self.round();
        paid as u64
    }

    /// Returns the next step, after `commits` forced commits.
    ///
    /// It waits until the debt was silent for eight round trips, but at least 2 s and at most 15 s.
    /// Then it asks for a commit, and waits again. After two commits without payment it writes off
    /// the rest. It does so, too, if the caller forces no commit for as long again.
    pub fn duty(&mut self, now: Time, commits: u64, round_trip: Duration) -> Duty {
        if commits > self.commits {
            self.commits = commits;
            self.changed = self.changed.max(now);
        }
        if self.mode == DebtMode::Deferred || self.pending <= 0.0 {
            return Duty::Paid;
        }
        let asked = self.patience.max(round_trip * 8).min(LONGEST_PATIENCE);
        if now.since(self.changed) < asked {
            return Duty::Wait;
        }
        if self.commits.saturating_sub(self.commits_before) < 2
            && now.since(self.changed) < asked * 2
        {
            return Duty::Commit;
        }
        self.write_off();
        Duty::Paid
    }

    /// Excuses the time until now: nobody looked, so that it counts as no silence.
    pub(crate) fn excuse(&mut self, now: Time) {
        self.changed = self.changed.max(now);
    }

    /// Ends the wait after all discards that were due have come. A debt that is left waits for more
    /// to be freed. It is written off if it is above [`LONGEST_HELD`], or if nothing is left to
    /// free.
    pub(crate) fn settle(&mut self, nothing_left: bool) {
        if self.pending > LONGEST_HELD || self.pending > 0.0 && nothing_left {
            self.write_off();
        }
    }

    fn write_off(&mut self) {
        let total = self.paid + self.pending;
        let share = if total > 0.0 { self.paid / total } else { 0.0 };
        self.given_up += self.pending;
        if self.paid > 0.0 {
            // A piece that was all of one kind tells little of the others.
            self.expected = (self.expected * share.max(0.25)).clamp(0.005, 1.0);
            self.unanswered = 0;
        } else {
            self.unanswered += 1;
        }
        self.pending = 0.0;
        self.paid = 0.0;
    }
}

// Second discards: btrfs discards block groups whole that have become empty, whatever was
// discarded in them before.

/// The bytes freed, and those of them discarded a second time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecondDiscards {
    /// So many bytes are assumed to come a second time before any did; `None` where none can.
    assumed: Option<u64>,
    bytes: u64,
    freed: u64,
    /// Bytes of the last piece: its groups come with the next commit.
    last: u64,
}

impl SecondDiscards {
    pub(crate) fn new(work: &Work) -> SecondDiscards {
        let assumed = (work.bytes / 8).min(4 * GROUP);
        SecondDiscards {
            assumed: work.discards_twice.then_some(assumed),
            bytes: 0,
            freed: 0,
            last: 0,
        }
    }

    /// Returns how many bytes were discarded a second time so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes in bytes that paid no debt. Returns how many of them count as own, discarded a second
    /// time. `freed`: bytes freed so far.
    pub(crate) fn observe(&mut self, bytes: u64, freed: u64) -> u64 {
        if self.assumed.is_none() || bytes < SMALLEST_GROUP {
            return 0;
        }
        let twice = bytes.min(freed.saturating_sub(self.bytes));
        self.bytes += twice;
        twice
    }

    /// Takes in how many bytes were freed so far.
    pub(crate) fn freed(&mut self, freed: u64) {
        self.freed = freed;
    }

    /// Takes in that a piece of so many bytes was acknowledged.
    pub(crate) fn landed(&mut self, bytes: u64) {
        self.last = bytes;
    }

    /// Returns how many times each byte is discarded, on average: 1 to 2.
    pub(crate) fn times(&self) -> f64 {
        let assumed = self.assumed.unwrap_or(0);
        let freed = self.freed.saturating_sub(self.last).max(self.bytes);
        1.0 + (self.bytes + assumed) as f64 / (freed + assumed).max(1) as f64
    }
}
