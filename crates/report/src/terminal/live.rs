//! The line that is rewritten every second while a run goes on.

use timeline::record::{Part, PhaseName};

use super::Style;

/// What the live line tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LiveLine {
    /// Seconds since the record's zero.
    pub elapsed_s: f64,
    /// The phase that runs.
    pub phase: PhaseName,
    /// The part it belongs to.
    pub part: Part,
    /// Operations per second of the first foreground actor; `None` while it isn't running.
    pub ops_per_s: Option<f64>,
    /// Its 99th percentile, in microseconds.
    pub p99_us: Option<f64>,
    /// Age of its oldest operation in flight, in microseconds, if it is worth telling
    /// (older than an interval).
    pub oldest_us: Option<f64>,
    /// Bytes discarded per second.
    pub discard_bytes_per_s: f64,
    /// Bytes freed and not yet discarded.
    pub debt_bytes: u64,
}

/// One line, without a line end, of at most 80 columns (of `style.width`, if that is less).
/// Figures stay in their places from one line to the next.
pub fn live(_line: &LiveLine, _style: &Style) -> String {
    String::new()
}
