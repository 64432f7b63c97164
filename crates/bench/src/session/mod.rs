//! The heart of a run: at every boundary of the grid, look at everything and
//! write it down.
//!
//! A [`Session`] knows actors, devices, a deletion and the record. The script in
//! [`crate::run`] decides what it does when.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linux::SysRoot;
use load::workers::{Began, RunWorkers};
use load::{Actor, Allowance, Clock, Deletion, Nanos, Workers};
use presence::Presence;
use record::waits::{COMMIT, DELETER};
use record::{
    End, EndReason, Event, EventKind, Head, Line, Part, Phase, PhaseName, PushError, RunRecord,
    Unfinished,
};
use second::{SecondSoFar, Stretches};
use storage::drive::life;

use crate::drain::Discarded;
use crate::error::BenchError;
use crate::observer::Observer;
use crate::run::Explain;
use crate::sink::Sink;
use crate::warning::Warning;
use crate::watched::{Watched, WatchedDevice};

mod presence;
mod second;
mod tick;

pub(crate) use tick::{Grid, Stopped, Tick};

/// A run under way.
pub(crate) struct Session<'a> {
    pub(crate) clock: Clock,
    pub(crate) workers: RunWorkers,
    grid: Grid,
    pub(crate) record: RunRecord,
    fault: Option<PushError>,
    /// `None` without a file, and after its writing has failed.
    sink: Option<Sink>,
    written: io::Result<()>,
    pub(crate) observer: &'a mut dyn Observer,
    stop: &'a AtomicBool,
    /// The first is the one that live progress follows.
    actors: Vec<Actor>,
    /// The series of all of them, in order.
    series: Vec<Watched>,
    devices: Vec<WatchedDevice>,
    /// The failure that ended the run, if there was one.
    pub(crate) failure: Option<BenchError>,
    pub(crate) deletion: Option<Deletion>,
    /// The bytes that writers may still write, where they are limited.
    pub(crate) allowance: Option<Arc<Allowance>>,
    freed_bytes: u64,
    discarded: Discarded,
    /// In an interval of the current phase.
    pub(crate) most_discarded_bytes: u64,
    phase: PhaseName,
    part: Part,
    pub(crate) last: Nanos,
    second: SecondSoFar,
    stretches: Stretches,
    presence: Presence,
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
            workers: RunWorkers::default(),
            grid: Grid::new(interval),
            record,
            fault: None,
            sink,
            written: Ok(()),
            observer,
            stop,
            actors: Vec::new(),
            series: Vec::new(),
            devices,
            failure: None,
            deletion: None,
            allowance: None,
            freed_bytes: 0,
            discarded,
            most_discarded_bytes: 0,
            phase: PhaseName::Prepare,
            part: Part::Main,
            last: now,
            second: SecondSoFar::from(now),
            stretches: Stretches::from(now),
            presence: Presence::new(),
        })
    }

    /// Adds a running actor; its series are the next of the head's actors.
    pub(crate) fn add_actor(&mut self, actor: Actor) {
        self.workers.add(actor.name(), actor.workers());
        self.series.extend(actor.series().iter().map(Watched::new));
        self.actors.push(actor);
    }

    /// Notes whoever deletes.
    pub(crate) fn note_deleter(&self, deletion: &Deletion) {
        self.workers.add(DELETER, deletion.workers());
    }

    /// Notes whoever commits.
    pub(crate) fn note_commit(&self, workers: &Workers) {
        self.workers.add(COMMIT, workers);
    }

    /// Begins a deletion; what it frees is counted from here on.
    pub(crate) fn set_deletion(&mut self, deletion: Deletion) {
        self.note_deleter(&deletion);
        self.freed_bytes = 0;
        self.discarded = Discarded::of(&self.record.head.devices);
        self.deletion = Some(deletion);
    }

    /// Begins a phase at the last boundary.
    pub(crate) fn phase(&mut self, name: PhaseName, part: Part) {
        self.end_phase();
        self.most_discarded_bytes = 0;
        self.phase = name;
        self.part = part;
        if name == PhaseName::Baseline {
            self.presence.measure(self.last);
        }
        let at_s = self.last.as_secs_f64();
        let monotonic_s = self.clock.to_monotonic(self.last) as f64 / 1e9;
        self.workers.begin(Began {
            monotonic_s,
            name,
            part,
        });
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
    pub(crate) fn warn(&mut self, warning: &Warning) {
        self.event(EventKind::Warning, Some(warning.to_string()));
    }

    /// Adds a line to the record and its file. If the record is full (after ten million
    /// intervals), the end reports it.
    pub(crate) fn line(&mut self, line: Line) {
        if let Err(fault) = self.record.push(&line) {
            self.fault.get_or_insert(fault);
        }
        if let Some(sink) = &self.sink {
            sink.line(line);
        }
    }
}

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
        let (sys, devices) = (SysRoot::host(), &self.record.head.devices);
        let lives = match devices.iter().any(|device| device.life.is_some()) {
            true => devices.iter().map(|device| life(&sys, device)).collect(),
            false => Vec::new(),
        };
        self.line(Line::End(End {
            at_s: self.clock.now().as_secs_f64(),
            reason,
            message,
            unfinished,
            lives,
        }));
        let ended = self.sink.map_or(Ok(()), Sink::finish);
        let taken = self
            .fault
            .map_or(Ok(()), |fault| Err(io::Error::other(fault)));
        (self.record, self.written.and(ended).and(taken))
    }
}
