//! Synthetic runs with the shapes of measured ones, for the tests and for the eye.
#![allow(
    clippy::unwrap_used,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "each test uses its own part of it"
)]

use judge::Verdict;
use judge::verdict::*;
use record::RunRecord;
use record::*;

pub const GIB: u64 = 1 << 30;

/// One drive's run: a closed-loop reader at depth 8 and an open-loop canary.
pub struct Run {
    pub interval_s: f64,
    pub baseline_s: f64,
    /// From the deletion's begin to the first discard.
    pub lag_s: f64,
    pub stall_s: f64,
    pub recovery_s: f64,
    pub rate: f64,
    /// Share of the rate left during discards.
    pub left: f64,
    pub bytes: u64,
    pub discard_bytes: u64,
    pub canary: bool,
}

/// The shape of the measured Crucial T500 of 2024: 1 TiB on ext4.
pub const T500: Run = Run {
    interval_s: 0.1,
    baseline_s: 20.0,
    lag_s: 18.2,
    stall_s: 16.9,
    recovery_s: 20.0,
    rate: 92_080.0,
    left: 0.0426,
    bytes: 1024 * GIB,
    discard_bytes: 134_000_000,
    canary: true,
};

/// The T500 alone, without a canary.
pub const READER: Run = Run {
    canary: false,
    ..T500
};

/// A short stall in a long run.
pub const SHORT: Run = Run {
    interval_s: 0.1,
    baseline_s: 40.0,
    lag_s: 5.0,
    stall_s: 0.2,
    recovery_s: 45.0,
    rate: 65_300.0,
    left: 0.006,
    bytes: 8 * GIB,
    discard_bytes: 64 << 20,
    canary: false,
};

pub fn actors(canary: bool) -> Vec<ActorInfo> {
    let mut actors = vec![ActorInfo {
        name: "reader".into(),
        op: "read".into(),
        loop_kind: LoopKind::Closed { depth: 8 },
        block_bytes: 4096,
        pattern: Some("random".into()),
        direct: Some(true),
        engine: "io_uring".into(),
    }];
    if canary {
        actors.push(ActorInfo {
            name: "canary".into(),
            loop_kind: LoopKind::Open {
                rate_per_s: 100.0,
                poisson: false,
                depth: 1,
            },
            ..actors[0].clone()
        });
    }
    actors
}

pub fn device(name: &str, kind: DeviceKind, level: u32, below: &[&str]) -> DeviceInfo {
    DeviceInfo {
        name: name.into(),
        kind,
        level,
        below: below.iter().map(|&name| name.into()).collect(),
        leaf: below.is_empty(),
        model: (kind == DeviceKind::Disk).then(|| "CT2000T500SSD8".into()),
        firmware: (kind == DeviceKind::Disk).then(|| "P8CR002".into()),
        serial: None,
        transport: None,
        size_bytes: 2_000_398_934_016,
        rotational: Some(false),
        scheduler: (kind == DeviceKind::Disk).then(|| "none".into()),
        discard: DiscardLimits {
            granularity_bytes: 512,
            max_bytes: 2 << 40,
            max_hw_bytes: 2 << 40,
            max_segments: 256,
            ata_trim: None,
        },
        slower: None,
        card: Default::default(),
        counting: Default::default(),
        drive: None,
        life: None,
    }
}

pub fn head(canary: bool, interval_s: f64) -> Head {
    Head {
        schema: RUN_SCHEMA.into(),
        run: None,
        version: "0.1.0".into(),
        started_unix_s: 1.7e9,
        host: Host {
            name: "oak".into(),
            machine_id: None,
            kernel: "6.12.9".into(),
            cpus: 16,
            memory_bytes: 64 * GIB,
        },
        target: Target {
            path: "/data/test".into(),
            mount: Some("/data".into()),
            source: Some("/dev/nvme0n1p2".into()),
            fs: Some("ext4".into()),
            options: vec!["rw".into(), "relatime".into(), "discard".into()],
            discard: DiscardSetting::On,
            size_bytes: 1862 * GIB,
            available_bytes: Some(1400 * GIB),
            discards_at_most: None,
        },
        scenario: serde_json::Value::Null,
        interval_ms: interval_s * 1e3,
        actors: actors(canary),
        devices: vec![
            device("nvme0n1p2", DeviceKind::Partition, 0, &["nvme0n1"]),
            device("nvme0n1", DeviceKind::Disk, 1, &[]),
        ],
    }
}

