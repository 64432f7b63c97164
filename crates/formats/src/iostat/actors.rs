//! Finds the devices whose reads and writes are the foreground.

use record::{ActorInfo, ActorInterval, LoopKind};

use super::Notes;
use super::devices::times;
use super::log::{Log, Sample};

/// A device with fewer operations in an interval isn't anybody's work there.
const WORK: f64 = 20.0;
/// Work that took less than this, in seconds or reports, is nobody's foreground.
const LEAST: f64 = 5.0;
/// Nor is what worked in less than this share of the time from its begin to its end.
const MOSTLY: f64 = 0.25;
/// Nor what did less than this share of the busiest actor's operations, on other devices:
/// a machine's system disk.
const ASIDE: f64 = 0.02;
/// Operations in flight: this share of the time there were no more.
const MOSTLY_IN_FLIGHT: f64 = 0.9;

/// One device's reads or writes.
pub(super) struct Actor {
    pub(super) info: ActorInfo,
    /// Its place in [`Log::columns`].
    pub(super) column: usize,
    /// 0 for reads, 1 for writes.
    pub(super) kind: usize,
}

impl Actor {
    /// The device's work in an interval with these figures.
    pub(super) fn interval(&self, sample: &Sample, seconds: f64) -> ActorInterval {
        ActorInterval {
            ops: times(sample.count[self.kind], seconds),
            bytes: times(sample.bytes[self.kind], seconds),
            ..ActorInterval::default()
        }
    }
}

/// The part of a log that is examined.
pub(super) struct Look<'a> {
    pub(super) log: &'a Log,
    /// The rows that are intervals.
    pub(super) rows: &'a [usize],
    pub(super) interval_s: f64,
}

impl Look<'_> {
    /// The sum of a device's rate; times an interval's length, what it did in all of them.
    pub(super) fn sum(&self, column: usize, of: impl Fn(&Sample) -> f32) -> f64 {
        self.log.sum(self.rows, column, of)
    }

    /// The figures of a device's rows with work in them. `None` if that is nobody's foreground.
    fn work(&self, column: usize, kind: usize) -> Option<Vec<Sample>> {
        let figures = |row: usize| self.log.columns[column].at(row);
        let works = |row: &usize| f64::from(figures(*row).count[kind]) * self.interval_s >= WORK;
        let at_work: Vec<usize> = self.rows.iter().copied().filter(works).collect();
        let first = self.log.rows[*at_work.first()?].number;
        let last = self.log.rows[*at_work.last()?].number;
        let working = at_work.len() as f64;
        let long = working >= LEAST && working * self.interval_s >= LEAST;
        let mostly = working >= MOSTLY * (last + 1 - first) as f64;
        (long && mostly).then(|| at_work.into_iter().map(figures).collect())
    }
}

/// Reads or writes of these devices that are the foreground. Were they `named`, all of them; else
/// those that stand beside the busiest.
pub(super) fn actors(
    look: &Look<'_>,
    tops: &[usize],
    named: bool,
    notes: Option<&Notes>,
) -> Vec<Actor> {
    let mut found = Vec::new();
    for (kind, op) in ["read", "write"].into_iter().enumerate() {
        for &column in tops {
            if let Some(at_work) = look.work(column, kind) {
                found.push(Actor {
                    info: info(&look.log.columns[column].name, kind, op, &at_work),
                    column,
                    kind,
                });
            }
        }
    }
    if !named {
        leave_aside(&mut found, look);
    }
    // With several, fio's line could be about any of them.
    if found.len() == 1
        && let Some((name, job)) = notes.and_then(|n| n.job.as_ref())
    {
        let direction = match found[0].kind {
            0 => crate::fio::Direction::Read,
            _ => crate::fio::Direction::Write,
        };
        let stated = job.actor(name, direction, job.threads());
        if stated.op == found[0].info.op {
            found[0].info = ActorInfo {
                name: found[0].info.name.clone(),
                // fio's line doesn't tell.
                direct: stated.direct.filter(|&direct| direct),
                ..stated
            };
        }
    }
    found
}

