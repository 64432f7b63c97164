//! Which bytes of the drive are mapped.

use std::ops::Range;

use crate::extents::Extents;

/// The mapped bytes of a drive, in whole granules.
#[derive(Debug, Clone)]
pub(super) struct Map {
    mapped: Extents,
    capacity: u64,
}

impl Map {
    pub(super) fn new(capacity: u64) -> Map {
        Map {
            mapped: Extents::new(),
            capacity,
        }
    }

    pub(super) fn mapped(&self) -> &Extents {
        &self.mapped
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Maps every granule that a range touches.
    pub(super) fn write(&mut self, range: Range<u64>, granule: u64) {
        if range.is_empty() {
            return;
        }
        let start = range.start - range.start % granule;
        let end = range.end.checked_next_multiple_of(granule);
        self.mapped
            .insert(start..end.unwrap_or(self.capacity).min(self.capacity));
    }

    /// The part of a range that can be unmapped: the granules that it covers whole. `None` if it is
    /// too short. The drive's end may cut its last granule.
    pub(super) fn trimmable(
        &self,
        range: &Range<u64>,
        granule: u64,
        smallest: u64,
    ) -> Option<Range<u64>> {
        if range.end.saturating_sub(range.start) < smallest.max(1) {
            return None;
        }
        let start = range
            .start
            .checked_next_multiple_of(granule)
            .unwrap_or(range.end)
            .min(range.end);
        let end = if range.end == self.capacity {
            range.end
        } else {
            range.end - range.end % granule
        };
        Some(start..end.max(start))
    }

    /// Unmaps a range; returns how many bytes of it were mapped.
    pub(super) fn trim(&mut self, range: Range<u64>) -> u64 {
        self.mapped.remove(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_round_outwards_and_trims_inwards() {
        let mut map = Map::new(10_000);
        map.write(4_000..4_200, 4096);
        assert_eq!(map.mapped(), &Extents::from(0..8192));
        map.write(9_000..9_001, 4096);
        assert_eq!(
            map.mapped().last(),
            Some(0..10_000),
            "cut short by the drive's end"
        );

        assert_eq!(map.trimmable(&(1..8191), 4096, 0), Some(4096..4096));
        assert_eq!(map.trimmable(&(1..8193), 4096, 0), Some(4096..8192));
        assert_eq!(map.trimmable(&(5000..10_000), 4096, 0), Some(8192..10_000));
        assert_eq!(map.trimmable(&(0..8192), 4096, 8193), None);
        assert_eq!(map.trimmable(&(0..0), 4096, 0), None);
        assert_eq!(map.trim(4096..8192), 4096);
    }
}
