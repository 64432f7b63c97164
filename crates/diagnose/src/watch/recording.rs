//! Updates → a record that `report` and `compare` read.
//!
//! The foreground is what the devices on top read and wrote, as in a record of iostat: the reads
//! and the writes of each are an actor. There is no phase, so the judge takes the time before the
//! first discards for the baseline.

use record::{
    ActorInfo, ActorInterval, End, EndReason, Head, Host, Interval, Invocation, Line, LoopKind,
    RUN_SCHEMA,
};

use super::target::Targets;
use super::update::{DeviceUpdate, Update, Work};

/// The most actors of a record.
const MOST_ACTORS: usize = record::MAX_ACTORS;

/// Makes lines of a record. Devices that appear after its start are not in it.
#[derive(Debug)]
pub struct Recording {
    head: Head,
    /// For each actor its device, and whether it writes.
    actors: Vec<(String, bool)>,
    end_s: f64,
}

impl Recording {
    /// The record of some devices. `interval_ms` is the time between two updates.
    pub fn new(
        watched: &Targets,
        host: Host,
        run: Option<Invocation>,
        started_unix_s: f64,
        interval_ms: f64,
    ) -> Recording {
        let tops = watched.devices.iter().filter(|device| device.level == 0);
        let mut actors: Vec<(String, bool)> = tops
            .flat_map(|device| [false, true].map(|writes| (device.name.clone(), writes)))
            .collect();
        actors.truncate(MOST_ACTORS);
        let info = |(device, writes): &(String, bool)| ActorInfo {
            name: match writes {
                false => device.clone(),
                true => format!("{device}-write"),
            },
            op: if *writes { "write" } else { "read" }.to_owned(),
            // Statistics do not show how many are in flight at most.
            loop_kind: LoopKind::Closed { depth: 1 },
            block_bytes: 0,
            pattern: None,
            direct: None,
            engine: "statistics".to_owned(),
        };
        Recording {
            head: Head {
                schema: RUN_SCHEMA.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                started_unix_s,
                run,
                host,
                target: watched.target.clone(),
                scenario: serde_json::json!({ "recorded_by": "watch" }),
                interval_ms,
                actors: actors.iter().map(info).collect(),
                devices: watched.devices.clone(),
            },
            actors,
            end_s: 0.0,
        }
    }

    /// The first line.
    pub fn head(&self) -> Line {
        Line::Head(Box::new(self.head.clone()))
    }

    /// The line of an update.
    pub fn interval(&mut self, update: &Update) -> Line {
        let device = |name: &str| update.devices.iter().find(|one| one.device == name);
        let actor = |(name, writes): &(String, bool)| {
            let device = device(name)?;
            Some(done(if *writes {
                &device.writes
            } else {
                &device.reads
            }))
        };
        let at_s = (update.at_s - update.seconds).max(self.end_s);
        self.end_s = update.at_s.max(at_s);
        let devices = self.head.devices.iter();
        Line::Interval(Interval {
            at_s,
            seconds: update.seconds,
            actors: self.actors.iter().map(actor).collect(),
            devices: devices
                .map(|info| {
                    device(&info.name)
                        .map(DeviceUpdate::interval)
                        .unwrap_or_default()
                })
                .collect(),
            ..Interval::default()
        })
    }

    /// The last line.
    pub fn end(&self) -> Line {
        Line::End(End {
            at_s: self.end_s,
            reason: EndReason::Completed,
            message: None,
            unfinished: Vec::new(),
            lives: Vec::new(),
        })
    }
}

fn done(work: &Work) -> ActorInterval {
    ActorInterval {
        ops: work.operations,
        bytes: work.bytes,
        ..ActorInterval::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::device;
    use record::{DeviceInfo, RunRecord, Target};

    fn info(name: &str) -> DeviceInfo {
        DeviceInfo {
            size_bytes: 1 << 40,
            rotational: Some(false),
            ..DeviceInfo::disk(name)
        }
    }

    #[test]
    fn a_stall_beside_reads_is_a_record_of_reads_writes_and_discards() {
        let watched = Targets {
            target: Target::default(),
            devices: vec![info("sda"), info("sdb")],
            named: true,
        };
        let mut recording = Recording::new(&watched, Host::default(), None, 1.0, 1000.0);
        let Line::Head(head) = recording.head() else {
            panic!("no head");
        };
        let names: Vec<&str> = head.actors.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["sda", "sda-write", "sdb", "sdb-write"]);
        let mut record = RunRecord::new(*head).unwrap();
        for at in 1..=30 {
            let stalled = (15..20).contains(&at);
            let (reads, share) = if stalled { (100, 1.0) } else { (10_000, 0.0) };
            let update = Update::of(f64::from(at), 1.0, vec![device("sda", reads, 4, share)]);
            record.push(&recording.interval(&update)).unwrap();
        }
        record.push(&recording.end()).unwrap();
        assert_eq!(record.intervals.actors[0].ops[0], 10_000);
        assert_eq!(record.intervals.devices[0].discards[15], 24);
        assert!(!record.intervals.actors[2].running[0], "sdb was not there");
        assert_eq!(record.intervals.at_s[0], 0.0);
    }
}
