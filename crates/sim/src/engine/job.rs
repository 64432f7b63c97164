//! The workload's thread: one step after the other.

use std::collections::VecDeque;
use std::ops::Range;

use record::EventKind;
use ssd::{Command, Time};

use super::actors::foreground;
use super::{Act, Run, SimError};
use crate::stack::Owner;
use crate::volume::{FileId, NoSpace, pieces};
use crate::workload::{Step, Workload};

/// The tag of a discard that the workload itself sends.
pub(super) const OWN_TAG: u64 = u64::MAX;

/// The largest write, and the most in flight: those of the page cache's writeback, about.
const WRITE: u64 = 1 << 20;
const WRITES: usize = 4;

/// The workload and what it waits for.
#[derive(Debug)]
pub(super) struct Job {
    workload: Box<dyn Workload>,
    state: State,
    /// Writes that are not issued yet, and those in flight.
    writes: VecDeque<Range<u64>>,
    writing: usize,
    /// A commit that it waits for is done.
    pub(super) synced: bool,
    /// Files whose removal has been called, and when all calls have returned.
    deletes: VecDeque<FileId>,
    /// Of [`Step::DiscardAll`]: where it is, and its step.
    at: u64,
    step: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Sleeping,
    Writing,
    Deleting,
    /// The deleter waits for discards.
    Settling,
    Syncing,
    Discarding,
    Draining(Time),
    /// An allocation waits for a discard, since then.
    WaitingForSpace(u64, Time),
    Ended,
}

impl Job {
    pub(super) fn new(workload: Box<dyn Workload>) -> Job {
        Job {
            workload,
            state: State::Running,
            writes: VecDeque::new(),
            writing: 0,
            synced: false,
            deletes: VecDeque::new(),
            at: 0,
            step: 0,
        }
    }
}

