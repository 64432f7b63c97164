//! Building a [`RunRecord`] line by line.
//!
//! The reader of a file and a live run both come through here, so that both
//! arrive at the same record, and nothing absurd gets as far as the judge.

use super::{
    ActorInterval, DeletionLine, End, Event, Grain, Head, HistogramError, HistogramLine, Interval,
    Intervals, Line, Phase, PhaseHistogram, RUN_SCHEMA, RunRecord, StretchHistogram, Waits,
    decode_histogram, form,
};

/// Most actors a record may have.
pub const MAX_ACTORS: usize = 256;
/// Most devices a record may have.
pub const MAX_DEVICES: usize = 1024;
/// Most intervals a record may have: eleven days at 100 ms.
pub const MAX_INTERVALS: usize = 10_000_000;
/// Most events, phases, deletions or phase histograms a record may have.
const MAX_OTHERS: usize = 100_000;
/// Longest text of a stretch's histogram: more than two digits of all latencies take.
const MAX_STRETCH_TEXT: usize = 64 << 10;
/// Longest stretch a record may cover, in seconds: thirty years.
const MAX_SECONDS: f64 = 1e9;

/// Why a line doesn't fit into a record.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PushError {
    /// The head names another schema; see [`form::refusal`](crate::form::refusal).
    #[error("{0}")]
    Schema(String),
    /// There already is a head.
    #[error("a second head")]
    SecondHead,
    /// A line after the end.
    #[error("a line after the record's end")]
    AfterEnd,
    /// More of something than can be sensible.
    #[error("more than {most} {what}")]
    TooMany {
        /// The name of the lines that are too many.
        what: &'static str,
        /// The most that is taken.
        most: usize,
    },
    /// An interval with another number of actors or devices than the head.
    #[error("{found} {what} in an interval, and {expected} in the head")]
    Columns {
        /// `actors` or `devices`.
        what: &'static str,
        /// How many the interval has.
        found: usize,
        /// How many the head has.
        expected: usize,
    },
    /// A figure that can't be.
    #[error("{what} is {value}, which cannot be")]
    Absurd {
        /// Which figure.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// An interval or phase that begins before the one it follows.
    #[error("{what} at {at_s} s comes after one at {after_s} s")]
    Order {
        /// `an interval` or `a phase`.
        what: &'static str,
        /// Its start, in seconds.
        at_s: f64,
        /// The start of the one before, in seconds.
        after_s: f64,
    },
    /// An actor that the head doesn't have.
    #[error("actor {actor} is not one of the head's {actors}")]
    UnknownActor {
        /// Its index.
        actor: usize,
        /// How many there are.
        actors: usize,
    },
    /// A histogram that can't be read.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
}

impl RunRecord {
    /// An empty record of a run that has just begun.
    ///
    /// # Errors
    /// If the head has another schema, absurdly many actors or devices, or an
    /// interval length that can't be.
    pub fn new(head: Head) -> Result<Self, PushError> {
        if head.schema != RUN_SCHEMA {
            let head = serde_json::json!({"schema": head.schema, "version": head.version});
            let why = form::refusal(head.to_string().as_bytes(), RUN_SCHEMA);
            let other = || format!("its schema is {}", head["schema"]);
            return Err(PushError::Schema(why.unwrap_or_else(other)));
        }
        at_most("actors", head.actors.len(), MAX_ACTORS)?;
        at_most("devices", head.devices.len(), MAX_DEVICES)?;
        positive("the interval in ms", head.interval_ms)?;
        let intervals = Intervals::new(head.actors.len(), head.devices.len());
        Ok(RunRecord {
            head,
            intervals,
            phases: Vec::new(),
            events: Vec::new(),
            deletions: Vec::new(),
            histograms: Vec::new(),
            stretches: Vec::new(),
            waits: None,
            end: None,
        })
    }

    /// Adds a line. Histograms of single seconds stay in the file.
    ///
    /// # Errors
    /// If the line doesn't fit; the record is then unchanged.
    pub fn push(&mut self, line: &Line) -> Result<(), PushError> {
        if self.end.is_some() {
            return Err(PushError::AfterEnd);
        }
        match line {
            Line::Head(_) => Err(PushError::SecondHead),
            Line::Interval(interval) => self.push_interval(interval),
            Line::Histogram(histogram) => self.push_histogram(histogram),
            Line::Phase(phase) => self.push_phase(*phase),
            Line::Event(event) => self.push_event(event),
            Line::Deletion(deletion) => self.push_deletion(*deletion),
            Line::Waits(waits) => self.push_waits(waits),
            Line::End(end) => self.push_end(end),
        }
    }

    fn push_interval(&mut self, interval: &Interval) -> Result<(), PushError> {
        at_most("intervals", self.intervals.len() + 1, MAX_INTERVALS)?;
        columns("actors", interval.actors.len(), self.head.actors.len())?;
        columns("devices", interval.devices.len(), self.head.devices.len())?;
        time("an interval's start in s", interval.at_s)?;
        positive("an interval's length in s", interval.seconds)?;
        let (what, at_s) = ("an interval", interval.at_s);
        if let Some(&after_s) = self.intervals.at_s.last() {
            let order = || PushError::Order {
                what,
                at_s,
                after_s,
            };
            check(at_s > after_s, order)?;
        }
        if !interval.cpu_wait.is_empty() {
            columns("CPU waits", interval.cpu_wait.len(), self.head.actors.len())?;
        }
        for share in interval.cpu_wait.iter().flatten() {
            time("a share of waiting", *share)?;
        }
        if let Some(absent) = interval.absent {
            time("an absence in s", absent.seconds)?;
        }
        for actor in interval.actors.iter().flatten() {
            latencies(actor)?;
        }
        self.intervals.push(interval);
        Ok(())
    }

