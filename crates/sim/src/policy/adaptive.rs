//! `trimbench rm`'s way: ext4's discards, but files are freed piece by piece as `pace` allows.

use std::ops::Range;

use pace::{Goal, Work};

use super::online::Online;
use super::paced::{Paced, Turn};
use super::{Desk, Limits, Nature, Order, Policy};

/// The share of a piece that may be freed beyond it, where that saves a cut: as `reclaim` does.
const REST: f64 = 0.125;

/// Frees removed files in pieces, each with a commit of its own, and asks `pace` between them.
#[derive(Debug)]
pub(super) struct Adaptive {
    goal: Goal,
    unit: u64,
    fs: Online,
    paced: Option<Paced>,
    /// Still to be freed; from the end.
    victims: Vec<Range<u64>>,
    left: u64,
    /// The mean size of their extents.
    usual: u64,
    /// Bytes that may be freed before the next question, and how many of an extent at once.
    allowed: u64,
    part: u64,
    /// Removed while it works: the next work.
    later: Vec<Range<u64>>,
    /// Whether it waits for a commit.
    is_committing: bool,
    is_awake: bool,
}

impl Adaptive {
    pub(super) fn new(goal: Goal, unit: u64, limits: Limits) -> Adaptive {
        Adaptive {
            goal,
            unit,
            fs: Online::ext4(unit, limits),
            paced: None,
            victims: Vec::new(),
            left: 0,
            usual: 0,
            allowed: 0,
            part: 0,
            later: Vec::new(),
            is_committing: false,
            is_awake: false,
        }
    }

    fn begin(&mut self, ranges: Vec<Range<u64>>, desk: &mut Desk<'_>) {
        let bytes: u64 = ranges.iter().map(|r| r.end - r.start).sum();
        let work = Work {
            unit: self.unit.min(desk.limits.max_bytes),
            ..Work::new(bytes, ranges.len() as u64)
        };
        self.usual = bytes / ranges.len().max(1) as u64;
        self.victims = ranges;
        self.left = bytes;
        self.paced = Paced::new(self.goal, &work, desk);
        desk.order(Order::Canary(true));
        self.ask(desk);
    }

    /// Frees what is allowed and commits it: whole extents, up to the first one that must be cut.
    /// Parts of one extent would become one discard, so each has a commit of its own.
    fn free(&mut self, desk: &mut Desk<'_>) {
        let mut freed: Vec<Range<u64>> = Vec::new();
        while let Some(last) = self.victims.last_mut().filter(|_| self.allowed > 0) {
            let length = last.end - last.start;
            let most = self.part.min(self.allowed);
            if length <= most.saturating_add((most as f64 * REST) as u64) {
                freed.extend(self.victims.pop());
                // A short discard may take as long as a usual one.
                self.allowed = self.allowed.saturating_sub(length.max(self.usual));
            } else if most == self.part {
                // Whole blocks, and at least one.
                let cut = (most / 4096).max(1) * 4096;
                freed.push(last.end - cut..last.end);
                last.end -= cut;
                self.allowed = self.allowed.saturating_sub(cut);
                break;
            } else {
                // The rest of what is allowed isn't worth a cut.
                self.allowed = 0;
            }
        }
        if freed.is_empty() {
            return self.ask(desk);
        }
        let bytes: u64 = freed.iter().map(|r| r.end - r.start).sum();
        self.left -= bytes;
        if let Some(paced) = &mut self.paced {
            paced.freed += bytes;
        }
        desk.order(Order::Free(freed));
        desk.order(Order::Commit);
        self.is_committing = true;
    }

    fn ask(&mut self, desk: &mut Desk<'_>) {
        if self.is_committing || self.paced.is_none() {
            return;
        }
        match Paced::turn(&mut self.paced, desk, self.left) {
            Turn::Sleep(pause) => desk.wake(&mut self.is_awake, desk.now + pause),
            Turn::Commit => self.is_committing = true,
            Turn::Free { .. } if self.paced.is_none() => self.done(desk),
            Turn::Free { allow, part } => {
                (self.allowed, self.part) = (allow, part);
                self.free(desk);
            }
        }
    }

    fn done(&mut self, desk: &mut Desk<'_>) {
        if self.left > 0 {
            let rest = std::mem::take(&mut self.victims);
            self.left = 0;
            desk.order(Order::Free(rest));
        }
        if !self.later.is_empty() {
            let later = std::mem::take(&mut self.later);
            self.begin(later, desk);
        }
    }
}

impl Policy for Adaptive {
    fn nature(&self) -> Nature {
        Nature {
            canary: true,
            deleter_waits: true,
            ..self.fs.nature()
        }
    }

    fn remove(&mut self, ranges: Vec<Range<u64>>, desk: &mut Desk<'_>) {
        match self.paced {
            Some(_) => self.later.extend(ranges),
            None => self.begin(ranges, desk),
        }
    }

    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        self.fs.freed(ranges, desk);
    }

    fn committed(&mut self, desk: &mut Desk<'_>) {
        self.is_committing = false;
        Paced::look(&mut self.paced, desk);
        match self.allowed > 0 && self.left > 0 {
            true => self.free(desk),
            false => self.ask(desk),
        }
    }

    fn allocated(&mut self, range: &Range<u64>) {
        self.fs.allocated(range);
    }

    fn discarded(&mut self, tag: u64, desk: &mut Desk<'_>) {
        self.fs.discarded(tag, desk);
        Paced::look(&mut self.paced, desk);
    }

    fn woken(&mut self, desk: &mut Desk<'_>) {
        self.is_awake = false;
        Paced::look(&mut self.paced, desk);
        self.ask(desk);
    }

    fn is_settled(&self) -> bool {
        self.paced.is_none() && self.fs.is_settled()
    }

    fn cancelled_bytes(&self) -> u64 {
        self.fs.cancelled_bytes()
    }
}
