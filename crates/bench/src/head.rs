//! The record's head: everything somebody else needs to repeat the run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use load::{Actor, ActorSpec, Clock, EngineChoice, LoadError, PatternKind};
use timeline::record::{ActorInfo, Head, LoopKind, RUN_SCHEMA};

use crate::plan::{Arrival, Engine, Op, Pattern, Plan};
use crate::survey::Survey;

/// Bytes that the canary reads.
pub(crate) const CANARY_BYTES: u32 = 4096;

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
) -> Result<(EngineChoice, Vec<String>), LoadError> {
    let null =
        || Actor::start(null_spec(), clock).map(|actor| actor.finish(Duration::from_secs(1)));
    match asked {
        Engine::Sync => Ok((EngineChoice::Sync, Vec::new())),
        Engine::IoUring => null().map(|_| (EngineChoice::IoUring, Vec::new())),
        Engine::Null => null().map(|_| (EngineChoice::Null, Vec::new())),
        Engine::Auto => match null() {
            Ok(_) => Ok((EngineChoice::IoUring, Vec::new())),
            Err(LoadError::NoIoUring { reason }) => {
                let note = format!("io_uring can't be used ({reason}): the engine is sync");
                Ok((EngineChoice::Sync, vec![note]))
            }
            Err(error) => Err(error),
        },
    }
}

fn null_spec() -> ActorSpec {
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

/// The head that a run would begin with, for saying what will be done.
pub fn preview(plan: &Plan, survey: &Survey) -> Head {
    let engine = match plan.foreground.engine {
        Engine::Auto | Engine::IoUring => EngineChoice::IoUring,
        Engine::Sync => EngineChoice::Sync,
        Engine::Null => EngineChoice::Null,
    };
    of(plan, survey, engine)
}

/// The head of a run's record.
pub(crate) fn of(plan: &Plan, survey: &Survey, engine: EngineChoice) -> Head {
    let mut scenario = serde_json::to_value(plan).unwrap_or_default();
    if let (Some(control), Some(fields)) = (plan.control, scenario.as_object_mut()) {
        fields.insert("control".into(), control.in_words().into());
    }
    Head {
        schema: RUN_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |time| time.as_secs_f64()),
        host: linux::host::describe(),
        target: survey.target.clone(),
        scenario,
        interval_ms: plan.timing.interval.as_secs_f64() * 1e3,
        actors: actors(plan, engine),
        devices: survey.devices.clone(),
    }
}

fn actors(plan: &Plan, engine: EngineChoice) -> Vec<ActorInfo> {
    let foreground = &plan.foreground;
    let null = engine == EngineChoice::Null;
    let op = match foreground.op {
        _ if null => "nop",
        Op::Read => "read",
        Op::Write => "write",
    };
    let mut actors = vec![ActorInfo {
        name: foreground_name(plan).into(),
        op: op.into(),
        loop_kind: match foreground.arrival {
            Arrival::Closed { depth, .. } => LoopKind::Closed { depth },
            Arrival::Open {
                rate_per_s,
                poisson,
                depth,
            } => LoopKind::Open {
                rate_per_s,
                poisson,
                depth,
            },
        },
        block_bytes: if null { 0 } else { foreground.block_bytes },
        pattern: (!null).then(|| {
            match foreground.pattern {
                Pattern::Random => "random",
                Pattern::Sequential => "sequential",
            }
            .to_owned()
        }),
        direct: foreground.direct && !null,
        engine: engine_name(engine).into(),
    }];
    if let Some(rate_per_s) = plan.canary_per_s {
        actors.push(ActorInfo {
            name: "canary".into(),
            op: "read".into(),
            loop_kind: LoopKind::Open {
                rate_per_s,
                poisson: false,
                depth: 1,
            },
            block_bytes: CANARY_BYTES.into(),
            pattern: Some("random".into()),
            direct: foreground.direct,
            engine: engine_name(canary_engine(engine)).into(),
        });
    }
    actors
}

/// The foreground actor's name: what it is.
pub(crate) fn foreground_name(plan: &Plan) -> &'static str {
    match (plan.foreground.engine, plan.foreground.op) {
        (Engine::Null, _) => "null",
        (_, Op::Read) => "reader",
        (_, Op::Write) => "writer",
    }
}

/// The canary really reads, whatever the foreground does.
pub(crate) fn canary_engine(engine: EngineChoice) -> EngineChoice {
    match engine {
        EngineChoice::Null => EngineChoice::IoUring,
        other => other,
    }
}

fn engine_name(engine: EngineChoice) -> &'static str {
    match engine {
        EngineChoice::Auto | EngineChoice::IoUring => "io_uring",
        EngineChoice::Sync => "sync",
        EngineChoice::Null => "null",
    }
}
