//! The heart of a run: at every boundary of the grid, look at everything and
//! write it down.
//!
//! A [`Session`] knows actors, devices, a deletion and the record; what is done
//! when is told by the script in [`crate::run`].

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use load::{Clock, Deletion, Nanos};
use timeline::RunRecord;
use timeline::record::{
    End, EndReason, Event, EventKind, Grain, Head, Interval, Line, Part, Phase, PhaseName,
    PushError, Unfinished,
};

use crate::discarded::Discarded;
use crate::grid::Grid;
use crate::observer::{Observer, Second};
use crate::sink::Sink;
use crate::watched::{Watched, WatchedDevice};

/// How long actors may take to finish what is in flight when a run ends.
const GRACE: Duration = Duration::from_secs(5);
/// Longest sleep without a look at the stop flag.
const NAP: Duration = Duration::from_millis(100);

/// Somebody asked the run to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

/// A run under way.
pub(crate) struct Session<'a> {
    clock: Clock,
    grid: Grid,
    record: RunRecord,
    fault: Option<PushError>,
    /// `None` without a file, and after its writing has failed.
    sink: Option<Sink>,
    written: io::Result<()>,
    observer: &'a mut dyn Observer,
    stop: &'a AtomicBool,
    actors: Vec<Watched>,
    devices: Vec<WatchedDevice>,
    deletion: Option<Deletion>,
    freed_bytes: u64,
    discarded: Discarded,
    phase: PhaseName,
    part: Part,
    last: Nanos,
    second: SecondSoFar,
}

/// What one look saw, as the script needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tick {
    /// The interval's end, since the record's zero.
    pub(crate) now: Duration,
    /// Operations per second of the foreground in the interval.
    pub(crate) ops_per_s: f64,
    /// Bytes handed over to be freed in the interval.
    pub(crate) freed_bytes: u64,
    /// Bytes discarded in it.
    pub(crate) discarded_bytes: u64,
}

#[derive(Debug, Default)]
struct SecondSoFar {
    began: Nanos,
    ops: u64,
    discarded_bytes: u64,
    oldest_us: Option<f64>,
}

impl<'a> Session<'a> {
    pub(crate) fn start(
        clock: Clock,
        head: Head,
        devices: Vec<WatchedDevice>,
        sink: Option<Sink>,
        interval: Duration,
        observer: &'a mut dyn Observer,
        stop: &'a AtomicBool,
    ) -> Result<Self, PushError> {
        let record = RunRecord::new(head.clone())?;
        let discarded = Discarded::of(&head.devices);
        if let Some(sink) = &sink {
            sink.line(Line::Head(Box::new(head)));
        }
        let now = clock.now();
        Ok(Session {
            clock,
            grid: Grid::new(interval),
            record,
            fault: None,
            sink,
            written: Ok(()),
            observer,
            stop,
            actors: Vec::new(),
            devices,
            deletion: None,
            freed_bytes: 0,
            discarded,
            phase: PhaseName::Prepare,
            part: Part::Main,
            last: now,
            second: SecondSoFar {
                began: now,
                ..SecondSoFar::default()
            },
        })
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) fn observer(&mut self) -> &mut dyn Observer {
        self.observer
    }

    /// Adds a running actor; its place is the next of the head's actors.
    pub(crate) fn add_actor(&mut self, actor: Watched) {
        self.actors.push(actor);
    }

    /// Begins a deletion; what it frees is counted from here on.
    pub(crate) fn set_deletion(&mut self, deletion: Deletion) {
        self.freed_bytes = 0;
        self.discarded = Discarded::of(&self.record.head.devices);
        self.deletion = Some(deletion);
    }

    pub(crate) fn deletion(&self) -> Option<&Deletion> {
        self.deletion.as_ref()
    }

    pub(crate) fn take_deletion(&mut self) -> Option<Deletion> {
        self.deletion.take()
    }

    /// Begins a phase at the last boundary.
    pub(crate) fn phase(&mut self, name: PhaseName, part: Part) {
        self.end_phase();
        self.phase = name;
        self.part = part;
        let at_s = self.last.as_secs_f64();
        self.line(Line::Phase(Phase { name, part, at_s }));
        self.observer.phase(name, part);
    }

    /// Records an event that happens now.
    pub(crate) fn event(&mut self, kind: EventKind, detail: Option<String>) {
        self.event_at(self.clock.now(), kind, detail);
    }

    /// Records an event that happened at some moment.
    pub(crate) fn event_at(&mut self, at: Nanos, kind: EventKind, detail: Option<String>) {
        let event = Event {
            at_s: at.as_secs_f64(),
            kind,
            detail,
        };
        self.observer.event(&event);
        self.line(Line::Event(event));
    }

