//! A volume: one file system on which space is freed, and its throttle.
//!
//! Discards follow freed space, and when they come depends on the file system:
//!
//! | file system | when its discards come | what a volume does |
//! |---|---|---|
//! | ext4 without a journal | within the call that frees | nothing more: the discards are done when the call returns |
//! | ext4, XFS | after the commit of the journal | it forces a commit after each piece; then the devices' statistics show them |
//! | XFS, of unlinked names | after a commit that follows the background work in which their space is freed | it repeats the commit until the debt is paid |
//! | btrfs, `discard=sync` | within the commit of the transaction | it commits the whole file system after each piece, which ends at an extent's boundary: part of an extent frees nothing |
//! | btrfs, of block groups (1 GiB) that have become empty | whole, up to a minute later, all at once | it wakes the cleaner thread with each commit: then they come one by one with the next |
//! | btrfs, of a deleted subvolume | with the commits in which the cleaner thread frees it | it deletes as many as the pacer allows, and waits until the cleaner has finished before it asks for more |
//! | btrfs, `discard=async`; f2fs | long after, by 120 s on btrfs | it doesn't wait for the debt and holds a rate |
//! | any, mounted without discard, or on devices that take none | never | it paces nothing and prints a note |

mod cleaner;
mod cutting;
mod probe;

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linux::files::{FileError, allocated_bytes};
use pace::{Advice, DebtMode, GROUP, SMALLEST_GROUP, State, Work};
use rustix::process::{Resource, getrlimit};
use storage::Commit;

use crate::event::{Listener, note_all};
use crate::throttle::{
    LONGEST_GRANT, Observation, Pacing, Purpose, Setup, Stack, Summary, Throttle, shown,
};
use crate::{ReclaimError, Result};
use cutting::{Cutting, Remains};

pub use cleaner::Cleaned;
use cleaner::Cleaner;
pub(crate) use probe::try_latency;

/// Files of at least this many bytes are emptied piece by piece, and a deletion of at least this
/// many bytes is paced.
pub(crate) const LARGE: u64 = 1 << 20;

/// The longest truncation in one call where nothing is paced.
const LARGEST_CALL: u64 = 1 << 30;

/// The longest time for which small files share a piece. Their discards come with its commit, so
/// none keeps other I/O waiting before that.
const LONGEST_SHARED: Duration = Duration::from_millis(250);

/// How many milliseconds btrfs's cleaner thread gets to remove emptied groups, one round after
/// the other.
const CLEANING_MS: [u64; 4] = [25, 75, 100, 100];

/// The result of emptying one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Emptied {
    /// Bytes that were allocated and are free now.
    pub bytes: u64,
    /// Of them, bytes for which no discard comes: shared, or never on disk.
    pub exempt: u64,
    /// Truncations that it took.
    pub calls: u64,
}

/// One file system on which space is freed, and its throttle.
#[derive(Debug)]
pub struct Volume {
    throttle: Throttle,
    stack: Stack,
    cutting: Cutting,
    /// The piece that small files share.
    piece: SharedPiece,
    skip_commits: bool,
    cleaner: Cleaner,
}

/// A piece that was granted for small files.
#[derive(Debug)]
struct SharedPiece {
    /// Bytes of it that may still be freed.
    left: u64,
    granted: Instant,
}

impl Volume {
    /// Starts to free on the file system of `on`, any directory of it. `work` is all that will be
    /// freed; the storage stack shapes it (unit, granularity, mode).
    ///
    /// # Errors
    /// [`ReclaimError::Refused`] if a card says that the goal can't be met; otherwise if the file
    /// system can't be examined.
    pub fn start(
        on: BorrowedFd<'_>,
        pacing: &Pacing,
        work: &Work,
        listener: &mut Listener<'_>,
    ) -> Result<Volume> {
        Volume::of(on, Stack::at(on)?, None, pacing, work, listener)
    }

