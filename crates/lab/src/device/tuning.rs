//! The head start of the model, from how long reads take in the kernel's eyes.
//!
//! The block layer counts from a read's submission to its completion, the server from its arrival
//! to the moment that the model gives its answer. The difference is the way there and back, through
//! the loop driver and FUSE, and the lateness of the answer. In the model, reads count as having come
//! earlier by that ([`Drive::set_head_start`](ssd::Drive::set_head_start)), so that a reader sees the
//! time on the card. The way depends on how many are in flight, on what else the machine does, and on
//! which processor the threads are. So the server looks 25 times a second while the drive is read,
//! and remembers looks by the number in flight. Their median counts, for a single look may fall into a
//! pause of the machine. If the last is shorter, it counts instead: a drive that is too fast is mended
//! within one look.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Answer, Device};
use crate::stats::Kind;

/// No way is longer, unless something else holds the reads.
const LONGEST: Duration = Duration::from_micros(200);
/// The number of looks that are remembered for each step.
const LOOKS: usize = 5;
/// Fewer reads show too little.
const ENOUGH: u64 = 300;
/// The time for which a look waits for that many.
const LONGEST_LOOK: Duration = Duration::from_millis(400);

/// How many numbers in flight it distinguishes: 1, 2, 4, and so on to 128 and more.
const STEPS: usize = 8;

/// The step that a number in flight belongs to: the nearest power of two.
fn step(in_flight: usize) -> usize {
    let nearest = (in_flight.max(1) as f64).log2().round() as usize;
    nearest.min(STEPS - 1)
}

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

impl Look {
    /// Whether `next` came so soon that few reads need not mean that there are no more.
    fn is_too_early(&self, next: &Look) -> bool {
        let reads = next.kernel.reads.checked_sub(self.kernel.reads);
        let few = reads.is_some_and(|reads| (1..ENOUGH).contains(&reads));
        few && next.at.saturating_duration_since(self.at) < LONGEST_LOOK
    }
}

/// The head start as it was found so far, in real time.
#[derive(Debug, Default)]
pub(super) struct Tuning {
    last: Option<Look>,
    /// The step of the last look with enough reads.
    now: usize,
    ways: [VecDeque<Duration>; STEPS],
    /// Time of each read outside the block layer: waking the reader up, and its next submission.
    side: [Option<Duration>; STEPS],
}

impl Tuning {
    /// Learns from what came since the last look; whether anything changed.
    fn learn(&mut self, look: Look) -> bool {
        let found = self.last.and_then(|last| way(&last, &look));
        let idle = self
            .last
            .is_some_and(|last| last.kernel.reads == look.kernel.reads);
        if idle && self.now != 0 {
            // Whoever reads next may be alone, and must not find a way that is too long.
            self.now = 0;
            self.last = Some(look);
            return true;
        }
        let Some((step, way)) = found else {
            // Those that are too few so far count with the next ones.
            if !self.last.is_some_and(|last| last.is_too_early(&look)) {
                self.last = Some(look);
            }
            return false;
        };
        self.last = Some(look);
        let ways = &mut self.ways[step];
        ways.push_front(way.min(LONGEST));
        ways.truncate(LOOKS);
        self.now = step;
        true
    }

    /// The head start of a step, in real time. A depth that was never seen is like its nearest
    /// neighbour.
    fn ahead(&self, step: usize) -> Duration {
        let seen = (0..STEPS).filter(|&seen| !self.ways[seen].is_empty());
        let nearest = seen.min_by_key(|&seen| seen.abs_diff(step));
        let way = nearest.and_then(|nearest| usual(&self.ways[nearest]));
        way.unwrap_or_default() + self.side[step].unwrap_or_default()
    }
}

/// The median of the looks, or the last one if that was shorter.
fn usual(looks: &VecDeque<Duration>) -> Option<Duration> {
    let mut sorted: Vec<Duration> = looks.iter().copied().collect();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len().checked_sub(1)? / 2)?;
    looks.front().min(Some(median)).copied()
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
    let step = step(in_flight.round() as usize);
    Some((step, mean(all, reads).saturating_sub(in_server)))
}

impl<A: Answer> Device<A> {
    /// Looks at what the kernel has counted, and corrects the head start. Returns whether there were
    /// reads since the last look.
    pub(crate) fn tune(&self, kernel: Counted) -> bool {
        let mut tuning = crate::store::lock(&self.tuning);
        let mut state = self.lock();
        let look = Look {
            at: Instant::now(),
            kernel,
            served: state.counts.served(Kind::Read),
        };
        let reads = tuning
            .last
            .is_none_or(|last| last.kernel.reads != kernel.reads);
        if tuning.learn(look) {
            let ahead = state.clock.virtual_span(tuning.ahead(tuning.now));
            state.drive.set_head_start(ahead);
        }
        reads
    }

    /// Sets the time that a read takes on the reader's side, with so many in flight. The shortest
    /// counts.
    pub(crate) fn reader_side(&self, depth: usize, span: Duration) {
        let side = &mut crate::store::lock(&self.tuning).side[step(depth)];
        *side = Some(side.unwrap_or(span).min(span));
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
    fn a_number_in_flight_belongs_to_the_nearest_power_of_two() {
        let steps = [0, 1, 2, 3, 5, 6, 8, 11, 12, 32, 1000].map(step);
        assert_eq!(steps, [0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 7]);
    }

    #[test]
    fn the_way_is_what_the_kernel_sees_beyond_the_server() {
        let mut tuning = Tuning::default();
        let [first, second] = looks(1000, 8, 124, 40);
        assert!(!tuning.learn(first), "a first look is compared with none");
        assert!(tuning.learn(second));
        assert_eq!(tuning.ahead(step(8)), us(40));
        assert_eq!(tuning.ahead(0), us(40), "as the nearest that was seen");
        let [first, second] = looks(1000, 1, 124, 60);
        tuning.learn(first);
        tuning.learn(second);
        assert_eq!((tuning.ahead(0), tuning.ahead(3)), (us(60), us(40)));
        for way in [61, 400, 62] {
            let [first, second] = looks(1000, 1, 124, way);
            tuning.learn(first);
            tuning.learn(second);
        }
        assert_eq!(tuning.ahead(0), us(61), "one long look counts little");
        let [first, second] = looks(1000, 1, 124, 30);
        tuning.learn(first);
        tuning.learn(second);
        assert_eq!(tuning.ahead(0), us(30), "no drive stays too fast");
        for _ in 0..LOOKS {
            let [first, second] = looks(1000, 1, 124, 90);
            tuning.learn(first);
            tuning.learn(second);
        }
        assert_eq!(tuning.ahead(0), us(90), "it has been longer for a while");
    }

    #[test]
    fn reads_that_are_too_few_for_a_look_count_in_the_next_one() {
        let mut tuning = Tuning::default();
        let [first, last] = looks(400, 1, 124, 40);
        let [_, half] = looks(200, 1, 124, 90);
        tuning.learn(first);
        assert!(!tuning.learn(half));
        assert!(tuning.learn(last));
        assert_eq!(tuning.ahead(0), us(40));
        let idle = Look {
            at: last.at + LONGEST_LOOK,
            ..last
        };
        assert!(!tuning.learn(idle));
        assert_eq!(
            tuning.last.unwrap().at,
            idle.at,
            "idle time is no part of a look"
        );
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