pub fn empty(head: Head) -> RunRecord {
    RunRecord {
        intervals: Intervals::new(head.actors.len(), head.devices.len()),
        head,
        phases: Vec::new(),
        events: Vec::new(),
        deletions: Vec::new(),
        histograms: Vec::new(),
        stretches: Vec::new(),
        waits: None,
        end: None,
    }
}

impl Run {
    /// The record, beginning at 61.4 s, when its files are made.
    pub fn record(&self) -> RunRecord {
        let mut record = empty(head(self.canary, self.interval_s));
        let zero = 61.4;
        let deletion = zero + self.baseline_s;
        let (stall, paid) = (deletion + self.lag_s, deletion + self.lag_s + self.stall_s);
        let end = paid + self.recovery_s;
        record.phases = [
            (PhaseName::Prepare, 0.0),
            (PhaseName::Settle, 40.0),
            (PhaseName::Baseline, zero),
            (PhaseName::Delete, deletion),
            (PhaseName::Recovery, paid + 2.0),
        ]
        .map(|(name, at_s)| Phase {
            name,
            part: Part::Main,
            at_s,
        })
        .to_vec();
        record.events = [
            (EventKind::DeletionBegan, deletion),
            (EventKind::DeletionReturned, deletion + 0.21),
            (EventKind::CommitForced, deletion + 0.21),
            (EventKind::CommitReturned, deletion + 0.35),
            (EventKind::DebtPaid, paid),
        ]
        .map(|(kind, at_s)| Event {
            at_s,
            kind,
            detail: None,
        })
        .to_vec();
        let mut noise = Noise(1);
        for i in 400..(end / self.interval_s) as u64 {
            let at_s = i as f64 * self.interval_s;
            let overlap = (paid.min(at_s + self.interval_s) - stall.max(at_s)).max(0.0);
            let share = overlap / self.interval_s;
            record
                .intervals
                .push(&self.interval(at_s, share, deletion, &mut noise));
        }
        record
    }

    /// `share` of the interval is stalled.
    fn interval(&self, at_s: f64, share: f64, deletion: f64, noise: &mut Noise) -> Interval {
        let seconds = self.interval_s;
        let rate = self.rate * (1.0 - share * (1.0 - self.left)) * (1.0 + 0.03 * noise.next());
        let slow = share > 0.5;
        let service = self.discard_bytes as f64 / (self.bytes as f64 / self.stall_s) * 1e6;
        let p99 = if slow {
            1.05 * service
        } else {
            121.0 * (1.0 + 0.1 * noise.next())
        };
        let reader = ActorInterval {
            ops: (rate * seconds) as u64,
            bytes: (rate * seconds) as u64 * 4096,
            p50_us: Some(if slow { service } else { 84.0 }),
            p99_us: Some(p99),
            max_us: Some(1.3 * p99),
            oldest_us: Some(if slow { 0.8 * service } else { 70.0 }),
            ..ActorInterval::default()
        };
        let canary = ActorInterval {
            ops: (100.0 * seconds) as u64,
            bytes: 100 * 4096,
            p99_us: Some(if slow { service } else { 160.0 }),
            ..reader
        };
        let discarded = (self.bytes as f64 * share * seconds / self.stall_s) as u64;
        let discards = DeviceInterval {
            discards: discarded / self.discard_bytes,
            discard_bytes: discarded,
            ..DeviceInterval::default()
        };
        Interval {
            at_s,
            seconds,
            actors: [Some(reader), self.canary.then_some(canary)][..1 + usize::from(self.canary)]
                .to_vec(),
            devices: vec![discards, discards],
            freed_bytes: if (at_s..at_s + seconds).contains(&(deletion + 0.2)) {
                self.bytes
            } else {
                0
            },
            ..Interval::default()
        }
    }

