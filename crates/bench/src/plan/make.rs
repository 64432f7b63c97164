//! Makes a plan of a scenario and a survey, and chooses what the scenario leaves out.

use record::units::MIB;
use storage::FileSystem;

use super::{ActorSpec, Deletion, Method, Place, Plan, Work};
use crate::error::BenchError;
use crate::preflight::direct_fits;
use crate::scenario::{Counters, Scenario};
use crate::sizes::{self, LEAST};
use crate::survey::Survey;

impl Plan {
    /// The plan of a scenario at the place of a survey, without the scenario's name.
    ///
    /// # Errors
    /// With what can't be had there, and what to do.
    pub fn of(scenario: &Scenario, survey: &Survey) -> Result<Plan, BenchError> {
        let (general, asked) = (&scenario.general, &scenario.deletion);
        let mut plan = Plan {
            look_at: general.look_at.clone(),
            actors: actors(scenario, survey)?,
            engine: general.engine(),
            seed: general.seed(),
            canary_per_s: Some(general.canary_per_s()).filter(|&rate| rate > 0.0),
            low: scenario.judging.low,
            blind: general.counters() == Counters::Blind,
            control: general.control(),
            ..Plan::plain(survey.place.clone(), true, 0, scenario.phases.clone())
        };
        let first_blocks = plan.actors.iter().find_map(|actor| match &actor.work {
            Work::Blocks(blocks) => Some(blocks.direct),
            Work::Task(_) => None,
        });
        plan.file.direct = first_blocks.unwrap_or(survey.direct.is_ok());
        let on_device = matches!(survey.place, Place::Device { .. });
        let deletion = |size_bytes| {
            let mut method = asked.method(on_device, size_bytes);
            if let (Ok(Some(Method::Event(event))), Some(mount)) = (&mut method, &survey.mount) {
                event.at_mount(&mount.mount_point.to_string_lossy());
            }
            let deletion = method.map_err(BenchError::Plan)?.map(|method| Deletion {
                method,
                size_bytes,
                files: asked.files_made(),
                extent_bytes: asked.extent_bytes,
                commit: !asked.no_sync(),
            });
            Ok::<_, BenchError>(deletion)
        };
        // Known before the size, but for the figures that depend on it.
        plan.deletion = deletion(0)?;
        if let Some(deletion) = &plan.deletion {
            let fs = FileSystem::named(&survey.target);
            plan.control = plan.control.on(fs, &deletion.method);
        }
        // Nobody wants to hear of space on a file system that can't be used.
        direct_fits(&plan, survey)?;
        let sizes = sizes::of(&plan, scenario, survey)?;
        plan.file.size_bytes = sizes.foreground_bytes;
        plan.deletion = deletion(sizes.deletion_bytes)?;
        Ok(plan)
    }
}

/// The scenario's actors. The size of a file of their own that none was asked for is one that fits;
/// writers that overwrite a mapped file go through the page cache.
fn actors(scenario: &Scenario, survey: &Survey) -> Result<Vec<ActorSpec>, BenchError> {
    let most = (survey.space.usable_bytes() / 8 / MIB * MIB).max(LEAST);
    let maps = scenario.general.engine().maps();
    let mut mapped = false;
    let planned = scenario.actors.iter().map(|asked| {
        let mut actor = asked.planned();
        let depth = u64::from(actor.arrival.depth());
        let chosen = asked.size_bytes.is_none();
        match &mut actor.work {
            Work::Blocks(blocks) => {
                if chosen {
                    blocks.size_bytes = blocks.size_bytes.map(|size| size.min(most));
                }
                if maps && blocks.op == super::Op::Write {
                    blocks.direct = false;
                    mapped = true;
                }
            }
            Work::Task(task) if chosen => {
                task.size_bytes = task.size_bytes.min((most / depth).max(MIB));
            }
            Work::Task(_) => {}
        }
        actor
    });
    let planned = planned.collect();
    match maps && !mapped {
        true => Err(BenchError::Plan(
            "--engine mmap is for writers, and the foreground has none: add --op write, or \
             --actor write"
                .to_owned(),
        )),
        false => Ok(planned),
    }
}
