//! An experiment of the harness as a `RunRecord`, as a run of 100 ms intervals has it.

use std::time::Duration;

use record::RunRecord;
use record::{
    ActorInfo, ActorInterval, DeletionLine, DeviceInfo, DeviceInterval, DeviceKind, DiscardSetting,
    End, EndReason, Head, Host, Interval, Intervals, LoopKind, Part, Phase, PhaseName, RUN_SCHEMA,
    Target,
};
use ssd::Time;
use testkit::harness::{Outcome, Readers, Sample};

const INTERVAL: f64 = 0.1;

/// The head of a run on a file system.
pub fn head(fs: &str, readers: Readers, devices: usize) -> Head {
    let loop_kind = match readers {
        Readers::Closed { depth, .. } => LoopKind::Closed { depth },
        Readers::Open { per_s } => LoopKind::Open {
            rate_per_s: per_s,
            poisson: true,
            depth: 256,
        },
        Readers::None => LoopKind::Closed { depth: 1 },
    };
    Head {
        schema: RUN_SCHEMA.into(),
        run: None,
        version: "0".into(),
        started_unix_s: 1.7e9,
        host: Host::default(),
        target: Target {
            path: "/data".into(),
            mount: Some("/data".into()),
            fs: Some(fs.into()),
            discard: DiscardSetting::On,
            ..Target::default()
        },
        scenario: serde_json::json!({}),
        interval_ms: INTERVAL * 1e3,
        actors: vec![ActorInfo {
            name: "reader".into(),
            op: "read".into(),
            loop_kind,
            block_bytes: 4096,
            pattern: Some("random".into()),
            direct: Some(true),
            engine: "io_uring".into(),
        }],
        devices: (0..devices).map(device).collect(),
    }
}

/// Puts the file system of a record on a loop device, whose file is on the drive. It discards as
/// the drive does.
pub fn put_on_a_loop(record: &mut RunRecord) {
    let drive = &mut record.head.devices[0];
    drive.level = 1;
    let own = DeviceInfo {
        name: "loop0".into(),
        kind: DeviceKind::Loop,
        level: 0,
        leaf: false,
        below: vec![drive.name.clone()],
        ..drive.clone()
    };
    record.head.devices.push(own);
    let columns = record.intervals.devices[0].clone();
    record.intervals.devices.push(columns);
}

/// As a record's file has it.
fn device(index: usize) -> DeviceInfo {
    let json = serde_json::json!({
        "name": format!("sd{index}"),
        "kind": "disk",
        "level": 0,
        "below": [],
        "leaf": true,
        "model": "in virtual time",
        "size_bytes": 1_u64 << 40,
        "rotational": false,
        "scheduler": null,
        "discard": {
            "granularity_bytes": 4096,
            "max_bytes": 1_u64 << 32,
            "max_hw_bytes": 1_u64 << 32,
            "max_segments": 256,
        },
    });
    serde_json::from_value(json).unwrap()
}

/// The record that the kernel's counters would give; the deletion began at `deleted`.
pub fn record(outcome: &Outcome, fs: &str, readers: Readers, deleted: Time) -> RunRecord {
    let head = head(fs, readers, outcome.drives.len());
    let count = (outcome.length.as_secs_f64() / INTERVAL).floor() as usize;
    let mut intervals = Intervals::new(1, head.devices.len());
    // As after any other use: the counters don't begin at a whole millisecond.
    let used = Counters {
        read_time: Duration::from_micros(500),
        discard_time: Duration::from_micros(500),
        ..Counters::default()
    };
    let mut devices = vec![used; head.devices.len()];
    let (mut reads, mut discards) = (
        outcome.reads.iter().peekable(),
        outcome.discards.iter().peekable(),
    );
    let bytes: u64 = outcome.discards.iter().map(|d| d.bytes).sum();
    let begin = (deleted.as_secs_f64() / INTERVAL).floor() as usize;
    for i in 0..count {
        let end = Time::from_secs_f64((i + 1) as f64 * INTERVAL);
        let before = devices.clone();
        let mut actor = ActorInterval::default();
        while let Some(read) = reads.next_if(|r| r.completed < end) {
            actor.ops += 1;
            devices[read.drive].read(read);
        }
        while let Some(discard) = discards.next_if(|d| d.completed < end) {
            devices[discard.drive].discard(discard);
        }
        intervals.push(&Interval {
            at_s: i as f64 * INTERVAL,
            seconds: INTERVAL,
            actors: vec![(!matches!(readers, Readers::None)).then_some(actor)],
            devices: devices
                .iter()
                .zip(&before)
                .map(|(now, then)| now.since(then))
                .collect(),
            freed_bytes: if i == begin { bytes } else { 0 },
            ..Interval::default()
        });
    }
    let last = outcome
        .discards
        .last()
        .map_or(deleted, |d| d.completed)
        .as_secs_f64();
    let grid = |s: f64| (s / INTERVAL).floor() * INTERVAL;
    let phase = |name, at_s| Phase {
        name,
        part: Part::Main,
        at_s,
    };
    RunRecord {
        phases: vec![
            phase(PhaseName::Baseline, 0.0),
            phase(PhaseName::Delete, grid(deleted.as_secs_f64())),
            phase(PhaseName::Recovery, grid(last) + INTERVAL),
        ],
        events: vec![],
        deletions: vec![DeletionLine {
            part: Part::Main,
            at_s: deleted.as_secs_f64(),
            seconds: 0.001,
            bytes,
            files: 1,
            ..DeletionLine::default()
        }],
        histograms: vec![],
        stretches: Vec::new(),
        waits: None,
        end: Some(End {
            at_s: count as f64 * INTERVAL,
            reason: EndReason::Completed,
            message: None,
            unfinished: vec![],
            lives: Vec::new(),
        }),
        head,
        intervals,
    }
}

/// The counters of `/sys/block/X/stat`: times are summed in nanoseconds and printed in whole
/// milliseconds.
#[derive(Debug, Clone, Default)]
struct Counters {
    reads: u64,
    read_time: Duration,
    discards: u64,
    discard_bytes: u64,
    discard_time: Duration,
}

impl Counters {
    fn read(&mut self, read: &Sample) {
        self.reads += 1;
        self.read_time += read.latency();
    }

    fn discard(&mut self, discard: &Sample) {
        self.discards += 1;
        self.discard_bytes += discard.bytes;
        self.discard_time += discard.latency();
    }

    fn since(&self, then: &Counters) -> DeviceInterval {
        let ms = |now: Duration, then: Duration| (now.as_millis() - then.as_millis()) as u64;
        DeviceInterval {
            reads: self.reads - then.reads,
            read_bytes: (self.reads - then.reads) * 4096,
            read_ms: ms(self.read_time, then.read_time),
            discards: self.discards - then.discards,
            discard_bytes: self.discard_bytes - then.discard_bytes,
            discard_ms: ms(self.discard_time, then.discard_time),
            ..DeviceInterval::default()
        }
    }
}
