//! An actor's specification, and whether it makes sense.

use super::blocks::Blocks;
use crate::error::LoadError;
use crate::task::TaskSpec;

/// When operations are issued.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// A new one for each that finishes.
    Closed {
        /// Operations in flight, 1 to 4096.
        depth: u32,
        /// Completions waited for at once and replaced at once, 1 to `depth`;
        /// usually 1. The sync engine has no batches.
        batch: u32,
    },
    /// At times set beforehand, whether or not earlier ones have finished.
    Open {
        /// Mean rate per second, above 0 and at most 10 million.
        rate_per_s: f64,
        /// Whether gaps are exponential rather than constant.
        poisson: bool,
        /// Most operations in flight, 1 to 4096; those due beyond it wait, and their wait counts.
        depth: u32,
    },
}

impl Arrival {
    /// Most operations in flight.
    pub fn depth(&self) -> u32 {
        match *self {
            Arrival::Closed { depth, .. } | Arrival::Open { depth, .. } => depth,
        }
    }

    /// Whether latency counts from an intended start.
    pub fn is_open(&self) -> bool {
        matches!(self, Arrival::Open { .. })
    }
}

/// The work of an actor, over and over.
#[derive(Debug, Clone)]
pub enum Work {
    /// Reads and writes blocks.
    Blocks(Blocks),
    /// Carries out a short chain of system calls, on a thread per chain in flight.
    Task(TaskSpec),
}

/// The specification of an actor.
#[derive(Debug, Clone)]
pub struct ActorSpec {
    /// Its name, unique in the run.
    pub name: String,
    /// The actor's work.
    pub work: Work,
    /// When it does it.
    pub arrival: Arrival,
    /// Seed of pattern, schedule and data.
    pub seed: u64,
}

const MAX_DEPTH: u32 = 4096;
const MAX_RATE: f64 = 1e7;

impl ActorSpec {
    /// Whether every field but the target is in range and they fit each other.
    ///
    /// # Errors
    /// [`LoadError::Spec`].
    pub fn check(&self) -> Result<(), LoadError> {
        let depth = self.arrival.depth();
        check_arrival(&self.arrival)
            .and_then(|()| match &self.work {
                Work::Blocks(blocks) => blocks.check(depth),
                Work::Task(task) => task.check(depth),
            })
            .map_err(|what| self.wrong(what))
    }

    /// Whether the target is one that it can work on.
    pub(super) fn check_target(&self) -> Result<(), LoadError> {
        match &self.work {
            Work::Blocks(blocks) => blocks.check_target().map_err(|what| self.wrong(what)),
            // Its own start finds out.
            Work::Task(_) => Ok(()),
        }
    }

    pub(super) fn wrong(&self, what: impl Into<String>) -> LoadError {
        LoadError::Spec {
            actor: self.name.clone(),
            what: what.into(),
        }
    }
}

fn check_arrival(arrival: &Arrival) -> Result<(), String> {
    let depth = arrival.depth();
    if !(1..=MAX_DEPTH).contains(&depth) {
        return Err(format!("depth {depth} isn't in 1 to {MAX_DEPTH}"));
    }
    match *arrival {
        Arrival::Closed { batch, .. } if !(1..=depth).contains(&batch) => {
            Err(format!("batch {batch} isn't in 1 to the depth, {depth}"))
        }
        Arrival::Open { rate_per_s, .. } if !(rate_per_s > 0.0 && rate_per_s <= MAX_RATE) => Err(
            format!("rate {rate_per_s} isn't above 0 and at most {MAX_RATE} per second"),
        ),
        _ => Ok(()),
    }
}
