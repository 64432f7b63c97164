//! The pacer's decisions and their reasons, few enough for a file.

use pace::{Advice, Discards, Flushes, Others, State, Why};

/// The most decisions that are kept. Beyond it, every other one is dropped.
const MOST: usize = 2048;

/// One decision: so much may be freed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// When it was made, in seconds after the beginning.
    pub at_s: f64,
    /// Why.
    pub why: Why,
    /// Bytes that may be freed; `u64::MAX`: all.
    pub allow: u64,
    /// How long the pacer made the deletion wait since the decision before, in seconds.
    pub waited_s: f64,
    /// The learned time of a discard of full length, in seconds; `None` if none was measured.
    pub service_s: Option<f64>,
    /// The share of a discard's time that is charged.
    pub phi: f64,
    /// Bytes freed so far.
    pub freed: u64,
    /// The devices' discards so far, from any process.
    pub discards: Discards,
    /// The devices' flushes so far, from any process.
    pub flushes: Flushes,
    /// The foreground's reads and writes so far; `None` where nothing shows them.
    pub others: Option<Others>,
}

/// Decisions in their order, thinned where there are many.
#[derive(Debug, Clone, PartialEq)]
pub struct Decisions {
    kept: Vec<Decision>,
    /// One of so many was kept.
    every: u64,
    count: u64,
    last_s: f64,
}

impl Default for Decisions {
    fn default() -> Decisions {
        Decisions {
            kept: Vec::new(),
            every: 1,
            count: 0,
            last_s: 0.0,
        }
    }
}

/// The measurements on which a decision was based.
pub(super) struct Snapshot {
    pub(super) at_s: f64,
    pub(super) freed: u64,
    pub(super) discards: Discards,
    pub(super) flushes: Flushes,
    pub(super) others: Option<Others>,
}

impl Decisions {
    /// Those that are kept.
    pub fn kept(&self) -> &[Decision] {
        &self.kept
    }

    /// Of so many decisions one is kept.
    pub fn every(&self) -> u64 {
        self.every
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn add(&mut self, advice: &Advice, state: &State, snapshot: &Snapshot) {
        let waited_s = snapshot.at_s - self.last_s;
        self.last_s = snapshot.at_s;
        self.count += 1;
        if !(self.count - 1).is_multiple_of(self.every) {
            return;
        }
        self.kept.push(Decision {
            at_s: snapshot.at_s,
            why: advice.why,
            allow: advice.allow,
            waited_s,
            service_s: state.service_s,
            phi: state.phi,
            freed: snapshot.freed,
            discards: snapshot.discards,
            flushes: snapshot.flushes,
            others: snapshot.others,
        });
        if self.kept.len() == MOST {
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
            self.every *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use pace::{Pacer, Policy, Work};

    use super::*;

    #[test]
    fn a_million_decisions_are_a_few_thousand_in_their_order() {
        let mut pacer = Pacer::new(Policy::Burst, &Work::new(1, 1), None).unwrap();
        let advice = pacer.advise(&pace::Feedback::default());
        let mut decisions = Decisions::default();
        for number in 0..1_000_000 {
            let snapshot = Snapshot {
                at_s: f64::from(number),
                freed: 0,
                discards: Discards::default(),
                flushes: Flushes::default(),
                others: None,
            };
            decisions.add(&advice, &pacer.state(), &snapshot);
        }
        let kept = decisions.kept();
        assert!(kept.len() > MOST / 4 && kept.len() < MOST, "{}", kept.len());
        assert_eq!(decisions.count(), 1_000_000);
        let apart = decisions.every() as f64;
        assert!(
            kept.windows(2)
                .all(|two| two[1].at_s - two[0].at_s == apart)
        );
    }
}
