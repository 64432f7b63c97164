//! Runs with noise of a known size: within them, and from one to the next.

use crate::JudgeOptions;
use crate::compare::{Change, Compared, Comparison, Figure, Group, Run, compare};
use record::*;
use testkit::Rng;

/// A run to make: a baseline, a lag, a stall, 5 s of recovery.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub(super) seed: u64,
    pub(super) rate: f64,
    /// Length of an interval, in seconds.
    pub(super) interval_s: f64,
    pub(super) baseline_s: f64,
    /// From the deletion to the first discard.
    pub(super) lag_s: f64,
    /// Standard deviation of an interval's rate, as a share of it.
    pub(super) within: f64,
    /// Correlation of an interval's deviation with the last one's.
    pub(super) together: f64,
    /// That of a run's rates and stall.
    pub(super) between: f64,
    pub(super) stall_s: f64,
    /// Share of the rate left in the stall.
    pub(super) left: f64,
    pub(super) kernel: &'static str,
    pub(super) discards: bool,
    /// Whether the record has phases and the deletion; an imported log has none.
    pub(super) phases: bool,
}

pub(super) const MADE: Made = Made {
    seed: 1,
    rate: 20_000.0,
    interval_s: 0.1,
    baseline_s: 20.0,
    lag_s: 2.03,
    within: 0.05,
    together: 0.0,
    between: 0.0,
    stall_s: 4.0,
    left: 0.05,
    kernel: "6.12.1",
    discards: true,
    phases: true,
};

/// A normal deviate, nearly: twelve uniform ones.
fn deviate(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

impl Made {
    pub(super) fn seed(self, seed: u64) -> Made {
        Made { seed, ..self }
    }

    pub(super) fn record(&self) -> RunRecord {
        let mut random = Rng::new(self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let run = 1.0 + self.between * deviate(&mut random);
        let (rate, stall_s) = (self.rate * run, self.stall_s * run);
        let mut record = RunRecord::new(self.head()).unwrap();
        let delete = self.baseline_s;
        let begin = delete + self.lag_s;
        let end = begin + stall_s;
        let phases = [
            (PhaseName::Baseline, 0.0),
            (PhaseName::Delete, delete),
            (PhaseName::Recovery, end + 2.0),
        ];
        for (name, at_s) in phases.into_iter().filter(|_| self.phases) {
            let part = Part::Main;
            record
                .push(&Line::Phase(Phase { name, part, at_s }))
                .unwrap();
        }
        let bytes = (stall_s * 1e10) as u64;
        let deletion = Line::Deletion(DeletionLine {
            part: Part::Main,
            at_s: delete,
            seconds: 0.2,
            bytes,
            files: 1,
            ..DeletionLine::default()
        });
        if self.phases {
            record.push(&deletion).unwrap();
        }
        let step_s = self.interval_s;
        let count = ((end + 7.0) / step_s) as usize;
        let mut noise = deviate(&mut random);
        for i in 0..count {
            let at_s = i as f64 * step_s;
            let stalled = (end.min(at_s + step_s) - begin.max(at_s)).clamp(0.0, step_s) / step_s;
            let level = 1.0 - stalled * (1.0 - self.left);
            let ops = (rate * step_s * level * (self.within * noise).exp()).round();
            let fresh = (1.0 - self.together * self.together).sqrt();
            noise = self.together * noise + fresh * deviate(&mut random);
            let us = 100.0
                * (1.0 + self.within * deviate(&mut random)).max(0.1)
                * (1.0 + 10.0 * stalled);
            let share = if self.discards { stalled } else { 0.0 };
            let commands =
                1000.0 * step_s * share * (1.0 + self.within * deviate(&mut random)).max(0.1);
            let commands = commands.round();
            let actor = ActorInterval {
                ops: ops as u64,
                bytes: ops as u64 * 4096,
                p50_us: Some(us),
                p99_us: Some(2.0 * us),
                max_us: Some(4.0 * us),
                oldest_us: Some(us),
                ..ActorInterval::default()
            };
            let device = DeviceInterval {
                discards: commands as u64,
                discard_bytes: (commands * 1e7) as u64,
                discard_ms: (commands * 1.5).round() as u64,
                ..DeviceInterval::default()
            };
            let interval = Interval {
                at_s,
                seconds: step_s,
                actors: vec![Some(actor)],
                devices: vec![device],
                freed_bytes: if self.phases && i == (delete / step_s) as usize {
                    bytes
                } else {
                    0
                },
                ..Interval::default()
            };
            record.push(&Line::Interval(interval)).unwrap();
        }
        record
            .push(&Line::End(End {
                at_s: count as f64 * step_s,
                reason: EndReason::Completed,
                message: None,
                unfinished: vec![],
                lives: Vec::new(),
            }))
            .unwrap();
        record
    }

    fn head(&self) -> Head {
        Head {
            schema: RUN_SCHEMA.into(),
            run: None,
            version: "0".into(),
            started_unix_s: 1.7e9 + self.seed as f64,
            host: Host {
                name: "oak".into(),
                machine_id: None,
                kernel: self.kernel.into(),
                cpus: 8,
                memory_bytes: 1 << 34,
            },
            target: Target {
                options: vec!["rw".into(), "discard".into()],
                available_bytes: Some(self.seed),
                ..Target::default()
            },
            scenario: serde_json::json!({"timing": {"baseline_s": 20}}),
            interval_ms: 1e3 * self.interval_s,
            actors: vec![ActorInfo {
                name: "reader".into(),
                op: "read".into(),
                loop_kind: LoopKind::Closed { depth: 8 },
                block_bytes: 4096,
                pattern: Some("random".into()),
                direct: Some(true),
                engine: "null".into(),
            }],
            devices: vec![device()],
        }
    }
}

fn device() -> DeviceInfo {
    let told = serde_json::json!({
        "name": "sda", "kind": "disk", "level": 0, "below": [], "leaf": true, "model": "Drive 1",
        "size_bytes": 1_u64 << 40, "rotational": false, "scheduler": null,
        "discard": DiscardLimits::default(),
    });
    serde_json::from_value(told).unwrap()
}

/// Groups by name, compared; held to the schema.
pub(super) fn compared(groups: &[(&str, &[RunRecord])]) -> Comparison {
    let groups: Vec<Group<'_>> = groups
        .iter()
        .map(|(name, records)| Group {
            name: (*name).to_owned(),
            runs: records
                .iter()
                .enumerate()
                .map(|(i, record)| Run {
                    name: format!("{name}-{i}"),
                    record,
                    options: JudgeOptions::default(),
                })
                .collect(),
        })
        .collect();
    compare(&groups)
}

/// A figure of the first actor, or one that a run has once.
pub(super) fn figure(comparison: &Comparison, figure: Figure) -> &Compared {
    let mut all = comparison.figures.iter();
    all.find(|f| f.figure == figure)
        .unwrap_or_else(|| panic!("no {}", figure.name()))
}

/// How it changed.
pub(super) fn change(comparison: &Comparison, of: Figure) -> &Change {
    &figure(comparison, of).changes[0]
}
