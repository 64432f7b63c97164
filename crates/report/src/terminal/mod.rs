//! Text for a terminal: what was found, the live line, the verdict and the timeline.

mod live;

pub use live::{LiveLine, live};

use timeline::record::{Head, RunRecord};
use timeline::Verdict;

/// How text is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to use ANSI colours; without, the text has no escape codes.
    pub colour: bool,
    /// Columns of the terminal; no line is wider. Below 40 counts as 40.
    pub width: u16,
    /// Whether the terminal shows Unicode; without, the text is ASCII.
    pub unicode: bool,
}

/// What was found before a run: mount, devices, discards, space, and the foreground to come.
pub fn set_up(_head: &Head, _style: &Style) -> String {
    String::new()
}

/// What a run found: the sentence, the tables, the cost, and what to do next.
pub fn verdict(_verdict: &Verdict, _record: &RunRecord, _style: &Style) -> String {
    String::new()
}

/// The run drawn over time: rates, latencies, discards, debt, phases and events.
pub fn timeline(_record: &RunRecord, _verdict: &Verdict, _style: &Style) -> String {
    String::new()
}
