//! `trimbench guard`: a mount without `discard`, and trims of what was freed.
//!
//! Its rules are those of the guard ([`pace::trims`]). It looks more seldom than the guard does, which
//! changes little: freed space waits for 30 s as a rule.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use pace::trims::{Debt, Moment, Pending, Ripe, Rule, in_order};
use pace::{Goal, Work, Worth};
use ssd::Time;

use super::paced::{Paced, Turn};
use super::{Desk, Nature, Order, Policy};

/// The pause between two looks. Space that was freed since the last but one is left alone.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// The guard of one volume.
#[derive(Debug)]
pub(super) struct Guard {
    goal: Goal,
    /// Bytes in a block group.
    group: u64,
    max_age: Duration,
    /// Shorter runs wait; `None`: by what trims cost.
    min_run: Option<u64>,
    /// Ranges freed and not trimmed.
    debt: Debt,
    worth: Worth,
    /// Of the present series: ranges to discard.
    queue: VecDeque<Range<u64>>,
    left: u64,
    paced: Option<Paced>,
    /// The range in flight, and the devices' discards and their time before.
    in_flight: Option<(Range<u64>, u64, Duration)>,
    next: u64,
    is_awake: bool,
    cancelled: u64,
}

/// A time in milliseconds; 0 would be an unknown one.
fn moment(time: Time) -> Moment {
    time.as_nanos() / 1_000_000 + 1
}

impl Guard {
    pub(super) fn new(goal: Goal, group: u64, max_age: Duration, min_run: Option<u64>) -> Guard {
        Guard {
            goal,
            group,
            max_age,
            min_run,
            debt: Debt::default(),
            worth: Worth::default(),
            queue: VecDeque::new(),
            left: 0,
            paced: None,
            in_flight: None,
            next: 0,
            is_awake: false,
            cancelled: 0,
        }
    }

    /// Begins a series if enough is ripe, or has waited for long enough.
    fn begin(&mut self, desk: &mut Desk<'_>) {
        let now = moment(desk.now);
        let rule = Rule {
            fresh_for: LOOK_EVERY,
            max_age: self.max_age,
            least_run: self.min_run.unwrap_or_else(|| self.worth.least_run()),
        };
        let hurried = rule.is_over(&self.debt, now);
        if !rule.is_due(&self.debt, now, hurried) {
            return;
        }
        self.queue = self.in_order(rule.ripe(now, hurried), desk);
        self.left = self.queue.iter().map(|range| range.end - range.start).sum();
        let work = Work {
            unit: self.group.min(desk.limits.max_bytes),
            ..Work::new(self.left, self.queue.len() as u64)
        };
        self.paced = Paced::new(pace::trims::goal(self.goal, hurried), &work, desk);
        desk.order(Order::Canary(self.paced.is_some()));
        self.step(desk);
    }

    /// The discards of a series: oldest and longest first. A group of which half of the free bytes
    /// and extents are ripe goes whole; elsewhere each free extent goes from the ripe part on.
    fn in_order(&self, ripe: Ripe, desk: &Desk<'_>) -> VecDeque<Range<u64>> {
        let mut whole: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut last_end = u64::MAX;
        for (pending, _) in ripe.of(&self.debt) {
            let sums = whole.entry(pending.range.start / self.group).or_default();
            sums.0 += pending.bytes();
            sums.1 += u64::from(pending.range.start != last_end);
            last_end = pending.range.end;
        }
        let mut free_of: BTreeMap<u64, Option<Vec<Range<u64>>>> = BTreeMap::new();
        for (group, (bytes, extents)) in whole {
            let free = (desk.volume).free_within(&(group * self.group..(group + 1) * self.group));
            let held: u64 = free.iter().map(|range| range.end - range.start).sum();
            let goes = bytes * 2 >= held && extents * 2 >= free.len() as u64;
            free_of.insert(group, goes.then_some(free));
        }
        let mut queue: VecDeque<Range<u64>> = VecDeque::new();
        for range in in_order(&self.debt, ripe).into_iter().map(|one| one.range) {
            let group = range.start / self.group;
            match free_of.get_mut(&group) {
                Some(Some(free)) => queue.extend(std::mem::take(free)),
                _ => {
                    // ext4 trims what touches the window to its end in the group.
                    let rest = range.start..((group + 1) * self.group).max(range.end);
                    let free = desk.volume.free_within(&rest).into_iter().next();
                    queue.extend(free.filter(|free| free.start == range.start));
                }
            }
        }
        queue
    }

