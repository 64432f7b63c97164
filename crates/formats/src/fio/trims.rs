//! fio's own trims (`rw=trim`, direction 2) are discards, not a foreground: as devices of a record.

use record::{Counting, DeviceInfo, DeviceInterval};

use super::grid::Grid;
use super::logs::Direction;
use super::series::FioSeries;

impl FioSeries {
    /// Whether it discards.
    pub(crate) fn is_trim(&self) -> bool {
        self.direction == Direction::Trim
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
        let has_sizes =
            series.info.block_bytes > 0 || series.bytes.iter().any(|window| window.amount > 0.0);
        let device = DeviceInfo {
            name: series.info.name.clone(),
            leaf: true,
            counting: Counting {
                no_sizes: !has_sizes,
                ..Counting::default()
            },
            ..DeviceInfo::default()
        };
        (device, discards.collect())
    };
    trims.iter().map(of).collect()
}
