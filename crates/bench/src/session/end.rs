//! The end of a run.

use std::io;
use std::time::Duration;

use load::Nanos;
use record::RunRecord;
use record::{End, EndReason, Line, Unfinished};

use super::Session;
use crate::run::Explain;
use crate::sink::Sink;
use crate::warning::Warning;
use crate::watched::Watched;

/// How long actors may take to finish what is in flight when a run ends.
const GRACE: Duration = Duration::from_secs(5);

impl Session<'_> {
    /// Ends the run: stops what still runs, counts what never finished and closes the record.
    pub(crate) fn finish(
        mut self,
        reason: EndReason,
        message: Option<String>,
        explain: Option<Explain>,
    ) -> (RunRecord, io::Result<()>) {
        if let Some(deletion) = self.deletion.take() {
            deletion.stop();
            deletion.finish(GRACE);
        }
        let failures: Vec<Warning> = self
            .series
            .iter()
            .filter_map(Watched::first_error)
            .collect();
        let stolen = self.presence.stolen(self.last, self.record.head.host.cpus);
        for warning in failures.into_iter().chain(stolen) {
            self.warn(&warning);
        }
        self.end_phase();
        for actor in &self.actors {
            actor.stop();
        }
        let interval = self.grid.interval();
        let unfinished = self
            .actors
            .drain(..)
            .flat_map(|actor| actor.finish(GRACE))
            .enumerate()
            .filter_map(|(actor, left)| {
                // One that was due in the last instant and not issued any more is no hang.
                let hung = Duration::from_nanos(left.oldest_ns) >= interval;
                (left.operations > 0 && hung).then(|| Unfinished {
                    actor,
                    operations: left.operations,
                    oldest_us: Nanos(left.oldest_ns).as_micros_f64(),
                })
            })
            .collect();
        if let Some(explain) = explain {
            let zero_s = self.clock.to_monotonic(Nanos(0)) as f64 / 1e9;
            let waits = explain(&self.record, zero_s);
            self.line(Line::Waits(Box::new(waits)));
        }
        self.line(Line::End(End {
            at_s: self.clock.now().as_secs_f64(),
            reason,
            message,
            unfinished,
        }));
        let ended = self.sink.map_or(Ok(()), Sink::finish);
        let taken = self
            .fault
            .map_or(Ok(()), |fault| Err(io::Error::other(fault)));
        (self.record, self.written.and(ended).and(taken))
    }
}
