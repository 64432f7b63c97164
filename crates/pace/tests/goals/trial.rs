//! A deletion in virtual time: a file of some extents, a file system, and a pacer that decides. The
//! file system commits, and then sends a discard for each extent or part of one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use pace::{Canary, Discards, Feedback, Flushes, Others, Pacer, State, Why, Work};
use ssd::{Time, profiles};
use testkit::harness::{DiscardSource, Next, Seen};

/// The time to free a piece and to commit that, before the first discard.
pub(crate) const COMMIT: Duration = Duration::from_millis(2);

/// The result of a deletion.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleterLog {
    pub(crate) done: Option<Time>,
    pub(crate) frees: Vec<(Time, u64, Why)>,
    pub(crate) state: Option<State>,
    pub(crate) refused: bool,
}

/// The part of the world that a deleter sees, and how its commits behave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sight {
    /// Whether it sees the others' I/O.
    pub(crate) others: bool,
    /// Whether it sees the canary's reads.
    pub(crate) canary: bool,
    /// Whether it sees how long discards took.
    pub(crate) busy: bool,
    /// Whether it sees how much is left.
    pub(crate) left: bool,
    /// How much later than advised it asks, on average, in seconds: a process that sleeps wakes
    /// when a processor is free.
    pub(crate) late: f64,
    pub(crate) commit: Duration,
    /// How many flushes each commit brings, before its discards.
    pub(crate) flushes: u32,
    /// How many discards of the file system's own each commit brings.
    pub(crate) beside: u64,
    /// As on btrfs: an extent is freed whole or not at all, and neighbours that go
    /// together are discarded together.
    pub(crate) whole: bool,
    /// As on btrfs: what lay in so many bytes is discarded once more, all together, by
    /// the commit after the one that freed the last of it; 0: never.
    pub(crate) group: u64,
    /// How much what is seen of the others varies by itself: a share.
    pub(crate) noise: f64,
    /// For how long it is the same, in seconds.
    pub(crate) swing: f64,
}

impl Default for Sight {
    fn default() -> Sight {
        Sight {
            others: true,
            canary: true,
            busy: true,
            left: true,
            late: 0.0,
            commit: COMMIT,
            flushes: 0,
            beside: 0,
            whole: false,
            group: 0,
            noise: 0.0,
            swing: 0.1,
        }
    }
}

/// Deletes a file as its pacer says.
pub(crate) struct Deleter {
    pacer: Pacer,
    start: Time,
    /// The rest of each extent; freed from the last one's end.
    extents: Vec<Range<u64>>,
    largest: u64,
    /// Freed of the group that is freed now, and the emptied ones that are still to be
    /// discarded once more.
    of_group: u64,
    emptied: Vec<Range<u64>>,
    /// Committed or not, not issued yet; and bytes that were issued.
    pending: VecDeque<Range<u64>>,
    issued: u64,
    ready: Time,
    /// Flushes that the commit has still to send.
    to_flush: u32,
    flushed: u64,
    ask_at: Time,
    freed: u64,
    left: u64,
    commits: u64,
    others: Others,
    /// Their operations, as far as they are seen.
    seen: f64,
    canary: Vec<Canary>,
    sight: Sight,
    chance: ssd::Rng,
    log: Rc<RefCell<DeleterLog>>,
    /// How many deleters know of each other now, this one included.
    company: Rc<Cell<u32>>,
    is_counted: bool,
}

impl Deleter {
    pub(crate) fn new(
        pacer: Pacer,
        work: &Work,
        base: u64,
        start: Time,
    ) -> (Deleter, Rc<RefCell<DeleterLog>>) {
        let log = Rc::new(RefCell::new(DeleterLog::default()));
        let extent = work.bytes / work.extents;
        let extents: Vec<Range<u64>> = (0..work.extents)
            .map(|i| base + i * extent..base + (i + 1) * extent)
            .collect();
        let deleter = Deleter {
            pacer,
            start,
            left: extent * work.extents,
            extents,
            largest: work.unit,
            of_group: 0,
            emptied: Vec::new(),
            pending: VecDeque::new(),
            issued: 0,
            ready: Time::ZERO,
            to_flush: 0,
            flushed: 0,
            ask_at: start,
            freed: 0,
            commits: 0,
            others: Others::default(),
            seen: 0.0,
            canary: Vec::new(),
            sight: Sight::default(),
            chance: ssd::Rng::new(base + 7),
            log: Rc::clone(&log),
            company: Rc::default(),
            is_counted: false,
        };
        (deleter, log)
    }

