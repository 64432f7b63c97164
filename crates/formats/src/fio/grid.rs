//! Windows laid onto the intervals of a record, so that sums are kept.

use record::Intervals;

use super::windows::Window;

/// The intervals of a record, in order and next to each other.
#[derive(Debug, Clone, Copy)]
pub struct Grid<'a> {
    /// Wall-clock time of the record's zero, in seconds since 1970.
    pub started_unix_s: f64,
    /// Start of each interval, in seconds since the record's zero.
    pub at_s: &'a [f64],
    /// Length of each interval, in seconds.
    pub seconds: &'a [f32],
}

impl<'a> Grid<'a> {
    /// The intervals that a record has by now.
    pub fn of(started_unix_s: f64, intervals: &'a Intervals) -> Grid<'a> {
        Grid {
            started_unix_s,
            at_s: &intervals.at_s,
            seconds: &intervals.seconds,
        }
    }

    /// How many intervals there are.
    pub(super) fn len(&self) -> usize {
        self.at_s.len().min(self.seconds.len())
    }

    pub(super) fn begin_s(&self, i: usize) -> f64 {
        self.at_s[i]
    }

    /// Where an interval ends: where the next begins, so that nothing falls between
    /// two whose lengths were rounded.
    pub(super) fn end_s(&self, i: usize) -> f64 {
        let own = self.at_s[i] + f64::from(self.seconds[i]);
        match self.at_s.get(i + 1) {
            Some(&next) if (next - own).abs() < 0.5 * f64::from(self.seconds[i]) => next,
            _ => own,
        }
    }

    /// The first interval that ends after `at_s`.
    pub(super) fn first_after(&self, at_s: f64) -> usize {
        let begun = self.at_s[..self.len()].partition_point(|&begin_s| begin_s <= at_s);
        match begun.checked_sub(1) {
            Some(last) if self.end_s(last) > at_s => last,
            _ => begun,
        }
    }

    /// How much of the windows falls into each interval: each by the share of
    /// it that lies there. `offset_s` brings them to the record's clock.
    pub(super) fn spread(&self, windows: &[Window], offset_s: f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.len()];
        for window in windows {
            let (begin, end) = (window.begin_s + offset_s, window.end_s + offset_s);
            let length = end - begin;
            let mut i = self.first_after(begin);
            if length <= 0.0 {
                if i < sums.len() && self.begin_s(i) <= begin {
                    sums[i] += window.amount;
                }
                continue;
            }
            while i < sums.len() && self.begin_s(i) < end {
                let shared = self.end_s(i).min(end) - self.begin_s(i).max(begin);
                sums[i] += window.amount * (shared / length).clamp(0.0, 1.0);
                i += 1;
            }
        }
        sums
    }
}

/// Whole numbers with the same running sums, rounded.
pub(super) fn whole(amounts: &[f64]) -> Vec<u64> {
    let mut sum = 0.0;
    let mut counted = 0_u64;
    amounts
        .iter()
        .map(|amount| {
            sum += amount;
            let so_far = sum.round().max(0.0) as u64;
            let this = so_far.saturating_sub(counted);
            counted += this;
            this
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn windows_that_straddle_are_shared() {
        let grid = Grid {
            started_unix_s: 0.0,
            at_s: &[0.0, 0.1, 0.2],
            seconds: &[0.1, 0.1, 0.1],
        };
        let window = |begin_s, end_s, amount| Window {
            begin_s,
            end_s,
            amount,
        };
        let sums = grid.spread(&[window(10.05, 10.15, 100.0)], -10.0);
        assert_eq!(whole(&sums), [50, 50, 0]);
        let moment = grid.spread(&[window(0.1, 0.1, 1.0), window(0.35, 0.35, 1.0)], 0.0);
        assert_eq!(moment, [0.0, 1.0, 0.0], "what is outside isn't moved in");
        assert_eq!(grid.spread(&[window(-0.1, 0.1, 10.0)], 0.0)[0], 5.0);
    }

    proptest! {
        #[test]
        fn sums_are_kept(
            windows in proptest::collection::vec((0.0_f64..9.0, 0.0_f64..1.0, 0_u64..5000), 0..60),
            lengths in proptest::collection::vec(0.01_f32..0.5, 1..80),
        ) {
            let mut at_s = vec![0.0];
            for length in &lengths {
                at_s.push(at_s[at_s.len() - 1] + f64::from(*length));
            }
            // One last interval that reaches beyond all windows.
            let mut seconds = lengths;
            seconds.push(100.0);
            let grid = Grid { started_unix_s: 0.0, at_s: &at_s, seconds: &seconds };
            let windows: Vec<Window> = windows
                .into_iter()
                .map(|(begin_s, length, amount)| Window {
                    begin_s,
                    end_s: begin_s + length,
                    amount: amount as f64,
                })
                .collect();
            let all: f64 = windows.iter().map(|w| w.amount).sum();
            let spread = whole(&grid.spread(&windows, 0.0));
            prop_assert_eq!(spread.iter().sum::<u64>(), all.round() as u64);
        }
    }
}
