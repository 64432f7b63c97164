//! Work on blocks of one file or device: what each operation does, and with which engine.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Serialize;

use crate::pattern::{Pattern, PatternKind};

/// The kind of each operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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

record::kinds! {
    /// The engine of reads and writes, asked for or in use.
    pub enum Engine["engine"] {
        /// io_uring, or libaio, or sync, the first that is allowed (reported)
        Auto = "auto",
        /// io_uring
        IoUring = "io_uring",
        /// Linux's older asynchronous I/O
        Libaio = "libaio",
        /// blocking calls, a thread per operation in flight
        Sync = "sync",
        /// writers overwrite a mapped file, and the kernel writes the pages back
        Mmap = "mmap",
        /// the same, and each thread calls msync after 32 blocks
        MmapSync = "mmap-sync",
        /// io_uring no-ops: measures trimbench itself
        Null = "null",
        /// io_uring that polls the device for completions
        IoPoll = "io_uring-iopoll",
        /// io_uring with a kernel thread that polls for submissions
        SqPoll = "io_uring-sqpoll",
    }
}

impl Engine {
    /// Whether writers overwrite a mapped file.
    pub fn maps(self) -> bool {
        matches!(self, Engine::Mmap | Engine::MmapSync)
    }

    /// Whether it polls, for which a device must be set up.
    pub fn polls(self) -> bool {
        matches!(self, Engine::IoPoll | Engine::SqPoll)
    }

    /// The engine of one who only reads, where this one was asked for: it really reads, and a mapped
    /// file is for writers.
    pub fn for_reads(self) -> Engine {
        match self {
            Engine::Null => Engine::Auto,
            engine if engine.maps() => Engine::Auto,
            engine => engine,
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
#[derive(Debug, Clone, Serialize)]
pub struct Blocks {
    /// The kind of each operation.
    pub op: Op,
    /// The order of the blocks; [`Op::Append`] is sequential whatever this is.
    pub pattern: PatternKind,
    /// Bytes per operation: a multiple of 512 when direct, at most 16 MiB; any for [`Op::Nop`].
    pub block_bytes: u32,
    /// Whether the file is opened with `O_DIRECT`.
    pub direct: bool,
    /// Of [`Op::Append`] the size at which its own file begins anew, in bytes. The others share a
    /// file.
    pub size_bytes: Option<u64>,
    /// In a closed loop completions waited for at once and replaced at once, 1 to the depth;
    /// usually 1. Engines without a queue have no batches.
    #[serde(skip)]
    pub batch: u32,
    /// The engine.
    #[serde(skip)]
    pub engine: Engine,
    /// Where to work; only [`Op::Nop`] does without.
    #[serde(skip)]
    pub target: Option<Region>,
    /// The bytes that it may still write; only closed loops with a queue keep to it. `None`: no limit.
    #[serde(skip)]
    pub allowance: Option<Arc<Allowance>>,
}

/// Bytes that actors may still write, all together. One that has none left waits for more.
#[derive(Debug, Default)]
pub struct Allowance {
    left: AtomicU64,
    spent: AtomicBool,
}

impl Allowance {
    /// Allows so many bytes more.
    pub fn add(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
        self.spent.store(false, Ordering::Relaxed);
    }

    /// Whether a write has had to wait since bytes were added.
    pub fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Relaxed)
    }

    /// Takes the bytes of a write; false if there are not so many left.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let less = |left: u64| left.checked_sub(bytes);
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok();
        if !taken {
            self.spent.store(true, Ordering::Relaxed);
        }
        taken
    }
}

const MAX_BLOCK: u32 = 16 << 20;
const MAX_MEMORY: u64 = 1 << 30;

/// Whether so many blocks in flight take no more memory than is allowed.
pub(crate) fn check_block(block: u32, depth: u32) -> Result<(), String> {
    if !(1..=MAX_BLOCK).contains(&block) {
        return Err(format!("block size {block} isn't in 1 byte to 16 MiB"));
    }
    if u64::from(block) * u64::from(depth) > MAX_MEMORY {
        return Err("depth × block size is above 1 GiB: choose less of either".into());
    }
    Ok(())
}

impl Blocks {
    /// Random reads of 4 KiB past the page cache, with the best engine.
    pub const READS: Blocks = Blocks {
        op: Op::Read,
        pattern: PatternKind::Random,
        block_bytes: 4096,
        direct: true,
        size_bytes: None,
        batch: 1,
        engine: Engine::Auto,
        target: None,
        allowance: None,
    };

    /// Whether every field but the target is in range and they fit each
    /// other; else what is wrong.
    pub(super) fn check(&self, depth: u32) -> Result<(), String> {
        if !(1..=depth).contains(&self.batch) {
            let batch = self.batch;
            return Err(format!(
                "batch {batch} isn't in 1 to its depth, {depth}: raise the depth or lower the batch"
            ));
        }
        if self.op == Op::Nop {
            return match self.engine {
                Engine::Libaio => {
                    Err("libaio has no no-operation: choose the engine null or sync".into())
                }
                Engine::IoPoll => Err("a device can't be polled for no-operations".into()),
                Engine::Mmap | Engine::MmapSync => {
                    Err("mmap has no no-operation: choose the engine null or sync".into())
                }
                _ => Ok(()),
            };
        }
        if self.engine == Engine::Null {
            return Err("the engine null does nothing: give it the operation nop".into());
        }
        if self.engine.maps() && self.op != Op::Write {
            return Err("the engine mmap only overwrites: give it the operation write".into());
        }
        if self.engine.maps() && self.direct {
            return Err(
                "the engine mmap goes through the page cache, so it can't be direct".into(),
            );
        }
        if self.engine == Engine::IoPoll && !self.direct {
            return Err("polling the device needs direct I/O".into());
        }
        let block = self.block_bytes;
        check_block(block, depth)?;
        if self.direct && !block.is_multiple_of(512) {
            return Err(format!(
                "block size {block} isn't a multiple of 512, as direct I/O needs it"
            ));
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
