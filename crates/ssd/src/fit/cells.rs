//! From a record's intervals to cells: some discards, and the device's time that they took.
//!
//! The kernel counts how long discards *waited*, and one that waits for another
//! isn't worked at. So a cell's time is
//!
//! - the sum of its waits, where one discard was in flight at a time; a discard
//!   that is alone waits for nothing but its own service;
//! - the time that passed, where several were in flight all the time: the device
//!   was busy throughout, whatever each of them waited.
//!
//! Little's law gives the average number in flight: the sum of the waits divided by the time. Where
//! neither is sure (a burst that is over within an interval), there is only a bound.

use std::ops::Range;

use judge::counting;
use record::RunRecord;
use record::units::MIB;
use record::{DeletionLine, DeviceColumns, DeviceInfo, DeviceKind, Part, PhaseName};

/// About so many cells are made of a device's discards.
const CELLS: u64 = 64;

/// A cell has at least this sum of waits where it can be had, in milliseconds: the kernel tells
/// whole ones. The part that it cuts from one cell is in the next, so this is the accuracy of one
/// of them, not of their sum.
const ENOUGH_MS: u64 = 10;

/// At most so many discards in flight on average count as one at a time: waits
/// of what was begun before the cell are in it, too.
const ONE: f64 = 1.15;

/// The same of a few that came alone, of which the first may have taken longest and have
/// begun before the cell.
const ONE_OF_FEW: f64 = 1.7;

/// From so many in flight on average one at a time is likely, though others
/// could have been in flight beside it.
const BACK_TO_BACK: f64 = 0.5;

/// Some discards of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cell {
    /// How many.
    pub(super) discards: f64,
    /// How large, together.
    pub(super) mib: f64,
    /// The device's time that they took, in microseconds.
    pub(super) us: f64,
    /// How far `us` may be off because the kernel tells whole milliseconds.
    pub(super) off_us: f64,
    /// Whether several were in flight, so that `us` is what passed.
    pub(super) queued: bool,
}

/// The discards of one record.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    /// The cells that enter the fit.
    pub(super) cells: Vec<Cell>,
    /// Everything, to bound it where there are no cells.
    pub(super) all: All,
    /// Devices that discarded.
    pub(super) devices: usize,
    /// Whether readers kept several operations in flight beside them: on a drive that drains its
    /// queue first, a discard waits for those.
    pub(super) disturbed: bool,
    /// Deleted MiB; 0 where the record doesn't have them.
    pub(super) freed_mib: f64,
    /// The mean size of the files deleted, in MiB; of a device, that of the deletion.
    pub(super) file_mib: f64,
}

/// Discards beyond this multiple of the deleted bytes are of other space.
const BESIDE: f64 = 1.05;

impl Evidence {
    /// How much was discarded beside what was deleted, in bytes; `None`: next to nothing. Another program
    /// did, or ext4 trims on to the next block in use (fs/ext4/mballoc.c, `ext4_try_to_trim_range`),
    /// whether the drive has anything there or not. It is unknown for several drives: mirrors
    /// discard each.
    pub(super) fn beside_bytes(&self) -> Option<u64> {
        let is_known = self.devices <= 1 && self.freed_mib > 0.0;
        let beside = is_known && self.all.mib > BESIDE * self.freed_mib;
        beside.then_some(((self.all.mib - self.freed_mib) * MIB as f64) as u64)
    }

    /// The same in the time of a drive that is so many times faster.
    pub(super) fn in_time(mut self, times: f64) -> Evidence {
        for cell in &mut self.cells {
            cell.us /= times;
            cell.off_us /= times;
        }
        self.all.wait_us /= times;
        self.all.span_us /= times;
        self
    }
}

/// How many times as much was discarded as was deleted, where other space was discarded beside it.
pub(super) fn thinned(evidence: &[&Evidence]) -> Option<f64> {
    let found = || evidence.iter().filter(|e| e.beside_bytes().is_some());
    let sum = |of: fn(&Evidence) -> f64| found().map(|e| of(e)).sum::<f64>();
    let freed = sum(|e| e.freed_mib);
    (freed > 0.0).then(|| sum(|e| e.all.mib) / freed)
}

/// All significant discards.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct All {
    pub(super) discards: f64,
    pub(super) mib: f64,
    /// Sum of their waits.
    pub(super) wait_us: f64,
    /// Time in which they were in service at most.
    pub(super) span_us: f64,
}

