//! What others felt.

use std::time::Duration;

use hdrhistogram::Histogram;
use load::Sampler;

/// What a deletion came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Felt {
    /// From the making of the freer until the debt was paid or written off.
    pub elapsed: Duration,
    /// Bytes freed.
    pub freed: u64,
    /// Of them, bytes for which no discard was expected.
    pub exempt: u64,
    /// Bytes that the devices discarded meanwhile, whoever asked.
    pub discarded: u64,
    /// The discards that this took.
    pub discards: u64,
    /// Of these, bytes that were discarded a second time, as far as it can be told: btrfs
    /// discards block groups that have become empty whole.
    pub again: u64,
    /// Bytes whose discards were given up: they never came.
    pub written_off: u64,
    /// Whether discards came at all.
    pub answered: bool,
    /// Time that others have lost, as the pacer reckons it.
    pub lost: Duration,
    /// How long each block that is freed and discarded by itself has to make do, for the
    /// goal to hold; 0 where no commit brings its discard.
    pub rest: Duration,
    /// What a canary's reads waited; `None` without a canary or reads.
    pub canary: Option<CanaryFelt>,
}

/// What small open-loop reads waited while space was freed, from when they were
/// meant to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanaryFelt {
    /// How many there were.
    pub reads: u64,
    /// What is usual: the median.
    pub usual: Duration,
    /// The 99.9th percentile of what came on top; of fewer than a thousand
    /// reads the most.
    pub p999_added: Duration,
    /// The most that came on top.
    pub max_added: Duration,
}

/// The canary's waits, before anything was freed and since.
#[derive(Debug)]
pub(super) struct Waits {
    before: Histogram<u64>,
    since: Histogram<u64>,
    begun: bool,
    /// The slowest of the last two batches, in nanoseconds.
    lately: [u64; 2],
}

impl Default for Waits {
    fn default() -> Waits {
        Waits {
            before: Sampler::histogram(),
            since: Sampler::histogram(),
            begun: false,
            lately: [0; 2],
        }
    }
}

impl Waits {
    /// From now on something is freed.
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
    }

    /// The usual wait: whichever median is less, for most reads meet no discard.
    fn usual(&self) -> u64 {
        let medians = [&self.before, &self.since]
            .into_iter()
            .filter(|histogram| !histogram.is_empty())
            .map(|histogram| histogram.value_at_quantile(0.5));
        medians.min().unwrap_or(0)
    }

    /// What the slowest of late waited beyond the usual.
    pub(super) fn added_lately(&self) -> Duration {
        let most = self.lately[0].max(self.lately[1]);
        Duration::from_nanos(most.saturating_sub(self.usual()))
    }

    pub(super) fn felt(&self) -> Option<CanaryFelt> {
        let usual = self.usual();
        let added = |wait: u64| Duration::from_nanos(wait.saturating_sub(usual));
        (!self.since.is_empty()).then(|| CanaryFelt {
            reads: self.since.len(),
            usual: Duration::from_nanos(usual),
            p999_added: added(self.since.value_at_quantile(0.999)),
            max_added: added(self.since.max()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_on_top_of_the_usual() {
        let mut waits = Waits::default();
        assert_eq!(waits.felt(), None);
        let batch = |values: &[u64]| {
            let mut batch = Sampler::histogram();
            for us in values {
                batch.record(us * 1000).unwrap();
            }
            batch
        };
        waits.add(&batch(&[100, 100, 100]));
        assert_eq!(waits.felt(), None, "nothing was freed yet");
        waits.begin();
        waits.add(&batch(&[100, 2100, 5100]));
        let felt = waits.felt().unwrap();
        let near = |span: Duration, ms: f64| (span.as_secs_f64() * 1e3 - ms).abs() < 0.02;
        assert_eq!(felt.reads, 3);
        assert!(
            near(felt.usual, 0.1) && near(felt.max_added, 5.0),
            "{felt:?}"
        );
        assert!(near(felt.p999_added, 5.0), "{felt:?}");
        assert!(near(waits.added_lately(), 5.0));
        waits.add(&batch(&[100]));
        waits.add(&batch(&[100]));
        assert!(near(waits.added_lately(), 0.0), "it is over");
    }
}
