//! What the devices discarded, and when the foreground could feel it.

use std::ops::Range;

use super::counting::{self, MEANINGFUL, SIGNIFICANT};
use super::stats::{median, total};
use super::window::Window;
use crate::record::{DeviceColumns, RunRecord};

/// Where it isn't known what was freed, fewer bytes than this are a trickle
/// (journals discard a few KiB every few seconds).
const TRICKLE_BYTES: u64 = 16 << 20;

/// Where discards are spread over so many intervals that few or none could have
/// 0.1 % of them, this share of what a typical interval has is significant, too.
const SIGNIFICANT_OF_TYPICAL: f64 = 0.1;

/// Discards of the judged part, interval by interval.
#[derive(Debug, Clone, Default)]
pub(super) struct Discards {
    /// Bytes discarded in each interval of the record; 0 outside the delete phase.
    pub(super) bytes: Vec<u64>,
    /// Commands completed in each interval.
    pub(super) commands: Vec<u32>,
    /// Sum of their waits, in milliseconds.
    pub(super) wait_ms: Vec<u64>,
    /// Whether the interval discards significantly.
    pub(super) significant: Vec<bool>,
    /// Whether a significant discard was in service: one completed in the
    /// interval, or in a later one after a wait that spans this one whole.
    /// At short intervals a slow drive completes a discard in every tenth only;
    /// all ten belong to it.
    pub(super) covered: Vec<bool>,
    /// All bytes.
    pub(super) total_bytes: u64,
    /// All commands.
    pub(super) total_commands: u64,
    /// Devices that took part.
    pub(super) devices: usize,
    /// Whether an upper device's discards were counted, since those below saw (almost) none.
    pub(super) upper: bool,
}

impl Discards {
    /// The discards of the window's delete phase. `freed` is what the deletion
    /// freed, where the record tells; `continuous` if it went on all the time.
    pub(super) fn of(
        record: &RunRecord,
        window: &Window,
        freed: Option<u64>,
        continuous: bool,
    ) -> Discards {
        let n = record.intervals.len();
        let Some(range) = window.delete.clone() else {
            return Discards {
                significant: vec![false; n],
                covered: vec![false; n],
                ..no_bytes(n)
            };
        };
        let (devices, upper) = counted(record, &range);
        let mut it = Discards {
            devices: devices.len(),
            upper,
            ..no_bytes(n)
        };
        for columns in devices {
            for i in range.clone() {
                it.bytes[i] = it.bytes[i].saturating_add(columns.discard_bytes[i]);
                it.commands[i] = it.commands[i].saturating_add(columns.discards[i]);
                it.wait_ms[i] += u64::from(columns.discard_ms[i]);
            }
        }
        // What is freed all the time isn't known well enough to tell when it was paid.
        if !continuous {
            it.forget_later(freed);
        }
        it.total_bytes = total(it.bytes.iter().copied());
        it.total_commands = it.commands.iter().map(|&c| u64::from(c)).sum();
        let enough = match freed {
            Some(freed) if freed > 0 => it.total_bytes as f64 >= MEANINGFUL * freed as f64,
            _ => it.total_bytes >= TRICKLE_BYTES,
        };
        let least = if enough && it.total_bytes > 0 {
            it.threshold(continuous)
        } else {
            u64::MAX
        };
        it.significant = it.bytes.iter().map(|&b| b >= least).collect();
        it.covered = it.in_service(record);
        it
    }

    /// Once all that was freed has been discarded, whatever follows is somebody
    /// else's: a log that is rotated, a big writer's truncations. Not where there
    /// is far more than was freed; then that isn't known well enough.
    fn forget_later(&mut self, freed: Option<u64>) {
        let Some(freed) = freed.filter(|&f| f > 0) else {
            return;
        };
        if total(self.bytes.iter().copied()) > freed.saturating_mul(2) {
            return;
        }
        let mut sum = 0_u64;
        let paid = self.bytes.iter().position(|&bytes| {
            sum = sum.saturating_add(bytes);
            sum >= freed
        });
        let after = paid.map_or(self.bytes.len(), |i| i + 1);
        self.bytes[after..].fill(0);
        self.commands[after..].fill(0);
        self.wait_ms[after..].fill(0);
    }

    /// Whether there were significant discards.
    pub(super) fn any(&self) -> bool {
        self.significant.contains(&true)
    }

    /// The first and the last significant interval.
    pub(super) fn span(&self) -> Option<(usize, usize)> {
        let first = self.significant.iter().position(|&s| s)?;
        let last = self.significant.iter().rposition(|&s| s)?;
        Some((first, last))
    }

    /// Bytes that make an interval significant: 0.1 % of all, or a tenth of a
    /// typical interval's, whichever is less. So discards that are spread evenly
    /// over hours all count, and a journal's never do. Of a continuous deleter, what
    /// is more than a trickle counts, too: one huge compaction doesn't turn the
    /// small ones into stretches without discards.
    fn threshold(&self, continuous: bool) -> u64 {
        let most = if continuous { TRICKLE_BYTES } else { u64::MAX };
        let total = self.total_bytes as f64;
        // Half of all bytes were discarded in intervals with at least `typical` of them.
        let mut sorted: Vec<u64> = self.bytes.iter().copied().filter(|&b| b > 0).collect();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let mut sum = 0.0;
        let typical = sorted.iter().find(|&&bytes| {
            sum += bytes as f64;
            sum >= total / 2.0
        });
        let typical = typical.map_or(0.0, |&b| b as f64);
        ((SIGNIFICANT * total)
            .min(SIGNIFICANT_OF_TYPICAL * typical)
            .ceil() as u64)
            .clamp(1, most)
    }

