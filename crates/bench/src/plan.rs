//! What a run is going to do, in full: it is written into the record's head,
//! so that somebody else can repeat it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// Files are made of whole blocks of this many bytes.
const BLOCK: u64 = 4096;

/// A whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// Where it runs.
    pub place: Place,
    /// The I/O somebody cares about.
    pub foreground: Foreground,
    /// Reads per second of the canary: one outstanding 4 KiB read, open loop.
    /// `None` leaves it out.
    pub canary_per_s: Option<f64>,
    /// What is deleted; `None` only measures the foreground.
    pub deletion: Option<Deletion>,
    /// The control run, if any.
    pub control: Option<Control>,
    /// How long the phases last.
    pub timing: Timing,
}

/// Where a run takes place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In a directory of a mounted file system.
    Directory(PathBuf),
    /// On a raw device, whose data are destroyed.
    Device {
        /// The device node.
        path: PathBuf,
        /// Names of the signatures found on it that may be overwritten.
        overwrite: Vec<String>,
    },
}

impl Plan {
    /// The outside program that deletes, if one does.
    pub(crate) fn program(&self) -> Option<String> {
        match &self.deletion.as_ref()?.method {
            Method::Command { argv } => argv.first().cloned(),
            Method::Unlink { .. } | Method::Truncate { .. } | Method::Discard { .. } => None,
        }
    }
}

impl Place {
    /// The path that was named.
    pub fn path(&self) -> &std::path::Path {
        match self {
            Place::Directory(path) | Place::Device { path, .. } => path,
        }
    }
}

/// The foreground: one actor's load.
#[derive(Debug, Clone, Serialize)]
pub struct Foreground {
    /// What each operation does.
    pub op: Op,
    /// Where it goes next.
    pub pattern: Pattern,
    /// Bytes per operation.
    pub block_bytes: u32,
    /// When it is issued.
    pub arrival: Arrival,
    /// The engine asked for.
    pub engine: Engine,
    /// Whether it goes past the page cache.
    pub direct: bool,
    /// Size of the file (or region of the device) it works on, in bytes.
    pub size_bytes: u64,
    /// Leave the file behind for the next run.
    pub keep: bool,
    /// Use the file that an earlier run left behind.
    pub reuse: bool,
    /// Seed of offsets and arrivals.
    pub seed: u64,
}

/// What an operation of the foreground does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Reads a block.
    Read,
    /// Overwrites a block.
    Write,
}

/// Where the foreground's next operation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Any block, each as likely.
    Random,
    /// The next one.
    Sequential,
}

/// When the foreground's operations are issued.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// As soon as others finish.
    Closed {
        /// Operations kept in flight.
        depth: u32,
        /// Operations submitted and reaped at once.
        batch: u32,
    },
    /// At times set beforehand.
    Open {
        /// Operations per second.
        rate_per_s: f64,
        /// Poisson arrivals; otherwise evenly spaced.
        poisson: bool,
        /// Most operations in flight.
        depth: u32,
    },
}

/// The engine asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// The best there is: io_uring, else sync; said when it falls back.
    Auto,
    /// io_uring or nothing.
    IoUring,
    /// A thread per operation in flight.
    Sync,
    /// io_uring without I/O: measures the client itself.
    Null,
}

/// What is deleted, and how.
#[derive(Debug, Clone, Serialize)]
pub struct Deletion {
    /// How.
    pub method: Method,
    /// Bytes over all files.
    pub size_bytes: u64,
    /// Number of files.
    pub files: u32,
    /// Fragments the files on purpose: size of their extents, in bytes.
    pub extent_bytes: Option<u64>,
    /// Whether a commit is forced after the last deletion call.
    pub commit: bool,
}

impl Deletion {
    /// Bytes of each file: whole blocks, whatever the number of files.
    pub fn file_bytes(&self) -> u64 {
        self.size_bytes / u64::from(self.files) / BLOCK * BLOCK
    }
}

/// How data are deleted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// unlink(2).
    Unlink {
        /// Calls in flight at once.
        parallel: u32,
    },
    /// ftruncate(2) from the tail in pieces, then unlink(2): what slowrm does.
    Truncate {
        /// Bytes per piece.
        chunk_bytes: u64,
        /// Pause after each piece, in seconds in the record.
        #[serde(serialize_with = "seconds", rename = "sleep_s")]
        sleep: Duration,
        /// fsync(2) after each piece.
        fsync: bool,
    },
    /// An outside program.
    Command {
        /// Program and arguments; `{}` stands for the file.
        argv: Vec<String>,
    },
    /// BLKDISCARD, on a raw device.
    Discard {
        /// Bytes per call; the kernel cuts it to the device's limit.
        step_bytes: u64,
    },
}

/// How the control run keeps discards away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// The same deletion on the file system remounted nodiscard.
    Nodiscard,
    /// Unlinking second names of the files, which frees nothing.
    SecondName,
}

impl Control {
    /// The method in words, as verdicts name it.
    pub fn in_words(self) -> &'static str {
        match self {
            Control::Nodiscard => "nodiscard",
            Control::SecondName => "second name",
        }
    }
}

/// How long the phases last.
#[derive(Debug, Clone, Serialize)]
pub struct Timing {
    /// Length of an interval of the record.
    #[serde(serialize_with = "seconds", rename = "interval_s")]
    pub interval: Duration,
    /// Longest time to wait for a steady foreground.
    #[serde(serialize_with = "seconds", rename = "settle_limit_s")]
    pub settle_limit: Duration,
    /// Length of the baseline.
    #[serde(serialize_with = "seconds", rename = "baseline_s")]
    pub baseline: Duration,
    /// Length of the recovery.
    #[serde(serialize_with = "seconds", rename = "recovery_s")]
    pub recovery: Duration,
    /// How long after the last deletion call discards are waited for.
    #[serde(serialize_with = "seconds", rename = "drain_limit_s")]
    pub drain_limit: Duration,
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
