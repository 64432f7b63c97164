//! The head start of the model, from how long reads take in the kernel's eyes.
//!
//! The block layer counts from a read's submission to its completion, the server from its arrival
//! to the moment that the model gives its answer. The difference is the way there and back, through
//! the loop driver and FUSE, and the lateness of the answer. The model completes reads earlier by
//! that ([`HeadStart`]), so that a reader sees the time on the card. The way depends on what else
//! the machine does and on which processor the threads are, so it is looked at again and again. The
//! shortest of the last looks counts: a drive that is too slow for a moment does less harm than one
//! that is too fast.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ssd::HeadStart;

use super::{Answer, Device};
use crate::stats::Kind;

/// No way is longer, unless something else holds the reads.
const LONGEST: Duration = Duration::from_micros(200);
/// No reader takes longer to be woken up, unless something else uses the processors.
const LONGEST_SIDE: Duration = Duration::from_micros(15);
/// The number of looks that are remembered for each step.
const LOOKS: usize = 8;
/// Fewer reads show too little.
const ENOUGH: u64 = 300;

/// The kernel's counts of the block device so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counted {
    pub(crate) reads: u64,
    /// Time of all reads together.
    pub(crate) read_time: Duration,
    /// Everything else: writes, discards, flushes.
    pub(crate) others: u64,
}

/// A look at both counts.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: Instant,
    kernel: Counted,
    /// Reads answered, and their time together if none had been late.
    served: (u64, Duration),
}

/// The head start as it was found so far, in real time.
#[derive(Debug, Default)]
pub(super) struct Tuning {
    last: Option<Look>,
    ways: [VecDeque<Duration>; HeadStart::STEPS],
    /// Time of each read outside the block layer: waking the reader up, and its next submission.
    side: [Option<Duration>; HeadStart::STEPS],
}

impl Tuning {
    /// Learns from what came since the last look; whether anything changed.
    fn learn(&mut self, look: Look) -> bool {
        let found = self.last.and_then(|last| way(&last, &look));
        self.last = Some(look);
        let Some((step, way)) = found else {
            return false;
        };
        let ways = &mut self.ways[step];
        ways.push_front(way.min(LONGEST));
        ways.truncate(LOOKS);
        true
    }

    /// The head start of a step, in real time. A depth that was never seen is like its nearest
    /// neighbour.
    fn ahead(&self, step: usize) -> Duration {
        let seen = (0..HeadStart::STEPS).filter(|&seen| !self.ways[seen].is_empty());
        let nearest = seen.min_by_key(|&seen| seen.abs_diff(step));
        let way = nearest.and_then(|nearest| self.ways[nearest].iter().min());
        way.copied().unwrap_or_default() + self.side[step].unwrap_or_default()
    }
}

/// The way of the reads between two looks, and the step of how many were in flight; `None` if there
/// were too few, or something beside them.
fn way(last: &Look, now: &Look) -> Option<(usize, Duration)> {
    let reads = now.kernel.reads.checked_sub(last.kernel.reads)?;
    let served = now.served.0.checked_sub(last.served.0)?;
    let alone = now.kernel.others == last.kernel.others;
    // A large read arrives as several.
    if reads < ENOUGH || !alone || served.abs_diff(reads) * 50 > reads {
        return None;
    }
    let span = now.at.checked_duration_since(last.at)?;
    let all = now.kernel.read_time.checked_sub(last.kernel.read_time)?;
    let mean = |time: Duration, n: u64| time.div_f64(n as f64);
    let in_server = mean(now.served.1.checked_sub(last.served.1)?, served);
    let in_flight = all.as_secs_f64() / span.as_secs_f64();
    let step = HeadStart::step(in_flight.round() as usize);
    Some((step, mean(all, reads).saturating_sub(in_server)))
}

impl<A: Answer> Device<A> {
    /// Looks at what the kernel has counted, and corrects the head start.
    pub(crate) fn tune(&self, kernel: Counted) {
        let mut tuning = super::lock(&self.tuning);
        let mut state = self.lock();
        let look = Look {
            at: Instant::now(),
            kernel,
            served: state.counts.served(Kind::Read),
        };
        if tuning.learn(look) {
            let steps = std::array::from_fn(|step| state.clock.virtual_span(tuning.ahead(step)));
            state.drive.set_head_start(HeadStart(steps));
        }
    }

    /// Sets the time that a read takes on the reader's side, with so many in flight.
    pub(crate) fn reader_side(&self, depth: usize, span: Duration) {
        let side = &mut super::lock(&self.tuning).side[HeadStart::step(depth)];
        *side = Some(side.unwrap_or(LONGEST_SIDE).min(span));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// So many reads with a depth, a time in the server and a way.
    fn looks(reads: u64, depth: u64, server: u64, way: u64) -> [Look; 2] {
        let at = Instant::now();
        let first = Look {
            at,
            kernel: Counted::default(),
            served: (0, Duration::ZERO),
        };
        let second = Look {
            at: at + us((server + way) * reads / depth),
            kernel: Counted {
                reads,
                read_time: us((server + way) * reads),
                others: 0,
            },
            served: (reads, us(server * reads)),
        };
        [first, second]
    }

    #[test]
    fn the_way_is_what_the_kernel_sees_beyond_the_server() {
        let mut tuning = Tuning::default();
        let [first, second] = looks(1000, 8, 124, 40);
        assert!(!tuning.learn(first), "a first look is compared with none");
        assert!(tuning.learn(second));
        assert_eq!(tuning.ahead(HeadStart::step(8)), us(40));
        assert_eq!(tuning.ahead(0), us(40), "as the nearest that was seen");
        let [first, second] = looks(1000, 1, 124, 60);
        tuning.learn(first);
        tuning.learn(second);
        assert_eq!((tuning.ahead(0), tuning.ahead(3)), (us(60), us(40)));
        for (way, shortest) in [(30, 30), (90, 30)] {
            let [first, second] = looks(1000, 1, 124, way);
            tuning.learn(first);
            tuning.learn(second);
            assert_eq!(tuning.ahead(0), us(shortest));
        }
        for _ in 0..LOOKS {
            let [first, second] = looks(1000, 1, 124, 90);
            tuning.learn(first);
            tuning.learn(second);
        }
        assert_eq!(tuning.ahead(0), us(90), "it has been longer for a while");
    }

    #[test]
    fn few_reads_or_others_beside_them_teach_nothing() {
        let refused = |change: fn(&mut Look)| {
            let [first, mut second] = looks(1000, 8, 124, 40);
            change(&mut second);
            way(&first, &second).is_none()
        };
        assert!(!refused(|_| {}));
        assert!(refused(|look| look.kernel.others += 1));
        assert!(refused(|look| look.kernel.reads = 10));
        assert!(refused(|look| look.served.0 *= 2), "large reads in parts");
        assert!(refused(|look| look.served.0 = 0), "counts were reset");
    }
}
