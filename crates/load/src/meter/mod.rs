//! State that an actor writes and a sampler reads, without either waiting for the other.
//!
//! Each thread of an actor has a [`Lane`] that it alone writes, with plain loads and stores. A slot
//! holds the times of one operation in flight, so that its age is known even while its thread is
//! stuck in a system call.

use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::clock::Nanos;

mod counters;
pub mod layout;

pub use counters::{Counters, nothing_seen};

/// The state an actor shares with its sampler.
#[derive(Debug)]
pub struct Meter {
    lanes: Box<[Lane]>,
    block_bytes: u64,
    /// 0: none; an `errno`; or [`SHORT`].
    first_failure: AtomicI64,
    first_failure_at: AtomicU64,
    /// Operations meant to begin before this are left out; 0 at first.
    left_out_before: AtomicU64,
}

/// Stands for [`IoFailure::Short`] in an atomic word.
const SHORT: i64 = -1;

/// The part of a meter that one thread of an actor writes.
#[derive(Debug)]
#[repr(align(128))]
pub struct Lane {
    /// From the intended start (open loop) or from submission (closed loop).
    pub response: Counters,
    /// From submission. A closed loop has none of its own: it is the same.
    pub service: Option<Counters>,
    /// Operations that failed.
    errors: AtomicU64,
    /// Operations that can be in flight.
    pub slots: Box<[Slot]>,
}

/// One operation in flight; both times are 0 while it is free.
#[derive(Debug, Default)]
pub struct Slot {
    intended: AtomicU64,
    issued: AtomicU64,
}

impl Slot {
    /// An operation begins.
    #[inline]
    pub fn begin(&self, intended: Nanos, issued: Nanos) {
        self.issued.store(issued.0, Ordering::Relaxed);
        self.intended.store(intended.0, Ordering::Relaxed);
    }

    /// When it was meant to begin, and when it did.
    #[inline]
    pub fn times(&self) -> (Nanos, Nanos) {
        (
            Nanos(self.intended.load(Ordering::Relaxed)),
            Nanos(self.issued.load(Ordering::Relaxed)),
        )
    }

    /// It has ended.
    #[inline]
    pub fn end(&self) {
        self.intended.store(0, Ordering::Relaxed);
    }
}

impl Lane {
    fn new(slots: u32, open: bool) -> Lane {
        Lane {
            response: Counters::new(),
            service: open.then(Counters::new),
            errors: AtomicU64::new(0),
            slots: (0..slots).map(|_| Slot::default()).collect(),
        }
    }

    /// Counts a failed operation.
    pub fn add_error(&self) {
        self.errors
            .store(self.errors.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Failed operations so far.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }
}

/// How an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoFailure {
    /// The kernel returned this `errno`.
    Os(i32),
    /// Fewer bytes were moved than asked for: another process truncated the file.
    Short,
}

impl std::fmt::Display for IoFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            IoFailure::Os(errno) => write!(f, "{}", io::Error::from_raw_os_error(errno)),
            IoFailure::Short => f.write_str("short transfer: the file ends here now"),
        }
    }
}

impl Meter {
    /// A meter for so many threads with so many operations in flight each.
    /// `open`: service times are kept beside response times.
    pub fn new(lanes: u32, slots: u32, block_bytes: u64, open: bool) -> Meter {
        Meter {
            lanes: (0..lanes).map(|_| Lane::new(slots, open)).collect(),
            block_bytes,
            first_failure: AtomicI64::new(0),
            first_failure_at: AtomicU64::new(0),
            left_out_before: AtomicU64::new(0),
        }
    }

