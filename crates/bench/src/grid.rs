//! The grid of intervals: fixed on the clock, whatever the load does.

use std::time::Duration;

/// Boundaries at whole multiples of the interval since the record's zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    interval: Duration,
}

impl Grid {
    /// A grid of this pitch, which must not be zero.
    pub(crate) fn new(interval: Duration) -> Self {
        assert!(!interval.is_zero(), "an interval has a length");
        Grid { interval }
    }

    /// Its pitch.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// The first boundary after `now`. One that was slept through is not made up
    /// for: the interval that it would have ended is recorded as longer.
    pub(crate) fn next_after(&self, now: Duration) -> Duration {
        let pitch = self.interval.as_nanos();
        let passed = now.as_nanos() / pitch;
        let nanos = (passed + 1) * pitch;
        Duration::new(
            u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX),
            (nanos % 1_000_000_000) as u32,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn boundaries_stay_on_the_grid() {
        let grid = Grid::new(100 * MS);
        assert_eq!(grid.next_after(Duration::ZERO), 100 * MS);
        assert_eq!(grid.next_after(99 * MS), 100 * MS);
        assert_eq!(grid.next_after(100 * MS), 200 * MS);
    }

    #[test]
    fn a_boundary_slept_through_is_skipped() {
        let grid = Grid::new(100 * MS);
        assert_eq!(grid.next_after(350 * MS), 400 * MS);
    }
}
