//! Records made to measure: rates that are constant piece by piece, cut into intervals.

use std::ops::Range;

use crate::verdict::{Finding, Reason, Verdict};
use crate::{JudgeOptions, judge};
use record::*;

/// Something that goes on at so much per second, from here to there.
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    pub(super) per_s: f64,
}

pub(super) fn level(time: Range<f64>, per_s: f64) -> Level {
    Level {
        from_s: time.start,
        to_s: time.end,
        per_s,
    }
}

/// How much of these levels falls into an interval. Later levels win over earlier ones.
fn sum(levels: &[Level], time: &Range<f64>) -> f64 {
    let mut cuts: Vec<f64> = vec![time.start, time.end];
    cuts.extend(levels.iter().flat_map(|l| [l.from_s, l.to_s]));
    cuts.retain(|c| (time.start..=time.end).contains(c));
    cuts.sort_by(f64::total_cmp);
    cuts.windows(2)
        .map(|w| {
            let middle = f64::midpoint(w[0], w[1]);
            let on = levels
                .iter()
                .rev()
                .find(|l| (l.from_s..l.to_s).contains(&middle));
            on.map_or(0.0, |l| l.per_s * (w[1] - w[0]))
        })
        .sum()
}

/// One foreground actor.
#[derive(Debug, Clone)]
pub(super) struct Actor {
    pub(super) name: String,
    pub(super) op: &'static str,
    pub(super) loop_kind: LoopKind,
    /// Operations per second.
    pub(super) rate: Vec<Level>,
    /// When nothing completes, and the age of the oldest grows.
    pub(super) hangs: Vec<Range<f64>>,
}

/// One device and its discards: commands per second, bytes each, wait of each.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) level: u32,
    pub(super) leaf: bool,
    pub(super) discards: Vec<Level>,
    pub(super) bytes_each: f64,
    pub(super) wait_ms: f64,
}

pub(super) fn drive(discards: Vec<Level>, bytes_each: f64, wait_ms: f64) -> Device {
    Device {
        name: "sda".into(),
        level: 0,
        leaf: true,
        discards,
        bytes_each,
        wait_ms,
    }
}

pub(super) fn reader(rate: Vec<Level>) -> Actor {
    Actor {
        name: "reader".into(),
        op: "read",
        loop_kind: LoopKind::Closed { depth: 8 },
        rate,
        hangs: vec![],
    }
}

/// A record in the making.
#[derive(Debug, Clone)]
pub(super) struct Build {
    pub(super) interval_s: f64,
    pub(super) length_s: f64,
    pub(super) actors: Vec<Actor>,
    pub(super) devices: Vec<Device>,
    pub(super) phases: Vec<(PhaseName, Part, f64)>,
    pub(super) events: Vec<(EventKind, f64)>,
    /// (part, at, seconds, bytes)
    pub(super) deletions: Vec<(Part, f64, f64, u64)>,
    /// When bytes are freed.
    pub(super) freed: Vec<Level>,
    /// Whether the deletions create and drop files all the time.
    pub(super) continuous: bool,
    pub(super) completed: bool,
    pub(super) shift_s: f64,
}

impl Build {
    pub(super) fn new(interval_s: f64, length_s: f64, actor: Actor, device: Device) -> Build {
        Build {
            interval_s,
            length_s,
            actors: vec![actor],
            devices: vec![device],
            phases: vec![],
            events: vec![],
            deletions: vec![],
            freed: vec![],
            continuous: false,
            completed: true,
            shift_s: 0.0,
        }
    }

    /// Baseline, delete and recovery phases, and a deletion of so many bytes.
    pub(super) fn phases(mut self, delete_s: f64, recovery_s: f64, bytes: u64) -> Build {
        self.phases = vec![
            (PhaseName::Baseline, Part::Main, 0.0),
            (PhaseName::Delete, Part::Main, delete_s),
            (PhaseName::Recovery, Part::Main, recovery_s),
        ];
        self.deletions = vec![(Part::Main, delete_s, 0.1, bytes)];
        self.freed = vec![level(delete_s..delete_s + 0.1, bytes as f64 / 0.1)];
        self
    }

    pub(super) fn verdict(&self) -> Verdict {
        let verdict = judge(&self.record(), &JudgeOptions::default());
        crate::verdict::schema::assert_conforms(&verdict);
        verdict
    }

