//! On btrfs, steers the kernel's own trimmer.
//!
//! `discard=async` already knows what was freed, leaves it alone for 120 s, and discards pieces of
//! at most 64 MiB. It does so at a fixed rate, whatever that costs. `FITRIM` would be coarser:
//! btrfs trims a chunk from its beginning only, and each time all its free extents. So the guard
//! trims nothing. It sets how many discards a second the kernel may send, by the time that they
//! take.

use std::collections::VecDeque;
use std::fs::File;
use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::async_discard::{AsyncDiscard, MOST_PER_S, Waiting};
use linux::trim::{Range, fitrim};
use pace::trims::HURRIED;

use super::common::{Ages, Common};
use super::orders;
use super::start::Candidate;
use super::status::TrimReport;
use super::{GuardError, GuardOptions, Left, TICK};
use crate::ReclaimError;
use crate::event::{Event, Listener};
use crate::throttle::{DeviceCounters, Stack};

/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The rate before any discard was seen: the kernel's own before Linux 6.3.
const FIRST_PER_S: u32 = 10;

/// How many discards an average is over, about.
const MEMORY: f64 = 32.0;

/// The time over which the goal is judged.
const JUDGED: Duration = Duration::from_secs(10);

/// How much more than its share the discards may take before the goal counts as missed.
const TOLERANCE: f64 = 1.1;

/// Computes how many discards a second may be sent, from the time that they take.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Rate {
    /// The mean time of a discard, in seconds, once one was seen.
    mean_s: Option<f64>,
}

impl Rate {
    /// Learns from this many discards, which kept the devices busy for this many seconds.
    fn learn(&mut self, commands: u64, seconds: f64) {
        if commands > 0 {
            let (count, took) = (commands as f64, seconds / commands as f64);
            let weight = count / (count + MEMORY);
            let mean = self
                .mean_s
                .map_or(took, |mean| mean + weight * (took - mean));
            self.mean_s = Some(mean);
        }
    }

    /// Returns as many discards a second as take this share of the time, at least 1.
    fn per_second(self, share: f64) -> u32 {
        match self.mean_s {
            None => FIRST_PER_S,
            Some(mean) if mean * f64::from(MOST_PER_S) <= share => MOST_PER_S,
            Some(mean) => ((share / mean) as u32).clamp(1, MOST_PER_S),
        }
    }
}

/// Estimates the age of the debt, as if the oldest were discarded first.
#[derive(Debug, Default)]
struct Line {
    /// All bytes that had been freed by then, ascending, and when that was seen.
    freed: VecDeque<(u64, Instant)>,
    settled: Option<u64>,
}

impl Line {
    /// Learns how many bytes wait, and how many were discarded in all. Returns those discarded
    /// since the last call, with their ages.
    fn saw(&mut self, waiting: u64, settled: u64, now: Instant) -> Vec<(u64, Duration)> {
        let all = waiting + settled;
        if self.freed.back().is_none_or(|&(last, _)| last < all) {
            self.freed.push_back((all, now));
        }
        let mut from = self.settled.unwrap_or(settled);
        self.settled = Some(settled);
        let mut gone = Vec::new();
        while let Some(&(up_to, since)) = self.freed.front()
            && from < settled
        {
            let part = up_to.min(settled).saturating_sub(from);
            if part > 0 {
                gone.push((part, now - since));
                from += part;
            }
            if up_to > settled {
                break;
            }
            self.freed.pop_front();
        }
        gone
    }

    /// How long the oldest has waited.
    fn oldest(&self, now: Instant) -> Option<Duration> {
        let settled = self.settled?;
        let waits = self.freed.iter().find(|&&(up_to, _)| up_to > settled);
        waits.map(|&(_, since)| now - since)
    }
}

/// A running guard of one btrfs.
#[derive(Debug)]
pub(super) struct BtrfsGuard {
    common: Common,
    directory: File,
    options: GuardOptions,
    trimmer: AsyncDiscard,
    counters: DeviceCounters,
    rate: Rate,
    line: Line,
    ages: Ages,
    size: u64,
    /// Of the devices' discards at the start, at the last look and when the goal was last judged.
    seen: (u64, Duration),
    judged: (u64, Duration, Instant),
    judged_bytes: u64,
    first: u64,
    discarded: u64,
    looked: Instant,
    waiting: Waiting,
    per_second: u32,
    /// Why the guard must end.
    failed: Option<String>,
}

