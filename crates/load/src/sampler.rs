//! Reading a meter: what happened since the last look.

use std::sync::Arc;

use hdrhistogram::Histogram;
use timeline::record::ActorInterval;

use crate::clock::Nanos;
use crate::meter::Meter;

/// Reads one actor's meter; there is one sampler per meter.
#[derive(Debug)]
pub struct Sampler {
    _meter: Arc<Meter>,
}

/// What happened between two looks at a meter.
#[derive(Debug)]
pub struct Sample<'a> {
    /// Counts, response-time percentiles and the age of the oldest operation in flight.
    pub interval: ActorInterval,
    _sampler: &'a Sampler,
}

impl Sampler {
    /// A sampler whose first sample begins at the meter's zero counts.
    pub fn new(_meter: Arc<Meter>) -> Sampler {
        unimplemented!()
    }

    /// Everything since the last call. Costs microseconds; never waits.
    pub fn sample(&mut self, _now: Nanos) -> Sample<'_> {
        unimplemented!()
    }

    /// An empty histogram with the bounds of all latencies here: 1 ns to 1 h,
    /// three significant digits.
    pub fn histogram() -> Histogram<u64> {
        unimplemented!()
    }
}

impl Sample<'_> {
    /// Adds the interval's response times, in nanoseconds, to a histogram made by [`Sampler::histogram`].
    pub fn add_response_to(&self, _histogram: &mut Histogram<u64>) {
        unimplemented!()
    }

    /// Adds the interval's service times likewise. In a closed loop they are the response times.
    pub fn add_service_to(&self, _histogram: &mut Histogram<u64>) {
        unimplemented!()
    }
}
