//! Measures the loss of the drive's readers by their own rate: beside each discard, against the
//! pauses just before it. A load that changes by itself then counts as no loss. The same measures
//! those who flush: a database that commits waits for its flushes, and may read nothing.

use serde::Serialize;
use std::collections::VecDeque;

use ssd::Time;

use crate::meter::{Reads, Tick};
use crate::quantity::Seconds;

/// The fewest expected reads from which a loss is reported.
const ENOUGH: f64 = 200.0;

/// Quiet time is cut into stretches of this length: how much neighbours differ says how sure a
/// rate is.
const STRETCH: Seconds = Seconds(0.05);

/// How long the rate of the pauses is remembered, in quiet time.
const MEMORY: Seconds = Seconds(0.5);

/// The error of a loss besides its chance, as a share: measured against independent readers
/// (docs/figures/claim.md).
const FLOOR: f64 = 0.05;

/// The same of a loss against the time before alone, because a load drifts. On a shared disk fio's rate in
/// 8 s was within 11 % of that in the 3 s before, in 19 of 20 cases. 3 % of it are chance.
const DRIFT: f64 = 0.08;

/// Neighbouring stretches resemble each other: their mean is less sure by this factor.
const ALIKE: f64 = 1.5;

/// The most windows that are kept; then two become one.
const MOST_WINDOWS: usize = 4096;

/// Discards are counted when they are done: how long looks wait to be known as beside one
/// or not, and how many at most.
const UNDECIDED: Seconds = Seconds(4.0);
const MOST_UNDECIDED: usize = 20_000;

/// Readers have left if no pause shows this share of their rate, nor of how many were under way. It
/// takes so long at a stretch, and so much of pauses. From then on nobody is there to lose anything.
const LEFT: f64 = 0.2;
const LEFT_FOR: Seconds = Seconds(1.0);
const LEFT_PAUSES: Seconds = Seconds(0.2);

/// For so long after a discard's end readers may still show its effect.
const ECHO: Seconds = Seconds(0.005);

/// A figure and the interval in which it lies, in nineteen of twenty cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// The best guess.
    pub value: f64,
    /// The least that it may be.
    pub low: f64,
    /// The most that it may be.
    pub high: f64,
}

/// The window that lost most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Worst {
    /// Its beginning, in seconds after the first byte was freed.
    pub at_s: f64,
    /// Its length in seconds, or nothing for a single read.
    pub length_s: f64,
    /// The share that it lost, or the seconds that a read waited longer.
    pub value: f64,
}

/// When others were seen without the deletion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quiet {
    /// In the pauses between its discards, from the first byte freed on; before it, where there were none.
    Pauses,
    /// Before it alone, for it worked in its pauses, too ([`Account::works_in_pauses`]).
    ///
    /// [`Account::works_in_pauses`]: crate::Account::works_in_pauses
    Before,
    /// Before it and after it ([`Account::ends`]): so many reads each second.
    ///
    /// [`Account::ends`]: crate::Account::ends
    Around {
        /// Before it.
        before_per_s: f64,
        /// After it.
        after_per_s: f64,
    },
}

/// The loss of the drive's readers, our canary not among them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReaderLoss {
    /// Reads each second without the deletion, as `quiet` says.
    pub baseline_per_s: f64,
    /// When they were seen without it.
    pub quiet: Quiet,
    /// Reads each second from the first byte freed to the end.
    pub during_per_s: f64,
    /// The share of their reads that they lost, over the whole time. `low` is what they lost
    /// beside discards, `high` has the pauses that were slower as well. `value` is halfway: on a
    /// drive that goes on after a discard's end it came closest (docs/figures/claim.md).
    pub lost: Measured,
    /// The share by which the pauses, without any discard in service, were slower than
    /// the time before: commits, other I/O, or a load that changed. `None` if either is
    /// too short to tell, or the pauses don't count.
    pub slower_pauses: Option<f64>,
    /// The share that they lost if the pauses were slower because of the deletion, and not by
    /// chance. A drive may go on with a discard after its end.
    pub lost_with_pauses: f64,
    /// Their mean wait beside no discards, in seconds.
    pub usual_wait_s: f64,
    /// Their mean wait from the first byte freed to the end, in seconds.
    pub wait_s: f64,
    /// Whether their rate doesn't depend on how long each read takes. Then `lost` tells
    /// nothing, and the canary is asked.
    pub open_loop: bool,
    /// When they stopped for good, in seconds after the first byte freed: the figures are those of
    /// the time before. `None`: they stayed.
    pub left_s: Option<f64>,
}

