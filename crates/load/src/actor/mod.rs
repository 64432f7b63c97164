//! Actors: one source of foreground load each, in threads of their own.

use std::sync::Arc;
use std::time::Duration;

use timeline::record::ActorInfo;

use crate::clock::Clock;
use crate::error::LoadError;
use crate::meter::Meter;
use crate::sampler::Sampler;
use crate::schedule;

mod shared;
mod spec;
mod sync;
mod uring;

pub use spec::{ActorSpec, Arrival, Engine, EngineChoice, Op, Region};

use shared::Shared;

/// What was still in flight, or due and never issued, when an actor was given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// How many operations. Of a Poisson schedule, those never issued are the expected number.
    pub operations: u64,
    /// Age of the oldest, from its intended start, in nanoseconds; 0 when there is none.
    pub oldest_ns: u64,
}

/// A running actor. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Actor {
    info: ActorInfo,
    engine: Engine,
    notes: Vec<String>,
    arrival: Arrival,
    shared: Arc<Shared>,
}

impl Actor {
    /// Starts the actor's threads; the first operation is issued at once.
    ///
    /// # Errors
    /// [`LoadError::Spec`], [`LoadError::NoIoUring`] when io_uring was asked
    /// for by name, [`LoadError::System`].
    pub fn start(spec: ActorSpec, clock: Clock) -> Result<Actor, LoadError> {
        spec.check()?;
        spec.check_target()?;
        let wanted = match spec.engine {
            EngineChoice::Sync => Engine::Sync,
            EngineChoice::Null => Engine::Null,
            EngineChoice::Auto | EngineChoice::IoUring if spec.op == Op::Nop => Engine::Null,
            EngineChoice::Auto | EngineChoice::IoUring => Engine::IoUring,
        };
        if wanted == Engine::Sync {
            return Actor::start_with(spec, clock, Engine::Sync, Vec::new());
        }
        let may_fall_back = spec.engine == EngineChoice::Auto;
        match Actor::start_with(spec.clone(), clock, wanted, Vec::new()) {
            Err(LoadError::NoIoUring { reason }) if may_fall_back => {
                let note = format!(
                    "{}: io_uring can't be used ({reason}); it runs on {} threads instead",
                    spec.name,
                    spec.arrival.depth(),
                );
                Actor::start_with(spec, clock, Engine::Sync, vec![note])
            }
            started => started,
        }
    }

    fn start_with(
        spec: ActorSpec,
        clock: Clock,
        engine: Engine,
        mut notes: Vec<String>,
    ) -> Result<Actor, LoadError> {
        let depth = spec.arrival.depth();
        let (lanes, slots) = match engine {
            Engine::Sync => (depth, 1),
            Engine::IoUring | Engine::Null => (1, depth),
        };
        let bytes = u64::from(spec.bytes_per_op());
        let meter = Meter::new(lanes, slots, bytes, spec.arrival.is_open());
        let shared = Arc::new(Shared::new(clock, Arc::new(meter)));
        let (info, arrival) = (spec.info(engine), spec.arrival);
        let more = match engine {
            Engine::Sync => sync::start(spec, &shared)?,
            Engine::IoUring | Engine::Null => uring::start(spec, &shared)?,
        };
        notes.extend(more);
        Ok(Actor {
            info,
            engine,
            notes,
            arrival,
            shared,
        })
    }

    /// What the record's head says about it, with the engine really used.
    pub fn info(&self) -> &ActorInfo {
        &self.info
    }

    /// The engine really used.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Fall-backs and whatever else isn't as asked, in words, for warnings.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Its meter; give it to a [`crate::Sampler`].
    pub fn meter(&self) -> &Arc<Meter> {
        &self.shared.meter
    }

    /// A sampler of its meter; have only one.
    pub fn sampler(&self) -> Sampler {
        Sampler::new(self.shared.meter.clone())
    }

    /// Tells it to issue nothing more. Returns at once.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Stops it, waits at most `grace` for what is in flight, and counts what
    /// never finished, in an open loop with what was due and never issued. A
    /// thread that is still blocked then is abandoned with its memory.
    pub fn finish(self, grace: Duration) -> Unfinished {
        let stopped_at = self.shared.stop();
        self.shared.wait_all_ended(grace);
        let now = self.shared.clock.now();
        let (mut operations, mut oldest) = self.shared.meter.in_flight();
        if let (Arrival::Open { rate_per_s, .. }, Some(next)) =
            (self.arrival, self.shared.next_intended())
        {
            let never_issued = schedule::due(next, stopped_at, rate_per_s);
            if never_issued > 0 {
                operations += never_issued;
                oldest = Some(oldest.map_or(next, |oldest| oldest.min(next)));
            }
        }
        Unfinished {
            operations,
            oldest_ns: oldest.map_or(0, |oldest| now.since(oldest).0),
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

#[cfg(test)]
mod tests;
