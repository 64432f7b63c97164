//! How far trimbench itself was there to measure.

use serde::{Deserialize, Serialize};

use record::absence::Absent;

/// A span in which trimbench itself did not run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Absence {
    /// When the interval began that it lies in, in seconds since the record's zero.
    pub at_s: f64,
    /// How long trimbench did not run, in seconds, and why.
    #[serde(flatten)]
    pub absent: Absent,
}

/// How long an actor's threads were ready to run and waited for a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuWait {
    /// Share of the baseline's time, 0 to 1.
    pub baseline: Option<f64>,
    /// Share of the deletion's time.
    pub delete: Option<f64>,
}
