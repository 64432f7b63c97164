//! The default: as fast as the goal allows, and no faster.
//!
//! One piece at a time: the next is freed when the device has acknowledged the
//! last and the others have got back the time that it took. What a piece costs
//! is charged as it was, so a wrong guess lengthens one pause and no more. The
//! first is small, and each is at most so large that it stays within the goal
//! even if the device's time grows with its size, which is the worst there is.

use std::time::Duration;

use ssd::{Card, Time};

use crate::advice::{Advice, Why};
use crate::budget::Budget;
use crate::cost::Cost;
use crate::debt::{Debt, DebtMode, Duty};
use crate::deferred::{DeferredRate, Terms};
use crate::feedback::Feedback;
use crate::goal::{Goal, TOLERANCE};
use crate::interference::Interference;
use crate::latency::Latency;
use crate::meter::{Meter, Tick};
use crate::own::OwnDiscards;
use crate::pacer::State;
use crate::piece::{COMMIT_LOSS, Sizes};
use crate::plan::plan;
use crate::refusal::Refusal;
use crate::shape::{MOST_BESIDE, is_beside};
use crate::work::{GROUP, SMALLEST_GROUP, Work};

/// What may be saved up, as a share of the window: a delayed look is caught up
/// with, no more.
const DEPTH: f64 = 0.01;

/// What a window may lose beyond the goal, as a share of it: up to [`TOLERANCE`] where
/// single discards are so long that whole ones don't fit.
const SLACK: f64 = 0.015;

/// So much of the goal is enough: for the rest no piece more is let into a window.
const NEARLY: f64 = 0.9;

/// Pieces of one size are so much alike.
const UNLIKE: f64 = 1.05;

/// No judge's interval of 100 ms may lose half: at most this share of it, and so many
/// times the goal where that is more.
const INTERVAL: f64 = 0.1;
const INTERVAL_SHARE: f64 = 0.45;
const INTERVAL_TIMES: f64 = 1.6;

/// By how much faster it is freed than a deadline asks for.
const HASTE: f64 = 1.05;

/// The most that is taken where a latency must be held: it always has to be looked.
const LATENCY_SHARE: f64 = 0.98;

/// While nobody is there: for how long after each piece the pacer looks whether somebody has
/// come whom its discards held up, and for which share of the discards' time at least.
const LOOK: Duration = Duration::from_millis(1);
const LOOK_SHARE: f64 = 0.1;

/// A pause that isn't worth a look.
const SHORT: Duration = Duration::from_micros(20);

/// The longest pause between two looks.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// What was freed and isn't acknowledged yet.
#[derive(Debug, Clone, Copy, Default)]
struct Flight {
    sent: Time,
    freed: u64,
    commands: u64,
    bytes: u64,
    /// Of them, those that were discarded before.
    twice: u64,
    busy: f64,
    flushes: u64,
    flushing: f64,
    /// Nobody looked for a part of its time, so that nothing is known of it.
    absent: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Adaptive {
    goal: Goal,
    mode: DebtMode,
    meter: Meter,
    debt: Debt,
    cost: Cost,
    interference: Interference,
    budget: Budget,
    sizes: Sizes,
    latency: Latency,
    deferred: DeferredRate,
    flight: Option<Flight>,
    /// Small discards that came after the last piece was acknowledged.
    late: u64,
    /// From freeing to the acknowledgement, less the device's time; in seconds.
    overhead: f64,
    /// When the last piece was acknowledged, and how long its discards took, in seconds.
    landed: Time,
    discarding: f64,
    /// When it began, for the deadline.
    start: Option<Time>,
    freed: u64,
    /// Whether the last look was without discards and debt.
    was_quiet: bool,
    was_idle: bool,
    /// Whether the budget kept the next piece waiting.
    waited: bool,
    lost: f64,
    /// What was freed and discarded a second time; and where that may happen, of how
    /// many bytes it is believed before it was seen.
    twice: u64,
    assumed_twice: Option<u64>,
    /// How many deleters divide the goal, ourselves included.
    deleters: f64,
    /// Bytes of the last piece: its groups come with the next commit.
    last_freed: u64,
    refusal: Option<Refusal>,
    /// No latency is refused any more.
    committed: bool,
}

/// What holds at this moment.
#[derive(Debug, Clone, Copy)]
struct Share {
    share: f64,
    why: Option<Why>,
}

impl Adaptive {
    pub(crate) fn new(goal: Goal, work: &Work, card: Option<&Card>) -> Adaptive {
        let most = card
            .and_then(|card| plan(card, work, &goal).ok())
            .map_or(u64::MAX, |plan| plan.piece);
        let phi = card.and_then(|c| c.figures().discard.as_ref().map(ssd::Discard::phi));
        let cost = card.map_or_else(Cost::default, |c| {
            Cost::of(c, work.smallest(), work.whole())
        });
        Adaptive {
            goal,
            mode: work.mode,
            meter: Meter::default(),
            debt: Debt::new(work.mode),
            interference: Interference::new(phi),
            budget: Budget::new(DEPTH),
            sizes: Sizes::new(work, &goal, cost.is_known().then_some(most)),
            cost,
            latency: Latency::new(goal.max_latency),
            deferred: DeferredRate::default(),
            flight: None,
            late: 0,
            overhead: 0.0,
            landed: Time::ZERO,
            discarding: 0.0,
            start: None,
            freed: 0,
            was_quiet: true,
            was_idle: false,
            waited: false,
            lost: 0.0,
            twice: 0,
            assumed_twice: work
                .discards_twice
                .then_some((work.bytes / 8).min(4 * GROUP)),
            deleters: 1.0,
            last_freed: 0,
            refusal: None,
            committed: false,
        }
    }

