//! Actors: one source of foreground load each, in threads of their own.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use timeline::record::ActorInfo;

use crate::clock::Clock;
use crate::error::LoadError;
use crate::meter::Meter;
use crate::pattern::PatternKind;

/// What each operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Reads a block.
    Read,
    /// Overwrites a block with incompressible data.
    Write,
    /// Goes through the engine and does nothing: measures the engine itself.
    Nop,
}

/// When operations are issued.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// A new one for each that finishes.
    Closed {
        /// Operations in flight, 1 to 4096.
        depth: u32,
        /// Completions waited for at once and replaced at once, 1 to `depth`; usually 1.
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

/// The engine asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring, else threads; what was used and why is in the actor's notes.
    Auto,
    /// io_uring or an error.
    IoUring,
    /// One thread per operation in flight.
    Sync,
    /// io_uring's own no-operation: our overhead alone. Only with [`Op::Nop`].
    Null,
}

/// The engine in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// io_uring.
    IoUring,
    /// One thread per operation in flight.
    Sync,
    /// io_uring's no-operation.
    Null,
}

/// The part of a file or device that an actor works on.
#[derive(Debug, Clone)]
pub struct Region {
    /// The file, opened as [`crate::target::open`] does.
    pub file: Arc<File>,
    /// First byte; a multiple of the block size.
    pub start: u64,
    /// Length in bytes; at least one block. A last, partial block is left out.
    pub len: u64,
}

/// Everything an actor is told.
#[derive(Debug, Clone)]
pub struct ActorSpec {
    /// Its name, unique in the run.
    pub name: String,
    /// What each operation does.
    pub op: Op,
    /// The order of the blocks.
    pub pattern: PatternKind,
    /// Bytes per operation: a multiple of 512 when direct, at most 16 MiB.
    pub block_bytes: u32,
    /// When operations are issued.
    pub arrival: Arrival,
    /// The engine.
    pub engine: EngineChoice,
    /// Where to work; only [`Op::Nop`] does without.
    pub target: Option<Region>,
    /// Whether the file was opened with `O_DIRECT`.
    pub direct: bool,
    /// Seed of pattern, schedule and data.
    pub seed: u64,
}

/// What was still in flight, or due and never issued, when an actor was given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// How many operations.
    pub operations: u64,
    /// Age of the oldest, from its intended start, in nanoseconds; 0 when there is none.
    pub oldest_ns: u64,
}

/// A running actor.
#[derive(Debug)]
pub struct Actor {}

impl Actor {
    /// Starts the actor's threads; the first operation is issued at once.
    ///
    /// # Errors
    /// [`LoadError::Spec`], [`LoadError::NoIoUring`] when io_uring was asked
    /// for by name, [`LoadError::System`].
    pub fn start(_spec: ActorSpec, _clock: Clock) -> Result<Actor, LoadError> {
        unimplemented!()
    }

    /// What the record's head says about it, with the engine really used.
    pub fn info(&self) -> &ActorInfo {
        unimplemented!()
    }

    /// The engine really used.
    pub fn engine(&self) -> Engine {
        unimplemented!()
    }

    /// Fall-backs and whatever else isn't as asked, in words, for warnings.
    pub fn notes(&self) -> &[String] {
        unimplemented!()
    }

    /// Its meter; give it to a [`crate::Sampler`].
    pub fn meter(&self) -> &Arc<Meter> {
        unimplemented!()
    }

    /// Tells it to issue nothing more. Returns at once.
    pub fn stop(&self) {
        unimplemented!()
    }

    /// Stops it, waits at most `grace` for what is in flight, and counts what
    /// never finished. A thread that is still blocked then is abandoned with its memory.
    pub fn finish(self, _grace: Duration) -> Unfinished {
        unimplemented!()
    }
}
