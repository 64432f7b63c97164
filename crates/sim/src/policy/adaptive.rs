//! `trimbench rm`'s way: ext4's discards, but files are freed piece by piece as `pace` allows.

use std::ops::Range;

use pace::{Goal, Work};

use super::online::Online;
use super::paced::{CANARY, Paced, Turn};
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
        self.victims = ranges;
        self.left = bytes;
        self.paced = Paced::new(self.goal, &work, desk);
        desk.order(Order::Canary(true));
        self.ask(desk);
    }

    /// Up to the last boundary of an extent within, or that much of one: a cut extent costs one
    /// more discard.
    fn next_piece(&mut self, allow: u64) -> Vec<Range<u64>> {
        let mut piece: Vec<Range<u64>> = Vec::new();
        let mut bytes = 0;
        while let Some(last) = self.victims.last_mut() {
            let length = last.end - last.start;
            // Of the first extent a small rest isn't worth a cut.
            let more = if bytes == 0 {
                (allow as f64 * REST) as u64
            } else {
                0
            };
            if length <= allow.saturating_add(more) - bytes {
                piece.extend(self.victims.pop());
                bytes += length;
            } else if bytes == 0 {
                // Whole blocks, and at least one.
                let part = (allow / 4096).max(1) * 4096;
                piece.push(last.end - part..last.end);
                last.end -= part;
                bytes = part;
            } else {
                break;
            }
            if bytes >= allow {
                break;
            }
        }
        self.left -= bytes;
        if let Some(paced) = &mut self.paced {
            paced.freed += bytes;
        }
        piece
    }

    fn ask(&mut self, desk: &mut Desk<'_>) {
        if self.is_committing || self.paced.is_none() {
            return;
        }
        match Paced::turn(&mut self.paced, desk, self.left) {
            Turn::Sleep(pause) => desk.wake(&mut self.is_awake, desk.now + pause),
            Turn::Commit => self.is_committing = true,
            Turn::Free(_) if self.paced.is_none() => self.done(desk),
            Turn::Free(allow) => {
                let piece = self.next_piece(allow);
                desk.order(Order::Free(piece));
                desk.order(Order::Commit);
                self.is_committing = true;
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
            canary: Some(CANARY),
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
        self.ask(desk);
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
