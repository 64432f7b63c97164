//! Reasons why the figures of a run are less sure, and the sentence for each.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use record::units::names::shown;

/// A reason why the figures of a run are less sure, or what they leave out. Shown as the sentence
/// that the record keeps.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// The target is odd.
    Storage(storage::Warning),
    /// The place is on a simulated drive, in the words of whoever knows that drive.
    Simulated(String),
    /// Another trimbench works on the same device.
    Beside {
        /// Its process.
        pid: u32,
        /// Its directory.
        path: PathBuf,
        /// The device.
        device: String,
    },
    /// A loop device reads its file through the page cache.
    CachedLoop {
        /// Its kernel name.
        device: String,
        /// The devices below.
        below: String,
    },
    /// The file system discards a second time, after the run.
    DiscardedAgain,
    /// The load is not as it was asked for, in the words of `load`.
    Load(String),
    /// A file could not be made as it was asked for, in the words of `load`.
    File {
        /// The file.
        path: PathBuf,
        /// The difference from what was asked for.
        why: String,
    },
    /// The foreground runs outside its cgroup.
    OutsideCgroup {
        /// The cgroup.
        cgroup: PathBuf,
        /// The reason.
        why: String,
    },
    /// A setting that the control changed could not be put back; with the next step.
    NotRestored(String),
    /// The command of an event failed.
    EventFailed(String),
    /// The deletion went on after errors.
    DeletionErrors(String),
    /// A forced commit failed.
    CommitFailed(String),
    /// Operations of a series failed.
    OperationsFailed {
        /// The series.
        series: String,
        /// How many failed.
        errors: u64,
        /// When the first did, after the run's begin.
        at: Duration,
        /// How.
        why: String,
    },
    /// The hypervisor took so much of the processors' time, 0 to 1.
    Stolen(f64),
    /// The record's file is incomplete.
    RecordCut(String),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Storage(warning) => warning.fmt(f),
            Warning::Simulated(text) | Warning::Load(text) | Warning::NotRestored(text) => {
                f.write_str(text)
            }
            Warning::Beside { pid, path, device } => write!(
                f,
                "another trimbench (pid {pid}, in {}) works on {device}, too: its reads, writes and \
                 discards are in the figures; run one after the other",
                shown(path)
            ),
            Warning::CachedLoop { device, below } => write!(
                f,
                "{device} reads its file through the page cache, and holds reads behind each discard \
                 by itself: this tells nothing of {below}; switch to direct I/O with: losetup \
                 --direct-io=on /dev/{device}"
            ),
            Warning::DiscardedAgain => f.write_str(
                "btrfs discards block groups that a deletion has emptied once more, up to a minute \
                 after it: that stall isn't waited for",
            ),
            Warning::File { path, why } => write!(f, "{}: {why}", shown(path)),
            Warning::OutsideCgroup { cgroup, why } => write!(
                f,
                "the foreground couldn't be put into its cgroup {}: {why}; its reads may wait for \
                 the deletion's discards in the block layer already",
                shown(cgroup)
            ),
            Warning::EventFailed(why) => write!(f, "the event's command failed: {why}"),
            Warning::DeletionErrors(why) => write!(f, "the deletion had errors: {why}"),
            Warning::CommitFailed(why) => write!(f, "the forced commit failed: {why}"),
            Warning::OperationsFailed {
                series,
                errors,
                at,
                why,
            } => write!(
                f,
                "{series}: {errors} operations failed, the first at {:.1} s: {why}",
                at.as_secs_f64()
            ),
            Warning::Stolen(share) => write!(
                f,
                "The hypervisor took {} of this machine's processor time while it was measured, so \
                 rates and waits tell less of the drive.",
                record::units::percent(*share)
            ),
            Warning::RecordCut(why) => {
                write!(f, "nothing more of the record can be written: {why}")
            }
        }
    }
}
