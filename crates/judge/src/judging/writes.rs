//! How evenly the devices write, and whether only writers into the page cache suffered.
//!
//! The kernel's writeback is lumpy: it writes nothing for a while, then as much as the device takes.
//! A writer into the page cache runs at the memory's speed until too much is dirty. Its rate
//! follows the kernel's limits, so a drop of it beside discards isn't evidence against them.

use std::ops::Range;

use super::actor::Judged;
use super::counting::counted;
use super::stats::mean;
use super::window::Window;
use crate::verdict::{Finding, WriteFigures, Writes};
use record::{ActorInfo, RunRecord};

/// Devices that write fewer bytes per second than this write journals and metadata.
const FEW: f64 = (1 << 20) as f64;
/// Fewer intervals say nothing about how evenly they were written.
const LEAST: usize = 5;

/// Returns how lumpy a series is: its coefficient of variation, which is the standard deviation
/// divided by the mean. 0 is even; 3 is all in every tenth interval. `None` of fewer than five
/// values, and where their mean is 0.
pub(super) fn lumpiness(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|&mean| mean > 0.0 && values.len() >= LEAST)?;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    Some((squares.sum::<f64>() / values.len() as f64).sqrt() / mean)
}

/// Returns the devices' writes before the deletion and in its phase; `None` where they wrote next
/// to nothing in both, and in a record without phases.
pub(super) fn of(record: &RunRecord, window: &Window) -> Option<Writes> {
    if !window.has_phases {
        return None;
    }
    let of = |phase: &Option<Range<usize>>| figures(record, phase.clone()?);
    let writes = Writes {
        interval_ms: record.head.interval_ms * record.head.devices_spread_over() as f64,
        baseline: of(&window.baseline),
        delete: of(&window.delete),
    };
    let much = |figures: &Option<WriteFigures>| figures.is_some_and(|f| f.bytes_per_s >= FEW);
    (much(&writes.baseline) || much(&writes.delete)).then_some(writes)
}

fn figures(record: &RunRecord, phase: Range<usize>) -> Option<WriteFigures> {
    let intervals = &record.intervals;
    let known = record.head.devices.len().min(intervals.devices.len());
    let leaves = counted(&record.head.devices[..known], &[]);
    if leaves.devices.is_empty() {
        return None;
    }
    // A log may have spread its figures over several intervals, which are alike then.
    let cells = phase.clone().step_by(record.head.devices_spread_over());
    let mut rates = Vec::new();
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for begin in cells {
        let cell = begin..(begin + record.head.devices_spread_over()).min(phase.end);
        if intervals.absent.range(cell.clone()).next().is_some() {
            continue;
        }
        let written = cell.clone().map(|i| {
            let of = |device: usize| intervals.devices[device].write_bytes[i];
            leaves.sum(of)
        });
        let written: f64 = written.sum();
        let length: f64 = cell.map(|i| f64::from(intervals.seconds[i])).sum();
        if length > 0.0 {
            rates.push(written / length);
            bytes += written;
            seconds += length;
        }
    }
    (seconds > 0.0).then(|| WriteFigures {
        bytes_per_s: bytes / seconds,
        lumpiness: lumpiness(&rates),
    })
}

/// Returns whether all actors that stalled or slowed down write into the page cache.
pub(super) fn only_into_the_cache(record: &RunRecord, actors: &[Judged]) -> bool {
    let slow = |actor: &&Judged| matches!(actor.finding, Finding::Stall | Finding::Slowdown);
    let mut slow = actors.iter().filter(slow).peekable();
    slow.peek().is_some() && slow.all(|actor| is_cached_write(&record.head.actors[actor.index]))
}

fn is_cached_write(info: &ActorInfo) -> bool {
    info.direct == Some(false) && matches!(info.op.as_str(), "write" | "append")
}