    /// The next range of which something is still pending and free.
    fn next_range(&mut self, desk: &Desk<'_>) -> Option<Range<u64>> {
        while let Some(range) = self.queue.pop_front() {
            self.left = self.left.saturating_sub(range.end - range.start);
            let free = desk.volume.free_within(&range).into_iter().next();
            let pending = self.debt.first_within(range).is_some();
            if let Some(mut free) = free.filter(|_| pending) {
                free.end = free.end.min(free.start + desk.limits.max_bytes);
                return Some(free);
            }
        }
        None
    }

    fn step(&mut self, desk: &mut Desk<'_>) {
        if self.in_flight.is_some() {
            return;
        }
        match Paced::turn(&mut self.paced, desk, self.left) {
            Turn::Sleep(pause) => return desk.wake(&mut self.is_awake, desk.now + pause),
            Turn::Commit => return,
            Turn::Free { .. } => {}
        }
        let Some(range) = self.next_range(desk) else {
            self.left = 0;
            match self.paced.is_some() {
                true => self.step(desk),
                false => desk.wake(&mut self.is_awake, desk.now + LOOK_EVERY),
            }
            return;
        };
        if let Some(paced) = &mut self.paced {
            paced.freed += range.end - range.start;
        }
        let seen = desk.seen.discards;
        self.in_flight = Some((range.clone(), seen.ops, seen.busy));
        desk.order(Order::Discard {
            tag: self.next,
            ranges: vec![range],
        });
        self.next += 1;
    }

    fn go_on(&mut self, desk: &mut Desk<'_>) {
        match self.paced.is_some() || !self.queue.is_empty() {
            true => self.step(desk),
            false => {
                self.begin(desk);
                if self.paced.is_none() && !self.debt.is_empty() {
                    desk.wake(&mut self.is_awake, desk.now + LOOK_EVERY);
                }
            }
        }
    }
}

impl Policy for Guard {
    fn nature(&self) -> Nature {
        Nature {
            canary: true,
            ..Nature::default()
        }
    }

    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        desk.release(ranges);
        for range in ranges {
            self.debt.add(range.clone(), moment(desk.now));
        }
        if self.paced.is_none() && self.in_flight.is_none() {
            desk.wake(&mut self.is_awake, desk.now + LOOK_EVERY);
        }
    }

    fn allocated(&mut self, range: &Range<u64>) {
        let cancelled = self.debt.remove(range.clone());
        self.cancelled += cancelled.iter().map(Pending::bytes).sum::<u64>();
    }

    fn committed(&mut self, desk: &mut Desk<'_>) {
        Paced::look(&mut self.paced, desk);
        if self.paced.is_some() {
            self.step(desk);
        }
    }

    fn discarded(&mut self, _: u64, desk: &mut Desk<'_>) {
        if let Some((range, commands, busy)) = self.in_flight.take() {
            let seen = desk.seen.discards;
            let bytes = range.end - range.start;
            self.worth
                .learn(seen.ops - commands, bytes, seen.busy.saturating_sub(busy));
            self.debt.remove(range);
        }
        Paced::look(&mut self.paced, desk);
        self.step(desk);
    }

    fn woken(&mut self, desk: &mut Desk<'_>) {
        self.is_awake = false;
        Paced::look(&mut self.paced, desk);
        self.go_on(desk);
    }

    fn is_settled(&self) -> bool {
        self.debt.is_empty() && self.in_flight.is_none() && self.paced.is_none()
    }

    fn cancelled_bytes(&self) -> u64 {
        self.cancelled
    }
}
