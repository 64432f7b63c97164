//! φ: the share of a discard's time in which it really slows others down.
//!
//! Until something is known it counts as 1. The others' own rate shows most: a closed loop does
//! less beside discards than in the pauses between them, and an open loop waits more. A canary can
//! only raise φ, because it reads too seldom to lower it as quickly.

use std::time::Duration;

use crate::account::waits::UsualLatency;
use crate::feedback::Canary;
use crate::meter::{OthersTick, Reads, Tick};
use crate::quantity::{Seconds, Share};

/// How long a quiet second is remembered, in quiet time.
const QUIET_MEMORY: Seconds = Seconds(0.4);

/// How much of the discards' time is remembered at least.
const LOUD_MEMORY: Seconds = Seconds(0.05);

/// And at most, where the others do too little to tell much.
const LONG_MEMORY: Seconds = Seconds(0.5);

/// The expected operations, while the device was at discards, from which the others' rate is
/// trusted fully.
const ENOUGH: f64 = 150.0;

/// The operations in a quiet stretch from which its difference to those before it is measured, and
/// how long such a difference is remembered.
const TELLING: f64 = 50.0;
const SWING_MEMORY: Seconds = Seconds(1.0);

/// Differences up to this share are usual. Beyond it the others' rate is trusted less and less, at
/// three times the share not at all.
const USUAL_SWING: f64 = 0.15;

/// Of a discard no longer than the second figure, the share by which its effect may be
/// underrated.
const BLUR: f64 = 0.05;
const BLUR_LENGTH: Seconds = Seconds(0.002);

/// How long an operation of others is remembered for `is_idle`, and how many at most: after
/// 0.23 quiet seconds without any, nobody is there any more.
const LATELY: Seconds = Seconds(0.1);
const LATELY_MOST: f64 = 10.0;
/// How many are assumed at the beginning: 0.05 s without any are enough, for the first pieces are
/// small.
const FIRST_LATELY: f64 = 1.6;

/// The most reads and writes that we cause by freeing a piece and committing it, until the piece is
/// acknowledged: metadata and the journal.
const OUR_READS: f64 = 8.0;
const OUR_WRITES: f64 = 64.0;
/// The same of a commit that writes the blocks of the file system's trees: each block twice, and
/// the first commit also what was changed before.
const OUR_TREE_WRITES: f64 = 512.0;

/// The step by which the end of an echo varies, as a share of a read's usual time: the golden
/// ratio.
///
/// After a discard, the others' rate still shows it for one to two usual times of a read. Reads
/// that begin at its end complete one such time later, all together. The count may end anywhere
/// between two such ends. Each echo ends a step further than the last, so that this chance is even.
const FURTHER: f64 = 0.618;

/// The longest echo that is counted.
const LONGEST_ECHO: Seconds = Seconds(0.02);

/// The least and the most that φ can be.
const LEAST: Share = Share(0.02);
const MOST: Share = Share(2.0);

/// The interference of discards with other I/O.
#[derive(Debug, Clone)]
pub(crate) struct Interference {
    /// Beside no discards: time, operations and their waits.
    quiet: Reads,
    /// Beside discards.
    loud: Loud,
    /// By how much the quiet rate swings by itself, as a share of it.
    swing: f64,
    /// The canary's usual latency.
    usual: UsualLatency,
    /// The time between two of the canary's reads.
    period: Seconds,
    last_canary: Option<ssd::Time>,
    /// The operations to come that count as ours.
    our_reads: f64,
    our_writes: f64,
    /// Operations lately, forgotten only in quiet time.
    lately: f64,
    known: bool,
    /// From 0 to 1: how much longer than one usual time of a read the echo is.
    turn: f64,
    phi: Share,
}

#[derive(Debug, Clone, Copy, Default)]
struct Loud {
    sums: Reads,
    /// The sums beside the discards that are under way. They count once these are done, because
    /// only then is it known how long they took.
    since: Since,
    busy: Seconds,
    /// The sum of each discard's time in seconds, squared.
    squares: f64,
    /// The operations that the others would have done meanwhile.
    expected_ops: f64,
    /// Canary reads that waited much longer than usual.
    hits: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Since {
    sums: Reads,
    hits: f64,
}

impl Loud {
    /// Takes in that discards are done, beside others whose usual rate is `rate` operations/s.
    fn end(&mut self, tick: &Tick, rate: f64) {
        // Twice what it must remember: a slow forgetting, but of something.
        let enough = self.busy > LOUD_MEMORY && self.expected_ops > 2.0 * ENOUGH;
        if enough || self.busy > LONG_MEMORY {
            let fade = (-tick.busy / LOUD_MEMORY).exp();
            self.sums.fade(fade);
            self.busy *= fade;
            for sum in [&mut self.squares, &mut self.expected_ops, &mut self.hits] {
                *sum *= fade;
            }
        }
        let since = std::mem::take(&mut self.since);
        self.sums.add(&since.sums);
        self.hits += since.hits;
        self.busy += tick.busy;
        self.squares += tick.busy.0 * tick.busy.0 / tick.commands.max(1) as f64;
        self.expected_ops += rate * tick.busy.0;
    }
}

impl Interference {
    /// Creates an estimate that starts from φ of a card, else 1.
    pub(crate) fn new(phi: Option<Share>) -> Interference {
        Interference {
            quiet: Reads::default(),
            loud: Loud::default(),
            swing: 0.0,
            usual: UsualLatency::default(),
            period: Seconds::ZERO,
            last_canary: None,
            our_reads: 0.0,
            our_writes: 0.0,
            lately: FIRST_LATELY,
            known: false,
            turn: 0.0,
            phi: phi.unwrap_or(Share(1.0)).clamp(LEAST, MOST),
        }
    }

