//! Facts that the texts themselves don't hold, and why a text is refused.

use record::{PushError, RunRecord};

use crate::iostat::stamp::Stamp;

/// Facts that the texts themselves don't hold. Those of devices are of iostat's logs alone.
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

impl Moment {
    /// A date and time with its zone (`2024-06-19T05:02:34Z`, `2024-06-19T07:02:34+0200`); `None` of
    /// any other text.
    pub fn zoned(text: &str) -> Option<Moment> {
        let stamp = Stamp::parse(text.as_bytes()).filter(|stamp| stamp.zoned)?;
        stamp.day.and(stamp.unix_s()).map(Moment::Unix)
    }

    /// The same in seconds since a record's begin.
    pub fn in_record(self, record: &RunRecord) -> f64 {
        match self {
            Moment::After(at_s) => at_s,
            Moment::Unix(unix_s) => unix_s - record.head.started_unix_s,
        }
    }
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

/// Why a text makes no record, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is a text of another kind.
    #[error("{0}")]
    Other(String),
    /// It is of the kind that was expected, and can't be used.
    #[error("{0}")]
    Broken(String),
}

impl From<PushError> for Unfit {
    fn from(error: PushError) -> Unfit {
        Unfit::Broken(format!("can't be a record: {error}"))
    }
}
