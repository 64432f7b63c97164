//! The histograms, written once a second, once a phase, and more often while data is deleted.

use load::Nanos;
use record::{Grain, Line, PhaseName};

use super::Session;
use crate::observer::Second;
use crate::warning::Warning;
use crate::watched::{Latencies, Watched};

/// Shortest stretch that gets a histogram, less what a clock may be early, in seconds.
const STRETCH_S: f64 = 0.0999;

/// Longest time that is recorded in stretches, in seconds: they take ten times the room
/// of seconds, and a continuous deletion can last for hours.
const STRETCHED_S: f64 = 600.0;

/// The current stretch, and how much time all together have covered.
#[derive(Debug)]
pub(super) struct Stretches {
    began: Nanos,
    recorded_s: f64,
}

impl Stretches {
    /// The first stretch begins; none is recorded yet.
    pub(super) fn from(began: Nanos) -> Self {
        Stretches {
            began,
            recorded_s: 0.0,
        }
    }
}

/// The current second.
#[derive(Debug, Default)]
pub(super) struct SecondSoFar {
    began: Nanos,
    pub(super) ops: u64,
    pub(super) discarded_bytes: u64,
    pub(super) oldest_us: Option<f64>,
    /// Of it, what is left out since this process was away, in seconds.
    pub(super) away_s: f64,
}

impl SecondSoFar {
    /// A second that begins.
    pub(super) fn from(began: Nanos) -> Self {
        SecondSoFar {
            began,
            ..SecondSoFar::default()
        }
    }
}

impl Session<'_> {
    pub(super) fn end_second_if_due(&mut self) {
        let elapsed = self.last.since(self.second.began).as_secs_f64();
        let is_over = elapsed >= 0.999;
        // No stretch reaches from one second into the next.
        self.end_stretch_if_due(is_over);
        if !is_over {
            return;
        }
        let began_s = self.second.began.as_secs_f64();
        let foreground = self.actors.first().map_or(0, |a| a.series().len());
        let longest = self.series[..foreground].iter().map(Watched::second_max_us);
        let worst_us = longest.chain([self.second.oldest_us]).flatten();
        let worst_us = worst_us.reduce(f64::max);
        self.record_histograms(|series| &mut series.second, Grain::SecondAt(began_s));
        let second = std::mem::replace(&mut self.second, SecondSoFar::from(self.last));
        let there_s = elapsed - second.away_s;
        self.observer.second(&Second {
            at_s: self.last.as_secs_f64(),
            phase: self.phase,
            part: self.part,
            ops_per_s: (!self.actors.is_empty() && there_s > 0.0)
                .then(|| second.ops as f64 / there_s),
            worst_us,
            discard_bytes_per_s: second.discarded_bytes as f64 / elapsed,
            debt_bytes: self.freed_bytes.saturating_sub(self.discarded.bytes()),
        });
        self.look_after_the_file();
    }

    /// Ends the stretch if it is long enough, or if it must.
    fn end_stretch_if_due(&mut self, must: bool) {
        let seconds = self.last.since(self.stretches.began).as_secs_f64();
        if seconds < STRETCH_S && !must {
            return;
        }
        if self.phase == PhaseName::Delete && self.stretches.recorded_s < STRETCHED_S {
            let at_s = self.stretches.began.as_secs_f64();
            let over = Grain::Stretch { at_s, seconds };
            self.record_histograms(|series| &mut series.stretch, over);
            self.stretches.recorded_s += seconds;
        } else {
            let stretches = self.series.iter_mut().map(|series| &mut series.stretch);
            stretches.for_each(Latencies::reset);
        }
        self.stretches.began = self.last;
    }

    /// Has the file written; should that have failed, tells so while something
    /// can be done about it.
    fn look_after_the_file(&mut self) {
        let Some(sink) = self.sink.take() else { return };
        if !sink.has_failed() {
            sink.flush();
            self.sink = Some(sink);
            return;
        }
        self.written = sink.finish();
        if let Err(error) = &self.written {
            let warning = Warning::RecordCut(error.to_string());
            self.warn(&warning);
        }
    }

    pub(super) fn end_phase(&mut self) {
        self.record_histograms(|series| &mut series.phase, Grain::Phase(self.phase));
    }

    /// Writes some latencies of every series into the record, and begins them anew.
    fn record_histograms(&mut self, of: fn(&mut Watched) -> &mut Latencies, over: Grain) {
        let series = self.series.iter_mut().enumerate();
        let lines: Vec<_> = series
            .flat_map(|(i, series)| of(series).drain(i, over, self.part))
            .collect();
        for line in lines {
            self.line(Line::Histogram(line));
        }
    }
}
