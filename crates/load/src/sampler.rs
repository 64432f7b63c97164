//! Reading a meter: what happened since the last look.

use std::sync::Arc;

use hdrhistogram::Histogram;
use record::ActorInterval;

use crate::clock::Nanos;
use crate::meter::layout::{BLOCK, BLOCKS, COUNTERS, DIGITS, MAX_NS, highest_of, lowest_of};
use crate::meter::{Counters, Lane, Meter, nothing_seen};

/// Reads one actor's meter; there is one sampler per meter.
#[derive(Debug)]
pub struct Sampler {
    meter: Arc<Meter>,
    lanes: Vec<Seen>,
    errors: u64,
    response: Difference,
    service: Option<Difference>,
}

/// A lane's counters at the last look.
#[derive(Debug)]
struct Seen {
    response: Box<[u32]>,
    service: Option<Box<[u32]>>,
}

/// The difference between two looks at a meter.
#[derive(Debug)]
pub struct Sample<'a> {
    /// Counts, response-time percentiles and the age of the oldest operation in flight.
    pub interval: ActorInterval,
    sampler: &'a Sampler,
}

impl Sampler {
    /// A sampler whose first sample begins at the meter's zero counts.
    pub fn new(meter: Arc<Meter>) -> Sampler {
        let open = meter.lanes().iter().any(|lane| lane.service.is_some());
        let lanes = meter.lanes().iter().map(|lane| Seen {
            response: nothing_seen(),
            service: lane.service.as_ref().map(|_| nothing_seen()),
        });
        Sampler {
            lanes: lanes.collect(),
            errors: 0,
            response: Difference::new(),
            service: open.then(Difference::new),
            meter,
        }
    }

    /// Everything since the last call. Costs microseconds; never waits.
    pub fn sample(&mut self, now: Nanos) -> Sample<'_> {
        self.response.clear();
        if let Some(service) = &mut self.service {
            service.clear();
        }
        for (lane, seen) in self.meter.lanes().iter().zip(&mut self.lanes) {
            self.response.take(&lane.response, &mut seen.response);
            if let (Some(counters), Some(before), Some(difference)) =
                (&lane.service, &mut seen.service, &mut self.service)
            {
                difference.take(counters, before);
            }
        }
        let errors = self.meter.lanes().iter().map(Lane::errors).sum::<u64>();
        let (_, oldest) = self.meter.in_flight();
        let ops = self.response.total;
        let [p50, p99, max] = self.response.quantiles([0.5, 0.99, 1.0]);
        let us = |ns: u64| (ops > 0).then_some(ns as f64 / 1e3);
        let interval = ActorInterval {
            ops,
            errors: errors - self.errors,
            bytes: ops * self.meter.block_bytes(),
            p50_us: us(p50),
            p99_us: us(p99),
            max_us: us(max),
            oldest_us: Some(oldest.map_or(0.0, |since| now.since(since).as_micros_f64())),
        };
        self.errors = errors;
        Sample {
            interval,
            sampler: self,
        }
    }

    /// An empty histogram with the bounds of all latencies here: 1 ns to 1 h,
    /// three significant digits.
    pub fn histogram() -> Histogram<u64> {
        #[allow(clippy::expect_used, reason = "the bounds are constants")]
        Histogram::new_with_bounds(1, MAX_NS, DIGITS).expect("constant bounds are valid")
    }
}

impl Sample<'_> {
    /// Adds the interval's response times, in nanoseconds, to a histogram made by [`Sampler::histogram`].
    pub fn add_response_to(&self, histogram: &mut Histogram<u64>) {
        self.sampler.response.add_to(histogram);
    }

    /// Adds the interval's service times likewise. In a closed loop they are the response times.
    pub fn add_service_to(&self, histogram: &mut Histogram<u64>) {
        let service = self.sampler.service.as_ref();
        service.unwrap_or(&self.sampler.response).add_to(histogram);
    }
}

/// The increments of all lanes together, since the last look.
#[derive(Debug)]
struct Difference {
    counts: Box<[u32]>,
    /// Blocks of `counts` that aren't all zero.
    used: Box<[bool]>,
    total: u64,
}

impl Difference {
    fn new() -> Difference {
        Difference {
            counts: vec![0; COUNTERS].into_boxed_slice(),
            used: vec![false; BLOCKS].into_boxed_slice(),
            total: 0,
        }
    }

    fn clear(&mut self) {
        for (block, used) in self.used.iter_mut().enumerate() {
            if std::mem::take(used) {
                self.counts[block * BLOCK..(block + 1) * BLOCK].fill(0);
            }
        }
        self.total = 0;
    }

