//! The begin of an event, and the marks of a person that begin and end one.

use std::sync::atomic::Ordering;

use record::EventKind;

use super::{Early, Script};
use crate::observer::Mark;
use crate::plan::Trigger;
use crate::warning::Warning;

impl Script<'_> {
    /// Measures the foreground undisturbed: for as long as the plan says, or until
    /// a person marks the begin of the event.
    pub(super) fn baseline(&mut self) -> Result<(), Early> {
        let asked = self.plan.phases.baseline();
        if self.shares.is_some() {
            return self.baseline_of_gain(asked);
        }
        if self.plan.event() != Some(&Trigger::Manual) {
            return Ok(self.session.tick_for(asked)?);
        }
        if self.take_marks() {
            self.session.warn(&Warning::EarlyMark);
        }
        let mut began = None;
        let mut invited = false;
        loop {
            let now = self.session.tick()?.now;
            let length = now.saturating_sub(*began.get_or_insert(now));
            if self.take_marks() {
                if length < asked {
                    self.session.warn(&Warning::ShortBaseline { length, asked });
                }
                return Ok(());
            }
            if length >= asked && !invited {
                self.session.observer.awaits(Mark::Begin);
                invited = true;
            }
        }
    }

    /// Ends an event whose end a person has marked.
    pub(super) fn end_marked_event(&mut self) {
        if self.plan.event() == Some(&Trigger::Manual)
            && self.take_marks()
            && let Some(deletion) = self.session.deletion.as_ref()
        {
            deletion.stop();
        }
    }

    /// Records that the deletion or the event begins.
    pub(super) fn deletion_began(&mut self) {
        let command = match self.plan.event() {
            Some(Trigger::Command { text, .. }) => Some(text.clone()),
            Some(Trigger::Manual) => {
                self.session.observer.awaits(Mark::End);
                None
            }
            None => None,
        };
        self.session.event(EventKind::DeletionBegan, command);
    }

    /// Whether the user has set a mark since the last look.
    fn take_marks(&mut self) -> bool {
        self.marks.swap(0, Ordering::Relaxed) > 0
    }
}
