//! What a piece becomes: how many discards, and how long those take that come with
//! a commit.

/// How many discards a piece becomes: so many for each byte, and some that come
/// with the commit, of trees that it rewrites (btrfs).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    /// Pieces, their bytes, discards and seconds, and the products of these; the
    /// latest count most.
    pieces: f64,
    bytes: f64,
    commands: f64,
    busy: f64,
    squares: f64,
    products: f64,
    command_squares: f64,
    busy_products: f64,
    beside: f64,
    /// Seconds for each byte, when pieces last differed enough to tell.
    slope: Option<f64>,
}

/// A block of a tree that a commit rewrites, and what may lie beside it, in bytes.
const TREES: f64 = 256.0 * 1024.0;

/// Whether so many bytes beyond what was freed can be those of so many discards of
/// a commit, not of somebody else.
pub(crate) fn is_beside(bytes: u64, discards: f64) -> bool {
    bytes as f64 <= TREES * discards.max(1.0)
}

/// How much the pieces before count beside the next.
const BEFORE: f64 = 0.9;

/// How well sizes must explain the discards (the square of the correlation).
const SURE: f64 = 0.8;

/// The most discards that a commit is taken to have of its own.
pub(crate) const MOST_BESIDE: f64 = 32.0;

impl Shape {
    /// How many discards come with each commit.
    pub(crate) fn beside(&self) -> f64 {
        self.beside
    }

    /// A piece: bytes freed, discards, their seconds; and how large an extent is
    /// thought to be.
    pub(crate) fn learn(&mut self, freed: f64, commands: f64, busy: f64, whole: f64) {
        for sum in [
            &mut self.pieces,
            &mut self.bytes,
            &mut self.commands,
            &mut self.busy,
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
        self.squares += freed * freed;
        self.products += freed * commands;
        self.command_squares += commands * commands;
        self.busy_products += freed * busy;
        let whole = self.extent().unwrap_or(f64::INFINITY).min(whole);
        let extents = (self.bytes / whole).max(self.pieces);
        let beside = (self.commands - extents) / self.pieces;
        // Now and then an extent is cut: that is no commit's.
        self.beside = (beside - 0.5).clamp(0.0, MOST_BESIDE);
        if let Some(spread) = self.spread() {
            let both = self.busy_products - self.bytes * self.busy / self.pieces;
            self.slope = Some((both / self.pieces / spread).max(0.0));
        }
    }

    /// How many seconds a commit's own discards take.
    ///
    /// A small one takes no longer than a large one: that is the most, and is taken
    /// for true until pieces of several sizes tell what each takes by itself.
    pub(crate) fn commit(&self) -> f64 {
        if self.beside <= 0.0 {
            return 0.0;
        }
        let most = self.busy * self.beside / self.commands;
        match (self.spread(), self.line(f64::INFINITY)) {
            (Some(_), Some((commit, _))) => commit.min(most),
            _ => most,
        }
    }

    /// How many seconds a piece takes whatever is freed, and how many for each byte, at most
    /// so many. Until pieces have differed enough to tell, half of a piece's time, and all of
    /// it, so that it is never less. `None`: none was seen.
    pub(crate) fn line(&self, most: f64) -> Option<(f64, f64)> {
        if self.bytes <= 0.0 {
            return None;
        }
        let (mean, took) = (self.bytes / self.pieces, self.busy / self.pieces);
        let all = (took / mean).min(most);
        let (slope, least) = self
            .slope
            .map_or((all, 0.5 * took), |slope| (slope.min(all), 0.0));
        Some(((took - slope * mean).max(least), slope))
    }

    /// Whether pieces of several extents have no more discards than those of one:
    /// neighbours that go together are discarded together.
    pub(crate) fn is_together(&self, whole: f64) -> bool {
        let mean = self.bytes / self.pieces;
        let both = self.products / self.pieces - mean * self.commands / self.pieces;
        self.spread()
            .is_some_and(|spread| spread.sqrt() > whole / 4.0 && both * whole < 0.3 * spread)
    }

    /// How much the pieces' sizes differ, if that is enough to tell anything.
    fn spread(&self) -> Option<f64> {
        let mean = self.bytes / self.pieces;
        let spread = self.squares / self.pieces - mean * mean;
        // Through two points there is always a line.
        (self.pieces >= 2.5 && spread >= 0.1 * mean * mean).then_some(spread)
    }

    /// Bytes for each discard, if pieces differ enough to tell.
    pub(crate) fn extent(&self) -> Option<f64> {
        let mean = self.bytes / self.pieces;
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
        Some(spread / both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1048576.0;

    #[test]
    fn a_commits_own_discards_are_no_extents() {
        let mut shape = Shape::default();
        for (mib, commands) in [(1.0, 4.0), (8.0, 11.0), (16.0, 19.0), (16.0, 19.0)] {
            shape.learn(mib * MIB, commands, 0.01 * commands, 128.0 * MIB);
        }
        let extent = shape.extent().unwrap() / MIB;
        assert!((extent - 1.0).abs() < 0.01, "{extent}");
        assert!((shape.beside - 2.5).abs() < 0.3, "{}", shape.beside);
    }

    #[test]
    fn short_extents_are_no_commits() {
        let mut shape = Shape::default();
        for mib in [1.0, 8.0, 8.0] {
            shape.learn(mib * MIB, mib * 16.0, 0.01, 128.0 * MIB);
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
            chance.learn(mib * MIB, commands, 0.01, MIB);
        }
        assert_eq!(chance.extent(), None);
        // One size alone tells nothing.
        let mut alone = Shape::default();
        (0..9).for_each(|_| alone.learn(MIB, 1.0, 0.01, MIB));
        assert_eq!((alone.extent(), alone.beside), (None, 0.0));
    }
}
