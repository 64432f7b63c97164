//! The state that the drive's one lock protects.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::time::{Duration, Instant};

use ssd::drive;
use ssd::{Command, Completion, Drive, Figures, Id, Time};

use crate::faults::{Faults, Outcome};
use crate::stats::{Counts, Kind};

/// Discards that a fault does after their answers: when, and from where to where.
pub(super) type LateTrims = BinaryHeap<Reverse<(Instant, u64, u64)>>;

#[derive(Debug)]
pub(super) struct State<A> {
    pub(super) drive: Drive,
    pub(super) clock: Clock,
    pub(super) pending: HashMap<Id, Pending<A>>,
    /// The time until which the timekeeper sleeps.
    pub(super) alarm: Option<Instant>,
    pub(super) counts: Counts,
    /// The drive's own counts when these were reset.
    pub(super) before: drive::Stats,
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
    pub(super) flush: u64,
}

impl<A> State<A> {
    pub(super) fn new(drive: Drive, slower: f64) -> State<A> {
        State {
            drive,
            clock: Clock::new(Instant::now(), slower),
            pending: HashMap::new(),
            alarm: None,
            counts: Counts::new(),
            before: drive::Stats::default(),
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

// The drive's time: the real one, stretched, and standing still while the
// drive hangs.

/// The longest time that a drive hangs after an order to hang.
pub(super) const LONGEST_HANG: Duration = Duration::from_secs(86_400);

#[derive(Debug, Clone)]
pub(super) struct Clock {
    /// Real time of `time`.
    real: Instant,
    time: Time,
    /// Real time for each of the drive's, e.g. 4 on a drive 4 times slower.
    slower: f64,
    /// Until then it stands still at `time`.
    hangs_until: Option<Instant>,
}

impl Clock {
    pub(super) fn new(now: Instant, slower: f64) -> Clock {
        Clock {
            real: now,
            time: Time::ZERO,
            slower,
            hangs_until: None,
        }
    }

    /// The drive's time; `None` while it hangs.
    pub(super) fn at(&mut self, now: Instant) -> Option<Time> {
        if let Some(end) = self.hangs_until {
            if now < end {
                return None;
            }
            self.real = end;
            self.hangs_until = None;
        }
        let real = now.saturating_duration_since(self.real);
        if self.slower == 1.0 {
            return Some(self.time + real);
        }
        Some(self.time + real.div_f64(self.slower))
    }

    /// Converts a span of real time into one of the drive's.
    pub(super) fn virtual_span(&self, span: Duration) -> Duration {
        span.div_f64(self.slower)
    }

    /// The time that it stands still at, while it hangs.
    pub(super) fn stopped(&self) -> Time {
        self.time
    }

    /// When the drive's time will be `time`.
    pub(super) fn real(&self, time: Time) -> Instant {
        let since = time.since(self.time);
        let since = if self.slower == 1.0 {
            since
        } else {
            since.mul_f64(self.slower)
        };
        self.hangs_until.unwrap_or(self.real) + since
    }

    /// Stops the clock for `span` of real time from now, at most [`LONGEST_HANG`]. This also ends
    /// an earlier hang; 0 ends it now.
    pub(super) fn hang(&mut self, now: Instant, span: Duration) {
        if let Some(time) = self.at(now) {
            self.time = time;
            self.real = now;
        }
        self.hangs_until = Some(now + span.min(LONGEST_HANG));
    }

    /// How long it will still stand still; `None` if it doesn't.
    pub(super) fn hangs_for(&self, now: Instant) -> Option<Duration> {
        let left = self.hangs_until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_time_and_stands_still_while_it_hangs() {
        let start = Instant::now();
        let s = |s: u64| start + Duration::from_secs(s);
        let time = |s: u64| Time::from_nanos(s * 1_000_000_000);
        let mut clock = Clock::new(start, 4.0);
        assert_eq!(clock.at(s(40)), Some(time(10)));
        assert_eq!(clock.real(time(12)), s(48));

        clock.hang(s(40), Duration::from_secs(5));
        assert_eq!((clock.at(s(44)), clock.stopped()), (None, time(10)));
        assert_eq!(clock.real(time(12)), s(53), "what was to come comes later");
        clock.hang(s(44), Duration::from_secs(10));
        assert_eq!(clock.hangs_for(s(50)), Some(Duration::from_secs(4)));
        assert_eq!(clock.at(s(49)), None, "the second hang replaces the first");
        assert_eq!(clock.at(s(58)), Some(time(11)));
        assert_eq!(clock.real(time(12)), s(62));

        clock.hang(s(62), Duration::from_secs(1000));
        clock.hang(s(70), Duration::ZERO);
        assert_eq!(
            (clock.at(s(70)), clock.hangs_for(s(70))),
            (Some(time(12)), None)
        );
    }

    #[test]
    fn hangs_for_a_day_at_most() {
        let start = Instant::now();
        let mut clock = Clock::new(start, 1000.0);
        for _ in 0..3 {
            clock.hang(start, Duration::MAX);
            clock.real(Time::from_nanos(u64::MAX));
        }
        assert_eq!(clock.at(start + LONGEST_HANG), Some(Time::ZERO));
    }
}
