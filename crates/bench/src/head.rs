//! The record's head: everything somebody else needs to repeat the run.

use std::time::{SystemTime, UNIX_EPOCH};

use timeline::record::{Head, RUN_SCHEMA};

use crate::actors;
use crate::plan::{Engine, Plan};
use crate::survey::Survey;

/// The head that a run would begin with, for saying what will be done.
pub fn preview(plan: &Plan, survey: &Survey) -> Head {
    let engine = match plan.foreground.engine {
        Engine::Auto | Engine::IoUring => load::Engine::IoUring,
        Engine::Sync => load::Engine::Sync,
        Engine::Null => load::Engine::Null,
    };
    of(plan, survey, engine)
}

/// The head of a run's record.
pub(crate) fn of(plan: &Plan, survey: &Survey, engine: load::Engine) -> Head {
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
        actors: actors::of(plan, engine)
            .iter()
            .map(|(actor, engine)| actor.info(*engine))
            .collect(),
        devices: survey.devices.clone(),
    }
}
