//! Makes the record of a run in virtual time, as `bench` makes that of a real one.

use std::time::Duration;

use hdrhistogram::Histogram;
use record::{
    ActorInfo, ActorInterval, DeletionLine, DeviceInfo, DeviceInterval, DiscardLimits,
    DiscardSetting, End, EndReason, Event, EventKind, Grain, Head, HistogramLine, Host, Interval,
    Latency, Line, Part, Phase, PhaseName, PushError, RUN_SCHEMA, RunRecord, Target,
    encode_histogram,
};
use ssd::Time;

use crate::engine::{Actor, SimError, Tally};
use crate::setup::Setup;
use crate::stack::{Count, Counters, Stack};

/// Most rows of a record: a day at 100 ms.
const MOST_ROWS: f64 = 900_000.0;

/// Most rows of the deletion that get a histogram: ten minutes at 100 ms, as of a real run.
const MOST_STRETCHES: usize = 6_000;

/// The record in the making.
#[derive(Debug)]
pub(crate) struct Recorder {
    record: RunRecord,
    /// Where the present row began, and what the drives had done by then.
    row: Time,
    counters: Vec<Counters>,
    freed: u64,
    /// The present phase, and the part of the present row that belongs to an earlier one.
    phase: PhaseName,
    earlier: Vec<Histogram<u64>>,
    deletion: Option<(Time, Time)>,
    /// Rows of the deletion so far.
    stretches: usize,
    continuous: bool,
    /// When all was discarded, until the recovery begins.
    drained: Option<Time>,
    free: Vec<FreeSpace>,
}

/// The volume's free space at the end of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FreeSpace {
    /// Seconds since the start.
    pub at_s: f64,
    /// Bytes that the drive knows to hold nothing.
    pub known_bytes: u64,
    /// Bytes that are free and that the drive takes for data.
    pub debt_bytes: u64,
}

impl Recorder {
    pub(crate) fn new(
        setup: &Setup,
        actors: &[ActorInfo],
        stack: &Stack,
    ) -> Result<Recorder, SimError> {
        let longest = match setup.workload.is_continuous() {
            true => setup.length,
            false => setup.baseline + setup.recovery,
        };
        let rows = longest.as_secs_f64() / setup.interval.as_secs_f64();
        if rows > MOST_ROWS {
            return Err(SimError::TooLong(format!(
                "{rows:.0} rows would be recorded: give an `interval` of at least {}",
                record::units::seconds((longest.as_secs_f64() / MOST_ROWS).ceil())
            )));
        }
        let record = RunRecord::new(head(setup, actors, stack)).map_err(unlikely)?;
        let mut recorder = Recorder {
            record,
            row: Time::ZERO,
            counters: stack.counters().collect(),
            freed: 0,
            phase: PhaseName::Baseline,
            earlier: Vec::new(),
            deletion: None,
            stretches: 0,
            continuous: setup.workload.is_continuous(),
            drained: None,
            free: Vec::new(),
        };
        recorder.push(Line::Phase(Phase {
            name: PhaseName::Baseline,
            part: Part::Main,
            at_s: 0.0,
        }));
        Ok(recorder)
    }

    /// Adds a line. One that doesn't fit into a record is left out: there is none, for times only
    /// rise here.
    fn push(&mut self, line: Line) {
        let pushed = self.record.push(&line);
        debug_assert_eq!(pushed, Ok(()));
    }

    fn event(&mut self, now: Time, kind: EventKind) {
        self.push(Line::Event(Event {
            at_s: now.as_secs_f64(),
            kind,
            detail: None,
        }));
    }

    /// Bytes are freed, as far as the deleter's calls go.
    pub(crate) fn freed(&mut self, bytes: u64) {
        self.freed += bytes;
    }

    pub(crate) fn begin_deletion(&mut self, now: Time, actors: &mut [Actor]) {
        if self.deletion.is_none() {
            self.deletion = Some((now, now));
            self.event(now, EventKind::DeletionBegan);
            if self.continuous {
                self.event(now, EventKind::ContinuousDeletionBegan);
            }
            self.begin(PhaseName::Delete, now, actors);
        }
    }

    pub(crate) fn deletion_returned(&mut self, now: Time) {
        if let Some((_, end)) = &mut self.deletion {
            *end = now;
        }
    }

    /// The workload's commit is forced, or has returned.
    pub(crate) fn commit(&mut self, now: Time, kind: EventKind) {
        if !self.continuous {
            self.event(now, kind);
        }
    }

