//! Who makes the foreground's load: the plan's actor, and the canary beside it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use load::{Actor, ActorSpec, Clock, EngineChoice, LoadError, PatternKind, Region};

use crate::plan::{Arrival, Engine, Op, Pattern, Plan};

/// Bytes that the canary reads.
const CANARY_BYTES: u32 = 4096;

/// The engine that will really run, and why it isn't the one asked for.
///
/// The head is written before there is a file to run on, so this is found out
/// with a ring that does nothing.
///
/// # Errors
/// When io_uring was asked for by name and can't be had.
pub(crate) fn resolve_engine(
    asked: Engine,
    clock: Clock,
) -> Result<(load::Engine, Vec<String>), LoadError> {
    let probe = || Actor::start(probe(), clock).map(|actor| actor.finish(Duration::from_secs(1)));
    match asked {
        Engine::Sync => Ok((load::Engine::Sync, Vec::new())),
        Engine::IoUring => probe().map(|_| (load::Engine::IoUring, Vec::new())),
        Engine::Null => probe().map(|_| (load::Engine::Null, Vec::new())),
        Engine::Auto => match probe() {
            Ok(_) => Ok((load::Engine::IoUring, Vec::new())),
            Err(LoadError::NoIoUring { reason }) => {
                let note = format!("io_uring can't be used ({reason}): the engine is sync");
                Ok((load::Engine::Sync, vec![note]))
            }
            Err(error) => Err(error),
        },
    }
}

fn probe() -> ActorSpec {
    ActorSpec {
        name: "probe".into(),
        op: load::Op::Nop,
        pattern: PatternKind::Sequential,
        block_bytes: 512,
        arrival: load::Arrival::Closed { depth: 1, batch: 1 },
        engine: EngineChoice::Null,
        target: None,
        direct: false,
        seed: 0,
    }
}

/// The actors of a plan, in the order of the record's head, with the engines
/// they run on. What they work on is still to be told: see [`aim`].
pub(crate) fn of(plan: &Plan, engine: load::Engine) -> Vec<(ActorSpec, load::Engine)> {
    let mut actors = vec![(foreground(plan, engine), engine)];
    if let Some(rate_per_s) = plan.canary_per_s {
        // It really reads, whatever the foreground does.
        let engine = match engine {
            load::Engine::Null => load::Engine::IoUring,
            other => other,
        };
        actors.push((canary(plan, rate_per_s, engine), engine));
    }
    actors
}

fn foreground(plan: &Plan, engine: load::Engine) -> ActorSpec {
    let foreground = &plan.foreground;
    let (name, op) = match (engine, foreground.op) {
        (load::Engine::Null, _) => ("null", load::Op::Nop),
        (_, Op::Read) => ("reader", load::Op::Read),
        (_, Op::Write) => ("writer", load::Op::Write),
    };
    ActorSpec {
        name: name.into(),
        op,
        pattern: match foreground.pattern {
            Pattern::Random => PatternKind::Random,
            Pattern::Sequential => PatternKind::Sequential,
        },
        block_bytes: foreground.block_bytes,
        arrival: match foreground.arrival {
            Arrival::Closed { depth, batch } => load::Arrival::Closed { depth, batch },
            Arrival::Open {
                rate_per_s,
                poisson,
                depth,
            } => load::Arrival::Open {
                rate_per_s,
                poisson,
                depth,
            },
        },
        engine: exactly(engine),
        target: None,
        direct: foreground.direct,
        seed: foreground.seed,
    }
}

fn canary(plan: &Plan, rate_per_s: f64, engine: load::Engine) -> ActorSpec {
    ActorSpec {
        name: "canary".into(),
        op: load::Op::Read,
        pattern: PatternKind::Random,
        block_bytes: CANARY_BYTES,
        arrival: load::Arrival::Open {
            rate_per_s,
            poisson: false,
            depth: 1,
        },
        engine: exactly(engine),
        target: None,
        direct: plan.foreground.direct,
        // Not the foreground's blocks in the foreground's order.
        seed: !plan.foreground.seed,
    }
}

fn exactly(engine: load::Engine) -> EngineChoice {
    match engine {
        load::Engine::IoUring => EngineChoice::IoUring,
        load::Engine::Sync => EngineChoice::Sync,
        load::Engine::Null => EngineChoice::Null,
    }
}

/// Lets an actor work on the first `len` bytes of a file or device.
///
/// # Errors
/// When it can't be opened as the actor needs it.
pub(crate) fn aim(actor: &mut ActorSpec, path: &Path, len: u64) -> Result<(), LoadError> {
    if actor.op != load::Op::Nop {
        actor.target = Some(Region {
            file: Arc::new(load::target::open(path, actor.op, actor.direct)?),
            start: 0,
            len,
        });
    }
    Ok(())
}
