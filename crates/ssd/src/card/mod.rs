//! The device card: what a drive costs, figure by figure, each with its source.
//!
//! A card that was measured and a profile that is shipped are the same TOML
//! file. Every figure is a table of three: its value, how sure it is and where
//! it comes from, so that a prediction can say what it rests on:
//!
//! ```toml
//! name = "crucial-t500-2tb"
//! about = "Crucial T500 2 TB, NVMe"
//!
//! [discard]
//! a = { value = "976us", sure = "derived", source = "measured iostat logs of 2024" }
//! ```
//!
//! [`KEYS`] lists every figure; a key that isn't there is an error that names
//! the nearest one that is. Times take `ns`, `us`, `ms`, `s`; sizes `k`, `M`,
//! `G`, `T` (1024); costs by size are a time `/MiB` (or `/KiB`, `/GiB`).

use std::collections::BTreeMap;
use std::time::Duration;

mod build;
mod keys;
mod parse;
mod value;

pub use keys::KEYS;
use record::Origin;
pub use value::PerMib;

use crate::flash::Geometry;

record::kinds! {
    /// How sure a figure is.
    pub enum Sure["degree of certainty"] {
        /// Read off a measurement.
        Measured = "measured",
        /// Computed from measurements with a model, in-sample.
        Derived = "derived",
        /// The drive is at least as fast as this: only a bound is known.
        Bound = "bound",
        /// Not known for this drive; taken from its kind, or to try something out.
        Assumed = "assumed",
    }
}

/// Where a figure comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// How sure it is.
    pub sure: Sure,
    /// Its source, in words.
    pub source: String,
}

/// One figure as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) text: String,
    pub(crate) note: Note,
}

/// The card of one drive.
///
/// Made by [`str::parse`] from TOML, changed by [`Card::with`], printed as TOML
/// by its `Display`.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    name: String,
    about: String,
    origin: Option<Origin>,
    /// By the key's path; what isn't there has its key's default.
    entries: BTreeMap<&'static str, Entry>,
    figures: Figures,
}

impl Card {
    /// The drive's name, e.g. `crucial-t500-2tb`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The drive's model and its peculiarities, in a sentence or two.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Whose measurement it is; `None` of a profile or an older card.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The card with the origin of its measurement.
    pub fn measured_by(self, origin: Origin) -> Card {
        Card {
            origin: Some(origin),
            ..self
        }
    }

    /// The figures, to compute with.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Where a figure comes from, by its path, e.g. `discard.a`; `None` if the
    /// card doesn't give it and its default is taken.
    pub fn note(&self, path: &str) -> Option<&Note> {
        self.entries.get(path).map(|e| &e.note)
    }

    /// Returns a figure as it was written; `None` as for [`note`](Card::note).
    pub fn text(&self, path: &str) -> Option<&str> {
        self.entries.get(path).map(|e| e.text.as_str())
    }
}

/// All figures of a card.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Discards; `None` for a drive that can't.
    pub discard: Option<Discard>,
    /// Reads.
    pub read: Transfer,
    /// Writes.
    pub write: Transfer,
    /// Work that writes leave for the background.
    pub fold: Fold,
    /// Its flash, where writes wait until blocks are cleaned: each page that is moved for a write
    /// takes the interface as long as a written one. `None`: writes always cost the same.
    pub flash: Option<Geometry>,
    /// Time of a flush, after the writes before it have completed.
    pub flush: Duration,
    /// The unit of the drive's map. A write maps every granule it touches, a
    /// discard unmaps only those it covers whole. At least 512 bytes.
    pub granule: u64,
}

/// The cost of a read or a write. One of n bytes on an idle drive takes `latency` + `per_mib` ·
/// (n − 4 KiB), and one of less than 4 KiB takes `latency`.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// The time of one of 4 KiB on an idle drive.
    pub latency: Duration,
    /// The time that each MiB occupies the drive's interface. All reads share it, and all writes
    /// share another, so the drive's highest bandwidth is `1 / per_mib`.
    pub per_mib: PerMib,
    /// How many run at once, at least 1. The rest wait. So the drive's highest rate of 4 KiB
    /// is `parallelism / latency`, or less where the interface limits it.
    pub parallelism: u32,
    /// Standard deviation of the time, as a share of it. At most 0.33.
    pub jitter: f64,
}