    /// The same, but it sees less.
    pub(crate) fn seeing(mut self, sight: Sight) -> Deleter {
        self.sight = sight;
        self
    }

    /// The same, but it shares its goal with all that have the same count.
    pub(crate) fn sharing(mut self, company: &Rc<Cell<u32>>) -> Deleter {
        self.company = Rc::clone(company);
        self
    }

    /// Frees up to the last extent's boundary within, or that much of one.
    fn free(&mut self, allow: u64) -> u64 {
        let mut freed = 0;
        while let Some(extent) = self.extents.last_mut() {
            let length = extent.end - extent.start;
            let least = self.sight.whole && freed == 0;
            let part = if length <= allow - freed || least {
                self.extents.pop().unwrap()
            } else if freed == 0 {
                let part = extent.end - allow..extent.end;
                extent.end = part.start;
                part
            } else {
                break;
            };
            freed += part.end - part.start;
            let allow = allow.max(freed);
            if self.sight.whole
                && let Some(last) = self.pending.back_mut()
                && last.start == part.end
                && last.end - part.start <= self.largest
            {
                last.start = part.start;
                continue;
            }
            let mut at = part.start;
            while at < part.end {
                let end = part.end.min(at + self.largest);
                self.pending.push_back(at..end);
                at = end;
            }
            if freed >= allow {
                break;
            }
        }
        freed
    }

    /// So much was freed, and with it the last of some groups.
    fn empty_groups(&mut self, freed: u64) {
        self.of_group += freed;
        let group = self.sight.group;
        while group > 0 && self.of_group >= group {
            self.of_group -= group;
            let start = self.extents.last().map_or(0, |extent| extent.end);
            self.emptied.push(start..start + group);
        }
    }

    /// Whether the call that commits returns when its discards are done, as on btrfs.
    fn commit_returns_late(&self) -> bool {
        self.sight.group > 0 && self.freed > 0
    }

    fn ask(&mut self, now: Time, seen: &Seen<'_>) {
        if !std::mem::replace(&mut self.is_counted, true) {
            self.company.set(self.company.get() + 1);
        }
        // The kernel's statistics are in milliseconds.
        let busy = Duration::from_millis(seen.counters.busy.as_millis() as u64);
        let feedback = Feedback {
            now,
            freed: self.freed,
            left: (self.sight.left || self.left == 0).then_some(self.left),
            commits: self.commits,
            own_commits: self.commits + self.log.borrow().frees.len() as u64,
            discards: Discards {
                commands: seen.counters.commands,
                bytes: seen.counters.bytes,
                busy: self.sight.busy.then_some(busy),
            },
            flushes: Flushes {
                commands: self.flushed,
                busy: Duration::from_millis(seen.counters.flushing.as_millis() as u64),
            },
            canary: if self.sight.canary { &self.canary } else { &[] },
            others: self.sight.others.then_some(self.others),
            settled: self.commit_returns_late(),
            deleters_beside: self.company.get().saturating_sub(1),
            ..Feedback::default()
        };
        let advice = self.pacer.advise(&feedback);
        self.canary.clear();
        self.ask_at = now + advice.ask_again;
        if !advice.ask_again.is_zero() && self.sight.late > 0.0 {
            let late = self.sight.late * self.chance.exponential();
            self.ask_at += Duration::from_secs_f64(late);
        }
        let mut log = self.log.borrow_mut();
        log.state = Some(self.pacer.state());
        match advice.why {
            Why::Done => log.done = Some(now),
            Why::Refused => {
                log.done = Some(now);
                log.refused = true;
            }
            _ => {}
        }
        if log.done.is_some() {
            self.company.set(self.company.get() - 1);
        }
        drop(log);
        if advice.commit {
            self.commits += 1;
            self.ask_at = now + self.sight.commit;
        }
        if advice.allow > 0 {
            // What a commit writes is in the device's statistics too.
            self.others.writes += 12;
            for i in 0..self.sight.beside {
                let tree = (1 << 40) - (((self.freed >> 20) + i + 1) << 14);
                self.pending.push_back(tree..tree + (16 << 10));
            }
            let freed = self.free(advice.allow);
            assert!(
                freed <= advice.allow || self.sight.whole,
                "no more than allowed"
            );
            self.freed += freed;
            self.left -= freed;
            // Parts of one extent are freed by calls of their own; btrfs joins them in its commit.
            let part = advice.piece.max(if self.sight.whole { freed } else { 1 });
            for range in self.emptied.drain(..) {
                let starts = range.clone().step_by(part.max(1) as usize);
                let parts = starts.map(|at| at..range.end.min(at + part));
                self.pending.extend(parts);
            }
            self.empty_groups(freed);
            self.ready = now + self.sight.commit;
            self.to_flush = self.sight.flushes;
            // The call returns when it is committed.
            self.ask_at = self.ready;
            self.log.borrow_mut().frees.push((now, freed, advice.why));
        }
    }
}