    /// As [`start`](Self::start), with a stack that is known, and with what was observed before the
    /// work was known.
    ///
    /// # Errors
    /// [`ReclaimError::Refused`] as above, or [`ReclaimError::Io`] if the devices can't be observed.
    pub(crate) fn of(
        on: BorrowedFd<'_>,
        mut stack: Stack,
        observed: Option<Observation>,
        pacing: &Pacing,
        work: &Work,
        listener: &mut Listener<'_>,
    ) -> Result<Volume> {
        let mut cutting = Cutting::of(stack.file_system, stack.block);
        if pacing.goal().is_some_and(|goal| goal.max_latency.is_some()) {
            // The wait depends on the size of a discard, so no piece may be larger.
            cutting.rest = 0.0;
        }
        let paces = work.bytes >= LARGE;
        if !paces {
            stack.mode = DebtMode::Never;
            stack.commit = Commit::Within;
        }
        note_all(listener, &stack.notes);
        let setup = Setup {
            on,
            stack: &stack,
            purpose: Purpose::Delete,
            work: &stack.shape(work),
            pacing,
        };
        let throttle = Throttle::start_with(&setup, observed.filter(|_| paces), listener)?;
        Ok(Volume {
            throttle,
            stack,
            cutting,
            piece: SharedPiece {
                left: 0,
                granted: Instant::now(),
            },
            skip_commits: pacing.skip_commits,
            cleaner: Cleaner::default(),
        })
    }

    /// Returns whether anything is paced: discards are sent, and at least 1 MiB is to be freed.
    pub fn is_paced(&self) -> bool {
        self.throttle.is_paced()
    }

    /// Returns the pacer's state.
    pub fn state(&self) -> State {
        self.throttle.state()
    }

    /// Empties a file that no process needs any more: from its tail, in pieces by allocated blocks.
    /// It must be open for writing. The caller unlinks it afterwards.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`], [`ReclaimError::Refused`], or [`ReclaimError::Free`] with the
    /// kernel's error.
    pub fn empty(&mut self, file: &File, listener: &mut Listener<'_>) -> Result<Emptied> {
        self.clean(listener)?;
        let failed = |source: io::Error| free_failed(file, source);
        let metadata = file.metadata().map_err(failed)?;
        let allocated = allocated_bytes(&metadata);
        let own = Arc::new(file.try_clone().map_err(failed)?);
        let mut done = Emptied::default();
        if !self.is_paced() {
            self.empty_unpaced(&own, metadata.len(), &mut done, listener)?;
        } else if allocated >= LARGE {
            let remains = self.remains(&own, metadata.len(), allocated, listener)?;
            self.empty_paced(&own, remains, allocated, &mut done, listener)?;
        } else if allocated > 0 {
            self.grant(allocated, listener)?;
        }
        self.cut(&own, 0, listener)?;
        let rest = allocated.saturating_sub(done.bytes);
        if rest > 0 {
            // No extent had it: what XFS reserved for a file that grew, or where the extents
            // themselves are kept.
            let exempt = if done.calls > 0 { rest } else { 0 };
            self.throttle.freed(rest, exempt);
            done.exempt += exempt;
            done.bytes += rest;
        }
        assert!(
            done.bytes >= done.exempt,
            "more exempt than freed: {done:?}"
        );
        self.commit(listener)?;
        Ok(done)
    }

    /// Returns the parts of a file that are to be freed.
    ///
    /// Space allocated beyond the file's end (`fallocate -n`) comes free with any truncation to the
    /// file's length or less, all at once. So the file is first made long enough to contain it.
    /// Where it can't be, this waits for the pacer and frees that space in one piece.
    fn remains(
        &mut self,
        file: &Arc<File>,
        length: u64,
        allocated: u64,
        listener: &mut Listener<'_>,
    ) -> Result<Remains> {
        let look = |length: u64, cutting| {
            Remains::of(file, length, allocated, cutting)
                .map_err(|error| free_failed(file, io::Error::other(error)))
        };
        let remains = look(length, self.cutting)?;
        let end = remains.end();
        if end <= length {
            return Ok(remains);
        }
        // Beyond the limit of this process the kernel would end it with a signal.
        let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        if end <= limit {
            match self.cut(file, end, listener) {
                Err(ReclaimError::Free { .. }) => {}
                longer => return longer.map(|()| remains),
            }
        }
        self.grant(end - length, listener)?;
        self.cut(file, length, listener)?;
        self.throttle.needs_commit();
        look(length, self.cutting)
    }