    /// All is discarded, or is waited for no longer.
    pub(crate) fn drained(&mut self, now: Time, is_drained: bool) {
        let kind = match is_drained {
            true => EventKind::DebtPaid,
            false => EventKind::DiscardsDidNotCome,
        };
        self.event(now, kind);
        self.drained = Some(now);
    }

    /// Begins the recovery, if all is discarded and every operation that waited for that is done.
    pub(crate) fn recover(&mut self, now: Time, stack: &Stack, actors: &mut [Actor]) {
        let Some(drained) = self.drained else { return };
        // A row belongs to the phase in which its middle lies. A deletion that is over within a row
        // has the whole row.
        let is_within = self.deletion.is_some_and(|(began, _)| began >= self.row);
        let waits = || stack.oldest(|_| true).is_some_and(|since| since < drained);
        if !is_within && !waits() {
            self.drained = None;
            self.begin(PhaseName::Recovery, now, actors);
        }
    }

    fn begin(&mut self, name: PhaseName, now: Time, actors: &mut [Actor]) {
        for (at, actor) in actors.iter_mut().enumerate() {
            self.merge(at, actor);
            self.end_phase(at, actor);
        }
        self.earlier = actors.iter().map(|actor| actor.interval.clone()).collect();
        self.phase = name;
        self.push(Line::Phase(Phase {
            name,
            part: Part::Main,
            at_s: now.as_secs_f64(),
        }));
    }

    /// Adds the present row to an actor's phase.
    fn merge(&mut self, at: usize, actor: &mut Actor) {
        // All have the same bounds, so neither can fail.
        let _ = actor.phase.add(&actor.interval);
        if let Some(earlier) = self.earlier.get(at) {
            let _ = actor.phase.subtract(earlier);
        }
    }

    fn end_phase(&mut self, at: usize, actor: &mut Actor) {
        self.histogram(at, Grain::Phase(self.phase), &actor.phase);
        actor.phase.reset();
    }

    /// Adds an actor's latencies, if it has some.
    fn histogram(&mut self, at: usize, over: Grain, latencies: &Histogram<u64>) {
        if !latencies.is_empty() {
            self.push(Line::Histogram(HistogramLine {
                actor: at,
                latency: Latency::Response,
                over,
                part: Part::Main,
                v2: encode_histogram(latencies),
            }));
        }
    }

    /// Ends a row.
    pub(crate) fn interval(
        &mut self,
        now: Time,
        actors: &mut [Actor],
        stack: &Stack,
        free: FreeSpace,
    ) {
        let seconds = (now - self.row).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let stretch = Grain::Stretch {
            at_s: self.row.as_secs_f64(),
            seconds,
        };
        let deletes = self.phase == PhaseName::Delete && self.stretches < MOST_STRETCHES;
        self.stretches += usize::from(deletes);
        let mut rows = Vec::with_capacity(actors.len());
        for (at, actor) in actors.iter_mut().enumerate() {
            self.merge(at, actor);
            if deletes {
                self.histogram(at, stretch, &actor.interval);
            }
            let oldest = stack.oldest(|actor| usize::from(actor) == at);
            rows.push(Some(row(actor, oldest.map(|since| now - since))));
            actor.interval.reset();
            actor.bytes = 0;
        }
        self.earlier.clear();
        let counters: Vec<Counters> = stack.counters().collect();
        let devices = counters
            .iter()
            .zip(&self.counters)
            .zip(stack.drives())
            .map(|((new, old), drive)| device(new, old, drive.in_flight() as u64));
        let interval = Interval {
            at_s: self.row.as_secs_f64(),
            seconds,
            actors: rows,
            devices: devices.collect(),
            freed_bytes: std::mem::take(&mut self.freed),
            absent: None,
            cpu_wait: Vec::new(),
        };
        self.push(Line::Interval(interval));
        self.free.push(free);
        self.counters = counters;
        self.row = now;
        self.recover(now, stack, actors);
    }

