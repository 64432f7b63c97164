//! Into which windows a file system is cut: pure.
//!
//! How much a window holds is known of ext4, whose groups are looked at before, and
//! of XFS, which tells its free extents. Elsewhere the windows learn from one
//! another how long one may be for each byte that is allowed: one that cost more than
//! it may makes the next shorter, one that cost less makes it at most twice as
//! long. None is longer than eight times what is allowed.

use std::ops::Range;

use linux::trim::Ahead;
use storage::layout::Layout;

use super::cost::Costs;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Windows are cut at multiples of this, where the file system doesn't say more.
const GRAIN: u64 = MIB;

/// The longest window where nothing is paced: so that it can be stopped.
const LONGEST: u64 = 4 * GIB;

/// A window is at most and at least so many times as long as what is allowed.
const BOLD: f64 = 8.0;
const TIMID: f64 = 1.0 / 4096.0;

/// A group is cut into at most so many parts, and only where it costs so many
/// times what it may: each cut trims the rest of an extent twice, and a group
/// that was trimmed in parts isn't remembered as trimmed.
const PARTS: u64 = 32;
const DEAR: f64 = 2.0;

/// A group of fewer extents isn't cut: an extent goes whole.
const FEW: u64 = 8;

/// Of what is allowed, so much more may be trimmed where that saves a cut.
const REST: u64 = 8;

/// What is free on a thin volume or a sparse file may be nothing below already. Where
/// the devices saw nothing of a window, the next may hold twice as many times what is
/// allowed, and as many extents whose cost isn't known: up to so many bytes, as a group
/// of ext4's, which is never less, and so many times and extents.
const UNSEEN: u64 = 128 * MIB;
const MOST_UNSEEN: u64 = 128;

/// A cut that is nearer than this to the window's beginning needn't be at a
/// multiple of the grain.
const FINE: u64 = 64 << 10;

/// What a file system tells of its free space before it is trimmed.
pub(super) trait Forecast {
    /// What a block group holds; `None`: it isn't told.
    fn group(&mut self, group: u64) -> Option<Ahead>;

    /// The first free extent that ends behind a position.
    fn behind(&mut self, position: u64) -> NextFree;
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextFree {
    /// This.
    Extent(Range<u64>),
    /// There is none.
    Nothing,
    /// It isn't told.
    Unknown,
}

/// What the next window may hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limit {
    /// Bytes.
    pub(super) bytes: u64,
    /// Seconds in which the device is busy with it.
    pub(super) seconds: f64,
}

/// One call's range, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: u64,
    /// `u64::MAX`: to the end.
    pub(super) length: u64,
    /// How long it is for progress: what is known to be there.
    pub(super) spans: u64,
    /// Bytes of the free extents in it that are no shorter than the minimum; `None` where
    /// that isn't told beforehand.
    pub(super) holds: Option<u64>,
}

/// What came of a window.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WindowResult {
    pub(crate) bytes: u64,
    pub(crate) discards: u64,
    /// Seconds in which the device was busy with it.
    pub(crate) busy: f64,
}

/// The windows of one file system, one after the other.
#[derive(Debug)]
pub(super) struct Windows {
    layout: Layout,
    /// What was asked for; its end is `u64::MAX` where it is the file system's.
    asked: Range<u64>,
    /// The file system's end, as far as it is known.
    end: u64,
    position: u64,
    /// Shorter free extents are left alone, and no part may be one.
    minimum: u64,
    /// Of shorter ones nothing is discarded.
    granularity: u64,
    /// Bytes of a block of the file system.
    block: u64,
    /// How long the next may be for each byte that is allowed, where nothing is told.
    bold: f64,
    /// Of the group that `position` is in, the parts it is cut into.
    parts: u64,
    /// How many times what is allowed the next may hold: 1 once something was seen.
    unseen: u64,
    /// Whether a free extent that a window touches is discarded whole, so that none is cut.
    whole: bool,
    costs: Costs,
}

impl Windows {
    pub(super) fn new(layout: Layout, asked: Range<u64>, end: u64) -> Windows {
        let mut windows = Windows {
            layout,
            end: end.min(asked.end),
            position: asked.start,
            asked,
            minimum: 0,
            granularity: 0,
            block: 1,
            bold: 1.0,
            parts: 1,
            unseen: 1,
            whole: false,
            costs: Costs::default(),
        };
        windows.skip_holes();
        windows
    }

