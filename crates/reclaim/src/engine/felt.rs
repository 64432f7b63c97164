//! What others felt.

use std::time::Duration;

use hdrhistogram::Histogram;
use load::Sampler;
use pace::{GoalResult, Observed};
use record::absence::Absent;

use super::decisions::Decisions;

/// What a deletion came to.
#[derive(Debug, Clone, PartialEq)]
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
    /// Whether the devices count: else `discarded` and `discards` are no measurement.
    pub counted: bool,
    /// What the pacer charged its discards with: the most that others may have lost by them,
    /// not what they lost. `None` where it doesn't charge.
    pub charged: Option<Duration>,
    /// How long each block that is freed and discarded by itself has to make do, for the
    /// goal to hold; 0 where no commit brings its discard.
    pub rest: Duration,
    /// What others lost and waited, as far as it was measured; `None` where nothing is
    /// discarded, and so nobody looked.
    pub observed: Option<Observed>,
    /// How the parts of the goal were kept; empty without a goal.
    pub goals: Vec<GoalResult>,
    /// What the pacer decided, and why.
    pub decisions: Decisions,
    /// Spans in which this process did not run. Nothing of what was measured is of them.
    pub absences: Vec<Absent>,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_on_top_of_the_usual() {
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
