//! Chooses the size of the next piece.
//!
//! Each discard costs a whatever its size, so extents are not cut needlessly. A piece has several
//! extents where one is over too soon. Then the commit and its acknowledgement would take longer
//! than the pause that the goal asks for.

use crate::cost::{Cost, Fit};
use crate::flight::Flight;
use crate::goal::{Goal, TOLERANCE};
use crate::meter::own_flushes;
use crate::plan::{BRIEF, PIECE_LOSS, cuts};
use crate::quantity::{Bytes, Line, Seconds, SecondsPerByte, Share};
use crate::shape::{Shape, is_beside};
use crate::work::{GROUP, Work};

/// The first piece, if nothing is known.
const FIRST: u64 = 1 << 20;

/// The first piece where a latency must be held.
const FIRST_CAREFUL: u64 = 64 << 10;

/// By how much a piece may be larger than any seen before.
const GROWTH: f64 = 8.0;

/// The most that a part of an extent may cost that is larger than any before.
const GROWING: Seconds = Seconds(0.004);

/// How fast pieces grow that never wait for the budget.
const EAGER: f64 = 1.3;

/// So many times what a part of a cut extent is to cost, a piece of several parts costs at most.
const TOGETHER: f64 = 3.0;

/// By how much a piece larger than any before may be over that at worst.
const PROBED: f64 = 1.5;

/// The share of a piece's own discards that its commit may add. Beyond it, larger pieces pay off.
const COMMITS: f64 = 0.10;

/// The most that these larger pieces lose the others.
pub(crate) const COMMIT_LOSS: Seconds = Seconds(0.041);

/// From this share of a group on, a piece is a whole number of groups. Then each commit empties as
/// many groups as any other. Pieces that are alike fit better into a window.
const NEARLY_A_GROUP: f64 = 0.7;

/// How much the latest piece counts in what its commit's flushes take.
const FLUSHING_WEIGHT: f64 = 0.2;

/// Of cut pieces one in this many is this many times smaller: two sizes that are both known well
/// show the fixed cost.
const SAMPLE_EVERY: u32 = 8;
const SAMPLE: f64 = 4.0;

/// The share of the accepted latency that a discard is planned to take.
const MARGIN: f64 = 0.80;

/// The same where a plan has taken the drive's jitter into account.
const PLANNED_MARGIN: f64 = 0.97;

/// Sizes of pieces and of the discards that they become.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    /// The present piece, in bytes.
    current: u64,
    /// A discard of it, in bytes.
    command: u64,
    smallest: u64,
    /// The usual discard of an extent that isn't cut.
    whole: Bytes,
    /// The same as the caller announced it.
    told: Bytes,
    /// The largest discard that is sent at all.
    longest: Bytes,
    /// The largest discard that a card allows, where there is one.
    planned: Option<Bytes>,
    /// The largest piece that was acknowledged.
    landed: Bytes,
    /// The least number of discards in a piece. It rises while the round trip, not the goal, keeps
    /// pieces waiting.
    eager: f64,
    /// Pieces sent so far.
    sent: u32,
    /// How long a commit's flushes take.
    flushing: Seconds,
    /// How many times each byte is discarded, on average.
    times: f64,
    /// The goal's latency, if it has one: the most that a discard may take.
    max_latency: Option<Seconds>,
    /// Whether a commit's discards are no extents': btrfs joins those that are
    /// neighbours, adds its trees', and sends those of emptied groups a commit later.
    by_commit: bool,
    /// The time of the discards of the cheapest piece. On btrfs the first piece doesn't count.
    cheapest: Seconds,
    shape: Shape,
}

