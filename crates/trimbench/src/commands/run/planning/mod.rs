//! Makes a plan of arguments, a scenario and the survey. An option overrides the scenario, and the
//! scenario overrides the default.

mod actors;
mod asked;
mod deletion;
mod sizes;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bench::Survey;
use bench::plan::{Deletion, Engine, FioJob, ForegroundFile, Place, Plan, Timing};
use record::Invocation;
use units::names;

pub(crate) use asked::Asked;

use crate::commands::run::args::RunArgs;
use crate::exit::Error;

/// Where the arguments point to.
pub(crate) fn place(args: &RunArgs) -> Place {
    match &args.device.device {
        Some(path) => Place::Device {
            path: path.clone(),
            overwrite: args.device.overwrite_signature.clone(),
        },
        None => Place::Directory(args.path.clone()),
    }
}

/// The plan, in full.
pub(crate) fn plan(asked: &Asked, args: &RunArgs, survey: &Survey) -> Result<Plan, Error> {
    let scenario = &asked.scenario;
    let general = &scenario.general;
    let canary_per_s = Some(general.canary_per_s.unwrap_or(100.0)).filter(|&rate| rate > 0.0);
    let engine = general.engine.unwrap_or(Engine::Auto);
    let mut actors = actors::of(scenario, survey);
    actors::map_writers(engine, &mut actors)?;
    actors::refuse_ignored(args, &actors, canary_per_s.is_some())?;
    actors::check_direct(&actors, engine, canary_per_s.is_some(), survey)?;
    actors::check_batches(&actors)?;
    let way = deletion::way(&scenario.deletion, &survey.place)?;
    let method = |size_bytes| way.as_ref()?.method(&scenario.deletion, size_bytes);
    let control = deletion::control(general, method(0).as_ref(), survey)?;
    let fio = general.fio.as_deref().map(fio_job).transpose()?;
    let fio_bytes = fio.as_ref().map(FioJob::space_bytes).transpose()?;
    let sizes = sizes::choose(&sizes::Choice {
        scenario,
        actors: &actors,
        needs_file: canary_per_s.is_some() || actors.iter().any(|a| a.work.shares_file()),
        reuse: args.foreground.reuse,
        fio_bytes: fio_bytes.unwrap_or(0),
        method: method(0).as_ref(),
        control,
        survey,
    })?;
    let direct = actors::go_direct(&actors).unwrap_or(survey.direct.is_ok());
    let phases = &scenario.phases;
    let seconds = |given: Option<Duration>, default| given.unwrap_or(Duration::from_secs(default));
    Ok(Plan {
        scenario: asked.name.clone(),
        look_at: general.look_at.clone(),
        run: Some(invocation(args)),
        place: survey.place.clone(),
        actors,
        file: ForegroundFile {
            size_bytes: sizes.foreground_bytes,
            direct,
            keep: args.foreground.keep,
            reuse: args.foreground.reuse,
        },
        engine,
        seed: general.seed.unwrap_or(1),
        canary_per_s,
        fio,
        deletion: method(sizes.deletion_bytes).map(|method| Deletion {
            method,
            size_bytes: sizes.deletion_bytes,
            files: scenario.deletion.planned_files(),
            extent_bytes: scenario.deletion.extent_bytes,
            commit: !scenario.deletion.no_sync.unwrap_or(false),
        }),
        control,
        timing: Timing {
            interval: phases.interval.unwrap_or(Duration::from_millis(100)),
            settle_limit: seconds(phases.settle, 60),
            baseline: seconds(scenario.deletion.event_at.or(phases.baseline), 10),
            recovery: seconds(phases.recovery, 10),
            drain_limit: seconds(phases.drain_limit, 60),
        },
        low: phases.low,
        blind: args.counters.blind,
    })
}

/// How this run was asked for.
fn invocation(args: &RunArgs) -> Invocation {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let at = units::utc(now.map_or(0.0, |time| time.as_secs_f64()));
    let arguments = std::env::args_os().skip(1);
    Invocation {
        id: format!("{at}-{:08x}", fastrand::u32(..)),
        arguments: arguments
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect(),
        fail_on: args
            .output
            .fail_on
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

fn fio_job(path: &std::path::Path) -> Result<FioJob, Error> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        Error::Usage(format!(
            "{}: can't be read: {e}; give a fio job file",
            names::shown(path)
        ))
    })?;
    Ok(FioJob {
        path: path.to_owned(),
        text,
    })
}