/// Forgets all but the busiest, so many; returns how many that were.
pub(super) fn keep_busiest(found: &mut Vec<Actor>, look: &Look<'_>, most: usize) -> usize {
    let operations = |a: &Actor| look.sum(a.column, |s| s.count[a.kind]);
    let mut order: Vec<(f64, usize)> = (found.iter().map(operations)).zip(0..).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    order.truncate(most);
    let before = found.len();
    let mut places = 0..;
    found.retain(|_| {
        let place = places.next();
        order.iter().any(|kept| Some(kept.1) == place)
    });
    before - found.len()
}

/// Forgets devices that hardly did anything beside the busiest.
fn leave_aside(found: &mut Vec<Actor>, look: &Look<'_>) {
    let operations = |a: &Actor| look.sum(a.column, |s| s.count[a.kind]);
    let all: Vec<(usize, f64)> = (found.iter())
        .map(|actor| (actor.column, operations(actor)))
        .collect();
    let most = all.iter().map(|a| a.1).fold(0.0, f64::max);
    found.retain(|actor| {
        let own = all.iter().filter(|a| a.0 == actor.column);
        own.map(|a| a.1).fold(0.0, f64::max) >= ASIDE * most
    });
}

/// An actor as far as a device's figures at work tell what it is.
fn info(device: &str, kind: usize, op: &str, at_work: &[Sample]) -> ActorInfo {
    let name = match kind {
        0 => device.to_owned(),
        _ => format!("{device}-{op}"),
    };
    let sum = |of: fn(&Sample, usize) -> f32| -> f64 {
        at_work.iter().map(|s| f64::from(of(s, kind))).sum()
    };
    let operations = sum(|s, kind| s.count[kind]);
    let bytes = sum(|s, kind| s.bytes[kind]);
    ActorInfo {
        name,
        op: op.to_owned(),
        loop_kind: LoopKind::Closed {
            depth: (depth(kind, at_work).round() as u32).clamp(1, 1 << 16),
        },
        // Sizes are rounded to 10 bytes or so; blocks are whole sectors.
        block_bytes: ((bytes / operations.max(1.0) / 512.0).round() * 512.0) as u64,
        pattern: None,
        direct: None,
        engine: "iostat".to_owned(),
    }
}

/// Little's law: operations in flight are rate times wait. With discards or other
/// operations in the queue, the queue's length says more than is this actor's.
fn depth(kind: usize, at_work: &[Sample]) -> f64 {
    let in_flight = |s: &Sample| f64::from(s.count[kind]) * f64::from(s.wait_ms[kind]) / 1e3;
    let mut depths: Vec<f64> = at_work.iter().map(in_flight).collect();
    depths.sort_by(f64::total_cmp);
    let found = depths.get((MOSTLY_IN_FLIGHT * depths.len() as f64) as usize);
    found.or(depths.last()).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use crate::iostat::{Log, Options, record};
    use std::fmt::Write;

    #[test]
    fn of_more_devices_than_a_record_can_hold_the_busiest_are_taken() {
        let mut text = String::new();
        for second in 0..8 {
            text += "Device r/s rkB/s d/s dkB/s\n";
            for disk in 0..300_u64 {
                // No two alike, nor one the sum of others.
                let scatter =
                    (disk + 1) * (second + 3) * 2_654_435_761 % 4_294_967_296 / 21_474_837;
                let reads = if disk == 0 { 60 } else { 500 + scatter };
                writeln!(text, "d{disk} {reads}.00 4.00 0.00 0.00").unwrap();
            }
            text.push('\n');
        }
        let log = Log::read(text.as_bytes()).unwrap();
        let record = record(&log, None, &Options::default()).unwrap();
        assert_eq!(record.head.actors.len(), 256);
        assert!(record.head.actors.iter().all(|actor| actor.name != "d0"));
        let mut said = record.events.iter().filter_map(|e| e.detail.as_deref());
        assert!(said.any(|said| said.contains("of 44 devices were left out")));
    }
}
