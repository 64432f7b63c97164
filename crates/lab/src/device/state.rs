//! The state that the drive's one lock protects.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::thread::ThreadId;
use std::time::Instant;

use ssd::{Command, Completion, Drive, Figures, Id, Time};

use super::clock::Clock;
use crate::faults::{Faults, Outcome};
use crate::stats::{Counts, Kind};
use crate::store::Flush;

/// Discards that a fault does after their answers: when, and from where to where.
pub(super) type LateTrims = BinaryHeap<Reverse<(Instant, u64, u64)>>;

#[derive(Debug)]
pub(super) struct State<A> {
    pub(super) drive: Drive,
    pub(super) clock: Clock,
    pub(super) pending: HashMap<Id, Pending<A>>,
    /// The time until which the timekeeper sleeps.
    pub(super) alarm: Option<Instant>,
    /// The front end's thread that looks next ([`Device::answer_due`](super::Device::answer_due)),
    /// and when.
    pub(super) watch: Option<(Instant, ThreadId)>,
    pub(super) counts: Counts,
    pub(super) faults: Faults,
    pub(super) late: LateTrims,
    completed: Vec<Completion>,
    /// Without power: everything fails.
    pub(super) off: bool,
    pub(super) closed: bool,
}

/// A command that isn't answered.
#[derive(Debug)]
pub(super) struct Pending<A> {
    pub(super) answer: A,
    pub(super) kind: Kind,
    /// All of it.
    pub(super) range: Range<u64>,
    /// Of a discard: what the model hasn't seen yet, for a discard may be larger
    /// than what the drive takes in one command. Else empty.
    pub(super) rest: Range<u64>,
    pub(super) came: Instant,
    pub(super) outcome: Outcome,
    /// How often the power had been cut when it arrived.
    pub(super) cuts: u64,
    /// Of a flush: its number.
    pub(super) flush: Flush,
}

impl<A> State<A> {
    pub(super) fn new(drive: Drive, slower: f64) -> State<A> {
        State {
            drive,
            clock: Clock::new(Instant::now(), slower),
            pending: HashMap::new(),
            alarm: None,
            watch: None,
            counts: Counts::new(),
            faults: Faults::default(),
            late: LateTrims::new(),
            completed: Vec::new(),
            off: false,
            closed: false,
        }
    }

    /// The drive's time: that at which it stands still, while it hangs.
    pub(super) fn time(&mut self, now: Instant) -> Time {
        let time = self.clock.at(now);
        time.unwrap_or_else(|| self.clock.stopped())
    }

    /// Takes out the commands that are done by now.
    pub(super) fn take_completed(&mut self, now: Instant) -> Vec<Pending<A>> {
        let mut done = Vec::new();
        let Some(time) = self.clock.at(now) else {
            return done;
        };
        self.drive.advance(time, &mut self.completed);
        for completion in self.completed.drain(..) {
            let Some(pending) = self.pending.remove(&completion.id) else {
                continue;
            };
            if pending.is_over() {
                let due = self.clock.real(completion.completed);
                self.counts.done(
                    pending.kind,
                    pending.range.end - pending.range.start,
                    now - pending.came,
                    now.saturating_duration_since(due.max(pending.came)),
                    pending.outcome.fails(),
                );
            }
            done.push(pending);
        }
        done
    }

    /// Takes out the late discards that are to be done by now.
    pub(super) fn take_late(&mut self, now: Instant) -> Vec<Range<u64>> {
        let mut due = Vec::new();
        while let Some(&Reverse((when, start, end))) = self.late.peek()
            && when <= now
        {
            self.late.pop();
            due.push(start..end);
        }
        due
    }

    pub(super) fn next_alarm(&self) -> Option<Instant> {
        let event = self.drive.next_event().map(|time| self.clock.real(time));
        let late = self.late.peek().map(|Reverse((when, ..))| *when);
        event.into_iter().chain(late).min()
    }

    /// Lets a thread of the front end look next, unless another one looks before; returns when.
    pub(super) fn watches(&mut self, thread: ThreadId) -> Option<Instant> {
        let next = self.next_alarm();
        let others = self.watch.filter(|&(_, who)| who != thread);
        match (next, others) {
            (Some(next), Some((before, _))) if before <= next => return None,
            (None, Some(_)) => return None,
            _ => self.watch = next.map(|next| (next, thread)),
        }
        next
    }

    /// Whether the timekeeper would sleep too long for this, and has to be woken.
    pub(super) fn is_sooner(&mut self, next: Option<Instant>) -> bool {
        let sooner = next.is_some_and(|next| self.alarm.is_none_or(|alarm| next < alarm));
        if sooner {
            self.alarm = next;
        }
        sooner
    }
}

impl<A> Pending<A> {
    /// Whether the model has seen all that it will see of it.
    pub(super) fn is_over(&self) -> bool {
        self.rest.is_empty() || self.outcome.fails()
    }

    /// The next command of it for the model.
    pub(super) fn next_command(&mut self, figures: &Figures) -> Command {
        match self.kind {
            Kind::Read => Command::Read(self.range.clone()),
            Kind::Write | Kind::Zero => Command::Write(self.range.clone()),
            Kind::Flush => Command::Flush,
            Kind::Discard => {
                let most = figures.discard.as_ref().map_or(u64::MAX, |d| d.max_bytes);
                let end = self.rest.end.min(self.rest.start.saturating_add(most));
                let piece = self.rest.start..end;
                self.rest.start = end;
                // The model counts the costs of a fault's trim as of any other.
                Command::Discard(vec![piece])
            }
        }
    }
}
