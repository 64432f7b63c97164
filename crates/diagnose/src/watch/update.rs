//! One update: the figures of a stretch of time.

use std::collections::BTreeMap;

use record::DeviceInterval;
use serde::Serialize;

use super::SCHEMA;
use crate::why::frames::Place;
use crate::why::{Cause, Deleted, Missing, SenderWork};

/// The figures of one stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Update {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// The stretch's end, in seconds since watching began.
    pub at_s: f64,
    /// The same moment, in seconds since 1970 (UTC).
    pub unix_s: f64,
    /// The stretch's length, in seconds.
    pub seconds: f64,
    /// The devices, in order of their names.
    pub devices: Vec<DeviceUpdate>,
    /// The share of the stretch in which tasks waited for I/O; `None` where the kernel does not
    /// count that.
    pub pressure: Option<Waiting>,
    /// The senders of discards, those that kept devices longest first.
    pub senders: Vec<SenderWork>,
    /// The processes that were blocked on storage or a lock, those of TRIM first, own I/O last.
    pub blocked: Vec<Blocked>,
    /// Discards that file systems have not sent yet, where they report that.
    pub debts: Vec<Debt>,
    /// Events that the kernel dropped.
    pub lost_events: u64,
    /// Time on a processor that this process used, in seconds.
    pub cpu_s: f64,
    /// Facts that could not be found out.
    pub missing: Vec<Missing>,
}

/// A device's work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceUpdate {
    /// Its kernel name.
    pub device: String,
    /// Reads.
    pub reads: Work,
    /// Writes.
    pub writes: Work,
    /// Discards.
    pub discards: Work,
    /// Flushes of its cache; they have no bytes.
    pub flushes: Work,
    /// Operations in flight at the end.
    pub in_flight: u64,
    /// The share of the time in which a discard at least was in flight, 0 to 1.
    pub discarding: f64,
    /// How long each discard was in flight that completed, in seconds; `None` without events.
    #[serde(skip)]
    pub discards_took_s: Option<Vec<f32>>,
    /// Whether it keeps counters (`queue/iostats`). Without them its discards and flushes are
    /// counted by events alone, and reads and writes not at all.
    pub counts: bool,
}

impl DeviceUpdate {
    /// Whether it did anything.
    pub fn is_busy(&self) -> bool {
        let all = [&self.reads, &self.writes, &self.discards, &self.flushes];
        self.in_flight > 0 || self.discarding > 0.0 || all.iter().any(|work| work.operations > 0)
    }
}

/// Operations of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Work {
    /// Operations that completed.
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their waits, in milliseconds.
    pub wait_ms: u64,
    /// Operations per second.
    pub per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Their mean wait, in milliseconds; `None` without any.
    pub mean_ms: Option<f64>,
}

impl Work {
    /// The work of so many seconds.
    pub fn of(operations: u64, bytes: u64, wait_ms: u64, seconds: f64) -> Work {
        let seconds = seconds.max(1e-9);
        Work {
            operations,
            bytes,
            wait_ms,
            per_s: operations as f64 / seconds,
            bytes_per_s: bytes as f64 / seconds,
            mean_ms: (operations > 0).then(|| wait_ms as f64 / operations as f64),
        }
    }

    /// The mean size, in bytes; `None` without any.
    pub fn mean_bytes(&self) -> Option<u64> {
        self.bytes.checked_div(self.operations)
    }
}

/// The shares of a stretch of time in which tasks waited for I/O, 0 to 1
/// ([`linux::pressure`]).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Waiting {
    /// One task at least.
    pub some: f64,
    /// All tasks that were not idle.
    pub full: f64,
}

/// A process that was blocked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Blocked {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub program: String,
    /// How long it was blocked, in seconds.
    pub seconds: f64,
    /// So many looks stand for it; infinitely many where the events show most of it.
    #[serde(skip)]
    pub looks: f64,
    /// How much of that is discards' fault, in seconds.
    pub discards_s: f64,
    /// The cause of most of it.
    pub cause: Cause,
    /// Where in the kernel it waited most.
    pub place: Place,
    /// How long each cause kept it waiting, by [`Blocked::name`] and in seconds.
    pub causes: BTreeMap<&'static str, f64>,
    /// The system call, where it is one that waits for storage.
    pub call: Option<&'static str>,
    /// The mount point or device, where it is known.
    pub at: Option<String>,
    /// Where it isn't: the devices whose discards it may wait for.
    pub suspects: Vec<String>,
    /// The deleted subvolumes that btrfs-cleaner freed meanwhile; `None` of other waits, and where it
    /// isn't known.
    pub deleted: Option<Deleted>,
    /// The function of the kernel that it waits in.
    pub function: Option<String>,
}

impl Blocked {
    /// The order in which they are shown: most time by TRIM first, their own I/O last, then the longest.
    pub(super) fn order(&self, other: &Blocked) -> std::cmp::Ordering {
        let by_trim = other.discards_s.total_cmp(&self.discards_s);
        let own = |one: &Blocked| one.cause == Cause::Io;
        by_trim
            .then_with(|| own(self).cmp(&own(other)))
            .then_with(|| other.seconds.total_cmp(&self.seconds))
    }

    /// The cause of most of it in a word or two. btrfs' own work is named, which discards don't explain.
    pub fn word(&self) -> &'static str {
        match self.name() == self.cause.name() {
            true => self.cause.word(),
            false => self.name(),
        }
    }

    /// The same as programs read it.
    pub fn name(&self) -> &'static str {
        name(self.cause, self.place)
    }
}

/// A cause as programs read it.
pub(super) fn name(cause: Cause, place: Place) -> &'static str {
    match place {
        _ if cause.is_discards() => cause.name(),
        Place::Cleaner => "btrfs-cleaner",
        Place::Quotas => "btrfs-quotas",
        _ => cause.name(),
    }
}

