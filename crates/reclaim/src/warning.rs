//! Warnings about a deletion or a trim before it begins, and the sentence for each.

use std::fmt;

/// A reason why a deletion or a trim does less than was asked for. It displays as a sentence
/// without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// Something unusual about the file system or its devices.
    Storage(storage::Warning),
    /// No device is known below.
    NoDevice,
    /// No device's counters are on.
    NoneCounted,
    /// The counters of these devices are off, and those of other devices are on.
    SomeUncounted(Vec<String>),
    /// There is no canary, for this reason.
    NoCanary(String),
    /// So many bytes of a btrfs belong to no chunk.
    NoChunk(u64),
    /// F2FS sends the trimmed ranges by itself, when it is idle.
    TrimsQueued,
    /// A file system of this type can be trimmed in one call only.
    OneCall(String),
    /// The file system trims each free extent whole (XFS before Linux 6.10).
    WholeExtents,
    /// No device's counters are on, so a trim keeps to a rate.
    RateHeld,
    /// Nothing identifies the file system.
    Unidentified,
    /// Notes of how far a trim comes can't be written, for this reason.
    NotNoted(String),
    /// An interrupted trim can't be resumed, for this reason.
    Outdated(String),
}

impl From<storage::Warning> for Warning {
    fn from(warning: storage::Warning) -> Warning {
        Warning::Storage(warning)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Storage(warning) => warning.fmt(f),
            Warning::NoDevice => f.write_str(
                "no device is known below, so that discards can't be seen: nothing is paced",
            ),
            Warning::NoneCounted => {
                f.write_str("the pace is kept by what reads wait, and discards aren't counted")
            }
            Warning::SomeUncounted(devices) => write!(
                f,
                "the counters of {} are off: those of the other devices stand for them",
                devices.join(", ")
            ),
            Warning::NoCanary(why) => {
                write!(
                    f,
                    "there is no canary ({why}): what a read waits is not measured"
                )
            }
            Warning::NoChunk(bytes) => write!(
                f,
                "about {} belong to no chunk: btrfs trims them in one call, which can't be paced, \
                 the first time since it was mounted",
                units::bytes(*bytes)
            ),
            Warning::TrimsQueued => f.write_str(
                "f2fs is mounted with discard: it sends by itself, when it is idle, what is \
                 trimmed, so that nothing is paced or measured",
            ),
            Warning::OneCall(fs) => write!(
                f,
                "{fs} can be trimmed in one call only: it isn't paced, and it can't be gone on with"
            ),
            Warning::WholeExtents => f.write_str(
                "before Linux 6.10 XFS trims each free extent whole: a long one stalls others, \
                 whatever the goal",
            ),
            Warning::RateHeld => f.write_str(
                "the devices' statistics are off: what is discarded can't be seen, and the rate is \
                 held instead",
            ),
            Warning::Unidentified => f.write_str(
                "the identity of this file system is unknown: an interrupted trim begins anew",
            ),
            Warning::NotNoted(why) => write!(
                f,
                "how far it comes can't be kept ({why}): an interrupted trim begins anew"
            ),
            Warning::Outdated(why) => write!(f, "{why}: it begins anew"),
        }
    }
}
