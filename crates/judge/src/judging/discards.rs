//! The discards of the devices, and the intervals in which they could slow the foreground down.

use std::ops::Range;

use super::counting::{self, Counted, MEANINGFUL, SIGNIFICANT, WHOLE_S, significant};
use super::others::{self, Others};
use super::spans::Spans;
use super::stats::{median, total};
use super::window::Window;
use record::{DeviceColumns, RunRecord};

/// Where it isn't known what was freed, fewer bytes than this are a trickle
/// (journals discard a few KiB every few seconds).
pub(super) const TRICKLE_BYTES: u64 = 16 << 20;

/// Discards of few bytes can slow the foreground down, too. They do so if they occupy this share of
/// their interval, and take this share of the time that one of the significant takes.
const AS_SLOW: f64 = 0.5;

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
    /// Whether a discard that could slow the foreground down was in service. It completed in the
    /// interval, or in a later one after a wait that spans this one whole. At short intervals a
    /// slow drive completes a discard only in every tenth. All ten belong to it.
    pub(super) covered: Vec<bool>,
    /// Whether any discard was in service on any device of the record, however small, before,
    /// in or after the delete phase.
    pub(super) seen: Vec<bool>,
    /// All bytes.
    pub(super) total_bytes: u64,
    /// Whether some are not counted: some logs have their bytes alone.
    uncounted: bool,
    /// Devices that took part.
    pub(super) devices: usize,
    /// Whether an upper device's discards were counted, since those below saw (almost) none.
    pub(super) upper: bool,
    /// Whether mirrors may have discarded each byte several times.
    pub(super) unknown_copies: bool,
    /// Those that can't be the deletion's.
    pub(super) others: Others,
}

/// The discards that the counted devices completed in each interval, whoever sent them.
pub(super) struct Seen {
    /// Bytes.
    pub(super) bytes: Vec<u64>,
    /// Commands completed.
    pub(super) commands: Vec<u32>,
    /// Sum of their waits, in milliseconds.
    pub(super) wait_ms: Vec<u64>,
}

impl Seen {
    /// Returns the discards of these devices.
    pub(super) fn of(record: &RunRecord, counted: &Counted) -> Seen {
        let columns = &record.intervals.devices;
        let all = 0..record.intervals.len();
        let sums = |of: &dyn Fn(&DeviceColumns, usize) -> u64| {
            counted.sums(all.clone(), |device, i| of(&columns[device], i))
        };
        let commands = sums(&|d, i| d.discards[i].into()).into_iter();
        // Any size serves where all are unknown: each discard counts alike.
        let unsized_bytes = |d: &DeviceColumns, i: usize| u64::from(d.discards[i]) * TRICKLE_BYTES;
        Seen {
            bytes: match counting::without_sizes(&record.head) {
                true => sums(&unsized_bytes),
                false => sums(&|d, i| d.discard_bytes[i]),
            },
            commands: commands
                .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
                .collect(),
            wait_ms: sums(&|d, i| d.discard_ms[i].into()),
        }
    }
}

/// Whether these devices discarded bytes in intervals without a discard.
fn has_uncounted(record: &RunRecord, counted: &Counted) -> bool {
    let columns = counted
        .devices
        .iter()
        .map(|&i| &record.intervals.devices[i]);
    let cells = columns.flat_map(|d| d.discard_bytes.iter().zip(&d.discards));
    let uncounted = total(
        cells
            .clone()
            .filter(|cell| *cell.1 == 0)
            .map(|cell| *cell.0),
    );
    uncounted as f64 > SIGNIFICANT * total(cells.map(|cell| *cell.0)) as f64
}

