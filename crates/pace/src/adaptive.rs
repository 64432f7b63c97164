//! The default: as fast as the goal allows, and no faster.
//!
//! It frees one piece at a time. The next piece follows when the device has acknowledged the last
//! and the others have got back the time that it took. Each piece is charged with its measured
//! cost, so a wrong estimate lengthens one pause and no more.
//!
//! The first piece is small. Each further piece stays within the goal even in the worst case: a
//! time that grows with the size.

use std::time::Duration;

use ssd::{Card, Time};

use crate::budget::Budget;
use crate::cost::Cost;
use crate::debt::{Debt, DebtMode, Duty, SecondDiscards};
use crate::feedback::Feedback;
use crate::flight::{Flight, RoundTrips};
use crate::goal::Goal;
use crate::interference::Interference;
use crate::latency::Latency;
use crate::meter::{Meter, Tick};
use crate::ownership::OwnDiscards;
use crate::pacer::{Advice, State, Why};
use crate::pause::{self, Pause, PauseTerms};
use crate::piece::Sizes;
use crate::plan::plan;
use crate::quantity::{Bytes, Seconds, Share};
use crate::refusal::Refusal;
use crate::shape::{MOST_BESIDE, is_beside};
use crate::simple::{DeferredRate, DeferredTerms};
use crate::terms::{LossLimit, Terms};
use crate::work::Work;

/// The most that the budget saves, as a share of the window: just enough to catch up after a
/// delayed look.
const DEPTH: Share = Share(0.01);

/// The shortest window, and the longest.
const SHORTEST_WINDOW: Seconds = Seconds(1.0);
const LONGEST_WINDOW: Seconds = Seconds(30.0);

/// A pause that isn't worth a look.
const SHORT: Duration = Duration::from_micros(20);

/// The longest pause between two looks.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Frees one piece at a time within a budget of lost time.
#[derive(Debug, Clone)]
pub(crate) struct Adaptive {
    terms: Terms,
    mode: DebtMode,
    meter: Meter,
    debt: Debt,
    twice: SecondDiscards,
    cost: Cost,
    interference: Interference,
    budget: Budget,
    sizes: Sizes,
    latency: Latency,
    deferred: DeferredRate,
    flight: Option<Flight>,
    trips: RoundTrips,
    /// Small discards that came after the last piece was acknowledged.
    late: u64,
    freed: u64,
    state: Looked,
}

/// The results of the last look.
#[derive(Debug, Clone, Copy)]
struct Looked {
    /// There were neither discards nor debt.
    quiet: bool,
    /// Nobody else used the device.
    idle: bool,
    /// The budget kept the next piece waiting.
    waited: bool,
    /// Why the next piece waited, or didn't, when others were last there.
    pause: Option<PauseTerms>,
}

impl Adaptive {
    pub(crate) fn new(goal: Goal, work: &Work, card: Option<&Card>) -> Adaptive {
        let planned = card.and_then(|card| plan(card, work, &goal).ok());
        let phi = card.and_then(|c| c.figures().discard.as_ref().map(ssd::Discard::phi));
        let cost = card.map_or_else(Cost::default, |c| {
            Cost::of(c, work.smallest(), work.whole())
        });
        Adaptive {
            terms: Terms::new(goal),
            mode: work.mode,
            meter: Meter::default(),
            debt: Debt::new(work.mode),
            twice: SecondDiscards::new(work),
            interference: Interference::new(phi.map(Share)),
            budget: Budget::new(DEPTH * SHORTEST_WINDOW),
            sizes: Sizes::new(
                work,
                &goal,
                planned.filter(|_| cost.is_known()).map(|p| p.piece),
            ),
            cost,
            latency: Latency::new(goal.max_latency),
            deferred: DeferredRate::default(),
            flight: None,
            trips: RoundTrips::default(),
            late: 0,
            freed: 0,
            state: Looked {
                quiet: true,
                idle: false,
                waited: false,
                pause: None,
            },
        }
    }

