//! Divides a file system into windows: pure.
//!
//! The free extents of ext4 and XFS show beforehand how much a window holds. Elsewhere the windows
//! learn from one another how long one may be for each byte that is allowed. A window that cost too
//! much makes the next shorter; one that cost less makes it at most twice as long. None is longer
//! than eight times what is allowed.
//!
//! Where the kernel goes on to the end of a free extent that a window cuts, windows cut none: the
//! next one would discard the rest a second time.

use std::ops::Range;

use storage::layout::Layout;

use super::cost::Costs;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Windows are cut at multiples of this, unless the file system has larger units.
const GRAIN: u64 = MIB;

/// The longest window in bytes where nothing is paced, so that the trim can be stopped.
const LONGEST: u64 = 4 * GIB;

/// The longest and the shortest window, in bytes for each byte that is allowed.
const BOLD: f64 = 8.0;
const TIMID: f64 = 1.0 / 4096.0;

/// ext4 doesn't remember a group that was trimmed in parts. So a group is trimmed whole if it costs
/// at most this many times what is allowed, or has at most so many free extents.
const DEAR: f64 = 2.0;
const FEW: u64 = 8;

/// A window may exceed what is allowed by one part in this many where that saves a cut.
const REST: u64 = 8;

/// The limits for windows of which the devices see nothing.
///
/// Free space of a thin volume or a sparse file may be nothing below already. After such a window
/// the next may hold twice as many times what is allowed, and as many extents whose cost isn't
/// known. It never exceeds this many bytes, as a group of ext4 does, nor [`MOST_UNSEEN`] times or
/// extents.
const UNSEEN: u64 = 128 * MIB;
const MOST_UNSEEN: u64 = 128;

/// A cut for less than [`GRAIN`] lies at a multiple of this instead.
const FINE: u64 = 64 << 10;

/// The free space that a file system shows before it is trimmed. It returns the first free extent
/// that ends behind a position of the next window or later.
pub(super) type Forecast<'a> = dyn FnMut(u64) -> NextFree + 'a;

/// The next free extent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextFree {
    /// It lies here.
    Extent(Range<u64>),
    /// There is none.
    Nothing,
    /// The file system doesn't show it.
    Unknown,
}

/// The most that the next window may hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limit {
    /// Bytes to be trimmed.
    pub(super) bytes: u64,
    /// Seconds for which it may keep the device busy.
    pub(super) seconds: f64,
}

/// The range of one call, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: u64,
    /// `u64::MAX`: to the end.
    pub(super) length: u64,
    /// The bytes that it counts for in the progress: those that are known to exist.
    pub(super) spans: u64,
    /// Bytes of the free extents in it that are no shorter than the minimum; `None` where they
    /// aren't known beforehand.
    pub(super) holds: Option<u64>,
}

/// The devices' counts for a window.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WindowResult {
    pub(crate) bytes: u64,
    pub(crate) discards: u64,
    /// Seconds for which the device was busy with it.
    pub(crate) busy: f64,
}

