//! `trimbench guard`: a mount without `discard`, and trims of what was freed.
//!
//! It keeps the rules of `reclaim::guard`. It looks more seldom than the guard does, which
//! changes little: freed space waits for 30 s as a rule.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use pace::{Goal, Work, Worth};
use ssd::Time;

use super::paced::{CANARY, Paced, Turn};
use super::{Desk, Nature, Order, Policy};

/// The pause between two looks. Space that was freed since the last but one is left alone.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Less debt than this waits longer.
const SMALL: u64 = 64 << 20;
const SMALL_WAITS: Duration = Duration::from_secs(30);

/// A short run waits for this share of the greatest age; all that have waited for almost as long go
/// with it.
const SHORT_WAITS: f64 = 0.5;
const SHORT_GOES: f64 = 0.375;

/// Above its greatest age it takes this share of the foreground.
const HURRIED: f64 = 0.5;

/// The guard of one volume.
#[derive(Debug)]
pub(super) struct Guard {
    goal: Goal,
    /// Bytes in a block group.
    group: u64,
    max_age: Duration,
    /// Shorter runs wait; `None`: by what trims cost.
    min_run: Option<u64>,
    /// Ranges freed and not trimmed: start to end, and since when.
    debt: BTreeMap<u64, (u64, Time)>,
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

impl Guard {
    pub(super) fn new(goal: Goal, group: u64, max_age: Duration, min_run: Option<u64>) -> Guard {
        Guard {
            goal,
            group,
            max_age,
            min_run,
            debt: BTreeMap::new(),
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

    fn least_run(&self) -> u64 {
        self.min_run.unwrap_or_else(|| self.worth.least_run())
    }

    /// All debt, ascending, and whether its run is shorter than that: touching ranges are one run.
    fn runs(&self, least: u64) -> Vec<(Range<u64>, Time, bool)> {
        let mut all: Vec<(Range<u64>, Time, bool)> = Vec::with_capacity(self.debt.len());
        let (mut first, mut run) = (0, 0..0);
        for (&start, &(end, since)) in &self.debt {
            if start != run.end {
                let is_short = run.end - run.start < least;
                all[first..].iter_mut().for_each(|one| one.2 = is_short);
                (first, run) = (all.len(), start..start);
            }
            run.end = end;
            all.push((start..end, since, false));
        }
        let is_short = run.end - run.start < least;
        all[first..].iter_mut().for_each(|one| one.2 = is_short);
        all
    }

    /// Begins a series if enough is ripe, or has waited for long enough.
    fn begin(&mut self, desk: &mut Desk<'_>) {
        let now = desk.now;
        let is_old = |since: Time, age: Duration| now - since >= age;
        let hurried = (self.debt.values()).any(|&(_, since)| is_old(since, self.max_age));
        let least = if hurried { 0 } else { self.least_run() };
        let mut all = self.runs(least);
        all.retain(|&(_, since, short)| {
            let age = match short {
                true => self.max_age.mul_f64(SHORT_GOES),
                false => LOOK_EVERY,
            };
            is_old(since, age)
        });
        let mut bytes = 0;
        let is_due = all.iter().any(|(range, since, short)| match short {
            true => is_old(*since, self.max_age.mul_f64(SHORT_WAITS)),
            false => {
                bytes += range.end - range.start;
                bytes >= SMALL || is_old(*since, SMALL_WAITS.min(self.max_age / 2))
            }
        });
        if !is_due {
            return;
        }
        self.queue = self.in_order(all, desk);
        self.left = self.queue.iter().map(|range| range.end - range.start).sum();
        let work = Work {
            unit: self.group.min(desk.limits.max_bytes),
            ..Work::new(self.left, self.queue.len() as u64)
        };
        let goal = match hurried {
            true => Goal {
                slowdown: self.goal.slowdown.max(HURRIED),
                max_latency: None,
                ..self.goal
            },
            false => self.goal,
        };
        self.paced = Paced::new(goal, &work, desk);
        desk.order(Order::Canary(self.paced.is_some()));
        self.step(desk);
    }

    /// The discards of a series: oldest and longest first. A group of which half of the free bytes
    /// and extents are ripe goes whole; elsewhere each free extent goes from the ripe part on.
    fn in_order(
        &self,
        mut ripe: Vec<(Range<u64>, Time, bool)>,
        desk: &Desk<'_>,
    ) -> VecDeque<Range<u64>> {
        let mut whole: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut last_end = u64::MAX;
        for (range, ..) in &ripe {
            let sums = whole.entry(range.start / self.group).or_default();
            sums.0 += range.end - range.start;
            sums.1 += u64::from(range.start != last_end);
            last_end = range.end;
        }
        let mut free_of: BTreeMap<u64, Option<Vec<Range<u64>>>> = BTreeMap::new();
        for (group, (bytes, extents)) in whole {
            let free = (desk.volume).free_within(&(group * self.group..(group + 1) * self.group));
            let held: u64 = free.iter().map(|range| range.end - range.start).sum();
            let goes = bytes * 2 >= held && extents * 2 >= free.len() as u64;
            free_of.insert(group, goes.then_some(free));
        }
        ripe.sort_by_key(|(range, since, _)| {
            (*since, Reverse(range.end - range.start), range.start)
        });
        let mut queue: VecDeque<Range<u64>> = VecDeque::new();
        for (range, ..) in ripe {
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
            let from = self.debt.range(..=range.start).next_back();
            let pending = from.is_some_and(|(_, &(end, _))| end > range.start)
                || self.debt.range(range.clone()).next().is_some();
            let free = desk.volume.free_within(&range).into_iter().next();
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
            Turn::Free(_) => {}
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

    /// Nothing of a range is pending any more. Returns how many bytes were.
    fn forgive(&mut self, range: &Range<u64>) -> u64 {
        let mut pending = 0;
        let before = self.debt.range(..range.start).next_back();
        let from = before
            .filter(|(_, (end, _))| *end > range.start)
            .map_or(range.start, |(&start, _)| start);
        let hit: Vec<_> = (self.debt.range(from..range.end))
            .map(|(&start, &(end, since))| (start, end, since))
            .collect();
        for (start, end, since) in hit {
            pending += end.min(range.end) - start.max(range.start);
            self.debt.remove(&start);
            if start < range.start {
                self.debt.insert(start, (range.start, since));
            }
            if end > range.end {
                self.debt.insert(range.end, (end, since));
            }
        }
        pending
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
            canary: Some(CANARY),
            ..Nature::default()
        }
    }

    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        desk.release(ranges);
        for range in ranges {
            self.debt.insert(range.start, (range.end, desk.now));
        }
        if self.paced.is_none() && self.in_flight.is_none() {
            desk.wake(&mut self.is_awake, desk.now + LOOK_EVERY);
        }
    }

    fn allocated(&mut self, range: &Range<u64>) {
        self.cancelled += self.forgive(range);
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
            self.forgive(&range);
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