    /// See [`crate::Pacer::commit_to_goal`].
    pub(crate) fn commit_to_goal(&mut self) {
        self.latency.commit_to_goal();
    }

    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        self.latency.refusal()
    }

    pub(crate) fn state(&self) -> State {
        State {
            debt: self.debt.bytes(),
            written_off: self.debt.written_off(),
            discarded_twice: self.twice.bytes(),
            answered: self.debt.is_answered(),
            piece: self.sizes.current(),
            service_s: self.cost.predict(self.sizes.whole()).map(|time| time.0),
            phi: self.interference.phi().0,
            charged_s: Some(self.budget.charged().0),
            idle: self.state.idle,
            rest_s: self.rest_of_smallest().0,
        }
    }

    pub(crate) fn expect_extents(&mut self, bytes: u64) {
        self.sizes.expect_extents(bytes);
    }

    /// How long the smallest discard that was seen has to make do.
    fn rest_of_smallest(&self) -> Seconds {
        let (share, smallest) = (self.terms.goal_share(), self.cost.predict(Bytes(1.0)));
        match share < Share(1.0) {
            true => self.interference.phi() * smallest.unwrap_or_default() / share,
            false => Seconds::ZERO,
        }
    }

    pub(crate) fn advise(&mut self, seen: &Feedback<'_>) -> Advice {
        let tick = self.take_in(seen);
        let now = self.meter.now();
        let piece = self.sizes.current();
        if self.mode == DebtMode::Never && seen.left != Some(0) {
            return Advice::free(u64::MAX, u64::MAX, Why::Unpaced);
        }
        let limit = self.limit(now, seen);
        if limit.share >= Share(1.0) && seen.left != Some(0) {
            let why = limit.why.unwrap_or(Why::Unpaced);
            return Advice::free(u64::MAX, self.sizes.whole().0 as u64, why);
        }
        let duty = if seen.settled {
            self.debt.settle(seen.left == Some(0));
            Duty::Paid
        } else {
            let round_trip = self.trips.overhead().duration();
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
            let terms = DeferredTerms {
                share: Share(limit.share / self.interference.phi()),
                per_byte: self.cost.predict(whole).map(|time| time / whole),
                at_least: self.terms.by_deadline(now, seen),
                expected: self.mode == DebtMode::Deferred,
            };
            return self
                .deferred
                .advise(now, seen.freed, &tick, terms, &self.sizes);
        }
        self.next(now, seen, limit)
    }

    /// Takes in what happened.
    fn take_in(&mut self, seen: &Feedback<'_>) -> Tick {
        let freed_at = self.flight.map(|flight| flight.sent);
        let tick = self.meter.tick(seen, freed_at);
        let now = self.meter.now();
        self.terms.observe(now, seen);
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
        let unpaid = tick.bytes.saturating_sub(paid);
        let twice = self.twice.observe(unpaid, seen.freed);
        let own = match all_are_own {
            true => OwnDiscards::all(&tick),
            false => OwnDiscards::of(&tick, paid + twice, self.sizes.whole(), &self.cost),
        };

        let nothing = tick.busy <= Seconds::ZERO && tick.commands == 0 && new == 0;
        let began = Seconds::from(self.trips.since_landed(now)) - tick.length;
        let echoes = began + Seconds::from(SHORT) < Seconds::from(self.interference.echo());
        let quiet = !pending_before && nothing && self.state.quiet && !echoes;
        self.state.quiet = self.debt.bytes() == 0 || seen.settled;
        self.interference.observe(&tick, quiet, seen.canary);
        self.latency
            .observe(seen.canary, &self.interference, !quiet);
        if let Some(flight) = &mut self.flight {
            flight.add(new, &own, twice, &tick);
            flight.absent |= seen.absent;
        }
        self.freed = seen.freed;
        self.twice.freed(seen.freed);
        self.sizes.discarded(self.twice.times());

        let idle = self.interference.is_idle() && !self.terms.is_pressing();
        if self.state.idle && !idle {
            // They are back: what was done meanwhile gave nothing to spend.
            self.budget.at_most(Seconds::ZERO);
            self.interference.restart();
        }
        self.state.idle = idle;
        let share = self.limit(now, seen).share;
        self.budget.refill(now, share, self.depth(share));
        if !idle {
            self.budget.charge(self.interference.phi() * own.busy);
        }
        tick
    }

    /// Returns whether all discards of a tick count as our own, whatever the debt.
    ///
    /// File systems discard more than was freed: ext4 up to the next used block, others the blocks
    /// of their own trees with a commit. So discards count as ours if they are no more than
    /// expected, or if the surplus is small.
    fn all_are_own(&self, tick: &Tick, new: u64) -> bool {
        let Some(flight) = self.flight else {
            let late = (self.late + tick.commands) as f64;
            return late <= MOST_BESIDE && is_beside(tick.bytes, tick.commands as f64);
        };
        let freed = flight.freed + new;
        let commands = (flight.commands + tick.commands) as f64;
        let due = (Bytes::from(freed) / self.sizes.whole()).round().max(1.0);
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
        self.twice.landed(flight.freed);
        if self.debt.bytes() > flight.freed / 2 || flight.absent {
            // Held by an extent of which more is to be freed: it tells nothing of sizes.
            return;
        }
        // Of what is shared less is discarded: it is what is freed that is paced.
        let bytes = flight.bytes.max(flight.freed);
        let commands = flight.commands + std::mem::take(&mut self.late);
        self.sizes
            .landed(flight.freed, flight.twice, commands, bytes, flight.busy);
        self.sizes.flushed(&flight);
        // A commit's own discards tell nothing of what an extent's takes.
        let beside = self.sizes.beside().round() as u64;
        let (own, busy) = match flight.commands.saturating_sub(beside) {
            0 => (flight.commands, flight.busy),
            _ if beside == 0 => (flight.commands, flight.busy),
            own => (own, (flight.busy - self.sizes.commit()).max(Seconds::ZERO)),
        };
        self.cost.learn(own, bytes, busy);
        self.trips.landed_now(now, &flight);
        self.latency
            .landed(&self.sizes, &self.cost, flight.command());
    }

    /// Returns the share that may be lost, and the reason where it is more than the goal's.
    fn limit(&self, now: Time, seen: &Feedback<'_>) -> LossLimit {
        let rest = seen.left.and_then(|left| self.rest(left));
        self.terms.limit(now, seen, rest)
    }

    /// Returns the time that the rest will cost the others.
    fn rest(&self, left: u64) -> Option<Seconds> {
        let left = Bytes::from(left);
        let pieces = (left / Bytes::from(self.sizes.current())).ceil();
        if let Some(line) = self.sizes.line(&self.cost) {
            let bytes = left * self.twice.times();
            return Some(self.interference.phi() * (line.fixed * pieces + line.per_byte * bytes));
        }
        // Not the most that a piece may cost: then whoever sets a deadline gets full speed at first.
        let one = self.cost.least(self.sizes.whole())?;
        let extents = (left / self.sizes.whole()).ceil();
        Some(
            self.interference.phi()
                * (one * extents * self.twice.times() + self.sizes.commit() * pieces),
        )
    }

    /// max(1 s, 2·S/g), for the discard that is the unit here.
    fn window(&self, share: Share) -> Seconds {
        // Of a size that is known: a guess would widen the window.
        let one = self.cost.predict(self.sizes.known_command());
        let share_of_all = share * self.terms.deleters();
        (2.0 * (self.interference.phi() * one.unwrap_or_default()) / share_of_all)
            .clamp(SHORTEST_WINDOW, LONGEST_WINDOW)
    }

    /// The most that is saved up: a piece, and for whoever asks late what was
    /// missed. Not before its size is known, and not where two would both catch up.
    fn depth(&self, share: Share) -> Seconds {
        let need = self.need(self.sizes.current());
        let late = DEPTH * self.window(share);
        if self.sizes.is_probing(&self.cost) || self.terms.deleters() > 1.0 {
            return need.max(late);
        }
        need + late
    }

    /// Returns the time that a piece of so many bytes costs the others at most.
    fn need(&self, piece: u64) -> Seconds {
        let piece = Bytes::from(piece);
        if let Some(line) = self.sizes.line(&self.cost) {
            return self.interference.phi() * line.at(piece * self.twice.times());
        }
        let command = self.sizes.whole().min(piece);
        let one = self.cost.predict(command);
        let one = one.unwrap_or(DEPTH * SHORTEST_WINDOW);
        let discards = (piece / command).max(1.0) * self.twice.times();
        self.interference.phi() * (one * discards + self.sizes.commit())
    }

    fn waiting(&self) -> Why {
        if self.sizes.is_probing(&self.cost) {
            Why::Probing
        } else {
            Why::Debt
        }
    }

    /// Returns when to look for the acknowledgement. The looks get closer as it is expected, so
    /// that they neither miss it nor repeat all the time.
    fn poll(&self) -> Duration {
        let whole = self.need(self.sizes.current()) / self.interference.phi().max(Share(0.1));
        let (left, paid) = self.debt.share_left();
        let around = if paid {
            Seconds::ZERO
        } else {
            self.trips.overhead()
        };
        // Beside others the pause that follows is longer than what is missed.
        let longest = if self.state.idle { 0.003 } else { 0.010 };
        let soon = ((whole * left + around) / 4.0).clamp(Seconds(0.0005), Seconds(longest));
        // What has been silent for long won't come in the next moment.
        let late = Seconds::from(self.debt.silent(self.meter.now())) / 8.0;
        soon.max(late.min(Seconds::from(LONGEST_WAIT))).duration()
    }

    /// The next piece, or how long until it may go.
    fn next(&mut self, now: Time, seen: &Feedback<'_>, limit: LossLimit) -> Advice {
        if self.flight.take().is_some() {
            // One that was allowed and not used is given again.
            self.budget.release();
        }
        let phi = self.interference.phi();
        let idle = self.state.idle;
        let share = limit.share;
        let window = self.window(share);
        let one = self.need(self.sizes.known_command().0 as u64);
        let pause = Pause::new(share, phi, window, one, self.need(self.sizes.current()));
        let finishing = seen
            .left
            .and_then(|left| self.rest(left))
            .is_some_and(|rest| {
                self.cost.largest() >= self.sizes.whole() / 2.0
                    && self.budget.lost_in(window) + rest * 1.1 <= share * window
            });
        let held = (!idle && !finishing).then_some(share);
        let piece = self.sizes.choose(
            &self.cost,
            phi,
            held,
            idle,
            self.trips.overhead(),
            self.latency.scale(),
        );
        let need = self.need(piece);
        let wait = match idle {
            true => {
                let pause = pause::while_idle(self.trips.discarding());
                pause.saturating_sub(self.trips.since_landed(now))
            }
            false => {
                let terms = pause.before(need, &self.budget, finishing);
                self.state.pause = Some(terms);
                terms.pause()
            }
        };
        let why = match limit.why {
            Some(why) => why,
            None if idle => Why::Idle,
            None if self.latency.is_exceeded() || self.budget.tokens() < -2.0 * need => {
                Why::BackingOff
            }
            None if self.sizes.is_probing(&self.cost) => Why::Probing,
            None if finishing => Why::Finishing,
            None => Why::Holding,
        };
        self.state.waited |= wait > SHORT && !idle;
        if wait > SHORT {
            // What still shows of the last piece is looked at by itself.
            let echo = self
                .interference
                .echo()
                .saturating_sub(self.trips.since_landed(now));
            let longest = if echo > SHORT { echo } else { LONGEST_WAIT };
            return Advice::wait(wait.min(longest), piece, why);
        }
        self.sizes.sent(std::mem::take(&mut self.state.waited));
        self.interference.expect_own(self.sizes.is_by_commit());
        self.budget.reserve(if idle { Seconds::ZERO } else { need });
        self.flight = Some(Flight {
            sent: now,
            ..Flight::default()
        });
        Advice::free(piece, self.sizes.command().min(piece), why)
    }
}