    pub(crate) fn phi(&self) -> Share {
        self.phi
    }

    /// Forgets what was known, because the others are back and may do other things than before.
    pub(crate) fn restart(&mut self) {
        self.quiet = Reads::default();
        self.loud = Loud::default();
        self.phi = self.phi.max(Share(1.0));
    }

    /// Expects I/O of our own: a piece is sent, and some of the next reads and writes are ours.
    /// `trees`: its commit writes the file system's trees.
    pub(crate) fn expect_own(&mut self, trees: bool) {
        let writes = if trees { OUR_TREE_WRITES } else { OUR_WRITES };
        (self.our_reads, self.our_writes) = (OUR_READS, writes);
    }

    /// Returns the number of operations that aren't ours.
    fn somebodys(&mut self, others: &OthersTick) -> f64 {
        let reads = others.ops.min(self.our_reads);
        let writes = others.writes.min(self.our_writes);
        self.our_reads -= reads;
        self.our_writes -= writes;
        others.ops - reads + others.writes - writes
    }

    /// Returns whether nobody else uses the device, as far as it is known.
    pub(crate) fn is_idle(&self) -> bool {
        self.known && self.lately < 1.0
    }

    /// Takes in one tick. `quiet`: there were neither discards nor debt.
    pub(crate) fn observe(&mut self, tick: &Tick, quiet: bool, canary: &[Canary]) {
        let hits = self.observe_canary(canary, quiet);
        if let Some(others) = tick.others {
            self.known = true;
            if quiet {
                if others.ops > 20.0 && others.ops > 2.0 * self.quiet.per_s() * tick.length.0 {
                    // Others have come: what was known is of other times.
                    self.quiet = Reads::default();
                    self.loud = Loud::default();
                }
                self.watch_swing(tick.length, others.ops);
                self.lately *= (-tick.length / LATELY).exp();
                self.quiet.fade((-tick.length / QUIET_MEMORY).exp());
                self.quiet.add(&Reads::of(tick.length, &others));
            }
            self.lately = (self.lately + self.somebodys(&others)).min(LATELY_MOST);
        }
        let loud = &mut self.loud;
        loud.since.hits += hits;
        if quiet || tick.length <= Seconds::ZERO {
            return;
        }
        let others = tick.others.unwrap_or_default();
        loud.since.sums.add(&Reads::of(tick.length, &others));
        if tick.busy > Seconds::ZERO {
            let rate = self.quiet.per_s();
            self.loud.end(tick, rate);
            self.conclude();
        }
    }

    /// Returns how long after a discard's end the others' rate still shows it.
    pub(crate) fn echo(&self) -> Duration {
        let usual = self.quiet.mean_wait();
        ((1.0 + self.turn) * usual).min(LONGEST_ECHO).duration()
    }

    /// Takes in that a piece is acknowledged: operations from now on aren't ours.
    pub(crate) fn landed(&mut self) {
        (self.our_reads, self.our_writes) = (0.0, 0.0);
        self.turn = (self.turn + FURTHER).fract();
    }

    /// Measures how much a quiet stretch differs from those before it.
    fn watch_swing(&mut self, length: Seconds, ops: f64) {
        let expected = self.quiet.per_s() * length.0;
        if expected.max(ops) < TELLING || expected <= 0.0 {
            return;
        }
        let differs = ((ops - expected).abs() / expected - 1.0 / expected.sqrt()).clamp(0.0, 1.0);
        let weight = 1.0 - (-length / SWING_MEMORY).exp();
        // Quickly up, slowly down.
        let weight = if differs > self.swing {
            (4.0 * weight).min(0.5)
        } else {
            weight
        };
        self.swing += weight * (differs - self.swing);
    }