    /// Ends the record.
    pub(crate) fn finish(
        mut self,
        now: Time,
        actors: &mut [Actor],
        stack: &Stack,
        tally: &Tally,
    ) -> (RunRecord, Vec<FreeSpace>) {
        // A last row that is much shorter than the others would have no rate.
        let whole = self.record.intervals.seconds.first();
        let whole = f64::from(whole.copied().unwrap_or(0.0));
        if (now - self.row).as_secs_f64() > 0.5 * whole {
            let last = self.free.last().copied().unwrap_or_default();
            let free = FreeSpace {
                at_s: now.as_secs_f64(),
                ..last
            };
            self.interval(now, actors, stack, free);
        }
        for (at, actor) in actors.iter_mut().enumerate() {
            self.end_phase(at, actor);
        }
        if let Some((began, returned)) = self.deletion {
            self.event(returned, EventKind::DeletionReturned);
            self.push(Line::Deletion(DeletionLine {
                part: Part::Main,
                at_s: began.as_secs_f64(),
                seconds: (returned - began).as_secs_f64(),
                bytes: tally.removed_bytes,
                files: tally.removed_files,
                continuous: self.continuous,
                ..DeletionLine::default()
            }));
        }
        if tally.is_full {
            self.push(Line::Event(Event {
                at_s: now.as_secs_f64(),
                kind: EventKind::Warning,
                detail: Some("the simulated volume ran full, and the run ended there".to_owned()),
            }));
        }
        self.push(Line::End(End {
            at_s: now.as_secs_f64(),
            reason: EndReason::Completed,
            message: None,
            unfinished: Vec::new(),
            lives: Vec::new(),
        }));
        (self.record, self.free)
    }
}

fn unlikely(error: PushError) -> SimError {
    SimError::TooLong(error.to_string())
}

fn row(actor: &Actor, oldest: Option<Duration>) -> ActorInterval {
    let us = |nanos: u64| nanos as f64 / 1e3;
    let own = &actor.interval;
    let quantile = |q| (!own.is_empty()).then(|| us(own.value_at_quantile(q)));
    ActorInterval {
        ops: own.len(),
        errors: 0,
        bytes: actor.bytes,
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
        max_us: (!own.is_empty()).then(|| us(own.max())),
        oldest_us: Some(oldest.map_or(0.0, |age| age.as_secs_f64() * 1e6)),
    }
}

fn device(new: &Counters, old: &Counters, in_flight: u64) -> DeviceInterval {
    let ms = |new: Count, old: Count| {
        // The kernel counts whole milliseconds, and so no time is lost between rows.
        (new.busy.as_millis() - old.busy.as_millis()) as u64
    };
    DeviceInterval {
        reads: new.reads.ops - old.reads.ops,
        read_bytes: new.reads.bytes - old.reads.bytes,
        read_ms: ms(new.reads, old.reads),
        writes: new.writes.ops - old.writes.ops,
        write_bytes: new.writes.bytes - old.writes.bytes,
        write_ms: ms(new.writes, old.writes),
        discards: new.discards.ops - old.discards.ops,
        discard_bytes: new.discards.bytes - old.discards.bytes,
        discard_ms: ms(new.discards, old.discards),
        in_flight,
    }
}

fn head(setup: &Setup, actors: &[ActorInfo], stack: &Stack) -> Head {
    let bytes = setup.volume_bytes();
    let count = setup.drives.cards.len() as u64;
    let limits = stack.limits();
    // Given extents are laid out like btrfs', whatever the policy's file system.
    let kind = setup.allocator.unwrap_or(setup.policy.allocator());
    let devices = setup.drives.cards.iter().enumerate().map(|(at, card)| {
        let discard = card.figures().discard.as_ref();
        DeviceInfo {
            model: Some(card.name().to_owned()),
            size_bytes: bytes / count.max(1),
            rotational: Some(false),
            scheduler: Some("none".to_owned()),
            discard: DiscardLimits {
                granularity_bytes: card.figures().granule,
                max_bytes: discard.map_or(0, |d| d.max_bytes),
                max_hw_bytes: discard.map_or(0, |d| d.max_bytes),
                max_segments: discard.map_or(0, |d| d.max_ranges.into()),
                ata_trim: None,
            },
            ..DeviceInfo::disk(format!("sim{at}"))
        }
    });
    Head {
        schema: RUN_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        // Virtual time has no date: the same setup gives the same bytes.
        started_unix_s: 0.0,
        run: None,
        host: Host {
            name: "simulated".to_owned(),
            machine_id: None,
            kernel: "virtual time".to_owned(),
            cpus: 1,
            memory_bytes: 0,
        },
        target: Target {
            path: setup.drives.name.clone(),
            mount: None,
            source: None,
            fs: Some(kind.name().to_owned()),
            options: vec![setup.policy.name().to_owned()],
            discard: match limits {
                Some(_) => setup.policy.setting(),
                None => DiscardSetting::Unsupported,
            },
            size_bytes: bytes,
            available_bytes: None,
            discards_at_most: None,
        },
        scenario: serde_json::json!({ "simulated": setup.describe() }),
        interval_ms: setup.interval.as_secs_f64() * 1e3,
        actors: actors.to_vec(),
        devices: devices.collect(),
    }
}