    fn take(&mut self, counters: &Counters, before: &mut [u32]) {
        counters.changes(before, |index, n| {
            self.counts[index] = self.counts[index].saturating_add(n);
            self.used[index / BLOCK] = true;
            self.total += u64::from(n);
        });
    }

    /// Counter and count, in order, where there is one.
    fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let blocks = self.used.iter().enumerate().filter(|(_, used)| **used);
        blocks.flat_map(|(block, _)| {
            let start = block * BLOCK;
            let counts = self.counts[start..start + BLOCK].iter().enumerate();
            counts
                .filter(|(_, n)| **n > 0)
                .map(move |(i, n)| (start + i, u64::from(*n)))
        })
    }

    /// The values at ascending quantiles, as HdrHistogram defines them: the
    /// largest latency of the counter in which that share is reached; 0 when empty.
    fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        let mut values = [0; N];
        let mut next = 0;
        let mut sum = 0;
        for (index, n) in self.iter() {
            sum += n;
            while next < N && sum >= rank(quantiles[next], self.total) {
                values[next] = highest_of(index);
                next += 1;
            }
        }
        values
    }

    fn add_to(&self, histogram: &mut Histogram<u64>) {
        for (index, n) in self.iter() {
            histogram.saturating_record_n(lowest_of(index), n);
        }
    }
}

/// How many of `total` have to be counted to reach a quantile; at least one.
fn rank(quantile: f64, total: u64) -> u64 {
    ((quantile * total as f64).ceil() as u64).clamp(1, total.max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(lane: &Lane, latencies: &[u64]) {
        for &ns in latencies {
            lane.response.add(ns, 1);
        }
    }

    proptest! {
        #[test]
        fn percentiles_are_hdrhistograms(
            latencies in prop::collection::vec(
                prop_oneof![1..3_000u64, 50_000..200_000u64, 1..2 * MAX_NS], 1..300),
            lanes in 1..4u32,
        ) {
            let meter = Arc::new(Meter::new(lanes, 1, 512, false));
            let mut expected = Sampler::histogram();
            for (i, &ns) in latencies.iter().enumerate() {
                record(&meter.lanes()[i % lanes as usize], &[ns]);
                expected.record(ns.min(MAX_NS)).expect("within bounds");
            }
            let mut sampler = Sampler::new(meter);
            let sample = sampler.sample(Nanos(1));
            let mut added = Sampler::histogram();
            sample.add_response_to(&mut added);
            prop_assert_eq!(&added, &expected);
            let us = |ns: u64| Some(ns as f64 / 1e3);
            prop_assert_eq!(sample.interval.ops, latencies.len() as u64);
            prop_assert_eq!(sample.interval.p50_us, us(expected.value_at_quantile(0.5)));
            prop_assert_eq!(sample.interval.p99_us, us(expected.value_at_quantile(0.99)));
            prop_assert_eq!(sample.interval.max_us, us(expected.max()));
        }
    }

    #[test]
    fn an_interval_holds_only_its_own() {
        let meter = Arc::new(Meter::new(1, 2, 4096, false));
        let lane = &meter.lanes()[0];
        let mut sampler = Sampler::new(meter.clone());
        record(lane, &[1_000_000; 10]);
        lane.add_error();
        let first = sampler.sample(Nanos(5)).interval;
        assert_eq!((first.ops, first.errors, first.bytes), (10, 1, 40_960));
        assert_eq!(
            first.oldest_us,
            Some(0.0),
            "none is in flight, and that is known"
        );
        record(lane, &[100, 100, 100]);
        lane.slots[1].begin(Nanos(2_000), Nanos(2_500));
        let second = sampler.sample(Nanos(12_000)).interval;
        assert_eq!((second.ops, second.errors), (3, 0));
        assert_eq!((second.p50_us, second.max_us), (Some(0.1), Some(0.1)));
        assert_eq!(second.oldest_us, Some(10.0));
        let third = sampler.sample(Nanos(22_000)).interval;
        assert_eq!((third.ops, third.p99_us, third.max_us), (0, None, None));
        assert_eq!(third.oldest_us, Some(20.0), "a stuck operation still ages");
    }

    #[test]
    fn service_is_told_apart_only_in_an_open_loop() {
        for open in [false, true] {
            let meter = Arc::new(Meter::new(1, 1, 4096, open));
            let lane = &meter.lanes()[0];
            lane.response.add(900, 1);
            if let Some(service) = &lane.service {
                service.add(100, 1);
            }
            let mut sampler = Sampler::new(meter.clone());
            let mut histogram = Sampler::histogram();
            sampler.sample(Nanos(1)).add_service_to(&mut histogram);
            assert_eq!(histogram.max(), if open { 100 } else { 900 });
        }
    }
}
