//! From a simulated drive's stretched time to that of the drive it stands for.
//!
//! A fast drive is represented faithfully only by a simulation that is slower
//! than it is (`trimbench lab up --slower`). Its measurements are right
//! but for the unit of time: latencies and lengths are so many times too long,
//! and rates so many times too low. [`as_drive`] converts a whole record before
//! it is judged. So a stall counts as one by its length on the drive, and
//! every table, picture and fit made of the record agrees.
//!
//! The time that this machine itself adds to each I/O (some 20 to 100 µs) was not
//! stretched, and gets that much smaller. So a slower simulation is more faithful.

use hdrhistogram::Histogram;

use crate::{
    ActorColumns, DeviceColumns, DeviceInfo, LONGEST_NS, LoopKind, RunRecord, Slower,
    decode_histogram, encode_histogram, latency_histogram, second_histogram,
};

/// Why a record has no other drive's time.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotSlowed {
    /// None of its drives was a simulation in stretched time.
    #[error(
        "the time of its drive is real: only what ran on a drive of `trimbench lab up --slower` \
         can be converted to another's time"
    )]
    Real,
    /// Its drives' times differ, so no one factor converts it.
    #[error(
        "its drives are {0} and {1} times slower than those they stand for: there is no time that \
         is right for both"
    )]
    Mixed(f64, f64),
}

/// How much slower than what they stand for a tree's drives are: `None` where
/// they aren't simulations in stretched time.
///
/// # Errors
/// [`NotSlowed::Mixed`] if they differ.
pub fn slower(devices: &[DeviceInfo]) -> Result<Option<Slower>, NotSlowed> {
    let real = Slower {
        times: 1.0,
        converted: false,
    };
    let mut leaves = devices.iter().filter(|device| device.leaf);
    let of = |device: &DeviceInfo| device.slower.unwrap_or(real);
    let Some(first) = leaves.next().map(of) else {
        return Ok(None);
    };
    match leaves.map(of).find(|other| other.times != first.times) {
        Some(other) => Err(NotSlowed::Mixed(first.times, other.times)),
        None => Ok(Some(first).filter(|slower| slower.times != 1.0)),
    }
}

/// A record with all times and rates as they would have been on the drive that
/// a slowed simulation stood for; one that was converted before stays as it is.
///
/// The scenario in its head stays what was asked for.
///
/// # Errors
/// If its drive was not a slowed simulation, or several that differ.
pub fn as_drive(mut record: RunRecord) -> Result<RunRecord, NotSlowed> {
    let slower = slower(&record.head.devices)?.ok_or(NotSlowed::Real)?;
    if !slower.converted {
        convert(&mut record, slower.times);
    }
    Ok(record)
}

/// Histograms as a record's file has them, as one of the drive that stands
/// behind one `times` slower. It leaves out those that it can't read.
pub fn latencies_as_drive(v2: &[&str], times: f64) -> String {
    let mut sum = second_histogram();
    for histogram in v2.iter().filter_map(|text| decode_histogram(text).ok()) {
        add(&mut sum, &histogram, times);
    }
    encode_histogram(&sum)
}

fn add(sum: &mut Histogram<u64>, measured: &Histogram<u64>, times: f64) {
    for step in measured.iter_recorded() {
        let nanos = (step.value_iterated_to() as f64 / times).round() as u64;
        sum.saturating_record_n(nanos.clamp(1, LONGEST_NS), step.count_at_value());
    }
}

fn convert(record: &mut RunRecord, times: f64) {
    let head = &mut record.head;
    head.interval_ms /= times;
    for device in &mut head.devices {
        if let Some(slower) = &mut device.slower {
            slower.converted = true;
        }
    }
    for actor in &mut head.actors {
        if let LoopKind::Open { rate_per_s, .. } = &mut actor.loop_kind {
            *rate_per_s *= times;
        }
    }
    let intervals = &mut record.intervals;
    intervals.at_s.iter_mut().for_each(|at| *at /= times);
    shorten(&mut intervals.seconds, times);
    intervals
        .absent
        .values_mut()
        .for_each(|absent| absent.seconds /= times);
    intervals.actors.iter_mut().for_each(|a| actor(a, times));
    intervals.devices.iter_mut().for_each(|d| device(d, times));
    record.phases.iter_mut().for_each(|p| p.at_s /= times);
    record.events.iter_mut().for_each(|e| e.at_s /= times);
    for deletion in &mut record.deletions {
        deletion.at_s /= times;
        deletion.seconds /= times;
    }
    for phase in &mut record.histograms {
        let measured = std::mem::replace(&mut phase.histogram, latency_histogram());
        add(&mut phase.histogram, &measured, times);
    }
    for stretch in &mut record.stretches {
        stretch.at_s /= times;
        stretch.seconds /= times;
        stretch.v2 = latencies_as_drive(&[&stretch.v2], times);
    }
    if let Some(waits) = &mut record.waits {
        waits.shorten(times);
    }
    if let Some(end) = &mut record.end {
        end.at_s /= times;
        let unfinished = end.unfinished.iter_mut();
        unfinished.for_each(|left| left.oldest_us /= times);
    }
}

fn actor(columns: &mut ActorColumns, times: f64) {
    for latency in [
        &mut columns.p50_us,
        &mut columns.p99_us,
        &mut columns.max_us,
        &mut columns.oldest_us,
    ] {
        shorten(latency, times);
    }
}

