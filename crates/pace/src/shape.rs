//! The shape of a piece: how many discards it becomes, and how long those of its commit take.

use crate::quantity::{Bytes, Line, Seconds, SecondsPerByte};

/// How many discards a piece becomes: so many for each byte, and some that come
/// with the commit, of trees that it rewrites (btrfs).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    /// Pieces, their bytes, discards and times, and the products of these in bytes and
    /// seconds; the latest count most.
    pieces: f64,
    bytes: Bytes,
    commands: f64,
    busy: Seconds,
    squares: f64,
    products: f64,
    command_squares: f64,
    busy_products: f64,
    beside: f64,
    /// The time for each byte when pieces last differed enough to show it.
    slope: Option<SecondsPerByte>,
}

/// A block of a tree that a commit rewrites, and what may lie beside it, in bytes.
const TREES: f64 = 256.0 * 1024.0;

/// Returns whether so many bytes beyond what was freed can be those of so many discards of a
/// commit, not of another process.
pub(crate) fn is_beside(bytes: u64, discards: f64) -> bool {
    bytes as f64 <= TREES * discards.max(1.0)
}

/// How much the pieces before count beside the next.
const BEFORE: f64 = 0.9;

/// How well sizes must explain the discards (the square of the correlation).
const SURE: f64 = 0.8;

/// The most discards of its own that a commit is assumed to have.
pub(crate) const MOST_BESIDE: f64 = 32.0;

impl Shape {
    /// Returns how many discards come with each commit.
    pub(crate) fn beside(&self) -> f64 {
        self.beside
    }

    /// Takes in a piece: bytes freed, discards, their time. `whole`: the size of an extent, as
    /// assumed so far.
    pub(crate) fn learn(&mut self, freed: Bytes, commands: f64, busy: Seconds, whole: Bytes) {
        self.bytes *= BEFORE;
        self.busy *= BEFORE;
        for sum in [
            &mut self.pieces,
            &mut self.commands,
            &mut self.squares,
            &mut self.products,
            &mut self.command_squares,
            &mut self.busy_products,
        ] {
            *sum *= BEFORE;
        }
        self.pieces += 1.0;
        self.bytes += freed;
        self.commands += commands;
        self.busy += busy;
        self.squares += freed.0 * freed.0;
        self.products += freed.0 * commands;
        self.command_squares += commands * commands;
        self.busy_products += freed.0 * busy.0;
        let whole = self.extent().unwrap_or(Bytes::INFINITE).min(whole);
        let extents = (self.bytes / whole).max(self.pieces);
        let beside = (self.commands - extents) / self.pieces;
        // Now and then an extent is cut: that is no commit's.
        self.beside = (beside - 0.5).clamp(0.0, MOST_BESIDE);
        if let Some(spread) = self.spread() {
            let both = self.busy_products - self.bytes.0 * self.busy.0 / self.pieces;
            self.slope = Some(SecondsPerByte((both / self.pieces / spread).max(0.0)));
        }
    }

    /// Returns how long a commit's own discards take.
    ///
    /// At most they take their share of all discards, because a small one takes no longer than a
    /// large one. That is the result until pieces of several sizes show the time of each.
    pub(crate) fn commit(&self) -> Seconds {
        if self.beside <= 0.0 {
            return Seconds::ZERO;
        }
        let most = self.busy * self.beside / self.commands;
        match (self.spread(), self.line(SecondsPerByte::INFINITE)) {
            (Some(_), Some(line)) => line.fixed.min(most),
            _ => most,
        }
    }

    /// Returns the fixed time of a piece, and the time for each byte freed, which is at most
    /// `most`. `None`: no piece was seen.
    ///
    /// Until pieces have differed enough, the line never gives too little. Then the fixed time is
    /// at least half of a piece's, and the bytes take all of it.
    pub(crate) fn line(&self, most: SecondsPerByte) -> Option<Line> {
        if self.bytes <= Bytes::ZERO {
            return None;
        }
        let (mean, took) = (self.bytes / self.pieces, self.busy / self.pieces);
        let all = (took / mean).min(most);
        let (slope, least) = self
            .slope
            .map_or((all, 0.5 * took), |slope| (slope.min(all), Seconds::ZERO));
        Some(Line {
            fixed: (took - slope * mean).max(least),
            per_byte: slope,
        })
    }

    /// Returns whether pieces of several extents have no more discards than those of one:
    /// neighbours that are freed together are discarded together.
    pub(crate) fn is_together(&self, whole: Bytes) -> bool {
        let mean = (self.bytes / self.pieces).0;
        let both = self.products / self.pieces - mean * self.commands / self.pieces;
        self.spread()
            .is_some_and(|spread| spread.sqrt() > whole.0 / 4.0 && both * whole.0 < 0.3 * spread)
    }

    /// Returns how much the pieces' sizes differ (in bytes, squared), if they differ enough.
    fn spread(&self) -> Option<f64> {
        let mean = (self.bytes / self.pieces).0;
        let spread = self.squares / self.pieces - mean * mean;
        // Through two points there is always a line.
        (self.pieces >= 2.5 && spread >= 0.1 * mean * mean).then_some(spread)
    }

    /// Returns the bytes for each discard, if pieces differ enough.
    pub(crate) fn extent(&self) -> Option<Bytes> {
        let mean = (self.bytes / self.pieces).0;
        let spread = self.spread()?;
        let both = self.products / self.pieces - mean * self.commands / self.pieces;
        // Less than one discard between the least and the most tells nothing.
        if both < spread.sqrt() {
            return None;
        }
        // What commits have of their own varies, too.
        let commands = self.commands / self.pieces;
        let scatter = self.command_squares / self.pieces - commands * commands;
        if both * both < SURE * spread * scatter {
            return None;
        }
        Some(Bytes(spread / both))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: Bytes = Bytes(1048576.0);
    const TIME: Seconds = Seconds(0.01);

    #[test]
    fn a_commits_own_discards_are_no_extents() {
        let mut shape = Shape::default();
        for (mib, commands) in [(1.0, 4.0), (8.0, 11.0), (16.0, 19.0), (16.0, 19.0)] {
            shape.learn(mib * MIB, commands, TIME * commands, 128.0 * MIB);
        }
        let extent = shape.extent().unwrap() / MIB;
        assert!((extent - 1.0).abs() < 0.01, "{extent}");
        assert!((shape.beside - 2.5).abs() < 0.3, "{}", shape.beside);
    }

    #[test]
    fn short_extents_are_no_commits() {
        let mut shape = Shape::default();
        for mib in [1.0, 8.0, 8.0] {
            shape.learn(mib * MIB, mib * 16.0, TIME, 128.0 * MIB);
        }
        assert!((shape.extent().unwrap() / MIB - 1.0 / 16.0).abs() < 0.001);
        assert_eq!(shape.beside, 0.0);
        // Nor is a commit's chance an extent.
        let mut chance = Shape::default();
        for (mib, commands) in [
            (5.0, 22.0),
            (7.0, 11.0),
            (4.0, 9.0),
            (8.0, 14.0),
            (5.0, 20.0),
        ] {
            chance.learn(mib * MIB, commands, TIME, MIB);
        }
        assert_eq!(chance.extent(), None);
        // One size alone tells nothing.
        let mut alone = Shape::default();
        (0..9).for_each(|_| alone.learn(MIB, 1.0, TIME, MIB));
        assert_eq!((alone.extent(), alone.beside), (None, 0.0));
    }
}
