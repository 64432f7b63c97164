//! fio's own trims (`rw=trim`, direction 2) are discards, not a foreground: as devices of a record.

use record::{Counting, DeviceInfo, DeviceInterval};

use super::grid::Grid;
use super::json::{DirectionOutput, JobOutput};
use super::logs::Direction;
use super::series::FioSeries;

impl FioSeries {
    /// Whether it discards.
    pub(crate) fn is_trim(&self) -> bool {
        self.direction == Direction::Trim
    }

    /// Whether the size of its operations is known.
    fn has_sizes(&self) -> bool {
        self.info.block_bytes > 0 || self.bytes.iter().any(|window| window.amount > 0.0)
    }
}

/// A device for each of these series, and its discards in each interval.
pub(super) fn devices(
    trims: &[&FioSeries],
    grid: &Grid<'_>,
) -> Vec<(DeviceInfo, Vec<DeviceInterval>)> {
    let of = |series: &&FioSeries| {
        let intervals = series.intervals(grid).into_iter();
        let discards = intervals.map(|interval| {
            let done = interval.unwrap_or_default();
            let wait_us = done.p50_us.unwrap_or(0.0) * done.ops as f64;
            DeviceInterval {
                discards: done.ops,
                discard_bytes: done.bytes,
                discard_ms: (wait_us / 1e3).round() as u64,
                ..DeviceInterval::default()
            }
        });
        (
            device(&series.info.name, series.has_sizes()),
            discards.collect(),
        )
    };
    trims.iter().map(of).collect()
}

/// The device of a job's trims over its whole run.
pub(super) fn of_totals(job: &JobOutput, trims: &DirectionOutput) -> (DeviceInfo, DeviceInterval) {
    let mean_ns = trims.completion.as_ref().map_or(0.0, |l| l.mean_ns);
    let discards = DeviceInterval {
        discards: trims.operations,
        discard_bytes: trims.bytes,
        discard_ms: (mean_ns * trims.operations as f64 / 1e6).round() as u64,
        ..DeviceInterval::default()
    };
    (device(&format!("fio-{}-trim", job.name), true), discards)
}

fn device(name: &str, has_sizes: bool) -> DeviceInfo {
    DeviceInfo {
        counting: Counting {
            no_sizes: !has_sizes,
            ..Counting::default()
        },
        ..DeviceInfo::disk(name)
    }
}