    /// Reclaimer extents shorter than this are left alone.
    pub(super) fn at_least(self, minimum: u64) -> Windows {
        Windows { minimum, ..self }
    }

    /// The devices discard nothing that is shorter than this.
    pub(super) fn discarded_from(self, granularity: u64) -> Windows {
        Windows {
            granularity,
            ..self
        }
    }

    /// Whether the file system discards each free extent whole that a window touches.
    pub(super) fn of_whole_extents(self, whole: bool) -> Windows {
        Windows { whole, ..self }
    }

    /// The file system allocates blocks of so many bytes.
    pub(super) fn in_blocks(self, block: u64) -> Windows {
        let block = block.max(1);
        Windows { block, ..self }
    }

    /// Where the next begins.
    pub(super) fn position(&self) -> u64 {
        self.position.min(self.asked.end)
    }

    /// Goes on from there.
    pub(super) fn seek(&mut self, position: u64) {
        self.position = position.max(self.asked.start);
        self.skip_holes();
    }

    /// Nothing is left.
    pub(super) fn is_done(&self) -> bool {
        self.position >= self.end
    }

    /// The group that the next begins in, where there are groups.
    pub(super) fn number(&self) -> Option<u64> {
        match self.layout {
            Layout::Groups { group, first, .. } => {
                Some(self.position.saturating_sub(first) / group)
            }
            _ => None,
        }
    }

    /// The group that comes next, if its contents can be looked at before.
    pub(super) fn group(&self) -> Option<u64> {
        match self.layout {
            Layout::Groups { group, first, .. } => {
                let place = self.position.saturating_sub(first);
                (self.position <= first || place % group == 0).then_some(place / group)
            }
            _ => None,
        }
    }

    /// Bytes that are still to be looked at.
    pub(super) fn left(&self) -> u64 {
        self.within(self.position..self.end)
    }

    /// Bytes to be looked at in all.
    pub(super) fn all(&self) -> u64 {
        self.within(self.asked.start..self.end)
    }

    fn within(&self, range: Range<u64>) -> u64 {
        match &self.layout {
            Layout::Chunks(chunks) => {
                let part = |chunk: &Range<u64>| {
                    let end = chunk.end.min(range.end);
                    end.saturating_sub(chunk.start.max(range.start))
                };
                chunks.iter().map(part).sum()
            }
            _ => range.end.saturating_sub(range.start),
        }
    }

    /// The next window.
    pub(super) fn next(&mut self, limit: Limit, told: &mut dyn Forecast) -> Window {
        let (end, holds) = match self.layout.clone() {
            Layout::Whole => (u64::MAX, None),
            Layout::Groups {
                group,
                first,
                block,
            } => (self.groups(limit, told, group, first, block), None),
            _ => self.pieces(limit, told),
        };
        let start = self.position;
        let spans = self.within(start..end.min(self.end));
        // The last goes to the end that was asked for: what has grown meanwhile,
        // or lies beyond (a realtime section of XFS), belongs to it.
        let end = if end >= self.end { self.asked.end } else { end };
        Window {
            start,
            length: match end {
                u64::MAX => u64::MAX,
                end => end - start,
            },
            spans,
            holds,
        }
    }

    /// Where the kernel is told to begin with a window: of XFS behind the headers that
    /// begin each group.
    ///
    /// Of a whole group XFS takes the free extents by length, and of those that are
    /// equally long it leaves most alone (seen with Linux 6.18: of ten of 128 MiB it
    /// trimmed one); of a part it takes them in order, and none is left.
    ///
    /// A chunk of btrfs goes from its beginning or not at all. Where that lies before
    /// the offset that was asked for, more is trimmed than was asked for, and told.
    ///
    /// Elsewhere at a block: the kernel rounds down the beginning and the length, each
    /// by itself, so that the last block of a range that begins within one is left out.
    pub(super) fn begins(&self, window: &Window) -> u64 {
        match &self.layout {
            Layout::Allocation { group } if window.start.is_multiple_of(*group) => {
                window.start + self.block.min(window.length - 1)
            }
            Layout::Chunks(chunks) => chunks
                .iter()
                .find(|chunk| chunk.contains(&window.start))
                .map_or(window.start, |chunk| chunk.start),
            _ => window.start - window.start % self.block,
        }
    }

