//! iostat: its extended reports -> [`RunRecord`](::record::RunRecord).
//!
//! ```
//! use formats::iostat::{Log, Options, record};
//!
//! let text = "Device r/s rkB/s d/s dkB/s aqu-sz\nsda 2500.00 10000.00 0.00 0.00 7.9\n\n".repeat(8);
//! let log = Log::read(text.as_bytes(), &Options::default())?;
//! let record = record(&log, None, &Options::default())?;
//! assert_eq!(record.head.actors[0].name, "sda");
//! let verdict = judge::judge(&record, &judge::JudgeOptions::default());
//! # assert_eq!(verdict.foreground[0].actor, "sda");
//! # Ok::<(), formats::iostat::IostatError>(())
//! ```

mod actors;
mod boot;
mod builder;
mod columns;
mod devices;
mod fold;
mod grid;
mod json;
mod log;
mod notes;
mod own;
mod record;
mod stamp;
mod text;
mod topology;

pub use log::Log;
pub use notes::Notes;
pub use record::record;

/// Facts that the log itself doesn't hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Length of an interval, in seconds; by default what the times in the log say.
    pub interval_s: Option<f64>,
    /// Whether the first report is of an interval.
    pub first: First,
    /// Devices that are made of others; by default found by their reads.
    pub members: Vec<(String, Vec<String>)>,
    /// Devices whose reads and writes are the foreground; by default all that
    /// are busy and no part of another.
    pub devices: Vec<String>,
    /// When the deletion began; by default it is found by the first significant discard.
    pub deletion: Option<Moment>,
}

/// A moment in a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Moment {
    /// So many seconds after the first interval began.
    After(f64),
    /// So many seconds after 1970 began (UTC).
    Unix(f64),
}

/// The handling of the first report, which holds averages since the machine started unless iostat
/// had `-y`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum First {
    /// Look at it: averages are no whole numbers of operations.
    #[default]
    Tell,
    /// Leave it out.
    Drop,
    /// It is of an interval.
    Keep,
}

/// Why an iostat log can't be made a record of.
#[derive(Debug, thiserror::Error)]
pub enum IostatError {
    /// The text can't be read.
    #[error("can't read the iostat log: {0}")]
    Read(#[from] std::io::Error),
    /// Not a line of iostat in it.
    #[error("not an iostat log: none of its {lines} lines begins a report")]
    NotIostat {
        /// How many lines there are.
        lines: u64,
    },
    /// Reports without waits and discards.
    #[error("line {line}: these are basic reports; record with iostat -x (and -y -t)")]
    NotExtended {
        /// Number of the first header.
        line: u64,
    },
    /// Reports with reads, writes and discards in one.
    #[error(
        "line {line}: reads, writes and discards are added up in these reports; record without -s"
    )]
    Short {
        /// Number of the first header.
        line: u64,
    },
    /// The only report is cut off.
    #[error("the only report, which begins in line {line}, is cut off")]
    CutOff {
        /// Where it begins.
        line: u64,
    },
    /// A device was named that isn't there.
    #[error("no device {name} in this log; it has {known}")]
    NoSuchDevice {
        /// The name that the user gave.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// More than a record can hold.
    #[error("can't be a record: {0}")]
    Record(#[from] ::record::PushError),
}