    /// Waits until the caller may unlink a small file that holds `bytes`. Then the caller
    /// calls [`freed`](Volume::freed).
    ///
    /// Small files share a piece: the pacer is asked, and a commit forced, only when the
    /// next file doesn't fit into what is left of it. A file that is larger than a
    /// whole piece takes one.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`], [`ReclaimError::Refused`].
    pub fn allow(&mut self, bytes: u64, listener: &mut Listener<'_>) -> Result<()> {
        self.renew(bytes, listener)?;
        self.piece.left = self.piece.left.saturating_sub(bytes);
        Ok(())
    }

    /// Whether a file that holds `bytes` fits into what is left of the present piece, or into
    /// a new one, for which this waits. Then the caller may remove it as a small one.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`], [`ReclaimError::Refused`].
    pub fn fits(&mut self, bytes: u64, listener: &mut Listener<'_>) -> Result<bool> {
        self.renew(bytes, listener)?;
        Ok(!self.is_paced() || self.piece.left >= bytes)
    }

    /// Waits for a new piece unless `bytes` fit into the present one.
    fn renew(&mut self, bytes: u64, listener: &mut Listener<'_>) -> Result<()> {
        self.clean(listener)?;
        self.throttle.report(listener, false)?;
        let fits = self.piece.left >= bytes && self.piece.granted.elapsed() < LONGEST_SHARED;
        if self.is_paced() && bytes > 0 && !fits {
            let advice = self.grant(bytes, listener)?;
            self.piece = SharedPiece {
                left: advice.allow,
                granted: Instant::now(),
            };
        }
        Ok(())
    }

    /// Reports that the caller has freed so many bytes by unlinking files. No discard comes for
    /// `exempt` of them.
    ///
    /// # Panics
    /// If more bytes are exempt than were freed so far.
    pub fn freed(&mut self, bytes: u64, exempt: u64) {
        self.throttle.unlinked(bytes, exempt);
    }

