//! The progress of the rounds, and the files of their records.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use experiments::Error;
use experiments::tune::{Run, Trial, Trials, Watch};
use record::RecordWriter;

use super::table::lost;
use crate::console::Stream;
use crate::output::Output;
use crate::run_progress;

/// Prints a line for each run, and keeps its record where that is wanted.
pub(super) struct Progress<'a> {
    people: Stream,
    trials: &'a Trials,
    records: Option<&'a Path>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(people: Stream, trials: &'a Trials, records: Option<&'a Path>) -> Self {
        Progress {
            people,
            trials,
            records,
        }
    }
}

impl Watch for Progress<'_> {
    type Observer = run_progress::Progress;

    fn begins(
        &mut self,
        number: usize,
        trial: &Trial,
    ) -> Result<Option<RecordWriter<File>>, Error> {
        let Some(directory) = self.records else {
            return Ok(None);
        };
        let policy = serde_json::to_value(trial.policy).unwrap_or_default();
        let policy = policy.as_str().unwrap_or_default();
        let name = format!("{number:02}-{policy}-{}.jsonl.zst", trial.limit_bytes);
        let record = Output::open(&directory.join(name)).and_then(Output::record);
        record
            .map(Some)
            .map_err(|error| Error::Usage(error.to_string()))
    }

    fn observer(&mut self, interval: Duration) -> run_progress::Progress {
        // Elsewhere than on a terminal a line for each run is enough.
        run_progress::Progress::new(!Stream::Err.is_terminal(), interval)
    }

    fn ended(&mut self, round: u32, run: &Run) {
        let disturbed = match &run.disturbed {
            None => String::new(),
            Some(why) if run.repeated => format!("; once more, for {why}"),
            Some(why) if !run.counts => format!("; left out, for {why}"),
            Some(why) => format!("; though {why}"),
        };
        self.people.print(&format!(
            "{round} of {}, {}: {} lost, freed in {}{disturbed}\n",
            self.trials.repeats,
            run.trial,
            lost(run.figures.lost_s),
            record::units::seconds(run.figures.freeing_s),
        ));
    }

    fn note(&mut self, text: &str) {
        self.people.print(&format!("{text}\n"));
    }
}