    /// See [`crate::Pacer::commit_to_goal`].
    pub(crate) fn commit_to_goal(&mut self) {
        self.committed = true;
    }

    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref().filter(|_| !self.committed)
    }

    pub(crate) fn state(&self) -> State {
        State {
            debt: self.debt.bytes(),
            written_off: self.debt.written_off(),
            discarded_twice: self.twice,
            answered: self.debt.is_answered(),
            piece: self.sizes.current(),
            service_s: self.cost.predict(self.sizes.whole()),
            phi: self.interference.phi(),
            charged_s: Some(self.lost),
            idle: self.was_idle,
            rest_s: self.rest_s(),
        }
    }

    pub(crate) fn expect_extents(&mut self, bytes: u64) {
        self.sizes.expect_extents(bytes);
    }

    /// After the smallest discard that was seen.
    fn rest_s(&self) -> f64 {
        let (share, smallest) = (self.goal.share(), self.cost.predict(1.0));
        match share < 1.0 {
            true => self.interference.phi() * smallest.unwrap_or(0.0) / share,
            false => 0.0,
        }
    }

    pub(crate) fn advise(&mut self, seen: &Feedback<'_>) -> Advice {
        let tick = self.take_in(seen);
        let now = self.meter.now();
        let piece = self.sizes.current();
        if self.mode == DebtMode::Never && seen.left != Some(0) {
            return Advice::free(u64::MAX, u64::MAX, Why::Unpaced);
        }
        let share = self.share(now, seen);
        if share.share >= 1.0 && seen.left != Some(0) {
            let why = share.why.unwrap_or(Why::Unpaced);
            return Advice::free(u64::MAX, self.sizes.whole() as u64, why);
        }
        let duty = if seen.settled {
            self.debt.settle(seen.left == Some(0));
            Duty::Paid
        } else {
            let round_trip = Duration::from_secs_f64(self.overhead);
            self.debt.duty(now, seen.commits, round_trip)
        };
        match duty {
            Duty::Commit => return Advice::commit(piece),
            Duty::Wait => return Advice::wait(self.poll(), piece, self.waiting()),
            Duty::Paid => self.land(now),
        }
        if seen.left == Some(0) {
            return Advice::wait(Duration::ZERO, piece, Why::Done);
        }
        if self.refusal().is_some() {
            return Advice::wait(LONGEST_WAIT, piece, Why::Refused);
        }
        if self.mode == DebtMode::Deferred || !self.debt.is_answered() {
            let whole = self.sizes.whole();
            let terms = Terms {
                share: share.share / self.interference.phi(),
                per_byte: self.cost.predict(whole).map(|seconds| seconds / whole),
                at_least: self.by_deadline(now, seen),
                expected: self.mode == DebtMode::Deferred,
            };
            return self
                .deferred
                .advise(now, seen.freed, &tick, terms, &self.sizes);
        }
        self.next(now, seen, share)
    }

