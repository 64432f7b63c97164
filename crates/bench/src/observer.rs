//! The events of a run while it goes on. The roof draws them; nothing here prints.

use record::{Event, Part, PhaseName};

/// Watches a run. The run's own thread calls it, and must not be kept waiting.
pub trait Observer {
    /// A phase began.
    fn phase(&mut self, _name: PhaseName, _part: Part) {}

    /// Files are being made: so many bytes of so many are written.
    fn preparing(&mut self, _done_bytes: u64, _total_bytes: u64) {}

    /// A second has passed.
    fn second(&mut self, _second: &Second) {}

    /// Something happened.
    fn event(&mut self, _event: &Event) {}
}

/// Nobody watches.
impl Observer for () {}

/// The figures of the last second.
#[derive(Debug, Clone)]
pub struct Second {
    /// Seconds since the run began.
    pub at_s: f64,
    /// The phase it ended in.
    pub phase: PhaseName,
    /// The part of the run.
    pub part: Part,
    /// Operations per second of the first actor, over all of its series; `None`
    /// while it isn't running.
    pub ops_per_s: Option<f64>,
    /// The longest wait of its operations, completed or in flight, in microseconds; `None` when there
    /// was none.
    pub worst_us: Option<f64>,
    /// Bytes discarded per second.
    pub discard_bytes_per_s: f64,
    /// Bytes freed and not yet discarded.
    pub debt_bytes: u64,
}
