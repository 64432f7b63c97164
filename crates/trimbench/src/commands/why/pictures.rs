//! Stacks and pictures of a report.

use std::path::{Path, PathBuf};

use diagnose::Look;
use diagnose::why::{Observation, Subject, Why, folded, stacks, text};
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
pub(super) struct Pictures(Vec<(Kind, Sink)>);

/// The content of a file, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Page,
    Picture,
    Stacks,
}

impl Kind {
    fn of(path: &Path) -> Kind {
        match path.extension().and_then(|end| end.to_str()) {
            Some("html") => Kind::Page,
            Some("svg") => Kind::Picture,
            _ => Kind::Stacks,
        }
    }
}

impl Pictures {
    /// Opens them, so that one that can't be written is known before anything is watched.
    pub(super) fn open(args: &WhyArgs) -> Result<Pictures, Error> {
        let open = |path: &PathBuf| Ok((Kind::of(path), Sink::file(path)?));
        let all = args.output.iter().map(open);
        Ok(Pictures(all.collect::<Result<_, Error>>()?))
    }

    /// Writes them.
    pub(super) fn write(
        self,
        why: &Why,
        observation: &Observation,
        subject: &Subject,
    ) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let timeline = why.timeline.iter();
        let blocked = Blocked {
            title: why.sentence.clone(),
            report: text::page(why, LOOK),
            stacks: stacks(observation, subject),
            timeline: timeline.map(stretch).collect(),
        };
        for (kind, mut sink) in self.0 {
            let text = match kind {
                Kind::Page => flame::html(&blocked),
                Kind::Picture => flame::svg(&blocked),
                Kind::Stacks => folded(&blocked.stacks),
            };
            sink.write(|to| to.write_all(text.as_bytes()))?;
        }
        Ok(())
    }
}

fn stretch(one: &diagnose::why::Stretch) -> Stretch {
    Stretch {
        at_s: one.at_s,
        seconds: one.length_s.max(1e-3),
        in_discards_s: one.in_discards_s,
        behind_discards_s: one.behind_discards_s,
        blocked_s: one.blocked_s,
        discarding_s: one.discarding_s,
    }
}