impl BtrfsGuard {
    /// Takes charge of a btrfs that is mounted with `discard=async`.
    ///
    /// # Errors
    /// If its limit can't be changed, its devices' discards aren't counted, or another guard runs.
    pub(super) fn start(
        found: Candidate,
        options: GuardOptions,
        listener: &mut Listener<'_>,
    ) -> Result<BtrfsGuard, GuardError> {
        let path = found.path.as_path();
        let directory = File::open(path).map_err(ReclaimError::io("open", path))?;
        let uncounted = |error: &dyn std::fmt::Display| {
            ReclaimError::io("count the discards of", path)(std::io::Error::other(
                error.to_string(),
            ))
        };
        let uuid = found.uuid.as_deref();
        let uuid = uuid.ok_or_else(|| uncounted(&"its UUID can't be read"))?;
        let stack = Stack::at(std::os::fd::AsFd::as_fd(&directory));
        let stack = stack.map_err(|error| uncounted(&error))?;
        if stack.sources.is_empty() {
            return Err(uncounted(&"its devices have no counters").into());
        }
        let sys = SysRoot::host();
        let counters = DeviceCounters::open(&sys, &stack.sources);
        let counters = counters.map_err(|error| uncounted(&error))?;
        let size =
            rustix::fs::fstatvfs(&directory).map_err(ReclaimError::io("tell the size of", path))?;
        let common = Common::start(path, &found.name)?;
        let trimmer = match AsyncDiscard::take(&sys, uuid) {
            Ok(trimmer) => trimmer,
            Err(error) => {
                common.close();
                let action = "change /sys/fs/btrfs/…/discard/iops_limit of";
                return Err(ReclaimError::io(action, path)(error).into());
            }
        };
        listener(Event::Note(&format_args!(
            "{}: btrfs trims by itself (discard=async); guard sets its iops_limit, which was {}, until it ends",
            record::units::names::quoted(path),
            trimmer.before()
        )));
        let (discarded, _) = trimmer.settled_bytes();
        let now = Instant::now();
        Ok(BtrfsGuard {
            common,
            directory,
            options,
            waiting: trimmer.waiting(),
            trimmer,
            counters,
            rate: Rate::default(),
            line: Line::default(),
            ages: Ages::default(),
            size: size.f_blocks.saturating_mul(size.f_frsize),
            seen: (0, Duration::ZERO),
            judged: (0, Duration::ZERO, now),
            judged_bytes: discarded,
            first: discarded,
            discarded,
            looked: now,
            per_second: 0,
            failed: None,
        })
    }

    /// Guards until `listener` or an order ends it.
    pub(super) fn run(mut self, listener: &mut Listener<'_>) -> Left {
        self.steer(listener);
        while self.common.goes_on(listener) && self.failed.is_none() {
            let (common, goal) = (&mut self.common, &mut self.options.goal);
            if common.take_orders(goal, listener) {
                self.report();
                orders::accept(self.common.state());
            }
            if self.common.orders.drain {
                self.drain(listener);
            }
            if self.looked.elapsed() >= LOOK_EVERY {
                self.look(listener);
                self.steer(listener);
                self.report();
            }
            std::thread::sleep(TICK);
        }
        let mount = self.common.path().to_owned();
        if let Err(error) = self.trimmer.restore() {
            let what = "the iops_limit of btrfs can't be put back";
            self.common.note_failure(listener, what, &error);
        }
        self.common.close();
        // What waits is the kernel's to trim.
        Left {
            mount,
            debt_bytes: 0,
            failed: self.failed,
            not_restored: None,
        }
    }

    /// Takes in what the kernel has done since the last look.
    fn look(&mut self, listener: &mut Listener<'_>) {
        self.looked = Instant::now();
        if let Err(error) = self.counters.read() {
            self.common.note_once(listener, error.to_string());
            return;
        }
        let discards = self.counters.discards();
        let busy = discards.busy.unwrap_or_default();
        let took = busy.saturating_sub(self.seen.1);
        self.rate.learn(
            discards.commands - self.seen.0.min(discards.commands),
            took.as_secs_f64(),
        );
        self.seen = (discards.commands, busy);
        self.waiting = self.trimmer.waiting();
        let (discarded, saved) = self.trimmer.settled_bytes();
        self.discarded = discarded;
        for (bytes, age) in self
            .line
            .saw(self.waiting.bytes, discarded + saved, self.looked)
        {
            self.ages.add(bytes, age.as_millis() as u64);
        }
        self.judge();
    }

    /// The share of the devices' time that discards may take.
    fn share(&self) -> f64 {
        self.options.goal.slowdown / f64::from(1 + self.counters.deleters_beside())
    }