    /// Takes in what happened.
    fn take_in(&mut self, seen: &Feedback<'_>) -> Tick {
        let freed_at = self.flight.map(|flight| flight.sent);
        let tick = self.meter.tick(seen, freed_at);
        let now = self.meter.now();
        self.start.get_or_insert(now);
        self.deleters = 1.0 + f64::from(seen.deleters_beside);
        let pending_before = self.debt.bytes() > 0 && !seen.settled;
        let paid = self
            .debt
            .update(now, seen.freed, seen.exempt, seen.discards.bytes);
        if seen.absent {
            self.debt.excuse(now);
        }
        let new = seen.freed.saturating_sub(self.freed);
        let all_are_own = self.all_are_own(&tick, new);
        if self.flight.is_none() && all_are_own {
            self.late += tick.commands;
        }
        let twice = self.second_discards(tick.bytes.saturating_sub(paid), seen.freed);
        let own = match all_are_own {
            true => OwnDiscards::all(&tick),
            false => OwnDiscards::of(&tick, paid + twice, self.sizes.whole(), &self.cost),
        };

        let nothing = tick.busy <= 0.0 && tick.commands == 0 && new == 0;
        let began = now.since(self.landed).as_secs_f64() - tick.seconds;
        let echoes = began + SHORT.as_secs_f64() < self.interference.echo().as_secs_f64();
        let quiet = !pending_before && nothing && self.was_quiet && !echoes;
        self.was_quiet = self.debt.bytes() == 0 || seen.settled;
        self.interference.observe(&tick, quiet, seen.canary);
        self.latency
            .observe(seen.canary, &self.interference, !quiet);
        if let Some(flight) = &mut self.flight {
            flight.freed += new;
            flight.absent |= seen.absent;
            flight.commands += own.commands;
            flight.bytes += own.bytes;
            flight.twice += twice;
            flight.busy += own.busy;
            flight.flushes += tick.flushes;
            flight.flushing += tick.flushing;
        }
        self.freed = seen.freed;
        self.sizes.discarded(self.times());

        let idle = self.interference.is_idle();
        if self.was_idle && !idle {
            // They are back: what was done meanwhile gave nothing to spend.
            self.budget.at_most(0.0);
            self.interference.restart();
        }
        self.was_idle = idle;
        let share = self.share(now, seen).share;
        self.budget.refill(now, share, self.depth(share));
        if !idle {
            let loss = own.busy * self.interference.phi();
            self.lost += loss;
            self.budget.charge(loss);
        }
        tick
    }

    /// Of bytes that paid for nothing, those that are taken to be own a second time.
    fn second_discards(&mut self, bytes: u64, freed: u64) -> u64 {
        if self.assumed_twice.is_none() || bytes < SMALLEST_GROUP {
            return 0;
        }
        let twice = bytes.min(freed.saturating_sub(self.twice));
        self.twice += twice;
        twice
    }

    /// How many times each byte is discarded, on average: 1 to 2.
    fn times(&self) -> f64 {
        let believed = self.assumed_twice.unwrap_or(0);
        let freed = self.freed.saturating_sub(self.last_freed).max(self.twice);
        1.0 + (self.twice + believed) as f64 / (freed + believed).max(1) as f64
    }

    /// Whether all discards of a tick are taken to be our own, whatever was owed.
    ///
    /// File systems discard more than was freed (ext4 on to the next used block),
    /// and their own trees' blocks with a commit: no more commands than own must
    /// be, or small ones, are nobody else's.
    fn all_are_own(&self, tick: &Tick, new: u64) -> bool {
        let Some(flight) = self.flight else {
            let late = (self.late + tick.commands) as f64;
            return late <= MOST_BESIDE && is_beside(tick.bytes, tick.commands as f64);
        };
        let freed = flight.freed + new;
        let commands = (flight.commands + tick.commands) as f64;
        let due = (freed as f64 / self.sizes.whole()).round().max(1.0);
        let beside = self.sizes.beside();
        let more = (flight.bytes + tick.bytes).saturating_sub(freed);
        commands <= due || beside > 0.5 && is_beside(more, beside)
    }

