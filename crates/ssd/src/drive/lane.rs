//! Commands of one kind that wait, in order, and how many are under way.

use std::collections::VecDeque;

use super::command::{Command, Id};
use crate::Time;

/// A command that has not been begun.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) id: Id,
    pub(super) command: Command,
    pub(super) submitted: Time,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    waiting: VecDeque<Waiting>,
    /// Under way.
    pub(super) active: u32,
    /// When places became idle that were not for long, the oldest first. All others were before.
    idle_since: VecDeque<Time>,
}

impl Lane {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// The command that waits longest.
    pub(super) fn head(&self) -> Option<Id> {
        self.waiting.front().map(|w| w.id)
    }

    /// When the command came that waits longest.
    pub(super) fn head_came(&self) -> Option<Time> {
        self.waiting.front().map(|w| w.submitted)
    }

    /// Whether one waits that came before this one.
    pub(super) fn has_before(&self, id: Id) -> bool {
        self.head().is_some_and(|head| head < id)
    }

    /// Takes the head out of the queue; it is under way from now on.
    pub(super) fn take(&mut self) -> Option<Waiting> {
        let head = self.waiting.pop_front()?;
        self.active += 1;
        Some(head)
    }

    /// Takes the place that is idle for longest, of so many; returns since when. Called before
    /// [`Lane::take`].
    pub(super) fn take_place(&mut self, places: u32) -> Time {
        if self.idle_since.len() < places.saturating_sub(self.active) as usize {
            return Time::ZERO;
        }
        self.idle_since.pop_front().unwrap_or(Time::ZERO)
    }

    /// Ends a command; its place is idle since `at`. Places that are idle since before `long_ago`
    /// need not be remembered.
    pub(super) fn leave(&mut self, at: Time, long_ago: Time) {
        self.active -= 1;
        while self
            .idle_since
            .front()
            .is_some_and(|&since| since < long_ago)
        {
            self.idle_since.pop_front();
        }
        self.idle_since.push_back(at);
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