    /// A judge's verdict of it, as far as the text needs it.
    pub fn verdict(&self) -> Verdict {
        let service = self.discard_bytes as f64 / (self.bytes as f64 / self.stall_s) * 1e6;
        let normal = Figures {
            ops_per_s: Some(self.rate),
            p50_us: Some(84.0),
            p99_us: Some(121.0),
            p999_us: Some(163.0),
            max_us: Some(1_210.0),
        };
        let slow = Figures {
            ops_per_s: Some(self.rate * self.left),
            p50_us: Some(service),
            p99_us: Some(1.05 * service),
            p999_us: Some(1.1 * service),
            max_us: Some(1.3 * service),
        };
        let stall = Stall {
            seconds: self.stall_s,
            longest_s: self.stall_s,
            depth: self.left,
            lost_s: self.stall_s * (1.0 - self.left),
            worst_latency_us: Some(1.3 * service),
            limit_us: None,
        };
        let mut foreground = vec![Foreground {
            actor: "reader".into(),
            op: "read".into(),
            loop_kind: LoopKind::Closed { depth: 8 },
            baseline_from: Some(BaselineFrom::Phase),
            baseline_drift: None,
            baseline: normal,
            undisturbed: None,
            delete: slow,
            discarding: Some(slow),
            recovery: normal,
            service: None,
            ops_ratio: Some(self.left),
            lost_s: Some(stall.lost_s),
            detectable: Some(0.1),
            stall: Some(stall),
            dips: Vec::new(),
            unfinished: None,
            stall_by_others: None,
            cpu_wait: None,
        }];
        if self.canary {
            let hundred = |figures: Figures| Figures {
                ops_per_s: Some(100.0),
                ..figures
            };
            foreground.push(Foreground {
                actor: "canary".into(),
                loop_kind: LoopKind::Open {
                    rate_per_s: 100.0,
                    poisson: false,
                    depth: 1,
                },
                baseline: hundred(normal),
                delete: hundred(slow),
                discarding: Some(hundred(slow)),
                recovery: hundred(normal),
                service: Some(ServiceFigures {
                    baseline: hundred(normal),
                    delete: hundred(slow),
                    discarding: Some(hundred(slow)),
                    recovery: hundred(normal),
                }),
                ops_ratio: Some(1.0),
                lost_s: Some(0.0),
                stall: None,
                ..foreground[0].clone()
            });
        }
        let commands = self.bytes / self.discard_bytes;
        Verdict {
            schema: VERDICT_SCHEMA.into(),
            verdict: Finding::Stall,
            reasons: Vec::new(),
            summary: format!(
                "Deleting {} stalled reads for {} (to {} of {}).",
                record::units::bytes(self.bytes),
                record::units::seconds(self.stall_s),
                record::units::percent(self.left),
                record::units::rate(self.rate)
            ),
            foreground,
            discard: Discard {
                bytes: Some(self.bytes),
                commands: Some(commands),
                active_s: Some(self.stall_s),
                bytes_per_s: Some(self.bytes as f64 / self.stall_s),
                bytes_per_s_is_lower_bound: false,
                mean_bytes: Some(self.discard_bytes as f64),
                await_us: Some(service),
                debt_max_bytes: Some(self.bytes),
                first_discard_lag_s: Some(self.lag_s),
                drain_s: Some(self.lag_s + self.stall_s - 0.21),
            },
            deletion: Some(Deletion {
                bytes: self.bytes,
                files: 1,
                seconds: 0.21,
                ..Deletion::default()
            }),
            try_bytes: None,
            fit: Some(Fit {
                service_us: Some(service),
                at_mib: Some(self.discard_bytes as f64 / 1_048_576.0),
                barrier: Some(true),
                ops_per_discard: Some(8.0),
                ops_per_discard_95: Some([7.8, 8.2]),
                depth: Some(8),
                blocked: Some(1.0 - self.left),
                blocked_95: Some([0.99 - self.left, 1.01 - self.left]),
                ..Fit::default()
            }),
            control: None,
            slower: None,
            conditions: Vec::new(),
            origin: Default::default(),
            run: Default::default(),
            target: Default::default(),
            warnings: Vec::new(),
            others: None,
            writes: None,
            gain: None,
            absences: vec![],
            waits: None,
        }
    }
}

/// Repeatable noise, -1 to 1 (a linear congruential generator, Knuth's constants).
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1_u64 << 30) as f64 - 1.0
    }
}

/// An hour at 10 ms with four actors, with a stall of 30 s in it.
pub fn hour() -> RunRecord {
    let run = Run {
        interval_s: 0.01,
        baseline_s: 1800.0,
        lag_s: 2.0,
        stall_s: 30.0,
        recovery_s: 1800.0,
        rate: 92_080.0,
        ..T500
    };
    let mut record = run.record();
    let template = record.head.actors[0].clone();
    let columns = record.intervals.actors[0].clone();
    for name in ["writer", "journal"] {
        record.head.actors.push(ActorInfo {
            name: name.into(),
            ..template.clone()
        });
        record.intervals.actors.push(columns.clone());
    }
    let deletion = 61.4 + run.baseline_s;
    record.deletions.push(DeletionLine {
        part: Part::Main,
        at_s: deletion,
        seconds: 0.21,
        bytes: run.bytes,
        files: 1,
        ..DeletionLine::default()
    });
    record
}