fn device(columns: &mut DeviceColumns, times: f64) {
    for waits in [
        &mut columns.read_ms,
        &mut columns.write_ms,
        &mut columns.discard_ms,
    ] {
        whole(waits, times);
    }
}

fn shorten(column: &mut [f32], times: f64) {
    for figure in column {
        *figure = (f64::from(*figure) / times) as f32;
    }
}

/// Divides a column of whole milliseconds. The remainder of rounding goes into
/// the next interval, so that no sum over intervals drifts.
fn whole(column: &mut [u32], times: f64) {
    let (mut before, mut told) = (0.0, 0.0);
    for figure in column {
        before += f64::from(*figure);
        let now = (before / times).round();
        *figure = (now - told) as u32;
        told = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ActorInfo, ActorInterval, DeviceInterval, DeviceKind, Head, Host, Interval, Latency, Line,
        Part, Phase, PhaseHistogram, PhaseName, RUN_SCHEMA, Target,
    };

    fn drive(slower: Option<f64>) -> DeviceInfo {
        DeviceInfo {
            kind: DeviceKind::Loop,
            size_bytes: 1 << 30,
            slower: slower.map(|times| Slower {
                times,
                converted: false,
            }),
            ..DeviceInfo::disk("loop0")
        }
    }

    /// Ten intervals of 100 ms of an open loop of 50/s, each with a discard of 3 ms.
    fn record(devices: Vec<DeviceInfo>) -> RunRecord {
        let mut record = RunRecord::new(Head {
            schema: RUN_SCHEMA.into(),
            run: None,
            version: "0".into(),
            started_unix_s: 1.0,
            host: Host::default(),
            target: Target::default(),
            scenario: serde_json::Value::Null,
            interval_ms: 100.0,
            actors: vec![ActorInfo {
                name: "reader".into(),
                op: "read".into(),
                loop_kind: LoopKind::Open {
                    rate_per_s: 50.0,
                    poisson: false,
                    depth: 4,
                },
                block_bytes: 4096,
                pattern: None,
                direct: Some(true),
                engine: "null".into(),
            }],
            devices,
        })
        .unwrap();
        record
            .push(&Line::Phase(Phase {
                name: PhaseName::Delete,
                part: Part::Main,
                at_s: 0.4,
            }))
            .unwrap();
        for i in 0..10 {
            let leaves = record.head.devices.len();
            let row = Interval {
                at_s: f64::from(i) * 0.1,
                seconds: 0.1,
                actors: vec![Some(ActorInterval {
                    ops: 5,
                    p50_us: Some(400.0),
                    ..ActorInterval::default()
                })],
                devices: vec![
                    DeviceInterval {
                        discards: 1,
                        discard_bytes: 1 << 20,
                        discard_ms: 3,
                        ..DeviceInterval::default()
                    };
                    leaves
                ],
                freed_bytes: 1 << 20,
                ..Interval::default()
            };
            record.push(&Line::Interval(row)).unwrap();
        }
        let mut histogram = latency_histogram();
        histogram.record_n(400_000, 50).unwrap();
        record.histograms.push(PhaseHistogram {
            actor: 0,
            latency: Latency::Response,
            phase: PhaseName::Delete,
            part: Part::Main,
            histogram,
        });
        record
    }

    #[test]
    fn every_time_is_shortened_and_every_count_stays() {
        let record = as_drive(record(vec![drive(Some(4.0))])).unwrap();
        assert_eq!(record.head.interval_ms, 25.0);
        let LoopKind::Open { rate_per_s, .. } = record.head.actors[0].loop_kind else {
            unreachable!("it was open");
        };
        assert_eq!(rate_per_s, 200.0);
        let rows = &record.intervals;
        assert!((rows.end_s() - 0.25).abs() < 1e-6);
        assert_eq!(rows.actors[0].p50_us[3], 100.0);
        assert!(rows.actors[0].max_us[3].is_nan(), "unknown stays unknown");
        assert_eq!(rows.actors[0].ops, [5; 10]);
        assert_eq!(rows.devices[0].discards, [1; 10]);
        // 30 ms over all: single intervals are rounded, the sum isn't.
        let waits = &rows.devices[0].discard_ms;
        assert_eq!((waits.iter().sum::<u32>(), waits[0]), (8, 1));
        assert_eq!(record.phases[0].at_s, 0.1);
        let median = record.histograms[0].histogram.value_at_quantile(0.5);
        assert!((99_900..100_200).contains(&median), "{median}");
        assert_eq!(record.histograms[0].histogram.len(), 50);
    }

    #[test]
    fn what_was_converted_is_not_converted_again() {
        let once = as_drive(record(vec![drive(Some(0.5))])).unwrap();
        assert_eq!(once.head.interval_ms, 200.0, "a faster one's is longer");
        let twice = as_drive(once).unwrap();
        assert_eq!(twice.head.interval_ms, 200.0);
    }

    #[test]
    fn real_drives_and_different_ones_are_refused() {
        for devices in [vec![], vec![drive(None)], vec![drive(Some(1.0))]] {
            assert_eq!(as_drive(record(devices)).unwrap_err(), NotSlowed::Real);
        }
        let mixed = vec![drive(Some(4.0)), drive(None)];
        let error = as_drive(record(mixed)).unwrap_err();
        assert_eq!(error, NotSlowed::Mixed(4.0, 1.0));
    }
}