    fn in_service(&self, record: &RunRecord) -> Vec<bool> {
        let mut covered = self.significant.clone();
        let at = &record.intervals.at_s;
        // From the last to the first: the earliest begin of any discard that is still to complete.
        let mut begun_s = f64::INFINITY;
        for i in (0..covered.len()).rev() {
            covered[i] |= at[i] >= begun_s;
            if self.significant[i] && self.commands[i] > 0 {
                let wait_s = self.wait_ms[i] as f64 / 1e3 / f64::from(self.commands[i]);
                begun_s = begun_s.min(at[i] - wait_s);
            }
        }
        covered
    }

    /// The TRIM rate in bytes per second, and whether it is only a lower bound:
    /// the median of [`full_rates`](Self::full_rates), or a bound where there are none.
    pub(super) fn rate(&self, record: &RunRecord) -> Option<(f64, bool)> {
        let (first, last) = self.span()?;
        match self.full_rates(record) {
            Some(full) => median(full).map(|rate| (rate, false)),
            None => Some((self.slowest_rate(record, first..last + 1), true)),
        }
    }

    /// What the TRIM rate is the median of, in bytes per second, in order of time.
    ///
    /// Intervals whose both neighbours discard significantly,
    /// so that no partly used interval counts, nor a pause between two deletions.
    /// Intervals are merged first until
    /// they complete 64 discards, or 16, 4 or 1 if too few would be left: the
    /// median of 11s and 12s is one of them, and up to 9 % off; and where one takes
    /// longer than an interval, most intervals complete none. With fewer
    /// than three such intervals: none.
    pub(super) fn full_rates(&self, record: &RunRecord) -> Option<Vec<f64>> {
        let (first, last) = self.span()?;
        let seconds = &record.intervals.seconds;
        let in_use = self.covered[first..=last]
            .iter()
            .filter(|&&c| c)
            .count()
            .max(1);
        let commands: u64 = self.commands[first..=last]
            .iter()
            .map(|&c| u64::from(c))
            .sum();
        let per_interval = commands as f64 / in_use as f64;
        for least in [64.0, 16.0, 4.0, 1.0] {
            let merge = (least / per_interval.max(1e-9)).ceil().max(1.0) as usize;
            let merged: Vec<Cell> = (first..=last)
                .step_by(merge)
                .map(|i| {
                    let cell = i..(i + merge).min(last + 1);
                    let bytes = total(self.bytes[cell.clone()].iter().copied());
                    let length: f64 = seconds[cell.clone()].iter().copied().map(f64::from).sum();
                    Cell {
                        rate: bytes as f64 / length,
                        significant: self.significant[cell.clone()].contains(&true),
                        busy: !self.covered[cell].contains(&false),
                    }
                })
                .collect();
            let full = merged
                .windows(3)
                .filter(|w| w[0].significant && w[1].busy && w[2].significant)
                .map(|w| w[1].rate);
            let full: Vec<f64> = full.collect();
            if full.len() >= 3 {
                return Some(full);
            }
        }
        None
    }

    /// The TRIM rate was no less than this, in bytes per second: what an interval
    /// completed was begun as long before it as it waited, and all of them had
    /// no more time than they were in service.
    fn slowest_rate(&self, record: &RunRecord, span: Range<usize>) -> f64 {
        let of_interval = span.map(|i| {
            let commands = f64::from(self.commands[i]).max(1.0);
            let wait_s = self.wait_ms[i] as f64 / 1e3 / commands;
            self.bytes[i] as f64 / (f64::from(record.intervals.seconds[i]) + wait_s)
        });
        let of_all = self.total_bytes as f64 / self.active_s(record).max(f64::MIN_POSITIVE);
        of_interval.fold(of_all, f64::max)
    }

    /// Time with significant discards in service, in seconds.
    pub(super) fn active_s(&self, record: &RunRecord) -> f64 {
        let both = self.covered.iter().zip(&record.intervals.seconds);
        let covered = both.filter(|&(&covered, _)| covered);
        covered.fold(0.0, |sum, (_, &s)| sum + f64::from(s))
    }
}

/// Intervals that are taken together for the TRIM rate.
struct Cell {
    /// Bytes per second.
    rate: f64,
    /// Whether one of them discards significantly.
    significant: bool,
    /// Whether discards were in service in each of them.
    busy: bool,
}

fn no_bytes(n: usize) -> Discards {
    Discards {
        bytes: vec![0; n],
        commands: vec![0; n],
        wait_ms: vec![0; n],
        ..Discards::default()
    }
}

/// The columns of the devices whose discards count, and whether they are upper ones.
fn counted<'a>(record: &'a RunRecord, range: &Range<usize>) -> (Vec<&'a DeviceColumns>, bool) {
    let columns = &record.intervals.devices;
    let sum = |columns: &DeviceColumns| total(columns.discard_bytes[range.clone()].iter().copied());
    let bytes: Vec<u64> = columns.iter().map(sum).collect();
    let counted = counting::counted(&record.head.devices, &bytes);
    let devices = counted.devices.iter().filter_map(|&i| columns.get(i));
    (devices.collect(), counted.upper)
}