impl Transfer {
    /// Commands of 4 KiB a second with so many in flight on average and nothing beside them, without
    /// jitter; infinite where they take no time.
    pub fn per_s(&self, in_flight: f64) -> f64 {
        let at_once = in_flight.min(self.parallelism.into());
        let interface = 1e9 / self.per_mib.nanos_for(4096);
        (at_once / self.latency.as_secs_f64()).min(interface)
    }
}

/// Background work after writes: drives take them into a fast cache and move
/// them later, and reads are slower for seconds after a large one though nothing
/// else happens. None by default.
#[derive(Debug, Clone, PartialEq)]
pub struct Fold {
    /// The work that each MiB leaves.
    pub per_mib: PerMib,
    /// The most that is put off.
    pub longest: Duration,
    /// The share of its speed that a read keeps meanwhile, above 0 to 1.
    pub read_share: f64,
}

/// The cost of a discard and its effect on other I/O: S = a + b·mapped + b_unmapped·unmapped +
/// per_range·ranges.
#[derive(Debug, Clone, PartialEq)]
pub struct Discard {
    /// Time of each command.
    pub a: Duration,
    /// Time for mapped space.
    pub b: PerMib,
    /// Time for space that holds nothing.
    pub b_unmapped: PerMib,
    /// Time for each range of a command.
    pub per_range: Duration,
    /// The most ranges in a command. At least 1.
    pub max_ranges: u32,
    /// The most bytes in a command, all ranges together. At least 512.
    pub max_bytes: u64,
    /// How discards and other commands wait for each other.
    pub queue: Queue,
    /// Standard deviation of S, as a share of it. At most 0.33.
    pub jitter: f64,
    /// A range below this length is ignored (and costs its `a` all the same).
    pub smallest: u64,
    /// The content that a read returns where a discard was.
    pub read_after_trim: ReadAfterTrim,
}

impl Discard {
    /// The mean time S of a command by itself: so many mapped bytes and bytes
    /// that hold nothing, in so many ranges.
    pub fn service(&self, mapped: u64, unmapped: u64, ranges: usize) -> Duration {
        let nanos = self.a.as_nanos() as f64
            + self.per_range.as_nanos() as f64 * ranges as f64
            + self.b.nanos_for(mapped)
            + self.b_unmapped.nanos_for(unmapped);
        // A float saturates when it becomes an integer.
        Duration::from_nanos(nanos.round() as u64)
    }

    /// The share of [`Discard::service`] during which no read, write or flush
    /// starts, 0 to 1.
    pub fn phi(&self) -> f64 {
        match self.queue {
            Queue::Exclusive { phi } | Queue::Parallel { phi, .. } => phi,
            Queue::NonNcqDrain => 1.0,
        }
    }
}

/// How discards and other commands wait for each other. φ is the share of S,
/// from its beginning, during which no read, write or flush starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Queue {
    /// Commands start in the order in which they came; one discard at a time.
    /// It doesn't wait for those under way (they complete beside it), and for
    /// φ·S none starts after it.
    Exclusive {
        /// 0 to 1.
        phi: f64,
    },
    /// ATA without queued TRIM: TRIM and flush are not NCQ commands. The host waits until nothing
    /// is under way and sends the one command alone. Everything later waits until it is done (φ =
    /// 1).
    NonNcqDrain,
    /// Up to `k` discards at once, in no order with reads and writes.
    Parallel {
        /// At least 1.
        k: u32,
        /// 0 to 1.
        phi: f64,
    },
}

record::kinds! {
    /// The content that a read returns where a discard was, until the next write.
    pub enum ReadAfterTrim["content after a discard"] {
        /// Zeros (ATA: RZAT; NVMe: DLFEAT 1).
        Zeros = "zeros",
        /// Something, but always the same (ATA: DRAT).
        Deterministic = "deterministic",
        /// Anything, and perhaps something else the next time.
        Undefined = "undefined",
    }
}