impl Discards {
    /// Returns the discards of the window's delete phase. `freed`: the bytes that the deletion
    /// freed, where the record has them. `continuous`: it went on all the time, or the record
    /// doesn't show well enough when all of it was discarded (an event's).
    pub(super) fn of(
        record: &RunRecord,
        window: &Window,
        freed: Option<u64>,
        continuous: bool,
    ) -> Discards {
        let n = record.intervals.len();
        let range = window.delete.clone().unwrap_or(window.all.clone());
        let counted = counting::counted_in(record, range);
        let seen = Seen::of(record, &counted);
        let (bytes, others) = others::split(record, window, &counted, &seen, freed, continuous);
        let Seen {
            bytes: of_all,
            mut commands,
            mut wait_ms,
        } = seen;
        for i in 0..n {
            // Some logs round a small discard's bytes to none.
            if bytes[i] < of_all[i] {
                let share = bytes[i] as f64 / of_all[i] as f64;
                commands[i] = (f64::from(commands[i]) * share).round() as u32;
                wait_ms[i] = (wait_ms[i] as f64 * share).round() as u64;
            }
        }
        drop(of_all);
        let mut it = Discards {
            uncounted: has_uncounted(record, &counted),
            devices: counted.devices.len(),
            upper: counted.upper,
            unknown_copies: counted.unknown_copies,
            seen: seen_anywhere(record),
            commands,
            wait_ms,
            bytes,
            others,
            ..Discards::default()
        };
        // What is freed all the time isn't known well enough to tell when it was paid.
        // A simulated fstrim discards more than was freed, and nobody else does.
        if !continuous && !others::is_simulated(record) {
            it.forget_later(freed);
        }
        it.total_bytes = total(it.bytes.iter().copied());
        let enough = match freed {
            Some(freed) if freed > 0 => it.total_bytes as f64 >= MEANINGFUL * freed as f64,
            _ => it.total_bytes >= TRICKLE_BYTES,
        };
        let least = if enough && it.total_bytes > 0 {
            let most = if continuous { TRICKLE_BYTES } else { u64::MAX };
            significant(&it.bytes).min(most)
        } else {
            u64::MAX
        };
        it.significant = it.bytes.iter().map(|&b| b >= least).collect();
        let slowing = it.slowing(record);
        it.covered = in_service(record, &slowing, &it.commands, &it.wait_ms);
        if freed.is_none() {
            it.forget_around();
        }
        it
    }

    /// Drops the discards before the first and after the last that could slow the foreground down,
    /// where nobody tells what was freed: a file system's own, all through a log.
    fn forget_around(&mut self) {
        let first = self.covered.iter().position(|&covered| covered);
        let last = self.covered.iter().rposition(|&covered| covered);
        let Some((first, last)) = first.zip(last) else {
            return;
        };
        for around in [0..first, last + 1..self.bytes.len()] {
            self.bytes[around.clone()].fill(0);
            self.commands[around.clone()].fill(0);
            self.wait_ms[around].fill(0);
        }
        self.total_bytes = total(self.bytes.iter().copied());
    }

    /// Returns the intervals whose discards could slow the foreground down: the significant ones,
    /// and those with few bytes whose discards took as long. A drive may take as long for 16 KiB as
    /// for 100 MiB, and btrfs sends the small ones first.
    fn slowing(&self, record: &RunRecord) -> Vec<bool> {
        let wait_ms = |i: usize| {
            (self.commands[i] > 0).then(|| self.wait_ms[i] as f64 / f64::from(self.commands[i]))
        };
        let significant = (0..self.significant.len()).filter(|&i| self.significant[i]);
        let usual_ms = median(significant.filter_map(wait_ms)).unwrap_or(f64::INFINITY);
        let slow = |i: usize| {
            let length_ms = 1e3 * f64::from(record.intervals.seconds[i]);
            self.wait_ms[i] as f64 >= AS_SLOW * length_ms
                && wait_ms(i).is_some_and(|ms| ms >= AS_SLOW * usual_ms)
        };
        let all = self.significant.iter().enumerate();
        all.map(|(i, &significant)| significant || slow(i))
            .collect()
    }