/// The cells of the discards of a record's own deletion.
pub(super) fn of(record: &RunRecord) -> Evidence {
    let range = window(record);
    let columns = &record.intervals.devices;
    let sum = |device: &DeviceColumns| {
        let bytes = device.discard_bytes[range.clone()].iter();
        bytes.fold(0_u64, |sum, &b| sum.saturating_add(b))
    };
    let bytes: Vec<u64> = columns.iter().map(sum).collect();
    let counted = counting::counted(&record.head.devices, &bytes);
    let mut evidence = Evidence {
        disturbed: disturbed(record),
        freed_mib: deleted(record, |d| d.bytes) / MIB as f64,
        file_mib: deleted(record, |d| d.bytes) / MIB as f64 / deleted(record, |d| d.files).max(1.0),
        ..Evidence::default()
    };
    for &index in &counted.devices {
        let Some(device) = columns.get(index).filter(|_| bytes[index] > 0) else {
            continue;
        };
        evidence.devices += 1;
        let sender = &columns[sender(record, index)];
        let discards = sender.discards[range.clone()].iter().copied();
        let discards: u64 = discards.map(u64::from).sum();
        let case = Case {
            record,
            device,
            sender,
            through: through(record, index),
            single: one_at_a_time(record, discards),
        };
        case.add_to(&mut evidence, range.clone());
        // The kernel cuts what is beyond whole milliseconds.
        evidence.all.wait_us += 1e3;
    }
    evidence
}

/// Returns the intervals of a record's deletion and of the recovery after it. Discards while files
/// were made, or in the control, are not the deletion's.
pub fn window(record: &RunRecord) -> Range<usize> {
    let all = 0..record.intervals.len();
    if record.phases.is_empty() {
        return all;
    }
    let main = |p: &&record::Phase| p.part == Part::Main;
    let Some(delete) = (record.phases.iter().filter(main)).find(|p| p.name == PhaseName::Delete)
    else {
        return 0..0;
    };
    let after = record
        .phases
        .iter()
        .find(|p| p.at_s > delete.at_s && !(p.part == Part::Main && p.name == PhaseName::Recovery));
    let at = &record.intervals.at_s;
    // An interval belongs to the phase in which it begins; half a nanosecond is noise.
    let first = at.partition_point(|&s| s < delete.at_s - 1e-9);
    let end = after.map_or(all.end, |p| at.partition_point(|&s| s < p.at_s - 1e-9));
    first..end.max(first)
}

/// From which mean size on discards come one at a time; `None`: never. ext4 waits for each, and
/// btrfs waits for each piece within its commit (fs/btrfs/extent-tree.c, `btrfs_issue_discard`). A
/// deleter that frees and commits piece by piece waits if each piece makes one discard. BLKDISCARD
/// waits in steps that the device takes whole. XFS sends at once what a commit freed in several
/// places.
fn one_at_a_time(record: &RunRecord, discards: u64) -> Option<f64> {
    let head = &record.head;
    let method = |path: &str| head.scenario.pointer(&format!("/deletion/method/{path}"));
    let freed = deleted(record, |d| d.bytes);
    let chunk = method("truncate/chunk_bytes").and_then(|v| v.as_u64());
    let pieces = chunk.map(|chunk| (freed / chunk.max(1) as f64).ceil());
    let committed = method("truncate/fsync").and_then(|v| v.as_bool()) == Some(true)
        && pieces.is_none_or(|pieces| discards as f64 <= ONE * pieces);
    let step = method("discard/step_bytes").and_then(|v| v.as_u64());
    let most = head.devices.iter().filter(|d| d.leaf);
    let most = most.map(|d| d.discard.max_bytes).min().unwrap_or(0);
    let whole = step.is_some_and(|step| step <= most);
    let waits = matches!(head.target.fs.as_deref(), Some("ext4" | "btrfs"));
    let chunk = chunk.map_or(0.0, |bytes| bytes as f64 / ONE);
    match waits || whole {
        true => Some(0.0),
        false => committed.then_some(chunk),
    }
}

