//! Work on blocks of one file or device: what each operation does, and with which engine.

use std::fs::File;
use std::sync::Arc;

use crate::pattern::{Pattern, PatternKind};

/// The kind of each operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Reads a block.
    Read,
    /// Overwrites a block with incompressible data.
    Write,
    /// Writes the blocks of an empty file one after the other, up to the
    /// region's length, and then over them again and again.
    Append,
    /// Reads a block, or overwrites it: drawn anew for each operation. Reads
    /// and writes are a series each.
    Mixed {
        /// Share of reads, in percent: 1 to 99.
        read_percent: u8,
    },
    /// Goes through the engine and does nothing: measures the engine itself.
    Nop,
}

impl Op {
    /// The word for it: `read`, `write`, `append`, `mixed` or `nop`. In a
    /// record `mixed` is a series of `read` and one of `write`.
    pub fn as_str(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Append => "append",
            Op::Mixed { .. } => "mixed",
            Op::Nop => "nop",
        }
    }

    /// Whether it changes what it works on.
    pub fn writes(self) -> bool {
        matches!(self, Op::Write | Op::Append | Op::Mixed { .. })
    }
}

/// The engine asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring, else libaio, else threads; what was used and why is in the actor's notes.
    Auto,
    /// io_uring or an error.
    IoUring,
    /// io_uring that polls the device for completions, or an error. Only direct reads and writes.
    IoPoll,
    /// io_uring with a kernel thread that polls for submissions, or an error.
    SqPoll,
    /// The kernel's older asynchronous I/O (`io_submit`) or an error.
    Libaio,
    /// One thread per operation in flight.
    Sync,
    /// One thread per operation in flight, which overwrites a mapped file. Only with [`Op::Write`].
    Mmap,
    /// The same, and each thread forces the pages to the drive by `msync` after 32 blocks.
    MmapSync,
    /// io_uring's own no-operation: our overhead alone. Only with [`Op::Nop`].
    Null,
}

/// The engine in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// io_uring.
    IoUring,
    /// io_uring that polls the device.
    IoPoll,
    /// io_uring with a kernel thread that polls.
    SqPoll,
    /// `io_submit` and `io_getevents`.
    Libaio,
    /// One thread per operation in flight.
    Sync,
    /// One thread per operation in flight, which overwrites a mapped file.
    Mmap,
    /// The same, with `msync` after 32 blocks of a thread.
    MmapSync,
    /// io_uring's no-operation.
    Null,
}

impl Engine {
    /// The word for it in a record: `io_uring`, `io_uring-iopoll`, `io_uring-sqpoll`, `libaio`, `sync`, `mmap`, `mmap-sync` or `null`.
    pub fn as_str(self) -> &'static str {
        match self {
            Engine::IoUring => "io_uring",
            Engine::IoPoll => "io_uring-iopoll",
            Engine::SqPoll => "io_uring-sqpoll",
            Engine::Libaio => "libaio",
            Engine::Sync => "sync",
            Engine::Mmap => "mmap",
            Engine::MmapSync => "mmap-sync",
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

/// Reads and writes of blocks, the same size each.
#[derive(Debug, Clone)]
pub struct Blocks {
    /// The kind of each operation.
    pub op: Op,
    /// The order of the blocks; [`Op::Append`] is sequential whatever this is.
    pub pattern: PatternKind,
    /// Bytes per operation: a multiple of 512 when direct, at most 16 MiB; any for [`Op::Nop`].
    pub block_bytes: u32,
    /// The engine.
    pub engine: EngineChoice,
    /// Where to work; only [`Op::Nop`] does without.
    pub target: Option<Region>,
    /// Whether the file was opened with `O_DIRECT`.
    pub direct: bool,
}

const MAX_BLOCK: u32 = 16 << 20;
const MAX_MEMORY: u64 = 1 << 30;

impl Blocks {
    /// Whether every field but the target is in range and they fit each
    /// other; else what is wrong.
    pub(super) fn check(&self, depth: u32) -> Result<(), String> {
        if self.op == Op::Nop {
            return match self.engine {
                EngineChoice::Libaio => {
                    Err("libaio has no no-operation: choose the engine null or sync".into())
                }
                EngineChoice::IoPoll => Err("a device can't be polled for no-operations".into()),
                EngineChoice::Mmap | EngineChoice::MmapSync => {
                    Err("mmap has no no-operation: choose the engine null or sync".into())
                }
                _ => Ok(()),
            };
        }
        if self.engine == EngineChoice::Null {
            return Err("the engine null does nothing: give it the operation nop".into());
        }
        let mapped = matches!(self.engine, EngineChoice::Mmap | EngineChoice::MmapSync);
        if mapped && self.op != Op::Write {
            return Err("the engine mmap only overwrites: give it the operation write".into());
        }
        if mapped && self.direct {
            return Err(
                "the engine mmap goes through the page cache, so it can't be direct".into(),
            );
        }
        if self.engine == EngineChoice::IoPoll && !self.direct {
            return Err("polling the device needs direct I/O".into());
        }
        let block = self.block_bytes;
        if !(1..=MAX_BLOCK).contains(&block) {
            return Err(format!("block size {block} isn't in 1 byte to 16 MiB"));
        }
        if self.direct && !block.is_multiple_of(512) {
            return Err(format!(
                "block size {block} isn't a multiple of 512, as direct I/O needs it"
            ));
        }
        if u64::from(block) * u64::from(depth) > MAX_MEMORY {
            return Err("depth × block size is above 1 GiB: choose less of either".into());
        }
        match self.op {
            Op::Mixed { read_percent: 0 } => {
                Err("a mix with 0 % of reads only writes: choose the operation write".into())
            }
            Op::Mixed { read_percent: 100 } => {
                Err("a mix with 100 % of reads only reads: choose the operation read".into())
            }
            Op::Mixed { read_percent: p } if p > 100 => {
                Err(format!("a mix with {p} % of reads isn't in 1 to 99 %"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the target is one that it can work on; else what is wrong.
    pub(super) fn check_target(&self) -> Result<(), String> {
        if self.op == Op::Nop {
            return Ok(());
        }
        let block = self.block_bytes;
        let Some(region) = &self.target else {
            return Err("there is no file to work on".into());
        };
        if region.len < u64::from(block) {
            return Err(format!(
                "{} bytes of file hold no block of {block} bytes",
                region.len
            ));
        }
        if !region.start.is_multiple_of(u64::from(block)) {
            return Err(format!(
                "the region begins at {}, which isn't a multiple of the block size {block}",
                region.start
            ));
        }
        Ok(())
    }

    /// The order in which blocks are really visited.
    pub(super) fn order(&self) -> PatternKind {
        match self.op {
            Op::Append => PatternKind::Sequential,
            _ => self.pattern,
        }
    }

    /// The offsets it visits; all 0 for [`Op::Nop`]. `None` when no block fits.
    pub(super) fn offsets(&self, seed: u64) -> Option<Pattern> {
        match (&self.target, self.op) {
            (_, Op::Nop) | (None, _) => Pattern::new(PatternKind::Sequential, 0, 1, 1, 0),
            (Some(region), _) => {
                let block = u64::from(self.block_bytes);
                Pattern::new(self.order(), region.start, region.len, block, seed)
            }
        }
    }

    /// Bytes that each operation moves.
    pub(super) fn bytes_per_op(&self) -> u32 {
        match self.op {
            Op::Nop => 0,
            _ => self.block_bytes,
        }
    }
}