    /// Whole groups as long as they fit, or a part of one that is too dear.
    fn groups(
        &mut self,
        limit: Limit,
        told: &mut dyn Forecast,
        group: u64,
        first: u64,
        block: u64,
    ) -> u64 {
        let of = |position: u64| position.saturating_sub(first) / group;
        let end_of = |number: u64| first + (number + 1) * group;
        let number = of(self.position);
        let boundary = self.group().is_some();
        if !boundary && self.parts > 1 {
            // By now it may be known what its extents cost.
            if let Some(found) = told.group(number) {
                self.parts = self.parts_of(&found, block, limit);
            }
            return self.part(number, group, first);
        }
        self.parts = 1;
        if !boundary {
            return end_of(number);
        }
        let Some(found) = told.group(number) else {
            // As many groups as were well last time.
            let span = self.span_for(limit).max(group);
            return end_of(number + (span / group).max(1) - 1);
        };
        let mut bytes = found.blocks * block;
        let mut seconds = self.seconds(&found, block, limit);
        self.parts = self.parts_of(&found, block, limit);
        if self.parts > 1 {
            return self.part(number, group, first);
        }
        let mut last = number;
        while end_of(last) < self.end && end_of(last) - self.position < LONGEST {
            let Some(more) = told.group(last + 1) else {
                break;
            };
            bytes = bytes.saturating_add(more.blocks * block);
            seconds += self.seconds(&more, block, limit);
            if bytes > limit.bytes || seconds > limit.seconds {
                break;
            }
            last += 1;
        }
        end_of(last)
    }

    /// Into how many parts a group is cut.
    fn parts_of(&self, found: &Ahead, block: u64, limit: Limit) -> u64 {
        let seconds = self.seconds(found, block, limit);
        if seconds <= DEAR * limit.seconds || found.extents <= FEW {
            return 1;
        }
        let parts = (seconds / limit.seconds).ceil().min(PARTS as f64);
        (parts as u64).next_power_of_two()
    }

    /// What a group takes; unknown is as much as may be.
    fn seconds(&self, found: &Ahead, block: u64, limit: Limit) -> f64 {
        let known = self.costs.predict(found.extents, found.blocks * block);
        known.unwrap_or(match found.extents {
            0 => 0.0,
            extents if extents > FEW => f64::MAX,
            _ => limit.seconds,
        })
    }

    fn part(&self, number: u64, group: u64, first: u64) -> u64 {
        let begins = first + number * group;
        let part = (group / self.parts).max(1);
        let which = self.position.saturating_sub(begins) / part;
        (begins + (which + 1) * part).min(begins + group)
    }

    /// As long as is told or, where nothing is, as the last ones teach; and not across
    /// a boundary. Where it ends, and what it holds.
    fn pieces(&self, limit: Limit, told: &mut dyn Forecast) -> (u64, Option<u64>) {
        let boundary = match &self.layout {
            Layout::Allocation { group } => (self.position / group + 1) * group,
            // A chunk that a range doesn't begin with is passed over (Linux 6.12
            // `btrfs_lookup_first_block_group`).
            Layout::Chunks(chunks) => {
                let chunk = chunks.iter().find(|chunk| chunk.end > self.position);
                return (chunk.map_or(u64::MAX, |chunk| chunk.end), None);
            }
            _ => u64::MAX,
        };
        if limit.bytes == u64::MAX {
            let longest = if self.whole { u64::MAX } else { LONGEST };
            let end = self.position.saturating_add(longest).min(boundary);
            return (end, self.held(end, told));
        }
        if let Some((end, holds)) = self.foreseen(limit, boundary, told) {
            return (end, Some(holds));
        }
        if self.whole {
            return (boundary, None);
        }
        let grain = self.grain();
        let end = self.position.saturating_add(self.span_for(limit)) / grain * grain;
        (end.max(self.position + 1).min(boundary), None)
    }

    /// What is free up to there; `None` where it isn't told.
    fn held(&self, end: u64, told: &mut dyn Forecast) -> Option<u64> {
        let end = end.min(self.asked.end);
        let (mut bytes, mut at) = (0, self.position);
        while at < end {
            let extent = match told.behind(at) {
                NextFree::Unknown => return None,
                NextFree::Nothing => break,
                NextFree::Extent(extent) => extent,
            };
            let more = extent.end.min(end).saturating_sub(extent.start.max(at));
            if more >= self.minimum.max(self.granularity) {
                bytes += more;
            }
            at = extent.end;
        }
        Some(bytes)
    }

