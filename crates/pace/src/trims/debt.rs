//! Keeps account of the free extents that the device may not know of: pure.
//!
//! A look compares all free extents with those of the last look. A new extent needs a trim; one
//! that is used again needs none. So the debt is all that is free, less what was trimmed and has
//! been free in each look since.

use std::collections::BTreeMap;
use std::ops::Range;

use ssd::extents::Extents;

/// A moment, in milliseconds since 1970.
pub type Moment = u64;

/// The age of extents whose last use no look saw. They are trimmed without hurry.
pub const UNKNOWN: Moment = 0;

/// A free extent that is to be trimmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Its bytes.
    pub range: Range<u64>,
    /// When it was first seen free, or [`UNKNOWN`].
    pub since: Moment,
}

impl Pending {
    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// The difference between two looks, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Newly free.
    pub freed: u64,
    /// Used again.
    pub used: u64,
}

/// The free extents of the last look, and which of them are to be trimmed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Debt {
    free: Extents,
    /// Start → end and moment. Disjoint, and all of them free.
    pending: BTreeMap<u64, (u64, Moment)>,
    /// Bytes of known and of unknown age.
    known: u64,
    unknown: u64,
}

impl Debt {
    /// All that is free, of unknown age.
    pub fn all(free: Extents) -> Debt {
        let mut debt = Debt {
            free,
            ..Debt::default()
        };
        debt.make_all_pending();
        debt
    }

    /// Returns the debt that was noted before. Extents that contradict it are left out, and pending as of unknown age.
    pub fn noted(free: Extents, pending: impl IntoIterator<Item = Pending>) -> Debt {
        let mut debt = Debt {
            free,
            ..Debt::default()
        };
        for one in pending {
            let whole = debt.free.covers(one.range.clone());
            if whole && debt.first_within(one.range.clone()).is_none() {
                debt.add(one.range, one.since);
            }
        }
        debt
    }

    /// The free extents of the last look.
    pub fn free(&self) -> &Extents {
        &self.free
    }

    /// Bytes that were freed and not trimmed.
    pub fn known_bytes(&self) -> u64 {
        self.known
    }

    /// Bytes that are free and may never have been trimmed.
    pub fn unknown_bytes(&self) -> u64 {
        self.unknown
    }

    /// Bytes that are to be trimmed.
    pub fn bytes(&self) -> u64 {
        self.known + self.unknown
    }

    /// How many extents are to be trimmed.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether nothing is to be trimmed.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether anything has been pending since before a moment.
    pub fn has_since(&self, before: Moment) -> bool {
        self.pending.values().any(|&(_, since)| since <= before)
    }

    /// The oldest of known age.
    pub fn oldest(&self) -> Option<Moment> {
        let since = |&(_, since): &(u64, Moment)| since;
        let known = self.pending.values().map(since).filter(|&at| at != UNKNOWN);
        known.min()
    }

