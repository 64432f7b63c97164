//! The sources of every interval's figures: the series of running actors, and block devices.

use std::time::Duration;

use hdrhistogram::Histogram;
use linux::SysRoot;
use linux::stats::{Counters, DeviceStats, StatsError};
use load::{Nanos, Sampler, Series};
use record::{
    ActorInterval, DeviceInterval, Grain, HistogramLine, Latency, Part, encode_histogram,
    latency_histogram, second_histogram,
};

use crate::warning::Warning;

/// A series with its sampler and its latencies of the current stretch, second and phase.
#[derive(Debug)]
pub(crate) struct Watched {
    series: Series,
    sampler: Sampler,
    pub(crate) stretch: Latencies,
    pub(crate) second: Latencies,
    pub(crate) phase: Latencies,
}

/// Both latencies over one stretch of time. In a closed loop they are the same
/// thing, and only the response time is kept.
#[derive(Debug)]
pub(crate) struct Latencies {
    response: Histogram<u64>,
    service: Option<Histogram<u64>>,
}

impl Watched {
    /// Begins to watch a series of a running actor.
    pub(crate) fn new(series: &Series) -> Self {
        let open_loop = series.info.loop_kind.is_open();
        Watched {
            series: series.clone(),
            sampler: series.sampler(),
            stretch: Latencies::new(open_loop, second_histogram),
            second: Latencies::new(open_loop, second_histogram),
            phase: Latencies::new(open_loop, latency_histogram),
        }
    }

    /// The figures since the last call.
    pub(crate) fn sample(&mut self, now: Nanos) -> ActorInterval {
        let sample = self.sampler.sample(now);
        for latencies in [&mut self.stretch, &mut self.second, &mut self.phase] {
            sample.add_response_to(&mut latencies.response);
            if let Some(service) = &mut latencies.service {
                sample.add_service_to(service);
            }
        }
        sample.interval
    }

    /// Whether it writes blocks.
    pub(crate) fn writes(&self) -> bool {
        matches!(self.series.info.op.as_str(), "write" | "append")
    }

    /// Begins anew: what happened since the last call is counted nowhere.
    pub(crate) fn leave_out(&mut self, now: Nanos) -> Option<ActorInterval> {
        self.sampler.sample(now);
        None
    }

    /// The longest response time in the current second, in microseconds.
    pub(crate) fn second_max_us(&self) -> Option<f64> {
        let response = &self.second.response;
        (!response.is_empty()).then(|| response.max() as f64 / 1e3)
    }

    /// How the first failed operation failed.
    pub(crate) fn first_error(&self) -> Option<Warning> {
        let (failure, at) = self.series.meter.first_error()?;
        Some(Warning::OperationsFailed {
            series: self.series.info.name.clone(),
            errors: self.series.meter.errors(),
            at: Duration::from_nanos(at.0),
            why: failure.to_string(),
        })
    }
}

impl Latencies {
    fn new(with_service: bool, histogram: fn() -> Histogram<u64>) -> Self {
        Latencies {
            response: histogram(),
            service: with_service.then(histogram),
        }
    }

    /// Forgets all.
    pub(crate) fn reset(&mut self) {
        self.response.reset();
        self.service.iter_mut().for_each(Histogram::reset);
    }

    pub(crate) fn drain(&mut self, actor: usize, over: Grain, part: Part) -> Vec<HistogramLine> {
        let kinds = [
            (Latency::Response, Some(&mut self.response)),
            (Latency::Service, self.service.as_mut()),
        ];
        let mut lines = Vec::new();
        for (latency, histogram) in kinds {
            let Some(histogram) = histogram else { continue };
            if !histogram.is_empty() {
                lines.push(HistogramLine {
                    actor,
                    latency,
                    over,
                    part,
                    v2: encode_histogram(histogram),
                });
                histogram.reset();
            }
        }
        lines
    }
}

/// A block device and its counters when they were last looked at.
#[derive(Debug)]
pub(crate) struct WatchedDevice {
    stats: DeviceStats,
    last: Counters,
}

impl WatchedDevice {
    /// Begins to watch a device, by its kernel name.
    pub(crate) fn open(name: &str) -> Result<Self, StatsError> {
        let stats = DeviceStats::open(&SysRoot::host(), name)?;
        let last = stats.read()?;
        Ok(WatchedDevice { stats, last })
    }

    /// The figures since the last call; zeros when the device has vanished.
    pub(crate) fn interval(&mut self) -> DeviceInterval {
        let Ok(now) = self.stats.read() else {
            return DeviceInterval::default();
        };
        let interval = now.since(&self.last);
        self.last = now;
        interval
    }
}
