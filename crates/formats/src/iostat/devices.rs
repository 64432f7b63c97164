//! The block devices of a log, as far as they did something.

use record::{Counting, DeviceInfo, DeviceInterval};

use super::actors::Look;
use super::log::Sample;
use super::topology::{Made, kind};

/// Devices that did something, each with its column's place: wholes first, as in any record.
pub(super) fn devices(look: &Look<'_>, made: &[Made]) -> Vec<(usize, DeviceInfo)> {
    let log = look.log;
    let busy = (0..log.columns.len()).filter(|&i| !log.columns[i].is_idle());
    let name = |i: usize| log.columns[i].name.clone();
    // What is made of a device, and of that, …: as often as there are such devices at most.
    let above = |i: usize| {
        let of = move |i: usize| made.iter().find(|m| m.members.contains(&i));
        std::iter::successors(of(i), move |made| of(made.whole)).take(made.len())
    };
    let mut all: Vec<(usize, DeviceInfo)> = busy
        .map(|i| {
            let members = made.iter().find(|m| m.whole == i).map(|m| &m.members);
            let below: Vec<String> = members.into_iter().flatten().map(|&m| name(m)).collect();
            let info = DeviceInfo {
                name: name(i),
                kind: kind(&log.columns[i].name, below.len()),
                level: above(i).count() as u32,
                leaf: below.is_empty(),
                below,
                counting: Counting {
                    copies: above(i)
                        .map(|made| made.copies(look).unwrap_or(1.0))
                        .product(),
                    unknown_copies: above(i).any(|made| made.copies(look).is_none()),
                    off: !log.discards,
                    ..Counting::default()
                },
                ..DeviceInfo::default()
            };
            (i, info)
        })
        .collect();
    all.sort_by_key(|d| d.1.level);
    all
}

/// The device's work in an interval with these figures.
pub(super) fn interval(sample: &Sample, seconds: f64) -> DeviceInterval {
    let wait = |kind: usize| {
        let operations = f64::from(sample.count[kind]) * seconds;
        (operations * f64::from(sample.wait_ms[kind])).round() as u64
    };
    DeviceInterval {
        reads: times(sample.count[0], seconds),
        read_bytes: times(sample.bytes[0], seconds),
        read_ms: wait(0),
        writes: times(sample.count[1], seconds),
        write_bytes: times(sample.bytes[1], seconds),
        write_ms: wait(1),
        discards: times(sample.count[2], seconds),
        discard_bytes: times(sample.bytes[2], seconds),
        discard_ms: wait(2),
        in_flight: sample.queue.round() as u64,
    }
}

/// How many in so many seconds.
pub(super) fn times(rate: f32, seconds: f64) -> u64 {
    (f64::from(rate) * seconds).round() as u64
}