/// How much neighbouring stretches of quiet time differ.
#[derive(Debug, Clone, Copy, Default)]
struct Scatter {
    length: Seconds,
    ops: f64,
    last: Option<f64>,
    pairs: f64,
    squares: f64,
    sum: f64,
}

impl Scatter {
    fn add(&mut self, reads: &Reads) {
        self.length += reads.length;
        self.ops += reads.ops;
        if self.length < STRETCH {
            return;
        }
        let rate = self.ops / self.length.0;
        if let Some(last) = self.last {
            self.pairs += 1.0;
            self.squares += (rate - last).powi(2) / 2.0;
            self.sum += rate;
        }
        (self.length, self.ops, self.last) = (Seconds::ZERO, 0.0, Some(rate));
    }

    /// The deviation of a stretch, as a share of the mean; 1 if nobody knows.
    fn deviation(&self) -> f64 {
        match self.pairs >= 2.0 && self.sum > 0.0 {
            true => (self.squares / self.pairs).sqrt() * self.pairs / self.sum,
            false => 1.0,
        }
    }
}

/// The reads between two looks.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// Since the clock's start.
    end: Seconds,
    reads: Reads,
}

/// The drive's readers: their reads and losses.
#[derive(Debug, Clone, Default)]
pub(super) struct Readers {
    /// Before the first byte freed, beside no discards.
    before: Reads,
    /// All operations before it.
    before_ops: f64,
    sums: Sums,
    /// The sums when a pause last showed them, and when; the pauses since then.
    present: Sums,
    present_at: Seconds,
    since: Reads,
    stretch: Reads,
    /// The pauses of late.
    lately: Reads,
    scatter: Scatter,
    /// Looks since discards are pending or in service: not yet known to be beside a discard or not.
    undecided: VecDeque<Look>,
    /// Up to then looks are beside a discard that is done.
    loud_until: Seconds,
    windows: Windows,
    /// The deletion works in its pauses, too: its cost shows against the time before.
    pub(super) against_before: bool,
    /// It has ended: what comes now is after it.
    ended: bool,
    /// After its end, beside no discards.
    after: Reads,
}

/// Sums since the first byte freed.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    pauses: Reads,
    /// The pauses up to the last discard: what comes after it is not the deletion's.
    between: Reads,
    beside: Reads,
    lost: f64,
}

impl Readers {
    /// Takes in what others did in a tick. `begun`: something was freed; `pending`: discards may be
    /// in service.
    pub(super) fn observe(
        &mut self,
        now: Time,
        tick: &Tick,
        reads: Reads,
        begun: bool,
        pending: bool,
    ) {
        if tick.length <= Seconds::ZERO {
            return;
        }
        let look = Look {
            end: Seconds(now.as_secs_f64()),
            reads,
        };
        let discarded = tick.busy > Seconds::ZERO || tick.commands > 0;
        if !begun {
            self.before_ops += look.reads.ops;
            // Beside others' discards it is no baseline.
            if !discarded {
                self.before.add(&look.reads);
                self.remember(&look);
            }
            return;
        }
        if self.windows.begin(look.end - look.reads.length) {
            self.present_at = look.end;
        }
        self.undecided.push_back(look);
        if discarded {
            self.decide(look.end - tick.busy);
            self.loud_until = look.end + ECHO;
            self.all_beside();
        } else if look.end <= self.loud_until {
            self.all_beside();
        } else if !pending {
            self.decide(Seconds::INFINITE);
        } else {
            self.decide(look.end - UNDECIDED);
            if self.undecided.len() > MOST_UNDECIDED {
                self.decide(Seconds::INFINITE);
            }
        }
    }

    /// Looks that ended before then were in a pause.
    fn decide(&mut self, before: Seconds) {
        while self
            .undecided
            .front()
            .is_some_and(|look| look.end <= before)
            && let Some(look) = self.undecided.pop_front()
        {
            if self.ended {
                self.after.add(&look.reads);
                continue;
            }
            self.sums.pauses.add(&look.reads);
            self.remember(&look);
            self.windows.add(&look, 0.0);
            self.see_who_is_present(&look);
        }
    }

    /// Takes in a look of a pause.
    fn see_who_is_present(&mut self, look: &Look) {
        self.stretch.add(&look.reads);
        if self.stretch.length < STRETCH {
            return;
        }
        let stretch = std::mem::take(&mut self.stretch);
        let under_way = |reads: &Reads| reads.wait / reads.length;
        if stretch.per_s() >= LEFT * self.before.per_s()
            || under_way(&stretch) >= LEFT * under_way(&self.before)
        {
            (self.present, self.present_at) = (self.sums, look.end);
            self.since = Reads::default();
        } else {
            self.since.add(&stretch);
        }
    }