    /// Commits, and waits for the discards that come of it, but for none that may never come: of a
    /// file that another process has open.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn settle(&mut self, listener: &mut Listener<'_>) -> Result<()> {
        match self.is_paced() {
            true => {
                self.commit(listener)?;
                self.throttle.settle_debt(listener)
            }
            false => Ok(()),
        }
    }

    /// Waits until the debt is paid or written off, and returns the summary.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`].
    pub fn finish(mut self, listener: &mut Listener<'_>) -> Result<Summary> {
        self.clean(listener)?;
        // Also where none was to be forced after each piece: now the debt is waited for.
        self.skip_commits = false;
        self.commit(listener)?;
        self.throttle.pay(listener)?;
        // The commit of a whole file system returns when its discards are done.
        if self.stack.mode == DebtMode::Commit && self.stack.commit != Commit::Whole {
            self.throttle.last_discards(listener)?;
        }
        if self.stack.discards_twice && self.throttle.freed_bytes() >= GROUP / 8 {
            self.empty_groups(listener)?;
        }
        let cleaned = self.cleaner.done;
        let summary = Summary {
            mount: self.stack.mount.clone(),
            cleaned: (cleaned.subvolumes > 0).then_some(cleaned),
            ..self.throttle.finish(listener)?
        };
        if self.stack.sends_in_background() {
            return Ok(summary.without_discards(self.stack.file_system));
        }
        let summary = summary.beside_cleaner();
        Ok(match self.stack.commit {
            Commit::File => summary,
            Commit::Within | Commit::Whole => Summary {
                rest: Duration::ZERO,
                ..summary
            },
        })
    }

    /// Makes btrfs discard the last emptied block groups, as the pacer allows. Otherwise it would
    /// discard them up to a minute later, all at once.
    fn empty_groups(&mut self, listener: &mut Listener<'_>) -> Result<()> {
        for (round, ms) in CLEANING_MS.into_iter().enumerate() {
            let before = self.throttle.discards().bytes;
            self.throttle.grant(GROUP, listener)?;
            self.throttle.pause(Duration::from_millis(ms), listener)?;
            self.throttle.sync(listener)?;
            self.throttle.pay(listener)?;
            let came = self.throttle.discards().bytes - before;
            let all_came = self.throttle.state().discarded_twice >= self.throttle.freed_bytes();
            // The first round is too short for all there may be.
            if all_came || came < SMALLEST_GROUP && round > 0 {
                break;
            }
        }
        Ok(())
    }

    /// Empties a file in pieces, as the pacer allows.
    fn empty_paced(
        &mut self,
        file: &Arc<File>,
        mut remains: Remains,
        allocated: u64,
        done: &mut Emptied,
        listener: &mut Listener<'_>,
    ) -> Result<()> {
        let failed = |error: FileError| free_failed(file, io::Error::other(error));
        if !remains.is_empty(file).map_err(failed)?
            && let Some(bytes) = remains.usual_extent()
        {
            self.throttle.expect_extents(bytes);
        }
        while !remains.is_empty(file).map_err(failed)? {
            let advice = self.grant(allocated.saturating_sub(done.bytes), listener)?;
            let began = Instant::now();
            let mut allowed = advice.allow;
            let mut first = true;
            while allowed > 0 && (first || began.elapsed() < LONGEST_GRANT) {
                let most = advice.piece.min(allowed).min(LARGEST_CALL);
                // The rest of what is allowed isn't worth a cut.
                let may_cut = first || allowed >= advice.piece;
                let Some(piece) = remains.next(file, most, may_cut).map_err(failed)? else {
                    break;
                };
                self.cut(file, piece.length, listener)?;
                self.throttle.freed(piece.frees, piece.exempt);
                done.bytes += piece.frees;
                done.exempt += piece.exempt;
                done.calls += 1;
                allowed = allowed.saturating_sub(piece.weight);
                first = false;
                // Parts of one extent would be discarded together again.
                if piece.cuts {
                    self.commit(listener)?;
                }
            }
            self.commit(listener)?;
        }
        Ok(())
    }

    /// Empties a file in large steps, so that it can be stopped.
    fn empty_unpaced(
        &mut self,
        file: &Arc<File>,
        length: u64,
        done: &mut Emptied,
        listener: &mut Listener<'_>,
    ) -> Result<()> {
        let step = (4 * LARGEST_CALL).max(length / 256);
        let mut left = length;
        while left > step {
            left -= step;
            self.cut(file, left, listener)?;
            done.calls += 1;
        }
        Ok(())
    }

    /// Truncates the file to `length` bytes.
    fn cut(&mut self, file: &Arc<File>, length: u64, listener: &mut Listener<'_>) -> Result<()> {
        let own = Arc::clone(file);
        self.throttle
            .call(listener, move || own.set_len(length))?
            .map_err(|source| free_failed(file, source))
    }

    /// Forces a commit, where the file system would otherwise keep its discards for later.
    fn commit(&mut self, listener: &mut Listener<'_>) -> Result<()> {
        match self.skip_commits {
            true => Ok(()),
            false => self.throttle.commit_freed(listener),
        }
    }

    /// Waits until the pacer allows something to be freed, and returns its advice. At least `least`
    /// bytes are left to free.
    ///
    /// It first commits all that was freed before: otherwise the file system would wait seconds
    /// with its commit, and the pacer waits for those discards.
    fn grant(&mut self, least: u64, listener: &mut Listener<'_>) -> Result<Advice> {
        self.piece.left = 0;
        self.commit(listener)?;
        self.throttle
            .grant(self.throttle.left().max(least), listener)
    }
}

pub(super) fn free_failed(file: &File, source: io::Error) -> ReclaimError {
    ReclaimError::Free {
        path: shown(file),
        source,
    }
}

#[cfg(test)]
mod tests;
