//! Makes a plan of arguments, a scenario and the survey. An option overrides the scenario, and the
//! scenario overrides the default.

mod actors;
mod asked;
mod deletion;
mod sizes;

use std::time::{SystemTime, UNIX_EPOCH};

use bench::Survey;
use bench::plan::{Deletion, FioJob, ForegroundFile, Place, Plan, Timing};
use bench::scenario::Counters;
use record::Invocation;
use record::units::names;

pub(crate) use asked::Asked;

use crate::commands::run::args::RunArgs;
use crate::exit::Error;

/// Where the arguments point to.
pub(crate) fn place(args: &RunArgs) -> Place {
    match &args.device.device {
        Some(path) => Place::Device {
            path: path.clone(),
            force: args.device.force,
        },
        None => Place::Directory(args.path.clone()),
    }
}

/// The plan, in full.
pub(crate) fn plan(asked: &Asked, args: &RunArgs, survey: &Survey) -> Result<Plan, Error> {
    let scenario = &asked.scenario;
    let general = &scenario.general;
    let canary_per_s = Some(general.canary_per_s()).filter(|&rate| rate > 0.0);
    let engine = general.engine();
    let mut actors = actors::of(scenario, survey);
    actors::map_writers(engine, &mut actors)?;
    actors::check_direct(&actors, engine, canary_per_s.is_some(), survey)?;
    actors::check_batches(&actors)?;
    let on_device = matches!(survey.place, Place::Device { .. });
    let method = |size_bytes| {
        let method = scenario.deletion.method(on_device, size_bytes);
        method.map_err(Error::Usage)
    };
    // Known before the size, but for the figures that depend on it.
    let early = method(0)?;
    let control = deletion::control(general, early.as_ref(), survey)?;
    let fio = general.fio.as_deref().map(fio_job).transpose()?;
    let fio_bytes = fio.as_ref().map(FioJob::space_bytes).transpose()?;
    let sizes = sizes::choose(&sizes::Choice {
        scenario,
        actors: &actors,
        needs_file: canary_per_s.is_some() || actors.iter().any(|a| a.work.shares_file()),
        reuse: scenario.foreground.reuse(),
        fio_bytes: fio_bytes.unwrap_or(0),
        method: early.as_ref(),
        control,
        survey,
    })?;
    let direct = actors::go_direct(&actors).unwrap_or(survey.direct.is_ok());
    let phases = &scenario.phases;
    Ok(Plan {
        scenario: asked.name.clone(),
        look_at: general.look_at.clone(),
        run: Some(invocation(args)),
        place: survey.place.clone(),
        actors,
        file: ForegroundFile {
            size_bytes: sizes.foreground_bytes,
            direct,
            keep: scenario.foreground.keep(),
            reuse: scenario.foreground.reuse(),
        },
        engine,
        seed: general.seed(),
        canary_per_s,
        fio,
        deletion: method(sizes.deletion_bytes)?.map(|method| Deletion {
            method,
            size_bytes: sizes.deletion_bytes,
            files: scenario.deletion.files_made(),
            extent_bytes: scenario.deletion.extent_bytes,
            commit: !scenario.deletion.no_sync(),
        }),
        control,
        timing: Timing {
            interval: phases.interval(),
            settle_limit: phases.settle(),
            baseline: phases.baseline(),
            recovery: phases.recovery(),
            drain_limit: phases.drain_limit(),
        },
        low: scenario.judging.low,
        blind: general.counters() == Counters::Blind,
    })
}

/// How this run was asked for.
fn invocation(args: &RunArgs) -> Invocation {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let at = record::units::utc(now.map_or(0.0, |time| time.as_secs_f64()));
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
