//! The record's head: everything that is needed to repeat the run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use load::{ActorSpec, Clock};
use record::{Head, RUN_SCHEMA};

use crate::actors::Actors;
use crate::error::BenchError;
use crate::fio;
use crate::plan::Plan;
use crate::survey::Survey;

/// The head of a run's record, but for the time when it starts.
pub(crate) fn of(plan: &Plan, survey: &Survey, actors: &Actors) -> Result<Head, BenchError> {
    let own = actors.specs.iter().flat_map(ActorSpec::series);
    Ok(Head {
        schema: RUN_SCHEMA.into(),
        run: plan.run.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s: 0.0,
        host: linux::host::describe(),
        target: survey.target.clone(),
        scenario: serde_json::to_value(plan).unwrap_or_default(),
        interval_ms: plan.phases.interval().as_secs_f64() * 1e3,
        actors: own.chain(fio::series(plan)?).collect(),
        devices: survey.devices.clone(),
    })
}

/// The time at which a clock was at 0, in seconds since 1970.
pub(crate) fn started_unix_s(clock: Clock) -> f64 {
    let since_zero = Duration::from_nanos(clock.now().0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.saturating_sub(since_zero).as_secs_f64())
}
