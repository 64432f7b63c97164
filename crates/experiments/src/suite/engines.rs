//! Reads by engine: buffered against direct, completions by interrupt and by polling, batches.

use serde::{Deserialize, Serialize};

/// Where the blocks are that a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// On the drive, read past the page cache.
    Direct,
    /// On the drive, read through the page cache, which has none of them.
    Cold,
    /// In the page cache.
    Cached,
}

impl Cache {
    /// The word for it.
    pub fn words(self) -> &'static str {
        match self {
            Cache::Direct => "direct",
            Cache::Cold => "buffered, cold",
            Cache::Cached => "buffered, cached",
        }
    }
}

/// One way of reading, in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EngineRun {
    /// The engine, as a record names it.
    pub engine: String,
    /// Where the blocks are.
    pub cache: Cache,
    /// Completions waited for at once.
    pub batch: u32,
    /// Reads per second; `None`: see `why`.
    pub reads_per_s: Option<f64>,
    /// Median latency, in microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile, in microseconds.
    pub p99_us: Option<f64>,
    /// Processor time of a read, in microseconds, that of kernel threads for this ring included.
    pub cpu_us: Option<f64>,
    /// Why there are no figures.
    pub why: Option<String>,
}

/// The cost that trimbench adds to each I/O, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Where trimbench's clock reads the time: `tsc` or `clock_gettime`.
    pub source: String,
    /// One reading of it.
    pub clock_ns: f64,
    /// One reading of the kernel's clock.
    pub kernel_clock_ns: f64,
    /// Recording an operation.
    pub record_ns: f64,
}

/// All that the step `engines` measured in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Engines {
    /// The ways of reading.
    pub runs: Vec<EngineRun>,
    /// The cost that trimbench adds.
    pub costs: Costs,
}
