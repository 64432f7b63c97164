//! What an actor is told, and whether it makes sense.

use std::fs::File;
use std::sync::Arc;

use timeline::record::{ActorInfo, LoopKind};

use crate::error::LoadError;
use crate::pattern::{Pattern, PatternKind};

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

impl Op {
    /// The word for it in a record.
    pub fn as_str(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Nop => "nop",
        }
    }
}

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

impl Engine {
    /// The word for it in a record: `io_uring`, `sync` or `null`.
    pub fn as_str(self) -> &'static str {
        match self {
            Engine::IoUring => "io_uring",
            Engine::Sync => "sync",
            Engine::Null => "null",
        }
    }
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
    /// Bytes per operation: a multiple of 512 when direct, at most 16 MiB; any for [`Op::Nop`].
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

const MAX_DEPTH: u32 = 4096;
const MAX_BLOCK: u32 = 16 << 20;
const MAX_MEMORY: u64 = 1 << 30;
const MAX_RATE: f64 = 1e7;

impl ActorSpec {
    /// Whether every field but the target is in range and they fit each other.
    ///
    /// # Errors
    /// [`LoadError::Spec`].
    pub fn check(&self) -> Result<(), LoadError> {
        let wrong = |what| self.wrong(what);
        let depth = self.arrival.depth();
        if !(1..=MAX_DEPTH).contains(&depth) {
            return wrong(format!("depth {depth} isn't in 1 to {MAX_DEPTH}"));
        }
        match self.arrival {
            Arrival::Closed { batch, .. } if !(1..=depth).contains(&batch) => {
                return wrong(format!("batch {batch} isn't in 1 to the depth, {depth}"));
            }
            Arrival::Open { rate_per_s, .. } if !(rate_per_s > 0.0 && rate_per_s <= MAX_RATE) => {
                return wrong(format!(
                    "rate {rate_per_s} isn't above 0 and at most {MAX_RATE} per second"
                ));
            }
            _ => {}
        }
        if self.op == Op::Nop {
            return Ok(());
        }
        if self.engine == EngineChoice::Null {
            return wrong("the engine null does nothing: give it the operation nop".into());
        }
        let block = self.block_bytes;
        if !(1..=MAX_BLOCK).contains(&block) {
            return wrong(format!("block size {block} isn't in 1 byte to 16 MiB"));
        }
        if self.direct && !block.is_multiple_of(512) {
            return wrong(format!(
                "block size {block} isn't a multiple of 512, as direct I/O needs it"
            ));
        }
        if u64::from(block) * u64::from(depth) > MAX_MEMORY {
            return wrong("depth × block size is above 1 GiB: choose less of either".into());
        }
        Ok(())
    }

    /// Whether the target is one that it can work on.
    pub(super) fn check_target(&self) -> Result<(), LoadError> {
        if self.op == Op::Nop {
            return Ok(());
        }
        let wrong = |what| self.wrong(what);
        let block = self.block_bytes;
        let Some(region) = &self.target else {
            return wrong("there is no file to work on".into());
        };
        if region.len < u64::from(block) {
            return wrong(format!(
                "{} bytes of file hold no block of {block} bytes",
                region.len
            ));
        }
        if !region.start.is_multiple_of(u64::from(block)) {
            return wrong(format!(
                "the region begins at {}, which isn't a multiple of the block size {block}",
                region.start
            ));
        }
        Ok(())
    }

    fn wrong(&self, what: String) -> Result<(), LoadError> {
        Err(LoadError::Spec {
            actor: self.name.clone(),
            what,
        })
    }

    /// The offsets it visits; all 0 for [`Op::Nop`].
    pub(super) fn offsets(&self, seed: u64) -> Option<Pattern> {
        match (&self.target, self.op) {
            (_, Op::Nop) | (None, _) => Pattern::new(PatternKind::Sequential, 0, 1, 1, 0),
            (Some(region), _) => {
                let block = u64::from(self.block_bytes);
                Pattern::new(self.pattern, region.start, region.len, block, seed)
            }
        }
    }

    /// Bytes that each operation moves.
    pub(super) fn bytes_per_op(&self) -> u32 {
        match self.op {
            Op::Nop => 0,
            Op::Read | Op::Write => self.block_bytes,
        }
    }

    /// What the record's head says of it, when it runs on that engine.
    pub fn info(&self, engine: Engine) -> ActorInfo {
        ActorInfo {
            name: self.name.clone(),
            op: self.op.as_str().to_owned(),
            loop_kind: match self.arrival {
                Arrival::Closed { depth, .. } => LoopKind::Closed { depth },
                Arrival::Open {
                    rate_per_s,
                    poisson,
                    depth,
                } => LoopKind::Open {
                    rate_per_s,
                    poisson,
                    depth,
                },
            },
            block_bytes: u64::from(self.bytes_per_op()),
            pattern: (self.op != Op::Nop).then(|| self.pattern.as_str().to_owned()),
            direct: self.direct && self.op != Op::Nop,
            engine: engine.as_str().to_owned(),
        }
    }
}
