//! Latencies of one actor, as exact as fio's logs are.

use super::bins::Layout;
use super::grid::Grid;
use crate::parts::quantile;

/// Latencies of the I/Os of one actor; times are seconds on the log's clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Latencies {
    /// Single I/Os: when each completed, and its latency in nanoseconds. In order.
    pub(super) single: Vec<(f64, u64)>,
    /// Windows of a histogram log, in order of their ends.
    pub(super) windows: Vec<HistogramWindow>,
    /// Their usual length, in seconds.
    pub(super) window_s: f64,
    /// Ends of windows and the longest latency in each, in order, where the logs have nothing else.
    pub(super) longest: Vec<(f64, u64)>,
    /// Those of the whole run, where nothing tells when they occurred.
    pub(super) whole: Option<Figures>,
}

/// Latencies of I/Os that completed in one window.
#[derive(Debug, Clone)]
pub(super) struct HistogramWindow {
    pub(super) end_s: f64,
    pub(super) layout: Layout,
    pub(super) counts: Vec<(u16, u32)>,
}

/// Median, 99th percentile and maximum in an interval, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) max_us: Option<f64>,
}

/// A window that belongs to several intervals says something about each of
/// them only if it is at most so many times as long.
const TOO_LONG: f64 = 2.0;

impl Latencies {
    /// Adds those of another thread.
    pub(super) fn extend(&mut self, other: Latencies) {
        self.single.extend(other.single);
        self.windows.extend(other.windows);
        self.longest.extend(other.longest);
        self.window_s = self.window_s.max(other.window_s);
    }

    pub(super) fn sort(&mut self) {
        self.single.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.windows.sort_by(|a, b| a.end_s.total_cmp(&b.end_s));
        self.longest.sort_by(|a, b| a.0.total_cmp(&b.0));
    }

    /// Figures of an interval, in seconds on the log's clock.
    pub(super) fn figures(&self, begin_s: f64, end_s: f64) -> Figures {
        if let Some(whole) = self.whole {
            return whole;
        }
        if !self.single.is_empty() {
            let within = between(&self.single, begin_s, end_s).iter();
            let all = within.clone().map(|l| (l.1, 1.0)).collect();
            return Figures::of(all, within.map(|l| l.1).max());
        }
        let mut figures = Figures::default();
        if self.window_s <= TOO_LONG * (end_s - begin_s) {
            figures = self.of_windows(begin_s, end_s);
        }
        if figures.max_us.is_none() {
            let within = between(&self.longest, begin_s, end_s);
            figures.max_us = within.iter().map(|l| us(l.1)).reduce(f64::max);
        }
        figures
    }

    /// Windows count by the share of them that lies in the interval. One that is
    /// too long began with a stall, and its I/Os completed at its end.
    fn of_windows(&self, begin_s: f64, end_s: f64) -> Figures {
        let first = self.windows.partition_point(|w| w.end_s <= begin_s);
        let mut weights: Vec<(u64, f64)> = Vec::new();
        let mut longest = 0;
        for window in &self.windows[first..] {
            let window_begin_s = window.end_s - self.window_s;
            if window_begin_s >= end_s {
                break;
            }
            let shared = window.end_s.min(end_s) - window_begin_s.max(begin_s);
            let share = (shared / self.window_s.max(1e-9)).clamp(0.0, 1.0);
            let latency = |column: u16| window.layout.middle_ns(usize::from(column));
            let counts = window.counts.iter();
            weights.extend(counts.map(|&(c, n)| (latency(c), f64::from(n) * share)));
            // Its longest may have been anywhere in it; it is told where most of it lies.
            if share >= 0.5 || shared >= 0.5 * (end_s - begin_s) {
                let last = window.counts.last().map_or(0, |&(c, _)| latency(c));
                longest = longest.max(last);
            }
        }
        Figures::of(weights, Some(longest).filter(|&ns| ns > 0))
    }
}

impl Figures {
    /// Figures of latencies in nanoseconds, each with its weight, and of the longest.
    fn of(mut weights: Vec<(u64, f64)>, longest_ns: Option<u64>) -> Figures {
        weights.retain(|w| w.1 > 0.0);
        weights.sort_unstable_by_key(|w| w.0);
        let at = |share| quantile(&weights, share).map(us);
        let p99_us = at(0.99);
        Figures {
            p50_us: at(0.5),
            p99_us,
            max_us: longest_ns.map(|ns| us(ns).max(p99_us.unwrap_or(0.0))),
        }
    }
}

impl Grid<'_> {
    /// Figures of every interval; `offset_s` brings the log's clock to the record's.
    pub(super) fn latencies(&self, latencies: &Latencies, offset_s: f64) -> Vec<Figures> {
        (0..self.len())
            .map(|i| latencies.figures(self.begin_s(i) - offset_s, self.end_s(i) - offset_s))
            .collect()
    }
}

fn between<T>(ordered: &[(f64, T)], begin_s: f64, end_s: f64) -> &[(f64, T)] {
    let first = ordered.partition_point(|l| l.0 < begin_s);
    let end = ordered.partition_point(|l| l.0 < end_s);
    &ordered[first..end.max(first)]
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_single_io() {
        let mut latencies = Latencies::default();
        for i in 0..100_u64 {
            latencies.single.push((i as f64 / 1000.0, (100 - i) * 1000));
        }
        latencies.sort();
        let figures = latencies.figures(0.0, 0.1);
        assert_eq!(figures.p50_us, Some(50.0));
        assert_eq!(figures.p99_us, Some(99.0));
        assert_eq!(figures.max_us, Some(100.0));
        assert_eq!(latencies.figures(5.0, 6.0), Figures::default());
    }

    fn histograms() -> Latencies {
        let layout = Layout::of_columns(1856).unwrap();
        let window = |end_s, counts| HistogramWindow {
            end_s,
            layout,
            counts,
        };
        Latencies {
            windows: vec![
                window(0.1, vec![(100, 99), (120, 1)]),
                window(1.0, vec![(100, 10), (127, 1)]),
            ],
            window_s: 0.1,
            ..Latencies::default()
        }
    }

    #[test]
    fn of_histograms() {
        let latencies = histograms();
        let figures = latencies.figures(0.0, 0.1);
        assert_eq!(figures.p50_us, Some(0.1));
        assert_eq!(figures.p99_us, Some(0.1));
        assert_eq!(figures.max_us, Some(0.12));
        let after_stall = latencies.figures(0.9, 1.0);
        assert_eq!(after_stall.max_us, Some(0.127));
        let stall = latencies.figures(0.4, 0.5);
        assert_eq!(stall, Figures::default(), "nothing completed in it");
    }

    #[test]
    fn windows_that_are_too_long_tell_nothing() {
        assert_eq!(histograms().figures(0.05, 0.06), Figures::default());
    }
}