    /// Drops the discards after all that was freed has been discarded. They count as another
    /// process's: a log that is rotated, a big writer's truncations. Where there is far more than
    /// was freed, it drops none, because that figure isn't known well enough.
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
        for i in after..self.bytes.len() {
            self.others.unsure[i] |= self.bytes[i] as f64 >= SIGNIFICANT * freed as f64;
        }
        self.bytes[after..].fill(0);
        self.commands[after..].fill(0);
        self.wait_ms[after..].fill(0);
    }

    /// Returns how many discards there were, where all are counted.
    pub(super) fn count(&self) -> Option<u64> {
        (!self.uncounted).then(|| self.commands.iter().map(|&n| u64::from(n)).sum())
    }

    /// Returns whether there were significant discards.
    pub(super) fn any(&self) -> bool {
        self.significant.contains(&true)
    }

    /// Returns the intervals of `range` with discards in service for at least half of their time.
    /// Where these hold less than half of the waits, as beside a paced deletion, all with discards.
    pub(super) fn in_service(&self, record: &RunRecord, range: Range<usize>) -> Spans {
        let covered = Spans::filtered(range, |i| self.covered[i]);
        let is_long = |i: usize| {
            let half_ms = f64::from(record.intervals.seconds[i]) * 1e3 / 2.0;
            // Without one that completes, it is spanned whole.
            self.commands[i] == 0 || self.wait_ms[i] as f64 >= half_ms
        };
        let long = covered.retained(is_long);
        let waits = |spans: &Spans| spans.intervals().map(|i| self.wait_ms[i]).sum::<u64>();
        match waits(&long) > 0 && waits(&long) * 2 >= waits(&covered) {
            true => long,
            false => covered,
        }
    }

    /// Returns the first and the last significant interval.
    pub(super) fn span(&self) -> Option<(usize, usize)> {
        let first = self.significant.iter().position(|&s| s)?;
        let last = self.significant.iter().rposition(|&s| s)?;
        Some((first, last))
    }

    /// Returns the TRIM rate in bytes per second, and whether it is only a lower bound. The rate is
    /// the median of [`full_rates`](Self::full_rates), or a bound where there are none.
    pub(super) fn rate(&self, record: &RunRecord) -> Option<(f64, bool)> {
        let (first, last) = self.span()?;
        match self.full_rates(record) {
            Some(full) => median(full).map(|rate| (rate, false)),
            None => Some((self.slowest_rate(record, first..last + 1), true)),
        }
    }

    /// Returns the rates that the TRIM rate is the median of, in bytes per second, in order of
    /// time.
    ///
    /// They are those of intervals with discards in service all the time, between two that discard
    /// significantly. So no partly used interval counts, nor a pause between two deletions, nor one
    /// in which trimbench was away.
    ///
    /// Intervals are merged first until they complete 64 discards, or 16, 4 or 1 if too few would
    /// be left. With fewer, the rate is coarse: the median of 11s and 12s is one of them, and up to
    /// 9 % off. Where a discard takes longer than an interval, most intervals complete none. `None`
    /// if fewer than three remain, or a quarter of them completes no significant discard.
    pub(super) fn full_rates(&self, record: &RunRecord) -> Option<Vec<f64>> {
        let (first, last) = self.span()?;
        let spread = record.head.devices_spread_over();
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
        let waits_known = self.waits_s() > 0.0;
        for least in [64.0, 16.0, 4.0, 1.0] {
            let merge = (least / per_interval.max(1e-9)).ceil().max(1.0) as usize;
            // Intervals over which a figure was spread say nothing each.
            let merge = merge.next_multiple_of(spread);
            let merged: Vec<Cell> = (first - first % spread..=last)
                .step_by(merge)
                .map(|i| {
                    let cell = i..(i + merge).min(last + 1);
                    let bytes = total(self.bytes[cell.clone()].iter().copied());
                    let length: f64 = seconds[cell.clone()].iter().copied().map(f64::from).sum();
                    Cell {
                        rate: bytes as f64 / length,
                        significant: self.significant[cell.clone()].contains(&true),
                        busy: self.are_busy(cell.clone(), length, waits_known)
                            && !is_absent(record, cell),
                    }
                })
                .collect();
            let full = merged
                .windows(3)
                .filter(|w| w[0].significant && w[1].busy && w[2].significant);
            // Small discards beside long ones: then a merged interval completes none of the long.
            let without = full.clone().filter(|w| !w[1].significant).count();
            let full: Vec<f64> = full.map(|w| w[1].rate).collect();
            if full.len() >= 3 && 4 * without < full.len() {
                return Some(full);
            }
        }
        None
    }

    /// Whether discards were in service all the time: in each of these intervals, and, as far as the
    /// record has waits, for at least half of their length. Pauses of a pace would count else.
    fn are_busy(&self, intervals: Range<usize>, seconds: f64, waits_known: bool) -> bool {
        let waits_ms = self.wait_ms[intervals.clone()].iter().sum::<u64>() as f64;
        let complete = self.commands[intervals.clone()].iter().any(|&n| n > 0);
        let pauses = complete && waits_known && waits_ms < seconds * 1e3 / 2.0;
        !pauses && !self.covered[intervals].contains(&false)
    }

    /// Returns a lower bound of the TRIM rate, in bytes per second: the highest of these. The
    /// discards of an interval began no earlier before it than their mean wait. All discards
    /// together had no more time than they were in service.
    fn slowest_rate(&self, record: &RunRecord, span: Range<usize>) -> f64 {
        let of_interval = span.map(|i| {
            let commands = f64::from(self.commands[i]).max(1.0);
            let wait_s = self.wait_ms[i] as f64 / 1e3 / commands;
            self.bytes[i] as f64 / (f64::from(record.intervals.seconds[i]) + wait_s)
        });
        let there = self.total_bytes.saturating_sub(self.away_bytes(record)) as f64;
        let mut service_s = self.active_s(record).max(f64::MIN_POSITIVE);
        if self.waits_s() > 0.0 {
            service_s = service_s.min(self.waits_s() + WHOLE_S);
        }
        let of_all = there / service_s;
        of_interval.fold(of_all, f64::max)
    }

    /// Returns the sum of their waits, in seconds; 0 where the record has none.
    pub(super) fn waits_s(&self) -> f64 {
        self.wait_ms.iter().map(|&ms| ms as f64 / 1e3).sum()
    }

    /// Returns the time with discards in service, in seconds, as far as trimbench was there.
    pub(super) fn active_s(&self, record: &RunRecord) -> f64 {
        let both = self.covered.iter().zip(&record.intervals.seconds);
        let there = |i: &usize| !record.intervals.absent.contains_key(i);
        let covered = both
            .enumerate()
            .filter(|(i, (covered, _))| **covered && there(i));
        covered.fold(0.0, |sum, (_, (_, &s))| sum + f64::from(s))
    }

    /// Returns the bytes that were discarded while trimbench was away for a part of the interval.
    pub(super) fn away_bytes(&self, record: &RunRecord) -> u64 {
        let absent = record.intervals.absent.keys();
        absent.filter_map(|&i| self.bytes.get(i)).sum()
    }
}