    /// Returns when they left for good, if they did.
    fn left(&self) -> Option<Seconds> {
        let began = self.windows.began?;
        let silent = began + self.windows.end - self.present_at;
        let left =
            self.before.ops >= ENOUGH && silent >= LEFT_FOR && self.since.length >= LEFT_PAUSES;
        left.then(|| self.present_at - began)
    }

    fn all_beside(&mut self) {
        self.sums.between = self.sums.pauses;
        for look in std::mem::take(&mut self.undecided) {
            if self.ended {
                continue;
            }
            let lost = self.lately.per_s() * look.reads.length.0 - look.reads.ops;
            self.sums.beside.add(&look.reads);
            self.sums.lost += lost;
            self.windows.add(&look, lost);
        }
    }

    fn remember(&mut self, look: &Look) {
        self.lately.fade((-look.reads.length / MEMORY).exp());
        self.lately.add(&look.reads);
        self.scatter.add(&look.reads);
    }

    pub(super) fn before_ops(&self) -> f64 {
        self.before_ops
    }

    /// Returns the share that each whole window lost while they were there.
    pub(super) fn losses(&self) -> impl Iterator<Item = Worst> {
        let end = self.left().unwrap_or(self.windows.end);
        let usual = match self.quiet() {
            Quiet::Pauses => None,
            Quiet::Before | Quiet::Around { .. } => Some(self.without().per_s()),
        };
        self.windows.losses(end, usual)
    }

    /// The deletion has ended: what comes now is after it.
    pub(super) fn end(&mut self) {
        self.decide(Seconds::INFINITE);
        self.ended = true;
    }

    /// When they are seen without the deletion.
    fn quiet(&self) -> Quiet {
        match self.against_before {
            _ if self.before.ops.min(self.after.ops) >= ENOUGH && self.left().is_none() => {
                Quiet::Around {
                    before_per_s: self.before.per_s(),
                    after_per_s: self.after.per_s(),
                }
            }
            true => Quiet::Before,
            false => Quiet::Pauses,
        }
    }

    /// Their reads before the deletion, and after it if that was seen.
    fn without(&self) -> Reads {
        let mut all = self.before;
        if matches!(self.quiet(), Quiet::Around { .. }) {
            all.add(&self.after);
        }
        all
    }

    pub(super) fn loss(&self) -> Option<ReaderLoss> {
        let mut all = self.clone();
        all.decide(Seconds::INFINITE);
        all.result()
    }

    fn result(&self) -> Option<ReaderLoss> {
        let left = self.left();
        let sums = match left {
            Some(_) => self.present,
            None => self.sums,
        };
        let ops = sums.pauses.ops + sums.beside.ops;
        let expected = ops + sums.lost;
        let when = self.quiet();
        let in_pauses = when == Quiet::Pauses;
        let quiet = match sums.pauses.ops >= ENOUGH && in_pauses {
            true => sums.pauses,
            false => self.without(),
        };
        if quiet.ops < ENOUGH || expected < ENOUGH {
            return None;
        }
        let during = ops / (sums.pauses.length + sums.beside.length).0;
        let in_all = 1.0 - during / quiet.per_s();
        // A load that changed meanwhile makes it less sure.
        let (least, most) = match when {
            Quiet::Around {
                before_per_s,
                after_per_s,
            } => (
                1.0 - during / before_per_s.min(after_per_s).max(1e-9),
                1.0 - during / before_per_s.max(after_per_s),
            ),
            Quiet::Pauses | Quiet::Before => (f64::INFINITY, f64::NEG_INFINITY),
        };
        let (value, floor) = match when {
            Quiet::Pauses => (sums.lost / expected, FLOOR),
            Quiet::Before => (in_all, DRIFT),
            Quiet::Around { .. } => (in_all, FLOOR),
        };
        let doubt = self.doubt(&sums, in_pauses) + floor;
        // They read more beside discards than without: their load changed.
        if value > FLOOR && during > quiet.per_s() {
            return None;
        }
        let both = self.before.ops >= ENOUGH && sums.between.ops >= ENOUGH && in_pauses;
        let slower_pauses = both.then(|| 1.0 - sums.between.per_s() / self.before.per_s());
        let slower = slower_pauses.filter(|&slower| slower > doubt);
        let lost_with_pauses = value + slower.unwrap_or(0.0) * (1.0 - value);
        let lost_with_pauses = lost_with_pauses.clamp(0.0, 1.0);
        let wait = (sums.pauses.wait + sums.beside.wait) / ops.max(1.0);
        Some(ReaderLoss {
            baseline_per_s: quiet.per_s(),
            quiet: when,
            during_per_s: during,
            lost: Measured {
                value: f64::midpoint(value, lost_with_pauses).clamp(0.0, 1.0),
                low: (value - doubt).min(least).clamp(0.0, 1.0),
                high: (lost_with_pauses + doubt).max(most).clamp(0.0, 1.0),
            },
            slower_pauses,
            lost_with_pauses,
            usual_wait_s: quiet.mean_wait().0,
            wait_s: wait.0,
            open_loop: is_open(value.max(in_all).max(most), quiet.mean_wait(), wait),
            left_s: left.map(|at| at.0),
        })
    }