    /// The flight's piece is acknowledged.
    fn land(&mut self, now: Time) {
        let Some(flight) = self.flight.take_if(|flight| flight.freed > 0) else {
            return;
        };
        self.budget.release();
        self.interference.landed();
        self.last_freed = flight.freed;
        if self.debt.bytes() > flight.freed / 2 || flight.absent {
            // Held by an extent of which more is to be freed: it tells nothing of sizes.
            return;
        }
        // Of what is shared less is discarded: it is what is freed that is paced.
        let bytes = flight.bytes.max(flight.freed);
        let commands = flight.commands + std::mem::take(&mut self.late);
        self.sizes
            .landed(flight.freed, flight.twice, commands, bytes, flight.busy);
        self.sizes.flushed(flight.flushes, flight.flushing);
        // A commit's own discards tell nothing of what an extent's takes.
        let beside = self.sizes.beside().round() as u64;
        let (own, busy) = match flight.commands.saturating_sub(beside) {
            0 => (flight.commands, flight.busy),
            _ if beside == 0 => (flight.commands, flight.busy),
            own => (own, (flight.busy - self.sizes.commit()).max(0.0)),
        };
        self.cost.learn(own, bytes, busy);
        if flight.bytes > 0 {
            let took = now.since(flight.sent).as_secs_f64();
            // Discards beside each other take no longer than the piece.
            (self.landed, self.discarding) = (now, flight.busy.min(took));
            let over = (took - flight.busy).max(0.0);
            self.overhead = if self.overhead > 0.0 {
                self.overhead + 0.3 * (over - self.overhead)
            } else {
                over
            };
        }
        self.refusal = self.refusal.or_else(|| {
            self.latency
                .refusal(&self.sizes, &self.cost, flight_size(&flight))
        });
    }

    /// The share that may be lost: the goal's, or more.
    fn share(&self, now: Time, seen: &Feedback<'_>) -> Share {
        let mut goal = self.goal.share() / self.deleters;
        if self.goal.max_latency.is_some() {
            // Whatever throughput may be lost, the latency is held.
            goal = goal.min(LATENCY_SHARE);
        }
        let mut share = Share {
            share: goal,
            why: None,
        };
        let urgency = seen.space.map_or(0.0, |space| space.urgency());
        if urgency > 0.0 {
            share = Share {
                share: goal + (1.0 - goal) * urgency,
                why: Some(Why::Urgent),
            };
        }
        if let (Some(left), Some(remains)) = (seen.left, self.remains(now)) {
            let needed = self.rest(left).unwrap_or(0.0) * HASTE / remains;
            if needed > share.share {
                let most = match self.goal.max_latency {
                    Some(_) => LATENCY_SHARE,
                    None => 1.0,
                };
                share = Share {
                    share: needed.min(most),
                    why: Some(Why::Deadline),
                };
            }
        }
        share
    }

    /// How long until the deadline, in seconds.
    fn remains(&self, now: Time) -> Option<f64> {
        let remains = self.goal.deadline?.saturating_sub(now.since(self.start?));
        Some(remains.as_secs_f64().max(1e-3))
    }

    /// Bytes for each second that the deadline asks for.
    fn by_deadline(&self, now: Time, seen: &Feedback<'_>) -> f64 {
        match (seen.left, self.remains(now)) {
            (Some(left), Some(remains)) => left as f64 * HASTE / remains,
            _ => 0.0,
        }
    }

    /// What the rest will cost the others, in seconds.
    fn rest(&self, left: u64) -> Option<f64> {
        let pieces = (left as f64 / self.sizes.current() as f64).ceil();
        if let Some((commit, per_byte)) = self.sizes.line(&self.cost) {
            let bytes = left as f64 * self.times();
            return Some(self.interference.phi() * (commit * pieces + per_byte * bytes));
        }
        let one = self.cost.predict(self.sizes.whole())?;
        let extents = (left as f64 / self.sizes.whole()).ceil();
        Some(
            self.interference.phi() * (one * extents * self.times() + self.sizes.commit() * pieces),
        )
    }

    /// max(1 s, 2·S/g), for the discard that is the unit here.
    fn window(&self, share: f64) -> f64 {
        // Of a size that is known: a guess would widen the window.
        let one = self.cost.predict(self.sizes.known_command()).unwrap_or(0.0);
        let share_of_all = share * self.deleters;
        (2.0 * one * self.interference.phi() / share_of_all).clamp(1.0, 30.0)
    }

    /// The most that is saved up: a piece, and for whoever asks late what was
    /// missed. Not before its size is known, and not where two would both catch up.
    fn depth(&self, share: f64) -> f64 {
        let need = self.need(self.sizes.current());
        let late = DEPTH * self.window(share);
        if self.sizes.is_probing(&self.cost) || self.deleters > 1.0 {
            return need.max(late);
        }
        need + late
    }

    /// What a piece of so many bytes costs the others at most, in seconds.
    fn need(&self, piece: u64) -> f64 {
        if let Some((commit, per_byte)) = self.sizes.line(&self.cost) {
            return self.interference.phi() * (commit + per_byte * self.times() * piece as f64);
        }
        let command = self.sizes.whole().min(piece as f64);
        let one = self.cost.predict(command).unwrap_or(DEPTH);
        let discards = (piece as f64 / command).max(1.0) * self.times();
        self.interference.phi() * (one * discards + self.sizes.commit())
    }