/// Returns the intervals in `slowing`, and those before them that a discard which completed in one of
/// them spans whole by its wait.
pub(super) fn in_service(
    record: &RunRecord,
    slowing: &[bool],
    commands: &[u32],
    wait_ms: &[u64],
) -> Vec<bool> {
    let mut covered = slowing.to_vec();
    let at = &record.intervals.at_s;
    // From the last to the first: the earliest begin of any discard that is still to complete.
    let mut begun_s = f64::INFINITY;
    for i in (0..covered.len()).rev() {
        covered[i] |= at[i] >= begun_s;
        if slowing[i] && commands[i] > 0 {
            let wait_s = wait_ms[i] as f64 / 1e3 / f64::from(commands[i]);
            begun_s = begun_s.min(at[i] - wait_s);
        }
    }
    covered
}

/// Returns the intervals with any discard in service, on any device.
fn seen_anywhere(record: &RunRecord) -> Vec<bool> {
    let devices = &record.intervals.devices;
    let all = 0..record.intervals.len();
    let commands = |i| {
        devices
            .iter()
            .map(|d| d.discards[i])
            .fold(0, u32::saturating_add)
    };
    let wait_ms = |i| devices.iter().map(|d| u64::from(d.discard_ms[i])).sum();
    let bytes = |i: usize| devices.iter().any(|d| d.discard_bytes[i] > 0);
    let commands: Vec<u32> = all.clone().map(commands).collect();
    let wait_ms: Vec<u64> = all.clone().map(wait_ms).collect();
    let some: Vec<bool> = all.map(|i| commands[i] > 0 || bytes(i)).collect();
    in_service(record, &some, &commands, &wait_ms)
}

/// Returns whether trimbench itself was away in one of these intervals.
fn is_absent(record: &RunRecord, intervals: Range<usize>) -> bool {
    record.intervals.absent.range(intervals).next().is_some()
}

/// Intervals that are merged for the TRIM rate.
struct Cell {
    /// Bytes per second.
    rate: f64,
    /// Whether one of them discards significantly.
    significant: bool,
    /// Whether discards were in service in each of them.
    busy: bool,
}
