//! The display of a suite under way.

use experiments::suite::log::Outcome;
use experiments::suite::{Now, Step, Watch};

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
            let left = now.left.map_or_else(
                || "the time left is not known yet".to_owned(),
                |left| format!("about {} left", record::units::minutes(left)),
            );
            format!(
                "turn {} of {}, {}: {}; {left}",
                now.done + 1,
                now.turns,
                now.cell,
                now.step.words()
            )
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
        self.live.print(
            self.people,
            &format!(
                "{}, round {}, {}: {text}\n",
                now.cell,
                now.round,
                now.step.words()
            ),
        );
    }
}

fn done(step: Step, figures: &experiments::suite::log::Figures) -> String {
    let mut text = record::units::seconds(figures.seconds);
    if let (true, Some(first), Some(second)) =
        (step.is_rm(), figures.first_sync_s, figures.second_sync_s)
    {
        text += &format!(
            ", syncs {} and {}",
            record::units::seconds(first),
            record::units::seconds(second)
        );
    }
    if figures.discards > 0 {
        text += &format!(
            ", {} of {}",
            record::units::counted(figures.discards, "discard"),
            record::units::bytes(figures.discard_bytes)
        );
    }
    text
}