/// The device whose discards tell how many were in flight on a drive: the loop device above it, or
/// itself. A loop device's file is cut where its extents end, and the pieces come one after the other
/// (drivers/block/loop.c, `lo_fallocate`).
fn sender(record: &RunRecord, drive: usize) -> usize {
    let devices = &record.head.devices;
    let mut above = devices
        .iter()
        .filter(|one| one.level < devices[drive].level);
    let is_plain = above.all(|one| matches!(one.kind, DeviceKind::Loop | DeviceKind::Partition));
    let a_loop = |one: &DeviceInfo| one.kind == DeviceKind::Loop && one.level == 0;
    let mut counted = devices.iter().zip(&record.intervals.devices);
    let found = counted.position(|(one, _)| a_loop(one));
    let found = found.filter(|_| is_plain);
    found.unwrap_or(drive)
}

/// The sum of a figure of the deletions.
fn deleted(record: &RunRecord, of: fn(&DeletionLine) -> u64) -> f64 {
    let main = record.deletions.iter().filter(|d| d.part == Part::Main);
    main.map(|d| of(d) as f64).sum()
}

fn disturbed(record: &RunRecord) -> bool {
    let mut actors = record.head.actors.iter();
    actors.any(|a| !a.loop_kind.is_open() && a.loop_kind.depth() > 1)
}

/// When discards were in flight in the file system's own devices, if these are above the drive: all of
/// the deletion's come through them, and others are other programs'.
fn through(record: &RunRecord, drive: usize) -> Option<Vec<Range<f64>>> {
    let (infos, rows) = (&record.head.devices, &record.intervals);
    if infos[drive].level == 0 {
        return None;
    }
    let own = infos.iter().zip(&rows.devices);
    let own = own.filter(|(info, _)| info.level == 0);
    let times = own.flat_map(|(_, device)| {
        let active = (0..rows.len()).filter(|&i| device.discards[i] > 0);
        active.map(|i| {
            let wait_s = f64::from(device.discard_ms[i]) / 1e3 / f64::from(device.discards[i]);
            rows.at_s[i] - wait_s..rows.at_s[i] + f64::from(rows.seconds[i])
        })
    });
    let times: Vec<Range<f64>> = times.collect();
    (!times.is_empty()).then_some(times)
}

struct Case<'r> {
    record: &'r RunRecord,
    device: &'r DeviceColumns,
    /// The device that tells how many were in flight.
    sender: &'r DeviceColumns,
    through: Option<Vec<Range<f64>>>,
    /// The mean size, in bytes, from which on the sender's discards come one at a time.
    single: Option<f64>,
}

/// Discards of some intervals in a row, before it is decided what their time is.
#[derive(Debug, Clone, Copy)]
struct Draft {
    first: usize,
    last: usize,
    discards: u64,
    bytes: u64,
    wait_ms: u64,
    seconds: f64,
}

impl Draft {
    /// On average, by Little's law. The operations that complete in the first interval began one
    /// wait before it.
    fn in_flight(&self) -> f64 {
        let seconds = self.seconds + self.wait_s();
        self.wait_ms as f64 / 1e3 / seconds.max(f64::MIN_POSITIVE)
    }

    /// Whether what was begun before it hardly counts.
    fn is_long(&self) -> bool {
        self.seconds >= 5.0 * self.wait_s()
    }

    fn wait_s(&self) -> f64 {
        self.wait_ms as f64 / 1e3 / self.discards.max(1) as f64
    }
}

