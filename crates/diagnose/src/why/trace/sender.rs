//! Senders of discards, and processes that free space.

use linux::mounts::DeviceNumber;
use linux::tracefs::Entry;
use serde::{Deserialize, Serialize};
use storage::FileSystem;
use storage::deletions::Identity;

use super::super::frames::Reason;
use super::Request;

/// A pause of a device between discards, or the time before its first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    /// When the last discard before it completed, on the monotonic clock in seconds.
    pub began_s: Option<f64>,
    /// When the first after it was sent.
    pub ended_s: f64,
    /// The same of the pause before it.
    pub last_ended_s: Option<f64>,
}

/// A sender of discards to one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sender {
    /// The whole device.
    pub device: DeviceNumber,
    /// The device that it named, of which a partition is one of its own.
    #[serde(default)]
    pub on: DeviceNumber,
    /// The thread.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Why it sent them, by their stacks.
    pub reason: Reason,
    /// Whether these came without a stack, and a worker of the kernel sent them: then the reason is
    /// that of its last stack on this device.
    #[serde(default)]
    pub inferred: bool,
    /// Discards.
    pub discards: u64,
    /// Bytes discarded.
    pub bytes: u64,
    /// How many of them were seen to complete.
    pub completed: u64,
    /// The sum of their times in the drive, without waits behind other discards, in seconds.
    pub in_drive_s: f64,
    /// The longest of them, in seconds.
    pub longest_s: f64,
    /// When it sent the first, on the monotonic clock in seconds.
    pub first_s: f64,
    /// When it sent the last.
    #[serde(default)]
    pub last_s: f64,
    /// The device's last pause: the discards before it are another sender's.
    #[serde(default)]
    pub pause: Pause,
    /// Whether its name is that of its process.
    #[serde(skip)]
    pub(super) named: bool,
}

impl Sender {
    pub(super) fn new(
        entry: &Entry<'_>,
        request: Request,
        reason: Reason,
        inferred: bool,
    ) -> Sender {
        Sender {
            device: request.device,
            on: request.on,
            pid: entry.pid,
            comm: entry.comm.to_owned(),
            reason,
            inferred,
            discards: 0,
            bytes: 0,
            completed: 0,
            in_drive_s: 0.0,
            longest_s: 0.0,
            first_s: entry.at_s,
            last_s: entry.at_s,
            pause: Pause::default(),
            named: false,
        }
    }

    /// Whether both are work of one thread on one device, for one reason, without a pause between.
    pub(super) fn is_same(&self, other: &Sender) -> bool {
        let key = |one: &Sender| (one.on, one.pid, one.reason, one.inferred);
        key(self) == key(other) && self.pause == other.pause
    }

    /// Adds the work of a later time.
    pub(super) fn add(&mut self, later: &Sender) {
        self.comm.clone_from(&later.comm);
        self.discards += later.discards;
        self.bytes += later.bytes;
        self.completed += later.completed;
        self.in_drive_s += later.in_drive_s;
        self.longest_s = self.longest_s.max(later.longest_s);
        self.first_s = self.first_s.min(later.first_s);
        self.last_s = self.last_s.max(later.last_s);
    }

    /// Forgets its work, and keeps who it is and why it sends.
    pub(super) fn empty(&mut self, now_s: f64) {
        self.discards = 0;
        self.bytes = 0;
        self.completed = 0;
        self.in_drive_s = 0.0;
        self.longest_s = 0.0;
        self.first_s = now_s;
    }
}

#[cfg(test)]
impl Sender {
    /// A worker of the kernel that sent some discards of a MiB.
    pub(in crate::why) fn of_test(
        device: DeviceNumber,
        reason: Reason,
        discards: u64,
        in_drive_s: f64,
    ) -> Sender {
        Sender {
            device,
            on: device,
            pid: 44,
            comm: "kworker/1:1".to_owned(),
            reason,
            inferred: false,
            discards,
            bytes: discards << 20,
            completed: discards,
            in_drive_s,
            longest_s: in_drive_s / discards.max(1) as f64,
            first_s: 0.0,
            last_s: f64::MAX,
            pause: Pause {
                ended_s: f64::MAX,
                ..Pause::default()
            },
            named: true,
        }
    }
}

/// A process that frees space on a file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleter {
    /// The file system; `None` where the event does not name it.
    #[serde(default)]
    pub on: Option<Identity>,
    /// Its kind.
    pub system: FileSystem,
    /// The thread.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Files.
    pub files: u64,
    /// Bytes; 0 where the event doesn't tell.
    pub bytes: u64,
    /// When it freed the first of them, on the monotonic clock in seconds.
    #[serde(default)]
    pub first_s: f64,
    /// When it freed the last.
    pub last_s: f64,
    /// Whether its name is that of its process.
    #[serde(skip)]
    pub(super) named: bool,
}

#[cfg(test)]
impl Deleter {
    /// A process that freed a GiB.
    pub(in crate::why) fn of_test(
        on: Option<Identity>,
        system: FileSystem,
        pid: u32,
        first_s: f64,
    ) -> Deleter {
        Deleter {
            on,
            system,
            pid,
            comm: "rm".to_owned(),
            files: 1,
            bytes: 1 << 30,
            first_s,
            last_s: first_s,
            named: true,
        }
    }
}