    /// Takes in the canary's reads, and returns how many waited much longer than usual.
    fn observe_canary(&mut self, canary: &[Canary], quiet: bool) -> f64 {
        let mut hits = 0.0;
        for read in canary {
            if let Some(last) = self.last_canary {
                let gap = Seconds::from(read.intended.since(last));
                self.period = if self.period > Seconds::ZERO {
                    self.period + 0.1 * (gap - self.period)
                } else {
                    gap
                };
            }
            self.last_canary = Some(read.intended);
            if self.usual.observe(read.latency, quiet) {
                hits += 1.0;
            }
        }
        hits
    }

    /// Returns how much longer than usual a canary's read took.
    pub(crate) fn added(&self, read: &Canary) -> Duration {
        self.usual.added(read.latency)
    }

    /// Returns how open the others' loop is: from 0, where each read waits for one before it, to 1,
    /// where none does.
    ///
    /// By Little's law reads that wait longer are more at once, unless fewer begin: in a closed
    /// loop their number stays what it is.
    fn openness(&self, added: Seconds) -> f64 {
        let (quiet, loud) = (&self.quiet, &self.loud.sums);
        let usual = loud.length * quiet.wait.0 / quiet.length.0;
        ((loud.wait - usual) / added.max(Seconds(1e-12))).clamp(0.0, 1.0)
    }

    fn conclude(&mut self) {
        let loud = &self.loud;
        if loud.busy <= Seconds::ZERO || self.is_idle() {
            return;
        }
        let steady = 1.0 - ((self.swing - USUAL_SWING) / (2.0 * USUAL_SWING)).clamp(0.0, 1.0);
        let sure = (loud.expected_ops / ENOUGH).min(1.0) * steady;
        let rate = self.quiet.per_s();
        let mut seen = 0.0_f64;
        if rate > 0.0 {
            let lost = loud.sums.length - Seconds(loud.sums.ops / rate);
            seen = seen.max(lost / loud.busy);
            let usual = self.quiet.mean_wait();
            let added = (loud.sums.wait - loud.sums.ops * usual).max(Seconds::ZERO);
            // An open loop: each discard delays rate·S reads by S/2 on average.
            let open = (2.0 * added.0 / (rate * loud.squares.max(1e-12))).sqrt();
            // A closed loop says the same by its rate; there this can be anything.
            if lost < 0.5 * open * loud.busy {
                let share = self.openness(added);
                seen = seen.max(open.min(1.0) * share);
            }
        }
        // What the canary is sure of.
        let certain = (loud.hits - 2.0 * loud.hits.sqrt()).max(0.0);
        seen = seen.max((certain * self.period / loud.busy).min(1.0));
        // Reads that are under way when a discard begins and ends blur the rates
        // by about themselves: much of a short discard, nothing of a long one.
        let length = Seconds(loud.squares / loud.busy.0);
        seen *= 1.0 + BLUR * (BLUR_LENGTH / length.max(Seconds(1e-9))).min(1.0);
        let believed = sure * seen + (1.0 - sure) * seen.max(1.0);
        self.phi = Share(believed).clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// φ after quiet seconds in which others do so much in turns, and discards
    /// that don't show in what they do.
    fn phi(turns: [f64; 2]) -> f64 {
        let mut interference = Interference::new(None);
        let tick = |ops: f64, busy: f64| Tick {
            length: Seconds(0.05),
            busy: Seconds(busy),
            commands: u64::from(busy > 0.0),
            others: Some(OthersTick {
                ops,
                ..OthersTick::default()
            }),
            ..Tick::default()
        };
        for i in 0..20 {
            interference.observe(&tick(turns[i % 2], 0.0), true, &[]);
        }
        for _ in 0..4 {
            interference.observe(&tick(1000.0, 0.02), false, &[]);
        }
        interference.phi().0
    }

    /// Whether nobody is there after a piece of ours beside which so much was written.
    fn is_idle_after(writes: f64, trees: bool) -> bool {
        let mut interference = Interference::new(None);
        let tick = |seconds: f64, writes: f64| Tick {
            length: Seconds(seconds),
            others: Some(OthersTick {
                writes,
                ..OthersTick::default()
            }),
            ..Tick::default()
        };
        interference.observe(&tick(0.06, 0.0), true, &[]);
        interference.expect_own(trees);
        interference.observe(&tick(0.02, writes), false, &[]);
        interference.is_idle()
    }

    #[test]
    fn what_a_commit_writes_is_nobody_elses() {
        assert!(is_idle_after(50.0, false));
        assert!(!is_idle_after(100.0, false));
        assert!(
            is_idle_after(100.0, true),
            "btrfs's first commit writes so much"
        );
        assert!(!is_idle_after(1000.0, true));
    }

    #[test]
    fn a_rate_that_swings_clears_nobody() {
        assert!(phi([1000.0, 1010.0]) < 0.2);
        assert!(phi([300.0, 1700.0]) > 0.9, "{}", phi([300.0, 1700.0]));
    }
}
