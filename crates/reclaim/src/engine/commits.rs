//! Commits: they make a file system send the discards of what was freed.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Engine;
use crate::error::ReclaimError;
use crate::watch::Watch;

/// A debt that unlinks made and nothing has paid for so long is worth another
/// commit; then for twice as long, and so on.
const FIRST_AGAIN: Duration = Duration::from_millis(2);

/// The longest.
const LAST_AGAIN: Duration = Duration::from_millis(500);

/// A commit that is made again until the debt is paid.
#[derive(Debug)]
pub(super) struct Again {
    anchor: Arc<File>,
    wait: Duration,
    at: Instant,
}

impl Engine {
    /// A commit that the pacer asked for.
    pub(super) fn force(&mut self, watch: &mut dyn Watch) -> Result<(), ReclaimError> {
        self.commits += 1;
        self.sync(watch)
    }

    /// Commits the journal by a file of ours: what came before it goes along, and
    /// no data of a file that is about to go are written.
    pub(crate) fn commit(
        &mut self,
        anchor: &Arc<File>,
        watch: &mut dyn Watch,
    ) -> Result<(), ReclaimError> {
        let anchor = Arc::clone(anchor);
        let job = move || {
            touch(&anchor)?;
            anchor.sync_all()
        };
        self.call(watch, job)?
            .map_err(|source| self.failed("commit the file system of", source))
    }

    /// From now on the journal is committed again and again until the debt is paid:
    /// what was unlinked is freed in the background, after the commit that followed.
    pub(crate) fn commit_again(&mut self, anchor: &Arc<File>) {
        self.again = Some(Again {
            anchor: Arc::clone(anchor),
            wait: FIRST_AGAIN,
            at: Instant::now() + FIRST_AGAIN,
        });
    }

    pub(super) fn commit_if_due(&mut self, watch: &mut dyn Watch) -> Result<bool, ReclaimError> {
        let Some(again) = &mut self.again else {
            return Ok(false);
        };
        if self.pacer.state().debt == 0 {
            self.again = None;
            return Ok(false);
        }
        let now = Instant::now();
        if now < again.at {
            return Ok(false);
        }
        again.wait = (again.wait * 2).min(LAST_AGAIN);
        again.at = now + again.wait;
        let anchor = Arc::clone(&again.anchor);
        self.commit(&anchor, watch)?;
        Ok(true)
    }

    /// So long, but no longer than until a commit is due.
    pub(super) fn until_commit(&self, length: Duration) -> Duration {
        let due = self.again.as_ref().map(|again| again.at);
        due.map_or(length, |at| {
            length.min(at.saturating_duration_since(Instant::now()))
        })
    }

    /// Commits the whole file system, and what its cleaner thread has to do comes with the
    /// next such commit, not half a minute later.
    pub(crate) fn sync(&mut self, watch: &mut dyn Watch) -> Result<(), ReclaimError> {
        let clone = self.on.try_clone();
        let on = clone.map_err(|source| self.failed("sync the file system of", source))?;
        self.call(watch, move || match linux::btrfs::sync_and_clean(&on) {
            Ok(()) => Ok(()),
            // No btrfs, as a rule; and what else is wrong this tells again.
            Err(_) => rustix::fs::syncfs(&on).map_err(io::Error::from),
        })?
        .map_err(|source| self.failed("sync the file system of", source))?;
        self.settled = self.settles;
        Ok(())
    }
}

/// Changes a file's times, so that the running transaction has something of it.
fn touch(file: &File) -> io::Result<()> {
    let now = rustix::fs::Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_NOW,
    };
    let times = rustix::fs::Timestamps {
        last_access: now,
        last_modification: now,
    };
    rustix::fs::futimens(file, &times).map_err(io::Error::from)
}