impl Run<'_> {
    /// Its time has come.
    pub(super) fn job_goes_on(&mut self) -> Result<(), SimError> {
        match self.job.state {
            State::Running | State::Sleeping => self.next_step(),
            State::Deleting => self.delete_next(),
            State::Draining(until) if self.now >= until => {
                self.tally.gave_up = true;
                self.drained()
            }
            _ => Ok(()),
        }
    }

    fn next_step(&mut self) -> Result<(), SimError> {
        if self.setup.workload.is_continuous() && self.now >= Time::ZERO + self.setup.length {
            return self.end();
        }
        match self.job.workload.next(self.setup, &mut self.rng) {
            Step::Sleep(pause) => {
                self.job.state = State::Sleeping;
                self.plan(self.now + pause, Act::Job);
                Ok(())
            }
            Step::Create(bytes) => self.create(bytes),
            Step::Delete(files) => {
                self.tally.first_removal.get_or_insert(self.now);
                self.recorder
                    .begin_deletion(self.now, foreground(&mut self.actors));
                self.job.deletes.extend(files);
                self.job.state = State::Deleting;
                let each = self.setup.per_file;
                self.plan(self.now + each, Act::Job);
                Ok(())
            }
            Step::Sync => {
                self.job.state = State::Syncing;
                self.job.synced = false;
                self.commits.job_waits = true;
                self.recorder.commit(self.now, EventKind::CommitForced);
                self.begin_commit()
            }
            Step::DiscardAll(step) => {
                self.tally.first_removal.get_or_insert(self.now);
                self.recorder
                    .begin_deletion(self.now, foreground(&mut self.actors));
                self.job.state = State::Discarding;
                self.job.at = 0;
                self.job.step = step;
                self.discard_next()
            }
            Step::Drain => {
                self.job.state = State::Draining(self.now + self.setup.limit);
                self.plan(self.now + self.setup.limit, Act::Job);
                self.job_looks()
            }
            Step::Done => self.end(),
        }
    }

    fn go_on(&mut self) -> Result<(), SimError> {
        self.job.state = State::Running;
        self.plan(self.now, Act::Job);
        Ok(())
    }

    fn end(&mut self) -> Result<(), SimError> {
        self.job.state = State::Ended;
        self.ended = true;
        Ok(())
    }

    fn create(&mut self, bytes: u64) -> Result<(), SimError> {
        let file = self.volume.create();
        match self.volume.grow(file, bytes) {
            Ok(ranges) => {
                for range in &ranges {
                    self.policy.allocated(range);
                    self.job.writes.extend(pieces(range, WRITE));
                }
                self.job.workload.made(file);
                self.job.state = State::Writing;
                self.write_more()
            }
            Err(why) => {
                // The number is used again.
                self.volume.remove(file);
                self.no_space(bytes, why)
            }
        }
    }

    fn no_space(&mut self, bytes: u64, why: NoSpace) -> Result<(), SimError> {
        let since = match self.job.state {
            State::WaitingForSpace(_, since) => since,
            _ => {
                self.tally.waits += u64::from(why == NoSpace::Held);
                self.now
            }
        };
        if why == NoSpace::Full {
            self.tally.is_full = true;
            return self.end();
        }
        self.job.state = State::WaitingForSpace(bytes, since);
        // What waits for a commit is freed by one.
        match self.commits.freed.is_empty() {
            true => Ok(()),
            false => self.begin_commit(),
        }
    }

    fn write_more(&mut self) -> Result<(), SimError> {
        while self.job.writing < WRITES
            && let Some(range) = self.job.writes.pop_front()
        {
            self.job.writing += 1;
            self.flash.iter_mut().for_each(|flash| flash.write(&range));
            self.stack
                .submit(self.now, self.now, Owner::Job, Command::Write(range))?;
        }
        if self.job.writing == 0 {
            return self.go_on();
        }
        Ok(())
    }

    pub(super) fn job_io_done(&mut self) -> Result<(), SimError> {
        self.job.writing -= 1;
        self.write_more()
    }

    fn delete_next(&mut self) -> Result<(), SimError> {
        let Some(file) = self.job.deletes.pop_front() else {
            self.tally.last_call = Some(self.now);
            self.recorder.deletion_returned(self.now);
            if self.nature.deleter_waits {
                self.job.state = State::Settling;
                return self.job_looks();
            }
            return self.go_on();
        };
        let ranges = self.volume.remove(file);
        let bytes: u64 = ranges.iter().map(|r| r.end - r.start).sum();
        self.tally.removed_bytes += bytes;
        self.tally.removed_files += 1;
        let pause = match self.job.deletes.is_empty() {
            true => std::time::Duration::ZERO,
            false => self.setup.per_file,
        };
        self.plan(self.now + pause, Act::Job);
        self.with_policy(|policy, desk| policy.remove(ranges, desk))
    }

    pub(super) fn discard_next(&mut self) -> Result<(), SimError> {
        let largest = self.limits.map_or(self.job.step, |l| l.max_bytes);
        let end = self.volume.bytes().min(self.job.at + self.job.step);
        let end = end.min(self.job.at + largest);
        if self.job.at >= end {
            self.tally.last_call = Some(self.now);
            self.recorder.deletion_returned(self.now);
            return self.go_on();
        }
        let range = self.job.at..end;
        self.recorder.freed(end - self.job.at);
        self.tally.removed_bytes += end - self.job.at;
        self.job.at = end;
        self.queue_discard(OWN_TAG, vec![range]);
        Ok(())
    }

    /// Something has changed: the wait may be over.
    pub(super) fn job_looks(&mut self) -> Result<(), SimError> {
        match self.job.state {
            State::Syncing if self.job.synced && !self.sync_waits() => {
                self.recorder.commit(self.now, EventKind::CommitReturned);
                self.go_on()
            }
            State::Settling if self.policy.is_settled() => {
                self.tally.last_call = Some(self.now);
                self.recorder.deletion_returned(self.now);
                self.go_on()
            }
            State::Draining(_) if self.policy.is_settled() && self.commits.freed.is_empty() => {
                self.drained()
            }
            State::WaitingForSpace(bytes, since) => {
                let free = self.volume.free_bytes();
                if free < bytes {
                    return Ok(());
                }
                self.tally.waited += self.now - since;
                self.create(bytes)
            }
            _ => Ok(()),
        }
    }

    fn drained(&mut self) -> Result<(), SimError> {
        self.recorder.drained(self.now, !self.tally.gave_up);
        self.go_on()
    }
}