impl Case<'_> {
    fn add_to(&self, evidence: &mut Evidence, range: Range<usize>) {
        let drafts = self.drafts(range);
        for (i, draft) in drafts.iter().enumerate() {
            let before = i.checked_sub(1).and_then(|i| drafts.get(i));
            let after = drafts.get(i + 1);
            let inner = before.is_some_and(|b| self.touch(b, draft))
                && after.is_some_and(|a| self.touch(draft, a));
            evidence.all.add(draft);
            let single = self.is_single(draft);
            let most = match single && !draft.is_long() {
                true => ONE_OF_FEW,
                false => ONE,
            };
            let (us, queued) = if draft.in_flight() > most {
                if !inner {
                    continue;
                }
                (draft.seconds * 1e6, true)
            } else if inner && draft.is_long() && draft.in_flight() >= BACK_TO_BACK {
                // A few that met add to the waits, and pauses add to the time.
                let waited = draft.wait_ms as f64 * 1e3;
                (waited.min(draft.seconds * 1e6), false)
            } else if single {
                (draft.wait_ms as f64 * 1e3, false)
            } else {
                continue;
            };
            evidence.cells.push(Cell {
                discards: draft.discards as f64,
                mib: draft.bytes as f64 / MIB as f64,
                us,
                off_us: if queued { 0.0 } else { 1e3 },
                queued,
            });
        }
    }

    /// Whether its discards came one at a time.
    fn is_single(&self, draft: &Draft) -> bool {
        let rows = draft.first..=draft.last;
        let bytes = self.sender.discard_bytes[rows.clone()].iter();
        let bytes = bytes.fold(0_u64, |sum, &bytes| sum.saturating_add(bytes));
        let discards: u64 = (self.sender.discards[rows].iter().copied().map(u64::from)).sum();
        let mean = bytes as f64 / discards.max(1) as f64;
        self.single.is_some_and(|least| mean >= least)
    }

    /// Whether discards were in service all the time from one to the next.
    fn touch(&self, a: &Draft, b: &Draft) -> bool {
        let at = &self.record.intervals.at_s;
        let end = at[a.last] + f64::from(self.record.intervals.seconds[a.last]);
        // What a later interval completes was begun so long before it.
        at[b.first] - end <= b.wait_s() + 1e-6
    }

    /// Whether the discards of an interval may be the deletion's.
    fn may_be_own(&self, i: usize) -> bool {
        let rows = &self.record.intervals;
        let (from_s, to_s) = (rows.at_s[i], rows.at_s[i] + f64::from(rows.seconds[i]));
        let overlaps = |one: &Range<f64>| one.start < to_s && from_s < one.end;
        (self.through.as_ref()).is_none_or(|times| times.iter().any(overlaps))
    }

    fn drafts(&self, range: Range<usize>) -> Vec<Draft> {
        let device = self.device;
        let least = counting::significant(&device.discard_bytes[range.clone()]);
        let intervals: Vec<usize> = range
            .filter(|&i| device.discards[i] > 0 && device.discard_bytes[i] >= least)
            .filter(|&i| self.may_be_own(i))
            .collect();
        let all: u64 = intervals
            .iter()
            .map(|&i| u64::from(device.discards[i]))
            .sum();
        let enough = all.div_ceil(CELLS);
        let mut drafts: Vec<Draft> = Vec::new();
        let mut open: Option<Draft> = None;
        for i in intervals {
            let own = self.draft(i);
            open = match open.take() {
                Some(draft) if self.touch(&draft, &own) => Some(self.join(&draft, &own)),
                Some(draft) => {
                    drafts.push(draft);
                    Some(own)
                }
                None => Some(own),
            };
            let done = |d: &Draft| {
                let queued = d.in_flight() > 2.0 * ONE && d.discards >= 10;
                let whole = self.is_single(d) || d.is_long() || queued;
                d.discards >= enough && d.wait_ms >= ENOUGH_MS && whole
            };
            if open.as_ref().is_some_and(done) {
                drafts.extend(open.take());
            }
        }
        drafts.extend(open);
        drafts
    }

    fn draft(&self, i: usize) -> Draft {
        Draft {
            first: i,
            last: i,
            discards: self.device.discards[i].into(),
            bytes: self.device.discard_bytes[i],
            wait_ms: self.device.discard_ms[i].into(),
            seconds: self.record.intervals.seconds[i].into(),
        }
    }

    fn join(&self, a: &Draft, b: &Draft) -> Draft {
        let intervals = &self.record.intervals;
        let end = intervals.at_s[b.last] + f64::from(intervals.seconds[b.last]);
        Draft {
            first: a.first,
            last: b.last,
            discards: a.discards + b.discards,
            bytes: a.bytes.saturating_add(b.bytes),
            wait_ms: a.wait_ms + b.wait_ms,
            seconds: end - intervals.at_s[a.first],
        }
    }
}

impl All {
    fn add(&mut self, draft: &Draft) {
        self.discards += draft.discards as f64;
        self.mib += draft.bytes as f64 / MIB as f64;
        self.wait_us += draft.wait_ms as f64 * 1e3;
        self.span_us += (draft.seconds + draft.wait_s()) * 1e6;
    }

    /// The most that one takes, in microseconds.
    pub(super) fn at_most_us(&self) -> Option<f64> {
        (self.discards > 0.0).then(|| self.wait_us.min(self.span_us) / self.discards)
    }
}
