//! The latencies of the canary's reads.

use std::time::Duration;

use hdrhistogram::Histogram;
use load::Sampler;

/// The latencies of the canary's reads, before anything was freed and since.
#[derive(Debug)]
pub(super) struct Waits {
    before: Histogram<u64>,
    since: Histogram<u64>,
    begun: bool,
    /// The usual wait: the lower of the two medians, because most reads meet no discard, in
    /// nanoseconds. Taken with each batch, for it is asked for at every look.
    usual: u64,
    /// The slowest of the last two batches, in nanoseconds.
    lately: [u64; 2],
}

impl Default for Waits {
    fn default() -> Waits {
        Waits {
            before: Sampler::histogram(),
            since: Sampler::histogram(),
            begun: false,
            usual: 0,
            lately: [0; 2],
        }
    }
}

impl Waits {
    /// Notes that from now on something is freed.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    pub(super) fn add(&mut self, waits: &Histogram<u64>) {
        let to = if self.begun {
            &mut self.since
        } else {
            &mut self.before
        };
        // Both have the same bounds.
        let _ = to.add(waits);
        self.lately = [self.lately[1], waits.max()];
        let medians = [&self.before, &self.since]
            .into_iter()
            .filter(|histogram| !histogram.is_empty())
            .map(|histogram| histogram.value_at_quantile(0.5));
        self.usual = medians.min().unwrap_or(0);
    }

    /// Returns how much longer than usual the slowest recent read took.
    pub(super) fn added_lately(&self) -> Duration {
        let most = self.lately[0].max(self.lately[1]);
        Duration::from_nanos(most.saturating_sub(self.usual))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_latency_is_the_slowest_of_the_last_two_batches_less_the_usual() {
        let mut waits = Waits::default();
        let batch = |values: &[u64]| {
            let mut batch = Sampler::histogram();
            for us in values {
                batch.record(us * 1000).unwrap();
            }
            batch
        };
        let near = |span: Duration, ms: f64| (span.as_secs_f64() * 1e3 - ms).abs() < 0.02;
        waits.add(&batch(&[100, 100, 100]));
        waits.begin();
        waits.add(&batch(&[100, 2100, 5100]));
        assert!(near(waits.added_lately(), 5.0));
        waits.add(&batch(&[100]));
        waits.add(&batch(&[100]));
        assert!(near(waits.added_lately(), 0.0), "it is over");
    }
}