impl Sizes {
    /// Creates the sizes. `planned` is the discard's size where a card gives the cost of sizes. The
    /// first piece is a quarter of it, because cards can be wrong.
    pub(crate) fn new(work: &Work, goal: &Goal, planned: Option<u64>) -> Sizes {
        let whole = work.whole();
        let first = match (planned, goal.max_latency) {
            (Some(planned), None) => (planned / 4).max(FIRST),
            (Some(planned), Some(_)) => (planned / 4).max(FIRST_CAREFUL),
            (None, Some(_)) => FIRST_CAREFUL,
            (None, None) => FIRST,
        };
        let first = first.max(work.smallest()).min(whole);
        Sizes {
            current: first,
            command: first,
            smallest: work.smallest(),
            whole: Bytes::from(whole),
            told: Bytes::from(whole),
            longest: Bytes::from(work.unit.max(whole)),
            planned: planned.map(|planned| Bytes::from(planned.max(1))),
            landed: Bytes::ZERO,
            eager: 1.0,
            sent: 0,
            flushing: Seconds::ZERO,
            times: 1.0,
            max_latency: goal.max_latency.map(Seconds::from),
            by_commit: work.discards_twice,
            cheapest: Seconds::INFINITE,
            shape: Shape::default(),
        }
    }

    /// Takes in that the next extents have `bytes` bytes on average.
    pub(crate) fn expect_extents(&mut self, bytes: u64) {
        if self.shape.extent().is_none() {
            let bytes = Bytes::from(bytes.max(self.smallest));
            (self.whole, self.told) = (self.whole.min(bytes), self.told.min(bytes));
        }
    }

    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    /// Returns the bytes in each discard of the present piece.
    pub(crate) fn command(&self) -> u64 {
        self.command.max(1)
    }

    /// Returns the same, but no more than the largest piece that was acknowledged.
    pub(crate) fn known_command(&self) -> Bytes {
        Bytes::from(self.command).min(self.landed.max(Bytes(1.0)))
    }

    pub(crate) fn smallest(&self) -> u64 {
        self.smallest
    }

    pub(crate) fn whole(&self) -> Bytes {
        self.whole.max(Bytes(1.0))
    }

    /// Whether a commit writes and discards blocks of the file system's trees.
    pub(crate) fn is_by_commit(&self) -> bool {
        self.by_commit
    }

    pub(crate) fn is_probing(&self, cost: &Cost) -> bool {
        !cost.is_known() || self.landed < Bytes::from(self.current) / 1.5
    }

    /// Takes in that a piece was sent. `waited`: it had to wait for the budget.
    pub(crate) fn sent(&mut self, waited: bool) {
        self.sent = self.sent.wrapping_add(1);
        let change = if waited { 1.0 / EAGER } else { EAGER };
        self.eager = (self.eager * change).clamp(1.0, 64.0);
    }

    /// Takes in an acknowledged piece of `freed` bytes, which became `commands` discards of `bytes`
    /// in all. The device took `busy` for them. `again`: bytes beside the piece that were discarded
    /// a second time, which count as freed.
    pub(crate) fn landed(
        &mut self,
        freed: u64,
        again: u64,
        commands: u64,
        bytes: u64,
        busy: Seconds,
    ) {
        let is_first = self.landed <= Bytes::ZERO;
        self.landed = self.landed.max(Bytes::from(freed));
        // What was changed before is committed with the first: more of the trees than later.
        if commands == 0 || is_first && self.by_commit {
            return;
        }
        self.cheapest = self.cheapest.min(busy);
        let beside = bytes.saturating_sub(freed + again);
        let (freed, commands) = (Bytes::from(freed + again), commands as f64);
        let more = match self.by_commit {
            true => commands,
            false => commands - freed / self.whole,
        };
        if is_beside(beside, more) {
            self.shape.learn(freed, commands, busy, self.whole);
        }
        // Extents can be shorter than was thought; a rest that was cut off isn't one.
        let mean = self.shape.extent().unwrap_or(self.whole);
        let no_shorter = Bytes::from(bytes) >= self.whole * 0.99 * commands;
        let are_shorter = mean < self.whole / 2.5;
        if self.by_commit && !are_shorter {
            // How many of them a discard joins is no matter.
            return;
        }
        if are_shorter || mean > self.whole * 2.5 {
            self.whole = mean.clamp(Bytes::from(self.smallest), self.longest);
        } else if self.shape.is_together(self.whole) {
            self.whole = self.landed.clamp(self.whole, self.longest);
        } else if no_shorter && freed > self.whole * 1.5 {
            self.whole = (self.whole * 1.1).min(self.told.max(self.whole));
        }
    }