    /// How far the loss may be off by chance: two standard errors of what was expected and
    /// seen beside discards, or in all the time.
    fn doubt(&self, sums: &Sums, in_pauses: bool) -> f64 {
        let stretches = |length: Seconds| (length / STRETCH).max(1.0);
        let without = self.without().length;
        let during = sums.beside.length + sums.pauses.length;
        let (seen, quiet) = match in_pauses {
            true => (sums.beside.length, without + sums.pauses.length),
            false => (during, without),
        };
        let chance = 1.0 / stretches(seen) + 1.0 / stretches(quiet);
        let share = seen / during.max(Seconds(1e-9));
        2.0 * ALIKE * self.scatter.deviation() * share * chance.sqrt()
    }
}

/// By Little's law reads that wait longer are more at once, unless fewer begin. Readers whose
/// rate fell by more than it may be off wait for each other, however long a few of them waited.
/// `lost`: the larger of the share that is missing beside discards and in all.
fn is_open(lost: f64, usual: Seconds, wait: Seconds) -> bool {
    let longer = wait / usual.max(Seconds(1e-9)) - 1.0;
    lost < FLOOR && longer > 0.1 && lost < 0.3 * longer / (1.0 + longer)
}

/// The reads and losses of each second. In a long deletion the windows are 2 s, 4 s, and so on.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    length: Seconds,
    began: Option<Seconds>,
    /// Reads, and those that are missing.
    all: Vec<(f64, f64)>,
    end: Seconds,
}

impl Default for Windows {
    fn default() -> Windows {
        Windows {
            length: Seconds(1.0),
            began: None,
            all: Vec::new(),
            end: Seconds::ZERO,
        }
    }
}

impl Windows {
    /// Notes when the first window begins. Returns whether this was new.
    fn begin(&mut self, at: Seconds) -> bool {
        let new = self.began.is_none();
        self.began.get_or_insert(at);
        new
    }

    fn add(&mut self, look: &Look, lost: f64) {
        let end = look.end - self.began.unwrap_or(look.end);
        self.end = self.end.max(end);
        let mut from = (end - look.reads.length).max(Seconds::ZERO);
        while from < end {
            let at = (from / self.length) as usize;
            if at >= MOST_WINDOWS {
                self.halve();
                continue;
            }
            let to = ((at + 1) as f64 * self.length).min(end);
            if self.all.len() <= at {
                self.all.resize(at + 1, (0.0, 0.0));
            }
            let part = (to - from) / look.reads.length;
            self.all[at].0 += look.reads.ops * part;
            self.all[at].1 += lost * part;
            // However close the next window's begin is.
            from = to.max(from + Seconds(1e-9));
        }
    }

    fn halve(&mut self) {
        self.length *= 2.0;
        let sum = |two: &[(f64, f64)]| two.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        self.all = self.all.chunks(2).map(sum).collect();
    }

    /// The share that each whole window up to then lost, and when it began, in seconds. `usual`: the
    /// rate of which; `None`: that of the pauses.
    fn losses(&self, end: Seconds, usual: Option<f64>) -> impl Iterator<Item = Worst> {
        let whole = (end / self.length) as usize;
        let windows = self.all.iter().take(whole).enumerate();
        windows.map(move |(at, (ops, lost))| {
            let expected = usual.map_or(ops + lost, |usual| usual * self.length.0);
            Worst {
                at_s: at as f64 * self.length.0,
                length_s: self.length.0,
                value: (1.0 - ops / expected.max(1.0)).clamp(0.0, 1.0),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_that_lost_reads_are_no_open_loop() {
        // Measured: fio at depth 8, and a few reads that waited 1.4 s.
        let us = |us: f64| Seconds(us * 1e-6);
        assert!(!is_open(0.10, us(90.8), us(166.0)));
        assert!(is_open(0.01, us(90.8), us(166.0)));
        assert!(!is_open(0.01, us(90.8), us(95.0)));
    }
}
