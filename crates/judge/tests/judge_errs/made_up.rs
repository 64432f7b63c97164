//! Made-up logs of 60 s whose truth is known: noise, and discards in seconds 20 to 23.

use record::{
    ActorInfo, ActorInterval, DeviceInfo, DeviceInterval, End, EndReason, Head, Host, Interval,
    Line, LoopKind, RUN_SCHEMA, RunRecord, Target,
};
use testkit::Rng;

/// Reads per second without noise.
const BASE: f64 = 50_000.0;
/// Length of a log, in seconds.
const LENGTH_S: f64 = 60.0;
/// Discards per second while there are some; each waits as long as it takes.
const DISCARDS_PER_S: f64 = 500.0;

/// The noise that makes the rate scatter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noise {
    /// Each interval resembles the one before it by this much (0: white).
    Correlated(f64),
    /// It rises or falls evenly over the whole log.
    Drift,
    /// White, and one second in fifty is left with 30 %: a noisy neighbour.
    Dips,
}

/// One kind of log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log {
    pub(crate) noise: Noise,
    /// Standard deviation of the rate, as a share of its mean.
    pub(crate) sd: f64,
    /// Length of an interval, in seconds.
    pub(crate) interval_s: f64,
    /// The share of the rate that discards leave; 1 if they do nothing.
    pub(crate) left: f64,
    /// When discards are in service, in seconds.
    pub(crate) discards: (f64, f64),
}

impl Log {
    pub(crate) fn record(&self, random: &mut Rng) -> RunRecord {
        let count = (LENGTH_S / self.interval_s).round() as usize;
        let rates = self.factors(count, random);
        let rates = rates.into_iter().map(|factor| BASE * factor);
        record(self.interval_s, rates, self.discards, self.left)
    }

    /// Returns the factor of noise on each interval's rate.
    fn factors(&self, count: usize, random: &mut Rng) -> Vec<f64> {
        let sigma = self.sd.mul_add(self.sd, 1.0).ln().sqrt();
        let log_normal = |x: f64| (sigma * x - sigma * sigma / 2.0).exp();
        match self.noise {
            Noise::Correlated(alike) => {
                let mut x = bell(random);
                let next = |_| {
                    let now = x;
                    x = alike * x + (1.0 - alike * alike).sqrt() * bell(random);
                    log_normal(now)
                };
                (0..count).map(next).collect()
            }
            Noise::Drift => {
                // A line from end to end has a deviation of its height / √12.
                let height = self.sd * 12_f64.sqrt() * if random.unit() < 0.5 { -1.0 } else { 1.0 };
                let line = |i: usize| 1.0 + height * ((i as f64 + 0.5) / count as f64 - 0.5);
                let white = |x: f64| 1.0 + 0.02 * x;
                (0..count)
                    .map(|i| line(i).max(0.05) * white(bell(random)))
                    .collect()
            }
            Noise::Dips => {
                let seconds: Vec<bool> = (0..LENGTH_S as usize)
                    .map(|_| random.unit() < 0.02)
                    .collect();
                let dip = |i: usize| seconds[(i as f64 * self.interval_s + 1e-6) as usize];
                (0..count)
                    .map(|i| if dip(i) { 0.3 } else { 1.0 } * log_normal(bell(random)))
                    .collect()
            }
        }
    }
}

/// A log of intervals with these rates of reads, and of discards that leave a share of them.
pub(crate) fn record(
    interval_s: f64,
    rates: impl Iterator<Item = f64>,
    discards: (f64, f64),
    left: f64,
) -> RunRecord {
    let mut record = RunRecord::new(head(interval_s)).unwrap();
    let mut at_s = 0.0;
    for (i, rate) in rates.enumerate() {
        at_s = i as f64 * interval_s;
        let with = overlap((at_s, at_s + interval_s), discards);
        let ops = (rate * (interval_s - with + left * with)).round() as u64;
        let discards = (DISCARDS_PER_S * with).round() as u64;
        let actor = ActorInterval {
            ops,
            bytes: ops * 4096,
            ..ActorInterval::default()
        };
        let device = DeviceInterval {
            discards,
            discard_bytes: discards << 27,
            discard_ms: (discards as f64 * 1e3 / DISCARDS_PER_S).round() as u64,
            ..DeviceInterval::default()
        };
        let interval = Interval {
            at_s,
            seconds: interval_s,
            actors: vec![Some(actor)],
            devices: vec![device],
            freed_bytes: 0,
            ..Interval::default()
        };
        record.push(&Line::Interval(interval)).unwrap();
    }
    let end = End {
        at_s: at_s + interval_s,
        reason: EndReason::Completed,
        message: None,
        unfinished: vec![],
        lives: Vec::new(),
    };
    record.push(&Line::End(end)).unwrap();
    record
}

fn overlap(a: (f64, f64), b: (f64, f64)) -> f64 {
    (a.1.min(b.1) - a.0.max(b.0)).max(0.0)
}

fn head(interval_s: f64) -> Head {
    let actor = ActorInfo {
        name: "reader".into(),
        op: "read".into(),
        loop_kind: LoopKind::Closed { depth: 8 },
        block_bytes: 4096,
        pattern: Some("random".into()),
        direct: Some(true),
        engine: "null".into(),
    };
    let device = DeviceInfo {
        size_bytes: 1 << 40,
        rotational: Some(false),
        ..DeviceInfo::disk("sda")
    };
    Head {
        schema: RUN_SCHEMA.into(),
        version: "0".into(),
        started_unix_s: 1.7e9,
        host: Host::default(),
        run: None,
        target: Target::default(),
        scenario: serde_json::Value::Null,
        interval_ms: interval_s * 1e3,
        actors: vec![actor],
        devices: vec![device],
    }
}

/// Normally distributed, mean 0 and deviation 1 (Box and Muller).
fn bell(random: &mut Rng) -> f64 {
    let (radius, angle) = (1.0 - random.unit(), random.unit());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