    fn push_histogram(&mut self, line: &HistogramLine) -> Result<(), PushError> {
        self.known_actor(line.actor)?;
        let phase = match line.over {
            Grain::Phase(phase) => phase,
            Grain::SecondAt(_) => return Ok(()),
            Grain::Stretch { at_s, seconds } => return self.push_stretch(line, at_s, seconds),
        };
        at_most(
            "histograms of phases",
            self.histograms.len() + 1,
            20 * MAX_ACTORS,
        )?;
        let histogram = decode_histogram(&line.v2)?;
        let same = self.histograms.iter_mut().find(|h| {
            (h.actor, h.latency, h.phase, h.part) == (line.actor, line.latency, phase, line.part)
        });
        match same {
            // A phase told in two pieces is one phase; bounds are equal, so adding can't fail.
            Some(known) => known
                .histogram
                .add(&histogram)
                .map_err(|_| HistogramError::TooLong)?,
            None => self.histograms.push(PhaseHistogram {
                actor: line.actor,
                latency: line.latency,
                phase,
                part: line.part,
                histogram,
            }),
        }
        Ok(())
    }

    /// Adds the latencies of a stretch. Those beyond what a record may have stay in the file: its
    /// other lines are good without them.
    fn push_stretch(
        &mut self,
        line: &HistogramLine,
        at_s: f64,
        seconds: f64,
    ) -> Result<(), PushError> {
        time("a stretch's start in s", at_s)?;
        time("a stretch's length in s", seconds)?;
        if self.stretches.len() < MAX_OTHERS && line.v2.len() <= MAX_STRETCH_TEXT {
            self.stretches.push(StretchHistogram {
                actor: line.actor,
                latency: line.latency,
                part: line.part,
                at_s,
                seconds,
                v2: line.v2.clone(),
            });
        }
        Ok(())
    }

    fn push_phase(&mut self, phase: Phase) -> Result<(), PushError> {
        at_most("phases", self.phases.len() + 1, MAX_OTHERS)?;
        time("a phase's start in s", phase.at_s)?;
        let (what, at_s) = ("a phase", phase.at_s);
        if let Some(&Phase { at_s: after_s, .. }) = self.phases.last() {
            let order = || PushError::Order {
                what,
                at_s,
                after_s,
            };
            check(at_s >= after_s, order)?;
        }
        self.phases.push(phase);
        Ok(())
    }

    fn push_event(&mut self, event: &Event) -> Result<(), PushError> {
        at_most("events", self.events.len() + 1, MAX_OTHERS)?;
        time("an event's time in s", event.at_s)?;
        // Events come from several threads, so a late one is put where it belongs.
        let place = self.events.partition_point(|e| e.at_s <= event.at_s);
        self.events.insert(place, event.clone());
        Ok(())
    }

    fn push_deletion(&mut self, deletion: DeletionLine) -> Result<(), PushError> {
        at_most("deletions", self.deletions.len() + 1, MAX_OTHERS)?;
        time("a deletion's start in s", deletion.at_s)?;
        time("a deletion's length in s", deletion.seconds)?;
        self.deletions.push(deletion);
        Ok(())
    }

    fn push_waits(&mut self, waits: &Waits) -> Result<(), PushError> {
        // Beside the head's actors there are those that delete and commit.
        at_most("actors that waited", waits.actors.len(), MAX_ACTORS + 2)?;
        let stretches = waits.timeline.discarding.len();
        at_most("stretches of waits", stretches, MAX_OTHERS)?;
        for shares in waits.actors.iter().map(|actor| &actor.shares) {
            for list in [&shares.own, &shares.behind, &shares.otherwise] {
                at_most("shares of an actor's time", list.len(), stretches)?;
            }
        }
        for (what, seconds) in waits.times() {
            time(what, seconds)?;
        }
        self.waits = Some(waits.clone());
        Ok(())
    }

    fn push_end(&mut self, end: &End) -> Result<(), PushError> {
        time("the end in s", end.at_s)?;
        for unfinished in &end.unfinished {
            self.known_actor(unfinished.actor)?;
            time(
                "an unfinished operation's age in us",
                unfinished.oldest_us / 1e6,
            )?;
        }
        at_most("drives' lives", end.lives.len(), self.head.devices.len())?;
        self.end = Some(end.clone());
        Ok(())
    }

    fn known_actor(&self, actor: usize) -> Result<(), PushError> {
        let actors = self.head.actors.len();
        check(actor < actors, || PushError::UnknownActor { actor, actors })
    }
}

fn check(fits: bool, or: impl FnOnce() -> PushError) -> Result<(), PushError> {
    if fits { Ok(()) } else { Err(or()) }
}

fn at_most(what: &'static str, found: usize, most: usize) -> Result<(), PushError> {
    check(found <= most, || PushError::TooMany { what, most })
}

fn columns(what: &'static str, found: usize, expected: usize) -> Result<(), PushError> {
    check(found == expected, || PushError::Columns {
        what,
        found,
        expected,
    })
}

fn latencies(actor: &ActorInterval) -> Result<(), PushError> {
    for us in [actor.p50_us, actor.p99_us, actor.max_us, actor.oldest_us] {
        us.map_or(Ok(()), |us| time("a latency in us", us / 1e6))?;
    }
    Ok(())
}

fn time(what: &'static str, value: f64) -> Result<(), PushError> {
    let fits = (0.0..=MAX_SECONDS).contains(&value);
    check(fits, || PushError::Absurd { what, value })
}

fn positive(what: &'static str, value: f64) -> Result<(), PushError> {
    time(what, value)?;
    check(value > 0.0, || PushError::Absurd { what, value })
}