    pub(super) fn record(&self) -> RunRecord {
        let mut record = RunRecord::new(self.head()).unwrap();
        for &(name, part, at_s) in &self.phases {
            record
                .push(&Line::Phase(Phase {
                    name,
                    part,
                    at_s: at_s + self.shift_s,
                }))
                .unwrap();
        }
        for &(kind, at_s) in &self.events {
            let at_s = at_s + self.shift_s;
            record
                .push(&Line::Event(Event {
                    at_s,
                    kind,
                    detail: None,
                }))
                .unwrap();
        }
        for &(part, at_s, seconds, bytes) in &self.deletions {
            let at_s = at_s + self.shift_s;
            let line = DeletionLine {
                part,
                at_s,
                seconds,
                bytes,
                files: 1,
                continuous: self.continuous,
                ..DeletionLine::default()
            };
            record.push(&Line::Deletion(line)).unwrap();
        }
        self.push_intervals(&mut record);
        if self.completed {
            let (at_s, reason) = (self.length_s + self.shift_s, EndReason::Completed);
            let end = End {
                at_s,
                reason,
                message: None,
                unfinished: vec![],
                lives: Vec::new(),
            };
            record.push(&Line::End(end)).unwrap();
        }
        record
    }

    fn push_intervals(&self, record: &mut RunRecord) {
        let count = (self.length_s / self.interval_s).round() as usize;
        let edge = |i: usize| i as f64 * self.interval_s;
        // Whole operations are counted where they complete, so the fractions carry over.
        let done = |levels: &[Level], i: usize| (sum(levels, &(0.0..edge(i))) + 1e-6).floor();
        let whole = |levels: &[Level], each: f64, i: usize| {
            let until = |i: usize| (done(levels, i) * each).floor();
            (until(i + 1) - until(i)) as u64
        };
        for i in 0..count {
            let time = edge(i)..edge(i + 1);
            let actors = self
                .actors
                .iter()
                .map(|a| Some(a.row(&time, whole(&a.rate, 1.0, i))));
            let devices = self.devices.iter().map(|d| {
                let discards = whole(&d.discards, 1.0, i);
                DeviceInterval {
                    discards,
                    discard_bytes: (discards as f64 * d.bytes_each) as u64,
                    discard_ms: whole(&d.discards, d.wait_ms, i),
                    ..DeviceInterval::default()
                }
            });
            let interval = Interval {
                at_s: time.start + self.shift_s,
                seconds: self.interval_s,
                actors: actors.collect(),
                devices: devices.collect(),
                freed_bytes: sum(&self.freed, &time).round() as u64,
                ..Interval::default()
            };
            record.push(&Line::Interval(interval)).unwrap();
        }
    }

    fn head(&self) -> Head {
        Head {
            schema: RUN_SCHEMA.into(),
            run: None,
            version: "0".into(),
            started_unix_s: 1.7e9,
            host: Host::default(),
            target: Target::default(),
            scenario: serde_json::json!({"control": "second name"}),
            interval_ms: self.interval_s * 1e3,
            actors: self.actors.iter().map(Actor::info).collect(),
            devices: self.devices.iter().map(Device::info).collect(),
        }
    }
}

impl Actor {
    fn info(&self) -> ActorInfo {
        ActorInfo {
            name: self.name.clone(),
            op: self.op.into(),
            loop_kind: self.loop_kind,
            block_bytes: 4096,
            pattern: Some("random".into()),
            direct: Some(true),
            engine: "null".into(),
        }
    }

    fn row(&self, time: &Range<f64>, ops: u64) -> ActorInterval {
        let hanging = self.hangs.iter().find(|h| h.contains(&(time.end - 1e-9)));
        let ended = self.hangs.iter().find(|h| time.contains(&h.end));
        let usual_us = 100.0;
        ActorInterval {
            ops,
            bytes: ops * 4096,
            p50_us: (ops > 0).then_some(usual_us),
            p99_us: (ops > 0).then_some(2.0 * usual_us),
            max_us: (ops > 0).then(|| ended.map_or(1e3, |h| (h.end - h.start) * 1e6)),
            oldest_us: Some(hanging.map_or(usual_us / 2.0, |h| (time.end - h.start) * 1e6)),
            ..ActorInterval::default()
        }
    }
}

impl Device {
    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            level: self.level,
            leaf: self.leaf,
            size_bytes: 1 << 41,
            rotational: Some(false),
            ..DeviceInfo::disk(self.name.clone())
        }
    }
}

/// The verdict is inconclusive for this reason at least.
pub(super) fn assert_inconclusive(verdict: &Verdict, reason: Reason) {
    let (found, reasons) = (verdict.verdict, &verdict.reasons);
    assert_eq!(found, Finding::Inconclusive, "{}", verdict.summary);
    assert!(reasons.contains(&reason), "{reasons:?}");
}
