//! An actor's specification, and whether it makes sense.

use record::LoopKind;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::blocks::{Blocks, Engine, Op};
use crate::error::LoadError;
use crate::pattern::Pattern;
use crate::task::TaskSpec;

/// The work of an actor, over and over.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Reads and writes blocks.
    Blocks(Blocks),
    /// Carries out a short chain of system calls, on a thread per chain in flight.
    Task(TaskSpec),
}

/// One source of load, as a plan has it and a record's scenario shows it. Where it works, and with
/// which engine and seed, is known when a run begins.
#[derive(Debug, Clone)]
pub struct ActorSpec {
    /// Its name, unique in the run: the verdict and the record call it so.
    pub name: String,
    /// The actor's work.
    pub work: Work,
    /// When it does it: at most 4096 operations in flight, and at most 10 million per second.
    pub arrival: LoopKind,
    /// Seed of pattern, schedule and data.
    pub seed: u64,
}

impl Serialize for ActorSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let batch = match &self.work {
            Work::Blocks(blocks) => blocks.batch,
            Work::Task(_) => 1,
        };
        let arrival = match self.arrival {
            LoopKind::Closed { depth } => json!({"closed": {"depth": depth, "batch": batch}}),
            LoopKind::Open {
                rate_per_s,
                poisson,
                depth,
            } => {
                json!({"open": {"rate_per_s": rate_per_s, "poisson": poisson, "depth": depth}})
            }
        };
        json!({"name": self.name, "work": self.work, "arrival": arrival}).serialize(serializer)
    }
}

const MAX_DEPTH: u32 = 4096;
const MAX_RATE: f64 = 1e7;

impl ActorSpec {
    /// Random reads of 4 KiB all over the foreground's file.
    pub fn reader(direct: bool, arrival: LoopKind) -> ActorSpec {
        ActorSpec {
            name: "reader".into(),
            work: Work::Blocks(Blocks {
                direct,
                ..Blocks::READS
            }),
            arrival,
            seed: 0,
        }
    }

    /// The engine that it runs on; a task runs on threads.
    pub fn engine(&self) -> Engine {
        match &self.work {
            Work::Blocks(blocks) => blocks.engine,
            Work::Task(_) => Engine::Sync,
        }
    }

    /// Bytes that the files of its own take at most, all together: a task has some for each
    /// operation in flight. 0 where there is no such file.
    pub fn own_bytes(&self) -> u64 {
        match &self.work {
            Work::Blocks(_) => self.work.append_bytes().unwrap_or(0),
            Work::Task(task) => task.space_bytes(self.arrival.depth()),
        }
    }

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

    /// The order of the blocks.
    pub(super) fn offsets(&self, blocks: &Blocks, seed: u64) -> Result<Pattern, LoadError> {
        let pattern = blocks.offsets(seed);
        pattern.ok_or_else(|| self.wrong("no block fits the region"))
    }

    pub(super) fn wrong(&self, what: impl Into<String>) -> LoadError {
        LoadError::Spec {
            actor: self.name.clone(),
            what: what.into(),
        }
    }
}

fn check_arrival(arrival: &LoopKind) -> Result<(), String> {
    let depth = arrival.depth();
    if !(1..=MAX_DEPTH).contains(&depth) {
        return Err(format!("depth {depth} isn't in 1 to {MAX_DEPTH}"));
    }
    match *arrival {
        LoopKind::Open { rate_per_s, .. } if !(rate_per_s > 0.0 && rate_per_s <= MAX_RATE) => Err(
            format!("rate {rate_per_s} isn't above 0 and at most {MAX_RATE} per second"),
        ),
        _ => Ok(()),
    }
}

impl Work {
    /// Whether it works on the foreground's file.
    pub fn shares_file(&self) -> bool {
        let shared = |op| matches!(op, Op::Read | Op::Write | Op::Mixed { .. });
        matches!(self, Work::Blocks(blocks) if shared(blocks.op))
    }

    /// The size of an appender's file, in bytes; `None` of all others.
    pub fn append_bytes(&self) -> Option<u64> {
        match self {
            Work::Blocks(blocks) if blocks.op == Op::Append => blocks.size_bytes,
            _ => None,
        }
    }
}
