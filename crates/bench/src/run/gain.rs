//! A trim of all free space whose gain is measured: a limit of bytes, and a fast cache that must be
//! full before the measurement and again after the trim.

use std::time::Duration;

use judge::gain::{FILLS, cache_bytes};

use super::{Early, Script};
use crate::plan::Plan;
use crate::session::Tick;

/// A cell of the bytes written, for finding the cache's end.
const CELL: Duration = Duration::from_secs(1);

/// The bytes that writers may write, by phase, and what they have written.
#[derive(Debug, Clone, Default)]
pub(super) struct Shares {
    /// While settling and in the baseline.
    pub(super) before: u64,
    /// In the trim. They wait when these are written, for it may take long.
    pub(super) during: u64,
    /// After it.
    pub(super) after: u64,
    /// Bytes of each cell before the trim, the last one unfinished.
    cells: Vec<f64>,
    cell_began: Duration,
    written: u64,
}

/// Whether settling has filled a drive's fast cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    /// None shows, or it was filled twice.
    Yes,
    NotYet,
    /// The bytes for settling are written.
    OutOfBytes,
}

impl Shares {
    /// The shares of a plan's limit; `None` without a limit.
    pub(super) fn of(plan: &Plan) -> Option<Shares> {
        let left = plan.writes_at_most()?.saturating_sub(plan.file.size_bytes);
        Some(Shares {
            before: left / 2,
            during: left / 10,
            after: left - left / 2 - left / 10,
            ..Shares::default()
        })
    }

    fn add(&mut self, tick: &Tick) {
        if self.cells.is_empty() || tick.now.saturating_sub(self.cell_began) > CELL {
            self.cells.push(0.0);
            self.cell_began = tick.now;
        }
        if let Some(cell) = self.cells.last_mut() {
            *cell += tick.written_bytes as f64;
        }
        self.written += tick.written_bytes;
    }

    /// Bytes of the fast cache, as far as it shows.
    fn cache(&self) -> Option<u64> {
        cache_bytes(&self.cells[..self.cells.len().saturating_sub(1)])
    }
}

impl Script<'_> {
    /// Lets the writers write a share more.
    pub(super) fn allow(&self, share: impl Fn(&Shares) -> u64) {
        if let (Some(allowance), Some(shares)) = (&self.session.allowance, &self.shares) {
            allowance.add(share(shares));
        }
    }

    /// Whether writers wait for an allowance.
    fn is_spent(&self) -> bool {
        self.session
            .allowance
            .as_ref()
            .is_some_and(|a| a.is_spent())
    }

    /// Adds an interval of settling.
    pub(super) fn fills_cache(&mut self, tick: &Tick) -> Filled {
        let Some(shares) = &mut self.shares else {
            return Filled::Yes;
        };
        shares.add(tick);
        match shares.cache() {
            _ if shares.written >= shares.before / 2 => Filled::OutOfBytes,
            Some(cache) if shares.written < cache.saturating_mul(FILLS) => Filled::NotYet,
            _ => Filled::Yes,
        }
    }

    /// The baseline, or as much of it as may be written.
    pub(super) fn baseline_of_gain(&mut self, length: Duration) -> Result<(), Early> {
        let end = Duration::from_nanos(self.session.last.0) + length;
        loop {
            let tick = self.session.tick()?;
            if let Some(shares) = &mut self.shares {
                shares.add(&tick);
            }
            if tick.now >= end || self.is_spent() {
                return Ok(());
            }
        }
    }

    /// Goes on after the trim, and until a fast cache is full again: it may have recovered.
    pub(super) fn recover(&mut self) -> Result<(), Early> {
        let cache = self.shares.as_ref().and_then(Shares::cache);
        let fills = cache.map_or(0, |cache| cache.saturating_mul(FILLS));
        let phases = &self.plan.phases;
        let began = Duration::from_nanos(self.session.last.0);
        let mut written = 0;
        let mut filled_at = (fills == 0).then_some(began);
        loop {
            let tick = self.session.tick()?;
            written += tick.written_bytes;
            if filled_at.is_none() && written >= fills {
                filled_at = Some(tick.now);
            }
            // As long as the baseline with a full cache.
            let enough = filled_at.is_some_and(|at| tick.now >= at + phases.baseline());
            let over = tick.now.saturating_sub(began) >= phases.recovery();
            if enough && over || self.is_spent() {
                return Ok(());
            }
        }
    }
}
