//! The file system's commits: what was freed reaches the policy with one.

use std::ops::Range;

use ssd::Command;

use super::{Act, Run, SimError};
use crate::stack::Owner;

/// Commits, one at a time.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// Freed and not committed.
    pub(super) freed: Vec<Range<u64>>,
    /// In the commit that is under way.
    committing: Vec<Range<u64>>,
    is_under_way: bool,
    /// Whether another is wanted when this one is done.
    is_wanted: bool,
    /// Whether the policy ordered the next one.
    pub(super) ordered: bool,
    ordered_now: bool,
    has_timer: bool,
    /// Actors that sync and wait for a commit with its discards.
    pub(super) waiting: Vec<u16>,
    /// Whether the workload waits for one.
    pub(super) job_waits: bool,
    job_waits_now: bool,
}

impl Run<'_> {
    /// Frees bytes of removed files: they reach the policy at once or with the next commit.
    pub(super) fn free(&mut self, ranges: Vec<Range<u64>>) -> Result<(), SimError> {
        self.recorder
            .freed(ranges.iter().map(|r| r.end - r.start).sum());
        if !self.nature.commits {
            return self.freed(&ranges);
        }
        self.commits.freed.extend(ranges);
        if !std::mem::replace(&mut self.commits.has_timer, true) {
            self.plan(self.now + self.setup.commit_every, Act::CommitTimer);
        }
        Ok(())
    }

    fn freed(&mut self, ranges: &[Range<u64>]) -> Result<(), SimError> {
        let before = self.held;
        self.held += ranges.iter().map(|r| r.end - r.start).sum::<u64>();
        self.with_policy(|policy, desk| policy.freed(ranges, desk))?;
        // What it releases at once was never held.
        let more = self.held.saturating_sub(before);
        self.held = self.held.min(before);
        self.held(more);
        Ok(())
    }

    pub(super) fn commit_timer(&mut self) -> Result<(), SimError> {
        self.commits.has_timer = false;
        match self.commits.freed.is_empty() {
            true => Ok(()),
            false => self.begin_commit(),
        }
    }

    /// Begins a commit, or another one behind that under way.
    pub(super) fn begin_commit(&mut self) -> Result<(), SimError> {
        if self.commits.is_under_way {
            self.commits.is_wanted = true;
            return Ok(());
        }
        self.commits.is_under_way = true;
        self.commits.committing = std::mem::take(&mut self.commits.freed);
        self.commits.ordered_now = std::mem::take(&mut self.commits.ordered);
        self.commits.job_waits_now = std::mem::take(&mut self.commits.job_waits);
        self.plan(self.now + self.setup.commit_time, Act::Committed);
        Ok(())
    }

    /// The commit's blocks are written: now they must be durable.
    pub(super) fn committed(&mut self) -> Result<(), SimError> {
        self.stack
            .submit(self.now, self.now, Owner::Commit, Command::Flush)?;
        Ok(())
    }

    pub(super) fn commit_flushed(&mut self) -> Result<(), SimError> {
        self.commits.is_under_way = false;
        let ordered = std::mem::take(&mut self.commits.ordered_now);
        let freed = std::mem::take(&mut self.commits.committing);
        if std::mem::take(&mut self.commits.job_waits_now) {
            self.job.synced = true;
        }
        if ordered {
            self.seen.ordered_commits += 1;
        }
        // A commit that frees nothing is none to the policy.
        if !freed.is_empty() {
            self.freed(&freed)?;
        }
        if ordered {
            self.with_policy(|policy, desk| policy.committed(desk))?;
        }
        if std::mem::take(&mut self.commits.is_wanted) {
            self.begin_commit()?;
        }
        self.look_for_waiters()
    }

    /// Whether whoever syncs has to wait for discards.
    pub(super) fn sync_waits(&self) -> bool {
        self.nature.commit_waits && !self.policy.is_settled()
    }

    /// Lets those go on whose wait is over.
    pub(super) fn look_for_waiters(&mut self) -> Result<(), SimError> {
        if !self.commits.waiting.is_empty() && !self.sync_waits() {
            for actor in std::mem::take(&mut self.commits.waiting) {
                self.sync_returns(actor);
            }
        }
        self.job_looks()
    }
}
