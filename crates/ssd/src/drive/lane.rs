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
}

impl Lane {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// The command that waits longest.
    pub(super) fn head(&self) -> Option<Id> {
        self.waiting.front().map(|w| w.id)
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

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