impl DiscardSource for Deleter {
    fn next(&mut self, now: Time, seen: &Seen<'_>) -> Next {
        for read in seen.reads {
            // A new number for every stretch of time, the same for the same.
            let stretch = (read.completed.as_secs_f64() / self.sight.swing) as u64;
            self.seen += 1.0 + self.sight.noise * ssd::Rng::new(stretch).bell();
            self.others.reads.wait += read.latency();
        }
        self.others.reads.ops = self.seen as u64;
        self.canary.extend(seen.canary.iter().map(|read| Canary {
            intended: read.intended,
            latency: read.latency(),
        }));
        if now < self.start {
            return Next::At(self.start);
        }
        if now >= self.ready && self.to_flush > 0 {
            self.to_flush -= 1;
            self.flushed += 1;
            return Next::Flush;
        }
        let is_under_way = !self.pending.is_empty() || seen.counters.bytes < self.issued;
        if self.commit_returns_late() && is_under_way {
            self.ask_at = self.ask_at.max(now + Duration::from_micros(100));
        }
        while now >= self.ask_at && self.log.borrow().done.is_none() {
            let before = self.freed;
            self.ask(now, seen);
            if self.freed == before && self.ask_at <= now {
                self.ask_at = now + Duration::from_nanos(100);
            }
        }
        if now >= self.ready
            && let Some(range) = self.pending.pop_front()
        {
            self.issued += range.end - range.start;
            return Next::Discard(vec![range]);
        }
        let waits = (!self.pending.is_empty()).then_some(self.ready);
        let asks = self.log.borrow().done.is_none().then_some(self.ask_at);
        waits
            .into_iter()
            .chain(asks)
            .min()
            .map_or(Next::Done, Next::At)
    }
}

/// A shipped card, changed.
pub(crate) fn card(name: &str, changes: &[&str]) -> ssd::Card {
    let card = profiles::by_name(name).unwrap().clone();
    changes
        .iter()
        .fold(card, |card, change| card.with(change).unwrap())
}

/// A database that drops log files with each checkpoint, whatever else happens.
pub(crate) struct LogFiles {
    /// From one checkpoint to the next.
    pub(crate) every: Duration,
    /// How many log files one drops, and how large they are in bytes.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    dropped: u64,
}

impl LogFiles {
    pub(crate) fn new(every: Duration, files: u64) -> LogFiles {
        LogFiles {
            every,
            files,
            bytes: 16 << 20,
            dropped: 0,
        }
    }
}

impl DiscardSource for LogFiles {
    fn next(&mut self, now: Time, _: &Seen<'_>) -> Next {
        let checkpoint = self.dropped / self.files + 1;
        let due = Time::ZERO + self.every * u32::try_from(checkpoint).unwrap();
        if now < due {
            return Next::At(due);
        }
        let start = (1 << 40) + self.dropped * self.bytes;
        self.dropped += 1;
        let range = start..start + self.bytes;
        Next::Discard(vec![range])
    }
}
