//! Actors: one source of foreground load each, in threads of their own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::clock::{Clock, Nanos};
use crate::error::LoadError;
use crate::meter::Meter;
use crate::schedule;
use crate::workers::Workers;

mod blocks;
mod choose;
mod lanes;
mod libaio;
mod mix;
mod mmap;
mod queue;
mod series;
mod shared;
mod spec;
mod sync;
mod tasks;
mod uring;

pub(crate) use blocks::check_block;
pub use blocks::{Allowance, Blocks, Engine, Op, Region};
pub(crate) use lanes::Stopwatch;
pub use series::Series;
pub use spec::{ActorSpec, Work};

use record::LoopKind;
use series::Part;
use shared::Shared;

/// The operations of a series that were still in flight, or due and never issued, when its actor
/// was given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// How many operations. Where chance decides which are due, those never
    /// issued are the expected number.
    pub operations: u64,
    /// Age of the oldest, from its intended start, in nanoseconds; 0 when there is none.
    pub oldest_ns: u64,
}

/// A running actor. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Actor {
    name: String,
    engine: Engine,
    notes: Vec<String>,
    arrival: LoopKind,
    parts: Vec<Part>,
    series: Vec<Series>,
    shared: Arc<Shared>,
}

impl Actor {
    /// Starts the actor's threads; the first operation is issued at once.
    ///
    /// # Errors
    /// [`LoadError::Spec`]; [`LoadError::NoIoUring`] and
    /// [`LoadError::NoLibaio`] when that was asked for by name;
    /// [`LoadError::System`]; of a task, what its preparation meets.
    pub fn start(spec: ActorSpec, clock: Clock) -> Result<Actor, LoadError> {
        Actor::start_unless(spec, clock, &AtomicBool::new(false))
    }

    /// The same, given up once `stop` is set: a task may have gigabytes to
    /// write before its first operation.
    ///
    /// # Errors
    /// Those of [`Actor::start`]; [`LoadError::Stopped`].
    pub fn start_unless(
        mut spec: ActorSpec,
        clock: Clock,
        stop: &AtomicBool,
    ) -> Result<Actor, LoadError> {
        spec.check()?;
        spec.check_target()?;
        let (engine, (shared, mut notes), fallen_back) = match &spec.work {
            Work::Blocks(blocks) => {
                choose::first_that(blocks, |engine| start_blocks(&spec, blocks, clock, engine))?
            }
            Work::Task(task) => {
                let shared = sharing(&spec, clock, false);
                let notes = tasks::start(&spec, task, &shared, stop)?;
                (Engine::Sync, (shared, notes), None)
            }
        };
        if let Work::Blocks(blocks) = &mut spec.work {
            blocks.engine = engine;
        }
        if let Some(note) = fallen_back {
            notes.insert(0, format!("{}: {note}", spec.name));
        }
        let series = spec.series().into_iter().zip(&shared.meters);
        let series = series.map(|(info, meter)| Series {
            info,
            meter: meter.clone(),
        });
        Ok(Actor {
            name: spec.name.clone(),
            engine,
            notes,
            arrival: spec.arrival,
            parts: spec.parts(),
            series: series.collect(),
            shared,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The columns of the record that it fills: at least one.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// The engine really used.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Fall-backs and whatever else isn't as asked, in words, for warnings.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Its threads.
    pub fn workers(&self) -> &Workers {
        &self.shared.workers
    }

    /// Leaves out whatever was meant to begin before `at`, since this process was away until
    /// then: it isn't counted, and an open loop doesn't catch up with it.
    pub fn leave_out_before(&self, at: Nanos) {
        for meter in &self.shared.meters {
            meter.leave_out_before(at);
        }
    }

    /// Tells it to issue nothing more. Returns at once.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Stops it, waits at most `grace` for what is in flight, and counts what
    /// never finished, for each series; in an open loop with what was due and
    /// never issued. A thread that is still blocked then is abandoned with its
    /// memory.
    pub fn finish(self, grace: Duration) -> Vec<Unfinished> {
        let stopped_at = self.shared.stop();
        self.shared.wait_all_ended(grace);
        let now = self.shared.clock.now();
        let never_issued = match (self.arrival, self.shared.next_intended()) {
            (LoopKind::Open { rate_per_s, .. }, Some(next)) => {
                Some((next, schedule::due(next, stopped_at, rate_per_s)))
            }
            _ => None,
        };
        let unfinished = |(part, meter): (&Part, &Arc<Meter>)| {
            let (mut operations, mut oldest) = meter.in_flight();
            if let Some((next, due)) = never_issued {
                let due = (due as f64 * part.share).round() as u64;
                if due > 0 {
                    operations += due;
                    oldest = Some(oldest.map_or(next, |oldest| oldest.min(next)));
                }
            }
            Unfinished {
                operations,
                oldest_ns: oldest.map_or(0, |oldest| now.since(oldest).0),
            }
        };
        let parts = self.parts.iter().zip(&self.shared.meters);
        parts.map(unfinished).collect()
    }
}

fn start_blocks(
    spec: &ActorSpec,
    blocks: &Blocks,
    clock: Clock,
    engine: Engine,
) -> Result<(Arc<Shared>, Vec<String>), LoadError> {
    let driver = choose::driver(engine);
    let shared = sharing(spec, clock, driver.has_queue);
    let notes = (driver.start)(spec, blocks, &shared)?;
    Ok((shared, notes))
}

/// The state that the actor's threads share, with room for the operations in flight.
fn sharing(spec: &ActorSpec, clock: Clock, has_queue: bool) -> Arc<Shared> {
    let depth = spec.arrival.depth();
    let (lanes, slots) = if has_queue { (1, depth) } else { (depth, 1) };
    let mut shared = Shared::new(clock, spec.meters(lanes, slots));
    if has_queue {
        shared.workers = Workers::of_queue(&shared.meters);
    }
    Arc::new(shared)
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

#[cfg(test)]
mod tests;