    /// Records something that changes how far the figures can be trusted.
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.event(EventKind::Warning, Some(text.into()));
    }

    /// Adds a line to the record and its file. A line that the record doesn't
    /// take (after ten million intervals) is told of at the end.
    pub(crate) fn line(&mut self, line: Line) {
        if let Err(fault) = self.record.push(&line) {
            self.fault.get_or_insert(fault);
        }
        if let Some(sink) = &self.sink {
            sink.line(line);
        }
    }

    /// Sleeps to the next boundary and writes down what happened since the last.
    pub(crate) fn tick(&mut self) -> Result<Tick, Stopped> {
        let stopped = self.sleep_to_boundary();
        let tick = self.sample();
        if stopped { Err(Stopped) } else { Ok(tick) }
    }

    /// The same without sleeping: does nothing when no boundary has passed.
    pub(crate) fn tick_if_due(&mut self) -> Result<(), Stopped> {
        let boundary = self.grid.next_after(Duration::from_nanos(self.last.0));
        if Duration::from_nanos(self.clock.now().0) >= boundary {
            self.sample();
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        Ok(())
    }

    /// Writes down what happened since the last look.
    fn sample(&mut self) -> Tick {
        let now = self.clock.now();
        let seconds = now.since(self.last).as_secs_f64();

        let freed = self
            .deletion
            .as_ref()
            .map_or(0, |d| d.progress().freed_bytes);
        let freed_bytes = freed.saturating_sub(self.freed_bytes);
        self.freed_bytes = self.freed_bytes.max(freed);
        let mut actors: Vec<_> = self
            .actors
            .iter_mut()
            .map(|a| Some(a.sample(now)))
            .collect();
        actors.resize(self.record.head.actors.len(), None);
        let interval = Interval {
            at_s: self.last.as_secs_f64(),
            seconds,
            actors,
            devices: self
                .devices
                .iter_mut()
                .map(WatchedDevice::interval)
                .collect(),
            freed_bytes,
        };
        let foreground = interval
            .actors
            .first()
            .copied()
            .flatten()
            .unwrap_or_default();
        let discarded_bytes = self.discarded.add(&interval.devices);
        self.second.ops += foreground.ops;
        self.second.discarded_bytes += discarded_bytes;
        self.second.oldest_us = foreground.oldest_us;
        self.last = now;
        self.line(Line::Interval(interval));
        self.end_second_if_due();

        Tick {
            now: Duration::from_nanos(now.0),
            ops_per_s: foreground.ops as f64 / seconds,
            freed_bytes,
            discarded_bytes,
        }
    }

    /// Ticks until so much time has passed.
    pub(crate) fn tick_for(&mut self, time: Duration) -> Result<(), Stopped> {
        let end = self.last.plus(time);
        while self.last < end {
            self.tick()?;
        }
        Ok(())
    }

    /// Ends the run: stops what still runs, counts what never finished and closes the record.
    pub(crate) fn finish(
        mut self,
        reason: EndReason,
        message: Option<String>,
    ) -> (RunRecord, io::Result<()>) {
        if let Some(deletion) = self.deletion.take() {
            deletion.stop();
            deletion.finish(GRACE);
        }
        let failures: Vec<String> = self
            .actors
            .iter()
            .filter_map(Watched::first_error)
            .collect();
        for failure in failures {
            self.warn(failure);
        }
        self.end_phase();
        for actor in &self.actors {
            actor.actor().stop();
        }
        let interval = self.grid.interval();
        let unfinished = self
            .actors
            .drain(..)
            .enumerate()
            .filter_map(|(actor, watched)| {
                let left = watched.finish(GRACE);
                // One that was due in the last instant and not issued any more is no hang.
                let hung = Duration::from_nanos(left.oldest_ns) >= interval;
                (left.operations > 0 && hung).then(|| Unfinished {
                    actor,
                    operations: left.operations,
                    oldest_us: Nanos(left.oldest_ns).as_micros_f64(),
                })
            })
            .collect();
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

    /// Whether the stop flag was seen.
    fn sleep_to_boundary(&self) -> bool {
        let now = Duration::from_nanos(self.clock.now().0);
        let boundary = self.grid.next_after(now);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return true;
            }
            let now = Duration::from_nanos(self.clock.now().0);
            let left = boundary.saturating_sub(now);
            if left.is_zero() {
                return false;
            }
            let nap = left.min(NAP);
            self.clock.sleep_until(Nanos(self.clock.now().0).plus(nap));
        }
    }

    fn end_second_if_due(&mut self) {
        let elapsed = self.last.since(self.second.began).as_secs_f64();
        if elapsed < 0.999 {
            return;
        }
        let began_s = self.second.began.as_secs_f64();
        let p99_us = self.actors.first().and_then(Watched::second_p99_us);
        let lines: Vec<_> = self
            .actors
            .iter_mut()
            .enumerate()
            .flat_map(|(i, actor)| actor.end_second(i, began_s, self.part))
            .collect();
        for line in lines {
            self.line(Line::Histogram(line));
        }
        let second = std::mem::take(&mut self.second);
        self.second.began = self.last;
        self.observer.second(&Second {
            at_s: self.last.as_secs_f64(),
            phase: self.phase,
            part: self.part,
            ops_per_s: (!self.actors.is_empty()).then(|| second.ops as f64 / elapsed),
            p99_us,
            oldest_us: second.oldest_us,
            discard_bytes_per_s: second.discarded_bytes as f64 / elapsed,
            debt_bytes: self.freed_bytes.saturating_sub(self.discarded.bytes()),
        });
        self.look_after_the_file();
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
            let text = format!("nothing more of the record can be written: {error}");
            self.warn(text);
        }
    }

    fn end_phase(&mut self) {
        let over = Grain::Phase(self.phase);
        let lines: Vec<_> = self
            .actors
            .iter_mut()
            .enumerate()
            .flat_map(|(i, actor)| actor.end_phase(i, over, self.part))
            .collect();
        for line in lines {
            self.line(Line::Histogram(line));
        }
    }
}