    /// The parts that the threads write, one each.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Bytes per operation.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Leaves out operations that were meant to begin before `at`: this process was away until
    /// then, so nobody knows how long the drive took. They don't count when they complete, and
    /// their age counts from `at`.
    pub fn leave_out_before(&self, at: Nanos) {
        self.left_out_before.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Operations meant to begin before this don't count.
    #[inline]
    pub fn left_out_before(&self) -> Nanos {
        Nanos(self.left_out_before.load(Ordering::Relaxed))
    }

    /// Counts an operation of a lane that succeeded, unless it is left out.
    #[inline]
    pub fn succeed(&self, lane: &Lane, intended: Nanos, issued: Nanos, now: Nanos) {
        if intended < self.left_out_before() {
            return;
        }
        lane.response.add(now.since(intended).0, 1);
        if let Some(service) = &lane.service {
            service.add(now.since(issued).0, 1);
        }
    }

    /// Counts a failed operation of a lane, and keeps it if it is the first.
    #[cold]
    pub fn fail(&self, lane: &Lane, failure: IoFailure, at: Nanos) {
        lane.add_error();
        let word = match failure {
            IoFailure::Os(errno) => i64::from(errno),
            IoFailure::Short => SHORT,
        };
        if self.first_failure.load(Ordering::Relaxed) != 0 {
            return;
        }
        // The time first, so that whoever sees the failure sees its time.
        let first =
            self.first_failure_at
                .compare_exchange(0, at.0, Ordering::AcqRel, Ordering::Relaxed);
        if first.is_ok() {
            self.first_failure.store(word, Ordering::Release);
        }
    }

    /// The first operation that failed: how, and when.
    pub fn first_error(&self) -> Option<(IoFailure, Nanos)> {
        let failure = match self.first_failure.load(Ordering::Acquire) {
            0 => return None,
            SHORT => IoFailure::Short,
            errno => IoFailure::Os(errno as i32),
        };
        Some((
            failure,
            Nanos(self.first_failure_at.load(Ordering::Relaxed)),
        ))
    }

    /// Operations that failed so far.
    pub fn errors(&self) -> u64 {
        self.lanes.iter().map(Lane::errors).sum()
    }

    /// Number of operations in flight, and the intended start of the oldest; of one that is
    /// left out the moment from which its age counts.
    pub fn in_flight(&self) -> (u64, Option<Nanos>) {
        let least = self.left_out_before().0;
        let mut count = 0;
        let mut oldest = u64::MAX;
        for slot in self.lanes.iter().flat_map(|lane| &lane.slots) {
            let intended = slot.intended.load(Ordering::Relaxed);
            if intended != 0 {
                count += 1;
                oldest = oldest.min(intended.max(least));
            }
        }
        (count, (count > 0).then_some(Nanos(oldest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_oldest_in_flight() {
        let meter = Meter::new(2, 2, 4096, true);
        assert_eq!(meter.in_flight(), (0, None));
        let (a, b) = (&meter.lanes()[0], &meter.lanes()[1]);
        a.slots[1].begin(Nanos(50), Nanos(70));
        b.slots[0].begin(Nanos(40), Nanos(90));
        assert_eq!(meter.in_flight(), (2, Some(Nanos(40))));
        b.slots[0].end();
        assert_eq!(meter.in_flight(), (1, Some(Nanos(50))));
        assert_eq!(a.slots[1].times(), (Nanos(50), Nanos(70)));
    }

    #[test]
    fn what_was_in_flight_over_an_absence_ages_from_its_end() {
        let meter = Meter::new(1, 2, 4096, true);
        meter.lanes()[0].slots[0].begin(Nanos(50), Nanos(70));
        meter.leave_out_before(Nanos(60));
        meter.leave_out_before(Nanos(20));
        assert_eq!(meter.left_out_before(), Nanos(60), "it never goes back");
        assert_eq!(meter.in_flight(), (1, Some(Nanos(60))));
        meter.lanes()[0].slots[1].begin(Nanos(80), Nanos(80));
        assert_eq!(meter.in_flight(), (2, Some(Nanos(60))));
    }

    #[test]
    fn keeps_the_first_failure_and_counts_all() {
        let meter = Meter::new(2, 1, 4096, false);
        assert_eq!(meter.first_error(), None);
        meter.fail(&meter.lanes()[1], IoFailure::Short, Nanos(10));
        meter.fail(&meter.lanes()[0], IoFailure::Os(libc::EIO), Nanos(20));
        assert_eq!(meter.first_error(), Some((IoFailure::Short, Nanos(10))));
        assert_eq!(meter.errors(), 2);
    }
}
