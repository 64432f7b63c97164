//! The display of a suite under way.

use experiments::suite::log::Outcome;
use experiments::suite::{Now, Step, Watch};

use record::units::{bytes, counted, minutes, seconds};

use crate::console::Stream;
use crate::status_line::Live;

/// A line for each step that is over, and one for the step under way.
pub(super) struct Progress {
    people: Stream,
    live: Live,
}

impl Progress {
    pub(super) fn new(people: Stream) -> Progress {
        Progress {
            people,
            live: Live::new("trimbench suite"),
        }
    }

    pub(super) fn end(&mut self) {
        self.live.end();
    }
}

impl Watch for Progress {
    fn tick(&mut self, now: &Now) {
        self.live.show(|_| {
            let left = match now.left.map(minutes) {
                None => "the time left is not known yet".to_owned(),
                Some(left) => format!("about {left} left"),
            };
            let (turn, turns, step) = (now.done + 1, now.turns, now.step.words());
            format!("turn {turn} of {turns}, {}: {step}; {left}", now.cell)
        });
    }

    fn ended(&mut self, now: &Now, outcome: &Outcome) {
        let text = match outcome {
            Outcome::Failed(why) => format!("FAILED: {why}"),
            Outcome::Done(figures) => match &figures.run {
                Some(run) => run.summary.clone(),
                None => done(now.step, figures),
            },
        };
        let (cell, round, step) = (&now.cell, now.round, now.step.words());
        let line = format!("{cell}, round {round}, {step}: {text}\n");
        self.live.print(self.people, &line);
    }
}

fn done(step: Step, figures: &experiments::suite::log::Figures) -> String {
    let mut text = seconds(figures.seconds);
    let syncs = figures.first_sync_s.zip(figures.second_sync_s);
    if let Some((first, second)) = syncs.filter(|_| step.is_rm()) {
        text += &format!(", syncs {} and {}", seconds(first), seconds(second));
    }
    if figures.discards > 0 {
        let discards = counted(figures.discards, "discard");
        text += &format!(", {discards} of {}", bytes(figures.discard_bytes));
    }
    text
}