/// Discards that a mounted file system has not sent yet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Debt {
    /// Where it is mounted.
    pub mount: String,
    /// The drives below it.
    pub devices: Vec<String>,
    /// Bytes; `None` where only commands are counted.
    pub bytes: Option<u64>,
    /// Commands; `None` where only bytes are counted.
    pub commands: Option<u64>,
    /// The most discards that the file system sends in a second; `None` where it has no limit.
    pub per_s: Option<u64>,
    /// The time that sending them takes at this limit, in seconds; `None` where it isn't known.
    pub takes_s: Option<f64>,
}

impl Update {
    /// An update with the figures of devices alone.
    pub fn of(at_s: f64, seconds: f64, devices: Vec<DeviceUpdate>) -> Update {
        Update {
            schema: SCHEMA,
            at_s,
            unix_s: 0.0,
            seconds,
            devices,
            pressure: None,
            senders: Vec::new(),
            blocked: Vec::new(),
            debts: Vec::new(),
            lost_events: 0,
            cpu_s: 0.0,
            missing: Vec::new(),
        }
    }

    /// The debt of the file systems on a device, in words; `None` where nothing reports one. Those
    /// without any are left out, where another has one.
    pub fn debt(&self, device: &str) -> Option<String> {
        let is_on = |debt: &&Debt| debt.devices.iter().any(|one| one == device);
        let all = || self.debts.iter().filter(is_on);
        let owing = all().filter(|debt| debt.bytes.or(debt.commands) > Some(0));
        let words: Vec<String> = owing.filter_map(Debt::words).collect();
        match words.is_empty() {
            true => all().find_map(Debt::words),
            false => Some(words.join(" + ")),
        }
    }

    /// How fast each file system sends its pending discards, where that is known.
    pub fn paces(&self) -> Vec<String> {
        self.debts.iter().filter_map(Debt::pace).collect()
    }
}

impl Debt {
    /// `pending on /data: 1.0 GiB, begins up to 120 s after the deletion, at most 20 discards/s
    /// (iops_limit), then takes about 15 s`.
    fn pace(&self) -> Option<String> {
        let pending = self.bytes.is_some_and(|bytes| bytes > 0);
        let takes_s = self.takes_s.filter(|_| pending)?;
        let limit = match self.per_s {
            Some(per_s) => format!("at most {per_s} discards/s (iops_limit)"),
            None => "no iops_limit: spread over six hours at most".to_owned(),
        };
        Some(format!(
            "pending on {}: {}, begins up to 120 s after the deletion, {limit}, then takes {}",
            record::units::names::shown(&self.mount),
            self.words()?,
            match takes_s < 1.0 {
                true => "less than 1 s".to_owned(),
                false => format!(
                    "about {}",
                    record::units::minutes(std::time::Duration::from_secs_f64(takes_s))
                ),
            }
        ))
    }

    fn words(&self) -> Option<String> {
        let commands = self
            .commands
            .map(|count| record::units::counted(count, "discard"));
        self.bytes.map(record::units::bytes).or(commands)
    }
}

impl DeviceUpdate {
    /// The work of a device by its statistics.
    pub fn by_statistics(
        device: String,
        did: &DeviceInterval,
        flushes: (u64, u64),
        seconds: f64,
        discarding: f64,
    ) -> DeviceUpdate {
        DeviceUpdate {
            device,
            reads: Work::of(did.reads, did.read_bytes, did.read_ms, seconds),
            writes: Work::of(did.writes, did.write_bytes, did.write_ms, seconds),
            discards: Work::of(did.discards, did.discard_bytes, did.discard_ms, seconds),
            flushes: Work::of(flushes.0, 0, flushes.1, seconds),
            in_flight: did.in_flight,
            discarding,
            discards_took_s: None,
            counts: true,
        }
    }

    /// The device's figures as a record has them.
    pub fn interval(&self) -> DeviceInterval {
        DeviceInterval {
            reads: self.reads.operations,
            read_bytes: self.reads.bytes,
            read_ms: self.reads.wait_ms,
            writes: self.writes.operations,
            write_bytes: self.writes.bytes,
            write_ms: self.writes.wait_ms,
            discards: self.discards.operations,
            discard_bytes: self.discards.bytes,
            discard_ms: self.discards.wait_ms,
            in_flight: self.in_flight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::stall;

    #[test]
    fn victims_of_trim_come_first_and_own_io_last() {
        let one = |pid, seconds, discards_s, cause| Blocked {
            pid,
            seconds,
            discards_s,
            cause,
            ..stall(0.0).blocked.remove(0)
        };
        let mut all = [
            one(1, 1.0, 0.0, Cause::Io),
            one(2, 0.2, 0.0, Cause::Commit),
            one(3, 0.9, 0.0, Cause::Lock),
            one(4, 0.3, 0.1, Cause::Io),
            one(5, 0.2, 0.2, Cause::BehindDiscards),
        ];
        all.sort_by(Blocked::order);
        assert_eq!(all.map(|one| one.pid), [5, 4, 3, 2, 1]);
    }

    #[test]
    fn updates_have_the_form_that_the_schema_promises() {
        let validator = testkit::schema::open(crate::watch::JSON_SCHEMA);
        for update in [stall(1.0), Update::of(0.0, 1e-6, Vec::new())] {
            let value = serde_json::to_value(&update).unwrap();
            let faults: Vec<String> = validator
                .iter_errors(&value)
                .map(|fault| format!("{}: {fault}", fault.instance_path()))
                .collect();
            assert!(faults.is_empty(), "{faults:#?}");
        }
        assert!(!validator.is_valid(&serde_json::json!({ "schema": SCHEMA })));
    }
}
