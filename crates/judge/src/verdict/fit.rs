//! The cost of discards, in a verdict.

use serde::{Deserialize, Serialize};

/// The operations that completed between two discards, against those in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// About one queue depth: discards can be a barrier.
    OneDepth,
    /// Surely more or less than that.
    Other,
    /// The interval allows both, or isn't known.
    Unclear,
}

/// The cost of the discards: S = a + b·L for a discard of L MiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Fixed cost of a discard, in microseconds.
    pub a_us: Option<f64>,
    /// Cost per MiB, in microseconds.
    pub b_us_per_mib: Option<f64>,
    /// Share of a discard's service time that blocks other I/O, 0 to 1.
    pub phi: Option<f64>,
    /// Its 95 % confidence interval.
    #[serde(default)]
    pub phi_95: Option<[f64; 2]>,
    /// Service time of the discards seen, in microseconds.
    pub service_us: Option<f64>,
    /// The size they had, in MiB.
    pub at_mib: Option<f64>,
    /// Whether discards are a barrier: nothing else completes during one, and one queue
    /// depth of operations between two. `None` where the intervals below allow both.
    pub barrier: Option<bool>,
    /// Foreground operations completed per discard during the stall.
    pub ops_per_discard: Option<f64>,
    /// Its 95 % confidence interval.
    #[serde(default)]
    pub ops_per_discard_95: Option<[f64; 2]>,
    /// Operations that this foreground keeps in flight.
    #[serde(default)]
    pub depth: Option<u32>,
    /// Share of the stall in which discards kept its operations from completing: the
    /// work lost ÷ the work usual in that time, 0 to 1.
    #[serde(default)]
    pub blocked: Option<f64>,
    /// Its 95 % confidence interval.
    #[serde(default)]
    pub blocked_95: Option<[f64; 2]>,
}

/// A drive that takes surely less than this share of the time from others serves them meanwhile.
const SERVES: f64 = 0.8;

impl Fit {
    /// Returns whether others' I/O surely goes on during a discard.
    pub fn serves_others(&self) -> bool {
        self.blocked_95.is_some_and(|[_, high]| high <= SERVES)
    }

    /// Returns whether about one queue depth of operations completed for each discard: 0.75 to 1.5 times
    /// the depth. Some more pass before the next discard arrives.
    pub fn between(&self) -> Between {
        let (Some(depth), Some([low, high])) = (self.depth, self.ops_per_discard_95) else {
            return Between::Unclear;
        };
        let [least, most] = [0.75, 1.5].map(|share| share * f64::from(depth));
        match () {
            () if least <= low && high <= most => Between::OneDepth,
            () if high < least || most < low => Between::Other,
            () => Between::Unclear,
        }
    }
}