    /// As many free extents as are allowed, or a part of one that is longer: where they
    /// end, and their bytes. `None` where it isn't told what is free.
    fn foreseen(&self, limit: Limit, boundary: u64, told: &mut dyn Forecast) -> Option<(u64, u64)> {
        let boundary = boundary.min(self.asked.end);
        let unseen = limit.bytes.saturating_mul(self.unseen).min(UNSEEN);
        let allowed = limit.bytes.max(unseen);
        let (mut bytes, mut extents) = (0, 0);
        let mut at = self.position;
        loop {
            let extent = match told.behind(at) {
                NextFree::Unknown => return None,
                NextFree::Nothing => return Some((boundary, bytes)),
                NextFree::Extent(extent) => extent,
            };
            let (start, end) = (extent.start.max(at), extent.end.min(boundary));
            if start >= boundary {
                return Some((boundary, bytes));
            }
            let more = end - start;
            if more < self.minimum.max(self.granularity) {
                at = end;
                continue;
            }
            let most = allowed.max(self.minimum);
            if extents == 0 && more > most.saturating_add(most / REST) {
                let cut = self.cut(start..end, most);
                return Some((cut, cut - start));
            }
            let dear = match self.costs.predict(extents + 1, bytes + more) {
                Some(seconds) => seconds > limit.seconds,
                None => extents >= self.unseen,
            };
            if extents > 0 && (bytes + more > allowed || dear) {
                return Some((start, bytes));
            }
            (bytes, extents, at) = (bytes + more, extents + 1, end);
            if at >= boundary {
                return Some((boundary, bytes));
            }
        }
    }

    /// Where to cut an extent of which so much is allowed.
    fn cut(&self, extent: Range<u64>, most: u64) -> u64 {
        if self.whole {
            return extent.end;
        }
        let fine = if most < GRAIN { FINE } else { GRAIN };
        let cut = (extent.start + most.max(FINE)) / fine * fine;
        let least = extent.start + self.minimum.max(1);
        let cut = if cut >= least { cut } else { cut + fine };
        // Nor is too little left.
        let rest = extent.end.saturating_sub(cut);
        if rest < self.minimum.max(1) {
            extent.end
        } else {
            cut
        }
    }

    fn span_for(&self, limit: Limit) -> u64 {
        ((limit.bytes as f64 * self.bold) as u64).clamp(self.grain(), LONGEST)
    }

    /// Whole blocks: those of exFAT can have 32 MiB, and the kernel takes no range that
    /// is shorter.
    fn grain(&self) -> u64 {
        self.block.next_power_of_two().clamp(GRAIN, LONGEST)
    }

    /// A window is trimmed.
    pub(super) fn landed(&mut self, window: &Window, came: WindowResult, limit: Limit) {
        self.costs.learn(came.discards, came.bytes, came.busy);
        self.unseen = match window.holds {
            // One in which nothing was free tells nothing.
            Some(0) => self.unseen,
            Some(_) if came.bytes == 0 => (self.unseen * 2).min(MOST_UNSEEN),
            _ => 1,
        };
        let share = |of: f64, limit: f64| if limit > 0.0 { of / limit } else { 1.0 };
        let worst = share(came.bytes.min(window.spans) as f64, limit.bytes as f64)
            .max(share(came.busy, limit.seconds))
            .max(0.5);
        let length = window.spans as f64 / limit.bytes.max(1) as f64 / worst.min(16.0);
        // One that a boundary cut short is no reason to be timid.
        let least = if worst < 1.0 { self.bold } else { TIMID };
        self.bold = length.clamp(least, BOLD);
        self.pass(window);
    }

    /// A window is trimmed that teaches nothing.
    pub(super) fn pass(&mut self, window: &Window) {
        self.position = match window.length {
            u64::MAX => u64::MAX,
            length => window.start.saturating_add(length),
        };
        self.skip_holes();
    }

    /// There is nothing between chunks.
    fn skip_holes(&mut self) {
        if let Layout::Chunks(chunks) = &self.layout {
            let next = chunks.iter().find(|chunk| chunk.end > self.position);
            self.position = next.map_or(u64::MAX, |chunk| chunk.start.max(self.position));
        }
    }

    /// There is nothing more: the file system ends here.
    pub(super) fn end(&mut self) {
        self.position = u64::MAX;
    }
}

#[cfg(test)]
mod tests;
