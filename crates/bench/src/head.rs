//! The record's head: everything that is needed to repeat the run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use load::Clock;
use record::{ActorInfo, Head, RUN_SCHEMA};

use crate::actors::Actors;
use crate::fio;
use crate::plan::Plan;
use crate::survey::Survey;

/// The head that a run would begin with, for saying what will be done.
pub fn preview(plan: &Plan, survey: &Survey) -> Head {
    // What fails here, preflight has refused.
    let mut series = Actors::resolve(plan).unwrap_or_default().series();
    series.extend(fio::series(plan).unwrap_or_default());
    of(plan, survey, series, Clock::start())
}

/// The head of a run's record.
pub(crate) fn of(plan: &Plan, survey: &Survey, actors: Vec<ActorInfo>, clock: Clock) -> Head {
    let mut scenario = serde_json::to_value(plan).unwrap_or_default();
    if let (Some(control), Some(fields)) = (plan.control, scenario.as_object_mut()) {
        fields.insert("control".into(), control.in_words().into());
    }
    let since_zero = Duration::from_nanos(clock.now().0);
    Head {
        schema: RUN_SCHEMA.into(),
        run: plan.run.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |time| time.saturating_sub(since_zero).as_secs_f64()),
        host: linux::host::describe(),
        target: survey.target.clone(),
        scenario,
        interval_ms: plan.timing.interval.as_secs_f64() * 1e3,
        actors,
        devices: survey.devices.clone(),
    }
}