    /// Takes in the flushes of the commits of an acknowledged piece.
    pub(crate) fn flushed(&mut self, flight: &Flight) {
        let ours = own_flushes(flight.commits, flight.flushes) * flight.flushing;
        self.flushing += FLUSHING_WEIGHT * (ours - self.flushing);
    }

    /// Takes in how many times each byte is discarded, on average.
    pub(crate) fn discarded(&mut self, times: f64) {
        self.times = times;
    }

    /// Returns how many discards come with each commit, however much is freed: those of the file
    /// system's own trees.
    pub(crate) fn beside(&self) -> f64 {
        self.shape.beside()
    }

    /// Returns how long these take with each commit.
    pub(crate) fn commit(&self) -> Seconds {
        self.shape.commit()
    }

    /// Returns the device's time for a commit, and for each byte that is discarded. `None` where
    /// the commit isn't what is paced.
    pub(crate) fn line(&self, cost: &Cost) -> Option<Line> {
        if !self.by_commit || self.max_latency.is_some() {
            return None;
        }
        // No more than if none of the extents were joined.
        let most = cost.predict(self.whole)? / self.whole;
        let line = self.shape.line(most)?;
        (line.per_byte > SecondsPerByte::ZERO).then_some(line)
    }

    /// Returns the size of the next piece, in bytes. `share`: the share of the time that may be
    /// lost, `None` without a limit. `idle`: nobody waits for these discards. `overhead`: the time
    /// around each piece.
    pub(crate) fn choose(
        &mut self,
        cost: &Cost,
        phi: Share,
        share: Option<Share>,
        idle: bool,
        overhead: Seconds,
        scale: f64,
    ) -> u64 {
        if self.landed <= Bytes::ZERO {
            return self.current;
        }
        let margin = if self.planned.is_some() {
            PLANNED_MARGIN
        } else {
            MARGIN
        };
        let limit = self
            .max_latency
            .map_or(Seconds::INFINITE, |l| l * margin * scale);
        let brief = if idle { PIECE_LOSS } else { BRIEF };
        let (command, cut) = self.command_size(cost, phi, brief, limit, margin);
        let line = self.line(cost);
        let (one, beside) = match line {
            Some(line) => (line.per_byte * command, line.fixed),
            None => (cost.predict(command).unwrap_or(PIECE_LOSS), self.commit()),
        };
        let one = one.max(Seconds(1e-7)) * self.times;
        let by_latency = cut && self.max_latency.is_some();
        let mut piece = command;
        if cut && !by_latency && self.sent.is_multiple_of(SAMPLE_EVERY) {
            piece = command / SAMPLE;
        } else if !by_latency {
            // So long that what is around it doesn't make it late.
            let long = match share.map(|share| phi / share.min(phi) - 1.5) {
                Some(room) if room > 0.0 => 1.5 * overhead / room,
                _ => Seconds::INFINITE,
            };
            // Each part of a cut extent has a commit of its own.
            let (commits, eager) = match cut {
                true => (1.0, self.eager.min(TOGETHER * brief / (phi * one))),
                false => ((beside + self.flushing) / (COMMITS * one), self.eager),
            };
            let (commits, eager) = (commits.ceil(), eager.floor());
            let loss = |most: Seconds| ((most / phi.max(Share(0.05)) - beside) / one).floor();
            // At least half of what is lost is for what is freed.
            let half = (beside / one).ceil();
            let mut most = loss(PIECE_LOSS)
                .max(loss(COMMIT_LOSS).min(commits))
                .max(half);
            if line.is_some_and(|line| self.holds_nothing(line.per_byte, phi, share)) {
                most = most.max(commits.min((Bytes::from(GROUP) / command).ceil()));
            }
            piece = command
                * (long / one)
                    .ceil()
                    .max(eager)
                    .max(commits)
                    .clamp(1.0, most.max(1.0));
        }
        // Larger than any before only as far as the worst case is bearable.
        let known = self.landed.max(Bytes(1.0));
        if line.is_some() {
            piece = piece.min(known * GROWTH);
            let group = Bytes::from(GROUP);
            if piece >= NEARLY_A_GROUP * group {
                piece = (piece / group).round() * group;
            }
        } else if piece > known {
            let now = cost.predict(known.min(self.whole)).unwrap_or_default()
                * (known / self.whole).max(1.0);
            // A latency may be missed by a piece: that is far less than a
            // thousandth of the time.
            let latest = (PROBED * limit).max(now);
            // A drive whose small discards are long gains nothing by small steps.
            let is_brief = cost.least_of_smallest(1.0) < brief;
            let has_slope = |fit: Fit| fit.line.per_byte > SecondsPerByte::ZERO;
            let is_whole = !cut && cost.fit().is_some_and(has_slope);
            let phi = phi.max(Share(0.5));
            let by_small_steps = !idle && is_brief && !is_whole && piece <= self.whole;
            let bearable = match by_small_steps {
                true => GROWING / phi,
                false => (PIECE_LOSS / phi).max(2.4 * now + Seconds(0.002)),
            }
            .min(latest);
            let costs = |bytes: Bytes| {
                let each = bytes.min(self.whole);
                cost.predict(each).unwrap_or(Seconds::INFINITE) * (bytes / each)
            };
            let mut most = piece.min(known * GROWTH);
            while most > known && costs(most) > bearable {
                most = most / 1.25;
            }
            piece = most.max(known);
        }
        let smallest = self.smallest.max(1);
        self.current = (piece.0 as u64).max(smallest);
        self.command = (piece.min(command).0 as u64).max(smallest);
        self.current
    }