    /// All that is to be trimmed, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Pending> + '_ {
        self.pending.iter().map(|(&start, &(end, since))| Pending {
            range: start..end,
            since,
        })
    }

    /// The first pending extent, or part of one, within a range.
    pub fn first_within(&self, range: Range<u64>) -> Option<Pending> {
        self.within(range).next()
    }

    /// The pending parts of a range, ascending.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = Pending> + '_ {
        let before = self.pending.range(..=range.start).next_back();
        let from = before.map_or(range.start, |(&start, _)| start);
        let empty = range.is_empty();
        self.pending
            .range(from..range.end.max(from))
            .map(move |(&start, &(end, since))| Pending {
                range: start.max(range.start)..end.min(range.end),
                since,
            })
            .filter(move |pending| !empty && !pending.range.is_empty())
    }

    /// A look at `now`, which saw these free extents.
    pub fn look(&mut self, free: Extents, now: Moment) -> Seen {
        let mut seen = Seen::default();
        let mut gone = Vec::new();
        for was in self.free.iter() {
            gone.extend(free.gaps(was));
        }
        for range in gone {
            seen.used += range.end - range.start;
            self.remove(range);
        }
        let mut new = Vec::new();
        for is in free.iter() {
            new.extend(self.free.gaps(is));
        }
        for range in new {
            seen.freed += range.end - range.start;
            self.add(range, now.max(UNKNOWN + 1));
        }
        self.free = free;
        seen
    }

    /// A range was trimmed, whole. Returns what of it was pending.
    pub fn remove(&mut self, range: Range<u64>) -> Vec<Pending> {
        let parts: Vec<Pending> = self.within(range).collect();
        for part in &parts {
            let Some((&start, &(end, since))) = self.pending.range(..=part.range.start).next_back()
            else {
                continue;
            };
            self.pending.remove(&start);
            if start < part.range.start {
                self.pending.insert(start, (part.range.start, since));
            }
            if part.range.end < end {
                self.pending.insert(part.range.end, (end, since));
            }
            *self.sum(since) -= part.bytes();
        }
        parts
    }

    /// Nothing is certain any more: all that is free and not pending yet, as of unknown age.
    pub fn make_all_pending(&mut self) {
        let mut missing = Vec::new();
        for free in self.free.iter() {
            let mut at = free.start;
            for pending in self.within(free.clone()) {
                if at < pending.range.start {
                    missing.push(at..pending.range.start);
                }
                at = pending.range.end;
            }
            if at < free.end {
                missing.push(at..free.end);
            }
        }
        for range in missing {
            self.add(range, UNKNOWN);
        }
    }

    fn sum(&mut self, since: Moment) -> &mut u64 {
        match since {
            UNKNOWN => &mut self.unknown,
            _ => &mut self.known,
        }
    }

    /// Adds a range of which nothing is pending yet, and merges it with neighbours of its age.
    pub fn add(&mut self, range: Range<u64>, since: Moment) {
        if range.is_empty() {
            return;
        }
        *self.sum(since) += range.end - range.start;
        let (mut start, mut end) = (range.start, range.end);
        let before = self.pending.range(..start).next_back();
        if let Some((&s, &(e, at))) = before
            && e == start
            && at == since
        {
            start = s;
        }
        if let Some(&(e, at)) = self.pending.get(&end)
            && at == since
        {
            self.pending.remove(&end);
            end = e;
        }
        self.pending.insert(start, (end, since));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(ranges: &[Range<u64>]) -> Extents {
        let mut set = Extents::new();
        for range in ranges {
            set.insert(range.clone());
        }
        set
    }

    fn pending(debt: &Debt) -> Vec<(Range<u64>, Moment)> {
        debt.iter()
            .map(|pending| (pending.range, pending.since))
            .collect()
    }

    #[test]
    fn what_is_freed_is_pending_and_what_is_used_again_is_not() {
        let mut debt = Debt::all(Extents::from(0..100));
        assert_eq!((debt.known_bytes(), debt.unknown_bytes()), (0, 100));
        debt.remove(0..100);
        assert_eq!(debt.bytes(), 0);
        let seen = debt.look(set(&[0..50, 200..300]), 7);
        assert_eq!((seen.freed, seen.used), (100, 50));
        assert_eq!(pending(&debt), [(200..300, 7)]);
        debt.look(set(&[0..60, 250..300]), 9);
        assert_eq!(pending(&debt), [(50..60, 9), (250..300, 7)]);
        assert_eq!((debt.oldest(), debt.known_bytes()), (Some(7), 60));
        let ended = debt.remove(55..260);
        assert_eq!(ended.iter().map(Pending::bytes).sum::<u64>(), 15);
        debt.make_all_pending();
        assert_eq!(debt.bytes(), 110);
    }

    #[test]
    fn notes_that_contradict_what_is_free_are_left_out() {
        let one = |range: Range<u64>| Pending { range, since: 5 };
        let debt = Debt::noted(Extents::from(0..10), [one(2..4), one(3..5), one(9..12)]);
        assert_eq!(pending(&debt), [(2..4, 5)]);
    }

    proptest! {
        /// Beside a model of single bytes: looks, trims and doubts in any order.
        #[test]
        fn what_is_pending_is_what_a_model_of_bytes_says(
            steps in prop::collection::vec((0u8..3, 0u64..64, 1u64..24), 1..40)
        ) {
            let mut debt = Debt::all(Extents::from(0..64));
            let mut free = [true; 64];
            let mut since = [Some(UNKNOWN); 64];
            for (at, (what, start, length)) in steps.into_iter().enumerate() {
                let range = start..(start + length).min(64);
                match what {
                    0 => {
                        let moment = at as u64 + 1;
                        let mut now = free;
                        range.clone().for_each(|i| now[i as usize] = !now[i as usize]);
                        let seen = (0..64).filter(|&i| now[i]).map(|i| i as u64..i as u64 + 1);
                        debt.look(set(&seen.collect::<Vec<_>>()), moment);
                        for i in 0..64 {
                            match (free[i], now[i]) {
                                (false, true) => since[i] = Some(moment),
                                (true, false) => since[i] = None,
                                _ => {}
                            }
                        }
                        free = now;
                    }
                    1 => {
                        debt.remove(range.clone());
                        range.for_each(|i| since[i as usize] = None);
                    }
                    _ => {
                        debt.make_all_pending();
                        for i in 0..64 {
                            if free[i] && since[i].is_none() {
                                since[i] = Some(UNKNOWN);
                            }
                        }
                    }
                }
                let mut told = [None; 64];
                for one in debt.iter() {
                    prop_assert!(debt.free().covers(one.range.clone()));
                    one.range.for_each(|i| told[i as usize] = Some(one.since));
                }
                prop_assert_eq!(told, since);
                let known = since.iter().flatten().filter(|&&at| at != UNKNOWN).count();
                prop_assert_eq!(debt.known_bytes(), known as u64);
                prop_assert_eq!(debt.bytes(), since.iter().flatten().count() as u64);
            }
        }
    }
}
