//! A mount without `discard`, and `fstrim` from time to time.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;

use pace::{Goal, Work};

use super::paced::{Paced, Turn};
use super::{Desk, Nature, Order, Policy};
use crate::volume::pieces;

/// Every `period` it discards what is free, block group by block group, one in flight. A group of
/// which everything free was trimmed is left out until more is freed in it, as ext4 does.
#[derive(Debug)]
pub(super) struct Fstrim {
    period: Duration,
    /// Bytes in a group.
    group: u64,
    goal: Option<Goal>,
    /// Groups with free space that was not trimmed.
    dirty: BTreeSet<u64>,
    /// Whether anything was freed since it began.
    has_freed: bool,
    /// Of the present trim: groups that are still to be looked at, and ranges to discard.
    groups: VecDeque<u64>,
    ranges: VecDeque<Range<u64>>,
    paced: Option<Paced>,
    left: u64,
    in_flight: bool,
    next: u64,
    wakes: Wakes,
}

/// The reason why it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wakes {
    /// Nothing: it trims, or there is nothing to trim.
    Never,
    /// The next trim.
    ForTrim,
    /// To ask its pacer again.
    ForPacer,
}

impl Fstrim {
    /// `all`: the bytes of a volume of which nothing is known to be trimmed, else 0.
    pub(super) fn new(period: Duration, group: u64, goal: Option<Goal>, all: u64) -> Fstrim {
        Fstrim {
            period,
            group,
            goal,
            dirty: (0..all.div_ceil(group)).collect(),
            has_freed: false,
            groups: VecDeque::new(),
            ranges: VecDeque::new(),
            paced: None,
            left: 0,
            in_flight: false,
            next: 0,
            wakes: Wakes::Never,
        }
    }

    fn begin(&mut self, desk: &mut Desk<'_>) {
        self.groups = std::mem::take(&mut self.dirty).into_iter().collect();
        let free = |group: &u64| -> u64 {
            let range = group * self.group..(group + 1) * self.group;
            let parts = desk.volume.free_within(&range);
            parts.iter().map(|part| part.end - part.start).sum()
        };
        if let Some(goal) = self.goal {
            self.left = self.groups.iter().map(free).sum();
            let work = Work {
                unit: self.group.min(desk.limits.max_bytes),
                ..Work::new(self.left, self.groups.len() as u64)
            };
            self.paced = Paced::new(goal, &work, desk);
            desk.order(Order::Canary(self.paced.is_some()));
        }
        self.step(desk);
    }

    /// The next range; groups are looked at when their turn comes, for space may be used by then.
    fn next_range(&mut self, desk: &Desk<'_>) -> Option<Range<u64>> {
        while self.ranges.is_empty() {
            let group = self.groups.pop_front()?;
            let range = group * self.group..(group + 1) * self.group;
            for part in desk.volume.free_within(&range) {
                self.ranges.extend(pieces(&part, desk.limits.max_bytes));
            }
        }
        self.ranges.pop_front()
    }

    fn step(&mut self, desk: &mut Desk<'_>) {
        if self.in_flight {
            return;
        }
        let allow = match Paced::turn(&mut self.paced, desk, self.left) {
            Turn::Sleep(pause) => {
                self.wakes = Wakes::ForPacer;
                return desk.order(Order::WakeAt(desk.now + pause));
            }
            Turn::Commit => return,
            Turn::Free { allow, .. } => allow,
        };
        let Some(mut range) = self.next_range(desk) else {
            self.left = 0;
            if self.paced.is_some() {
                self.step(desk);
            } else {
                self.plan(desk);
            }
            return;
        };
        if range.end - range.start > allow {
            let end = range.start + (allow / 4096).max(1) * 4096;
            self.ranges.push_front(end..range.end);
            range.end = end;
        }
        let bytes = range.end - range.start;
        self.left = self.left.saturating_sub(bytes);
        if let Some(paced) = &mut self.paced {
            paced.freed += bytes;
        }
        self.in_flight = true;
        desk.order(Order::Discard {
            tag: self.next,
            ranges: vec![range],
        });
        self.next += 1;
    }

    fn is_trimming(&self) -> bool {
        self.in_flight || self.paced.is_some() || !self.ranges.is_empty() || !self.groups.is_empty()
    }

    /// Sleeps until the next trim, if there will be something to do.
    fn plan(&mut self, desk: &mut Desk<'_>) {
        if self.wakes == Wakes::Never && !self.is_trimming() && !self.dirty.is_empty() {
            self.wakes = Wakes::ForTrim;
            let period = self.period.as_nanos().max(1) as u64;
            let next = (desk.now.as_nanos() / period + 1).saturating_mul(period);
            desk.order(Order::WakeAt(ssd::Time::from_nanos(next)));
        }
    }
}

impl Policy for Fstrim {
    fn nature(&self) -> Nature {
        Nature {
            canary: self.goal.is_some(),
            ..Nature::default()
        }
    }

    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        desk.release(ranges);
        self.has_freed = true;
        for range in ranges {
            let groups = range.start / self.group..range.end.div_ceil(self.group);
            self.dirty.extend(groups);
        }
        self.plan(desk);
    }

    fn allocated(&mut self, range: &Range<u64>) {
        // A range that is about to be discarded may have been used meanwhile.
        let mut rest = VecDeque::with_capacity(self.ranges.len());
        for own in self.ranges.drain(..) {
            let before = own.start..own.end.min(range.start.max(own.start));
            let behind = own.start.max(range.end.min(own.end))..own.end;
            rest.extend([before, behind].into_iter().filter(|r| !r.is_empty()));
        }
        self.ranges = rest;
    }

    fn committed(&mut self, desk: &mut Desk<'_>) {
        Paced::look(&mut self.paced, desk);
        if self.is_trimming() {
            self.step(desk);
        }
    }

    fn discarded(&mut self, _: u64, desk: &mut Desk<'_>) {
        self.in_flight = false;
        Paced::look(&mut self.paced, desk);
        self.step(desk);
    }

    fn woken(&mut self, desk: &mut Desk<'_>) {
        Paced::look(&mut self.paced, desk);
        match std::mem::replace(&mut self.wakes, Wakes::Never) {
            Wakes::ForTrim => self.begin(desk),
            Wakes::ForPacer => self.step(desk),
            Wakes::Never => {}
        }
    }

    fn is_settled(&self) -> bool {
        !self.is_trimming() && (self.dirty.is_empty() || !self.has_freed)
    }
}