    /// Returns whether no pace keeps the goal at every moment. Then the cheapest commit costs more
    /// than an interval may lose. One that empties a group costs more than a window of a second may
    /// lose. The fewer commits there are, the less is lost.
    fn holds_nothing(&self, per_byte: SecondsPerByte, phi: Share, share: Option<Share>) -> bool {
        let with_a_group = self.cheapest + per_byte * Bytes::from(GROUP);
        let window = Seconds(1.0);
        let held = share.map_or(Seconds::INFINITE, |share| (share + TOLERANCE) * window);
        phi * self.cheapest > COMMIT_LOSS && phi * with_a_group > held
    }

    /// Returns the size of a discard, and whether it is less than a whole one.
    fn command_size(
        &self,
        cost: &Cost,
        phi: Share,
        brief: Seconds,
        limit: Seconds,
        margin: f64,
    ) -> (Bytes, bool) {
        let whole = self.whole;
        let missed = self
            .max_latency
            .is_some_and(|l| cost.least_of_largest() > 0.98 * l);
        // Too much, and it isn't known yet what smaller ones cost.
        let smallest = Bytes::from(self.smallest);
        let half = (self.landed.min(whole) / 2.0).max(smallest);
        let Some(Fit { line, least_fixed }) = cost.fit() else {
            return if missed { (half, true) } else { (whole, false) };
        };
        // A piece that is cut off has a commit of its own. Of a cost that is hardly known the least
        // counts: small pieces show it soon, and a large one by mistake keeps reads waiting.
        let with_commit = Line {
            fixed: least_fixed + self.commit() + self.flushing,
            ..line
        };
        let mut count = cuts(with_commit, phi, whole, brief) as f64;
        let one = line.at(whole);
        if one > limit {
            // Half of what the whole limit leaves, where the margin leaves less.
            let whole_limit = limit / margin * PLANNED_MARGIN;
            let room = (limit - line.fixed).max(0.5 * (whole_limit - line.fixed));
            let largest = match line.per_byte > SecondsPerByte::ZERO {
                true => room.max(Seconds::ZERO) / line.per_byte,
                false => Bytes::ZERO,
            };
            let needed = (whole / largest.max(smallest)).ceil();
            // Cutting what is nearly all a gains nothing but more discards.
            if line.at(whole / needed) < 0.9 * one {
                count = count.max(needed);
            }
        }
        if count <= 1.0 && missed {
            return (half, true);
        }
        if let Some(planned) = self.planned {
            count = count.max((whole / planned).ceil());
        }
        ((whole / count).max(smallest).min(whole), count > 1.0)
    }
}