    fn waiting(&self) -> Why {
        if self.sizes.is_probing(&self.cost) {
            Why::Probing
        } else {
            Why::Debt
        }
    }

    /// When to look for the acknowledgement: nearer and nearer to when it is
    /// expected, so that it is neither missed nor looked for all the time.
    fn poll(&self) -> Duration {
        let whole = self.need(self.sizes.current()) / self.interference.phi().max(0.1);
        let (left, paid) = self.debt.share_left();
        let around = if paid { 0.0 } else { self.overhead };
        // Beside others the pause that follows is longer than what is missed.
        let longest = if self.was_idle { 0.003 } else { 0.010 };
        let soon = ((whole * left + around) / 4.0).clamp(0.0005, longest);
        // What has been silent for long won't come in the next moment.
        let late = self.debt.silent(self.meter.now()).as_secs_f64() / 8.0;
        Duration::from_secs_f64(soon.max(late.min(0.1)))
    }

    /// The next piece, or how long until it may go.
    fn next(&mut self, now: Time, seen: &Feedback<'_>, share: Share) -> Advice {
        if self.flight.take().is_some() {
            // One that was allowed and not used is given again.
            self.budget.release();
        }
        let phi = self.interference.phi();
        let idle = self.interference.is_idle();
        let window = self.window(share.share);
        // Where pieces are long, whole ones must fit.
        let one = self.need(self.sizes.known_command() as u64);
        let lump = one.max(self.need(self.sizes.current()));
        // As many whole ones as the goal has room for, or one more.
        let fit = (NEARLY * share.share * window / lump.max(1e-9)).ceil() * lump * UNLIKE;
        let slack = (fit / window - share.share).clamp(SLACK, TOLERANCE);
        let most = (share.share + slack) * window;
        let finishing = seen
            .left
            .and_then(|left| self.rest(left))
            .is_some_and(|rest| {
                self.cost.largest() >= self.sizes.whole() / 2.0
                    && self.budget.lost_in(window) + rest * 1.1 <= share.share * window
            });
        let hurry = if idle || finishing {
            f64::INFINITY
        } else {
            share.share
        };
        let piece = self
            .sizes
            .choose(&self.cost, phi, hurry, self.overhead, self.latency.scale());
        let need = self.need(piece);
        let mut wait = Duration::ZERO;
        if idle {
            wait = LOOK.max(Duration::from_secs_f64(self.discarding * LOOK_SHARE));
            wait = wait.saturating_sub(now.since(self.landed));
        } else {
            if !finishing {
                wait = self.budget.until(need, share.share);
            }
            // A loss is told when it is over, and began before.
            let interval = INTERVAL.max(3.0 * one);
            let lump = one.max(need.min(COMMIT_LOSS));
            let within = lump.max(interval * INTERVAL_SHARE.max(INTERVAL_TIMES * share.share));
            // A piece that others feel little is long for what it costs.
            let before = (interval - lump / phi.min(1.0)).max(0.0);
            wait = wait
                .max(self.budget.until_window(need, window - lump, most))
                .max(self.budget.until_window(need, before, within));
        }
        let why = match share.why {
            Some(why) => why,
            None if idle => Why::Idle,
            None if self.latency.is_exceeded() || self.budget.tokens() < -2.0 * need => {
                Why::BackingOff
            }
            None if self.sizes.is_probing(&self.cost) => Why::Probing,
            None if finishing => Why::Finishing,
            None => Why::Holding,
        };
        self.waited |= wait > SHORT && !idle;
        if wait > SHORT {
            // What still shows of the last piece is looked at by itself.
            let echo = self
                .interference
                .echo()
                .saturating_sub(now.since(self.landed));
            let longest = if echo > SHORT { echo } else { LONGEST_WAIT };
            return Advice::wait(wait.min(longest), piece, why);
        }
        self.sizes.sent(std::mem::take(&mut self.waited));
        self.interference.expect_own(self.sizes.is_by_commit());
        self.budget.reserve(if idle { 0.0 } else { need });
        self.flight = Some(Flight {
            sent: now,
            ..Flight::default()
        });
        Advice::free(piece, self.sizes.command().min(piece), why)
    }
}

/// Bytes and seconds of a usual command of a flight. Of what was discarded beyond
/// what was freed it could be no smaller all the same.
fn flight_size(flight: &Flight) -> (f64, f64) {
    let commands = flight.commands.max(1) as f64;
    let bytes = flight.bytes.min(flight.freed);
    (bytes as f64 / commands, flight.busy / commands)
}