    /// Counts whether the goal was met.
    fn judge(&mut self) {
        let (commands, busy, since) = self.judged;
        let length = since.elapsed();
        if length < JUDGED {
            return;
        }
        if self.seen.0 > commands {
            let share = self.seen.1.saturating_sub(busy).as_secs_f64() / length.as_secs_f64();
            let met = share <= self.share() * TOLERANCE;
            match met {
                true => self.common.goals.met += 1,
                false => self.common.goals.missed += 1,
            }
            let bytes = self.discarded.saturating_sub(self.judged_bytes);
            if bytes > 0 {
                self.common.trimmed(bytes, length, Some(met));
            }
        }
        self.judged = (self.seen.0, self.seen.1, Instant::now());
        self.judged_bytes = self.discarded;
    }

    /// Sets the rate for what waits now.
    fn steer(&mut self, listener: &mut Listener<'_>) {
        let oldest = self.line.oldest(Instant::now()).unwrap_or_default();
        let hurried = oldest > self.options.max_age
            || self.waiting.bytes as f64 > self.size as f64 * self.options.most;
        if hurried {
            self.common.note_hurry(&self.options, listener);
        }
        let share = match hurried {
            true => self.share().max(HURRIED),
            false => self.share(),
        };
        self.per_second = self.rate.per_second(share);
        if let Err(error) = self.trimmer.set(self.per_second) {
            let what = "the iops_limit of btrfs can't be set";
            self.common.note_failure(listener, what, &error);
        }
    }

    /// Trims all free space at once.
    fn drain(&mut self, listener: &mut Listener<'_>) {
        let all = Range {
            start: 0,
            length: u64::MAX,
            minimum: 0,
        };
        if let Err(error) = fitrim(&self.directory, all) {
            self.common
                .note_failure(listener, "it can't be trimmed", &error);
        }
        // The goal doesn't hold for these, nor are they the trimmer's.
        if self.counters.read().is_ok() {
            let discards = self.counters.discards();
            self.seen = (discards.commands, discards.busy.unwrap_or_default());
            self.judged = (self.seen.0, self.seen.1, Instant::now());
        }
        self.waiting = self.trimmer.waiting();
        self.report();
        self.common.drained();
    }

    /// Writes how it stands, for `status`.
    fn report(&mut self) {
        let oldest = self.line.oldest(Instant::now());
        let discarded = self.discarded.saturating_sub(self.first);
        let report = TrimReport {
            debt_bytes: self.waiting.bytes,
            extents: self.waiting.extents,
            oldest_s: oldest.map(|age| age.as_secs_f64()),
            age_p50_s: self.ages.at_most(0.5),
            age_p99_s: self.ages.at_most(0.99),
            trimmed_bytes: discarded,
            discarded_bytes: self.counters.discards().bytes,
            discards: self.seen.0,
            busy_s: self.seen.1.as_secs_f64(),
            windows: self.seen.0,
            discards_per_s: Some(self.per_second),
            ..TrimReport::default()
        };
        self.failed = self.common.report(&self.options, report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_discards_as_take_their_share() {
        let mut rate = Rate::default();
        assert_eq!(rate.per_second(0.1), FIRST_PER_S);
        rate.learn(0, 1.0);
        assert_eq!(rate.mean_s, None);
        rate.learn(10, 0.1);
        assert_eq!((rate.per_second(0.1), rate.per_second(0.5)), (10, 50));
        // A slow drive gets one a second at least, and a fast one as many as the kernel sends.
        rate.learn(1_000_000, 1_000_000.0);
        assert_eq!(rate.per_second(0.1), 1);
        rate.learn(1_000_000_000, 0.0);
        assert_eq!(rate.per_second(0.1), MOST_PER_S);
    }

    #[test]
    fn what_was_freed_first_is_taken_to_go_first() {
        let mut line = Line::default();
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        assert_eq!(line.saw(0, 50, at(0)), []);
        assert_eq!(line.oldest(at(0)), None);
        assert_eq!(line.saw(100, 50, at(1)), []);
        assert_eq!(line.saw(180, 50, at(2)), []);
        assert_eq!(line.oldest(at(5)), Some(Duration::from_secs(4)));
        let gone = line.saw(60, 170, at(7));
        let seconds = Duration::from_secs;
        assert_eq!(gone, [(100, seconds(6)), (20, seconds(5))]);
        assert_eq!(line.oldest(at(7)), Some(seconds(5)));
        assert_eq!(line.saw(0, 230, at(9)), [(60, seconds(7))]);
        assert_eq!(line.oldest(at(9)), None);
    }
}