/// The windows of one file system, one after the other.
#[derive(Debug)]
pub(super) struct Windows {
    layout: Layout,
    /// The range that was asked for; its end is `u64::MAX` where it is the file system's.
    asked: Range<u64>,
    /// The file system's end, as far as it is known.
    end: u64,
    position: u64,
    /// Free extents shorter than this are left alone, and no part of one may be shorter.
    pub(super) minimum: u64,
    /// The devices discard nothing shorter than this.
    pub(super) granularity: u64,
    /// Bytes of a block of the file system, at least 1.
    pub(super) block: u64,
    /// The length of the next window for each byte that is allowed, where its contents aren't
    /// known.
    bold: f64,
    /// How many times what is allowed the next may hold: 1 once the devices saw something.
    unseen: u64,
    /// Whether no window ends within a free extent, because the kernel would go on to its end.
    pub(super) whole: bool,
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
            unseen: 1,
            whole: false,
            costs: Costs::default(),
        };
        windows.skip_holes();
        windows
    }

    /// Returns where the next window begins.
    pub(super) fn position(&self) -> u64 {
        self.position.min(self.asked.end)
    }

    /// Continues from a position.
    pub(super) fn seek(&mut self, position: u64) {
        self.position = position.max(self.asked.start);
        self.skip_holes();
    }

    /// Returns whether nothing is left.
    pub(super) fn is_done(&self) -> bool {
        self.position >= self.end
    }

    /// Returns the bytes that are still to be looked at.
    pub(super) fn left(&self) -> u64 {
        self.within(self.position..self.end)
    }

    /// Returns the bytes to be looked at in all.
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

    /// Returns the next window.
    pub(super) fn next(&self, limit: Limit, forecast: &mut Forecast<'_>) -> Window {
        let (end, holds) = match self.layout {
            Layout::Whole => (u64::MAX, None),
            Layout::Groups { group, first } => (self.groups(limit, forecast, group, first), None),
            _ => self.pieces(limit, forecast),
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

    /// Returns where the kernel's range for a window begins.
    ///
    /// On XFS it begins behind the headers of a group. In a range over a whole group XFS takes the
    /// free extents by length, and leaves most of those that are equally long alone. Linux 6.18
    /// trimmed one of ten of 128 MiB. In a range over a part of a group XFS takes the extents in
    /// order, and leaves none.
    ///
    /// On btrfs a chunk is trimmed from its beginning or not at all. If the chunk begins before the
    /// offset that was asked for, more is trimmed than was asked for, and trimbench reports it.
    ///
    /// Elsewhere it begins at a block. The kernel rounds down the beginning and the length
    /// separately, so the last block of a range that begins within a block would be left out.
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

    /// Returns the end of the next window: of as many whole groups as fit, or of some free extents
    /// of one that costs too much.
    fn groups(&self, limit: Limit, forecast: &mut Forecast<'_>, group: u64, first: u64) -> u64 {
        let within = self.position.saturating_sub(first) / group;
        let mut end = first + (within + 1) * group;
        let paced = limit.bytes < u64::MAX;
        let found = paced
            .then(|| self.free(self.position..end, forecast))
            .flatten();
        let Some((mut extents, mut bytes)) = found else {
            // As many groups as were well last time.
            return end + (self.span_for(limit) / group).saturating_sub(1) * group;
        };
        if extents > FEW && self.is_dear(extents, bytes, DEAR * limit.seconds) {
            return self
                .foreseen(limit, end, forecast)
                .map_or(end, |part| part.0);
        }
        while end < self.end && end - self.position < LONGEST {
            let Some((more, of)) = self.free(end..end + group, forecast) else {
                break;
            };
            (extents, bytes) = (extents + more, bytes + of);
            if bytes > limit.bytes || self.is_dear(extents, bytes, limit.seconds) {
                break;
            }
            end += group;
        }
        end
    }

    /// Whether so many free extents take longer than `seconds`. As long as their cost is unknown,
    /// more than one does.
    fn is_dear(&self, extents: u64, bytes: u64, seconds: f64) -> bool {
        let known = self.costs.predict(extents, bytes);
        known.map_or(extents > self.unseen, |known| known > seconds)
    }

    /// Returns the end of the next window, within a boundary, and the bytes that it holds. It
    /// depends on the free extents or, where they aren't known, on the last windows.
    fn pieces(&self, limit: Limit, forecast: &mut Forecast<'_>) -> (u64, Option<u64>) {
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
            let within = self.position..end.min(self.asked.end);
            return (end, self.free(within, forecast).map(|free| free.1));
        }
        if let Some((end, holds)) = self.foreseen(limit, boundary, forecast) {
            return (end, Some(holds));
        }
        if self.whole {
            return (boundary, None);
        }
        let grain = self.grain();
        let end = self.position.saturating_add(self.span_for(limit)) / grain * grain;
        (end.max(self.position + 1).min(boundary), None)
    }

    /// Returns how many free extents the kernel discards in a range, and their bytes; `None` where
    /// that isn't known.
    fn free(&self, range: Range<u64>, forecast: &mut Forecast<'_>) -> Option<(u64, u64)> {
        let (mut extents, mut bytes, mut at) = (0, 0, range.start);
        while at < range.end {
            let extent = match forecast(at) {
                NextFree::Unknown => return None,
                NextFree::Nothing => break,
                NextFree::Extent(extent) => extent,
            };
            let more = extent
                .end
                .min(range.end)
                .saturating_sub(extent.start.max(at));
            if more > 0 && more >= self.minimum.max(self.granularity) {
                (extents, bytes) = (extents + 1, bytes + more);
            }
            at = extent.end;
        }
        Some((extents, bytes))
    }

    /// Returns the end and the bytes of as many free extents as are allowed, or of a part of one
    /// that is longer. `None` where the free extents aren't known.
    fn foreseen(
        &self,
        limit: Limit,
        boundary: u64,
        forecast: &mut Forecast<'_>,
    ) -> Option<(u64, u64)> {
        let boundary = boundary.min(self.asked.end);
        let unseen = limit.bytes.saturating_mul(self.unseen).min(UNSEEN);
        let allowed = limit.bytes.max(unseen);
        let (mut bytes, mut extents) = (0, 0);
        let mut at = self.position;
        loop {
            let extent = match forecast(at) {
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
            let dear = self.is_dear(extents + 1, bytes + more, limit.seconds);
            if extents > 0 && (bytes + more > allowed || dear) {
                return Some((start, bytes));
            }
            (bytes, extents, at) = (bytes + more, extents + 1, end);
            if at >= boundary {
                return Some((boundary, bytes));
            }
        }
    }

    /// Returns where to cut an extent of which `most` bytes are allowed.
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

    /// Returns the unit of a cut, a whole number of blocks. Blocks of exFAT can have 32 MiB, and
    /// the kernel accepts no shorter range.
    fn grain(&self) -> u64 {
        self.block.next_power_of_two().clamp(GRAIN, LONGEST)
    }

    /// Learns from a window that was trimmed, and passes it.
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

    /// Passes a window that was trimmed without learning from it.
    pub(super) fn pass(&mut self, window: &Window) {
        self.position = match window.length {
            u64::MAX => u64::MAX,
            length => window.start.saturating_add(length),
        };
        self.skip_holes();
    }

    /// Moves to the next chunk, because nothing is between chunks.
    fn skip_holes(&mut self) {
        if let Layout::Chunks(chunks) = &self.layout {
            let next = chunks.iter().find(|chunk| chunk.end > self.position);
            self.position = next.map_or(u64::MAX, |chunk| chunk.start.max(self.position));
        }
    }

    /// Ends the windows, because the file system ends here.
    pub(super) fn end(&mut self) {
        self.position = u64::MAX;
    }
}

#[cfg(test)]
mod tests;
