//! Stacks and pictures of a report.

use diagnose::Look;
use diagnose::why::{Observation, Second, Subject, Why, folded, stacks, text};
use report::flame::{self, Blocked, Stretch};

use crate::commands::why::args::WhyArgs;
use crate::exit::Error;
use crate::output::Sink;

/// The report in a page: wide enough for its tables.
const LOOK: Look = Look {
    width: 110,
    unicode: true,
    colour: false,
};

/// The files that were asked for.
pub(super) struct Pictures {
    folded: Option<Sink>,
    html: Option<Sink>,
    svg: Option<Sink>,
}

impl Pictures {
    /// Opens them, so that one that can't be written is known before anything is watched.
    pub(super) fn open(args: &WhyArgs) -> Result<Pictures, Error> {
        let open = |path: &Option<std::path::PathBuf>| path.as_deref().map(Sink::file).transpose();
        Ok(Pictures {
            folded: open(&args.folded)?,
            html: open(&args.html)?,
            svg: open(&args.svg)?,
        })
    }

    /// Writes them.
    pub(super) fn write(
        self,
        why: &Why,
        observation: &Observation,
        subject: &Subject,
    ) -> Result<(), Error> {
        let all = stacks(observation, subject);
        if let Some(mut sink) = self.folded {
            sink.write(|to| to.write_all(folded(&all).as_bytes()))?;
        }
        if self.html.is_none() && self.svg.is_none() {
            return Ok(());
        }
        let end_s = observation.to_s - observation.from_s;
        let blocked = Blocked {
            title: why.sentence.clone(),
            report: text::page(why, LOOK),
            stacks: all,
            timeline: why
                .timeline
                .iter()
                .map(|second| stretch(second, end_s))
                .collect(),
        };
        if let Some(mut sink) = self.svg {
            sink.write(|to| to.write_all(flame::svg(&blocked).as_bytes()))?;
        }
        if let Some(mut sink) = self.html {
            sink.write(|to| to.write_all(flame::html(&blocked).as_bytes()))?;
        }
        Ok(())
    }
}

fn stretch(second: &Second, end_s: f64) -> Stretch {
    Stretch {
        at_s: second.at_s,
        seconds: (end_s - second.at_s).clamp(1e-3, 1.0),
        in_discards_s: second.in_discards_s,
        behind_discards_s: second.behind_discards_s,
        blocked_s: second.blocked_s,
        discarding_s: second.discarding_s,
    }
}
