//! The answer.

use serde::Serialize;

use record::Origin;
pub use record::waits::Cause;

use super::Missing;
use super::frames::{Place, Reason};
pub use super::sampler::Deleted;

/// Whether TRIM is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Most of the waiting is discards' fault.
    Trim,
    /// At least a tenth of it is, or the victim's own discards took a part of its time.
    PartlyTrim,
    /// It waits for something else.
    NotTrim,
    /// It does not wait for storage.
    Nothing,
    /// Discards were in flight meanwhile, and neither stacks nor senders were to be seen.
    Unclear,
}

/// A report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// Always [`super::SCHEMA`].
    pub schema: &'static str,
    /// Whose waits they are.
    pub origin: Origin,
    /// Whether TRIM is to blame.
    pub verdict: Verdict,
    /// The cause of most of the waiting; `None` if nothing waited.
    pub main_cause: Option<Cause>,
    /// The answer in a sentence or two.
    pub sentence: String,
    /// How long it was watched, in seconds.
    pub seconds: f64,
    /// The subject, where the first victim is a server that it waited for.
    pub client: Option<Client>,
    /// The time of the first victim without its waits for discards, in seconds; `None` if it did
    /// not wait for any, and of the whole machine. Of a server's client its own time.
    pub without_trim_s: Option<f64>,
    /// The processes that waited: the one that the sentence is about first.
    pub victims: Vec<Victim>,
    /// The senders of discards, those that kept devices longest first.
    pub senders: Vec<SenderWork>,
    /// The devices that take discards and did something.
    pub devices: Vec<DeviceWork>,
    /// The first victim's time, in stretches of one length.
    pub timeline: Vec<Stretch>,
    /// Steps that would help.
    pub advice: Vec<String>,
    /// How it was watched.
    pub sampling: Sampling,
    /// Facts that could not be found out.
    pub missing: Vec<Missing>,
}

/// A process that waited for another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Client {
    /// The process; of a command the first one's.
    pub pid: u32,
    /// Its name; of a command the command.
    pub name: String,
}

/// A process that waited.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Victim {
    /// Its process; of a command the first one's.
    pub pid: u32,
    /// Its name; of a command the command.
    pub name: String,
    /// How long it was there, in seconds.
    pub seconds: f64,
    /// How long one of its threads at least was blocked on storage or a lock, in seconds.
    pub blocked_s: f64,
    /// How much of that is discards' fault, in seconds.
    pub discards_s: f64,
    /// Where the time went, the longest first; the waits add up to `seconds`.
    pub waits: Vec<Wait>,
    /// Its threads and processes that were looked at or traced.
    #[serde(skip)]
    pub threads: Vec<u32>,
    /// How often it was looked at; fewer where a few looks stand for most of the time.
    #[serde(skip)]
    pub looks: u64,
    /// How long it was in discards of its own by their events, in seconds.
    #[serde(skip)]
    pub traced_s: f64,
}

/// Time that was spent in one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wait {
    /// The cause.
    pub cause: Cause,
    /// Where in the kernel.
    pub place: Place,
    /// The system call; `None` outside of calls and of calls that don't wait for storage.
    pub call: Option<&'static str>,
    /// The mount point or device; `None` where it isn't known.
    pub at: Option<String>,
    /// The devices below it; none where it isn't known.
    pub devices: Vec<String>,
    /// Where it isn't known: the devices that discarded during most of the wait, or a good part.
    pub suspects: Vec<String>,
    /// The deleted subvolumes that btrfs-cleaner freed meanwhile; `None` of other waits, and where it
    /// isn't known.
    pub deleted: Option<Deleted>,
    /// How long, in seconds.
    pub seconds: f64,
    /// The kernel stack that it was seen in most, the innermost function first.
    pub stack: Vec<String>,
}

impl Wait {
    /// Whether it is for the work of btrfs' cleaner, or for quotas.
    pub fn is_for_cleaner(&self) -> bool {
        matches!(self.place, Place::Cleaner | Place::Quotas)
    }
}

/// A sender of discards.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SenderWork {
    /// The device.
    pub device: String,
    /// Why it sent them.
    pub reason: Reason,
    /// Its name, e.g. `fstrim` or `kworker/u8:1`.
    pub program: String,
    /// Its process, or its thread where that isn't known; `None` of several.
    pub pid: Option<u32>,
    /// Discards.
    pub discards: u64,
    /// Bytes discarded.
    pub bytes: u64,
    /// A discard's time in the drive on average, without its wait behind other discards, in
    /// milliseconds; `None` if none was seen to complete.
    pub mean_ms: Option<f64>,
    /// The longest time of one, in milliseconds.
    pub longest_ms: f64,
    /// The sum of their times in the drive, in seconds.
    pub in_drive_s: f64,
    /// The process that freed the space, where that is known.
    pub deletion: Option<Deletion>,
    /// Of a commit of btrfs without one: the deleted subvolumes that btrfs-cleaner freed meanwhile.
    pub deleted: Option<Deleted>,
}

/// Space that was freed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deletion {
    /// The process' name.
    pub program: String,
    /// The thread.
    pub pid: u32,
    /// Files; `None` where the file system does not tell.
    pub files: Option<u64>,
    /// Bytes; `None` where the file system does not tell.
    pub bytes: Option<u64>,
}

/// A device's work meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceWork {
    /// Its kernel name.
    pub device: String,
    /// Reads and their mean wait in milliseconds.
    pub reads: u64,
    /// `None` without any.
    pub read_ms: Option<f64>,
    /// Writes.
    pub writes: u64,
    /// Their mean wait in milliseconds; `None` without any.
    pub write_ms: Option<f64>,
    /// Discards.
    pub discards: u64,
    /// Their bytes.
    pub discard_bytes: u64,
    /// Their mean wait in milliseconds; `None` without any.
    pub discard_ms: Option<f64>,
    /// Flushes.
    pub flushes: u64,
    /// Their mean wait in milliseconds; `None` without any.
    pub flush_ms: Option<f64>,
    /// Discards that were still in flight at the end.
    pub discards_in_flight: u64,
    /// Their bytes.
    pub in_flight_bytes: u64,
    /// For how long a discard at least was in flight, in seconds.
    pub discarding_s: f64,
    /// Whether reads and writes were slower meanwhile than discards can explain away: `None` where
    /// nothing was read or written beside discards.
    pub slows_others: Option<bool>,
}

/// A stretch of the first victim's time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stretch {
    /// Its start, in seconds since the observation began.
    pub at_s: f64,
    /// Its length, in seconds.
    pub length_s: f64,
    /// In its own discards, in seconds.
    pub in_discards_s: f64,
    /// Behind discards, in seconds.
    pub behind_discards_s: f64,
    /// Blocked on something else, in seconds.
    pub blocked_s: f64,
    /// On a processor or waiting for one, in seconds.
    pub cpu_s: f64,
    /// For how long a discard at least was in flight on a device that it waited for, in seconds; on
    /// any device where one of the places is not known.
    pub discarding_s: f64,
}

/// How it was watched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sampling {
    /// Looks at threads.
    pub samples: u64,
    /// The pause between two looks at a thread, in seconds, where there was time for all.
    pub period_s: f64,
    /// The mean time between two looks at a thread of a program, in seconds; `None` where none had
    /// two.
    pub spacing_s: Option<f64>,
    /// Turns, and those in which there was no time for all threads.
    pub turns: u64,
    /// Turns in which there was no time for all threads.
    pub partial_turns: u64,
    /// Events that the kernel dropped.
    pub lost_events: u64,
    /// Share of one processor that watching took.
    pub cpu_share: f64,
}
