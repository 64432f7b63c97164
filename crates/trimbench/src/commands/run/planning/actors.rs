//! The foreground's actors: what they need of the place, and which options do nothing for them.

use bench::Survey;
use bench::plan::{ActorSpec, Blocks, Engine, LoopKind, Op, Work};
use bench::scenario::Scenario;
use record::units::MIB;
use record::units::names;

use crate::exit::Error;

/// Smallest file that an actor's own is cut down to where there is little space.
const LEAST: u64 = 16 * MIB;

/// The plan's actors.
pub(super) fn of(scenario: &Scenario, survey: &Survey) -> Vec<ActorSpec> {
    let most = (survey.space.usable_bytes() / 8 / MIB * MIB).max(LEAST);
    let planned = scenario.actors.iter().map(|wanted| {
        let mut actor = wanted.planned();
        if wanted.size_bytes.is_none() {
            shrink(&mut actor, most);
        }
        actor
    });
    planned.collect()
}

/// Has the files of its own, if any, take no more than `most` bytes all together.
fn shrink(actor: &mut ActorSpec, most: u64) {
    let depth = actor.arrival.depth();
    match &mut actor.work {
        Work::Blocks(blocks) => blocks.size_bytes = blocks.size_bytes.map(|size| size.min(most)),
        Work::Task(task) => {
            task.size_bytes = task.size_bytes.min((most / u64::from(depth)).max(MIB));
        }
    }
}

/// Sends writers through the page cache where they overwrite a mapped file, and refuses a
/// foreground without one.
pub(super) fn map_writers(engine: Engine, actors: &mut [ActorSpec]) -> Result<(), Error> {
    if !engine.maps() {
        return Ok(());
    }
    let mut mapped = false;
    for actor in actors {
        if let Work::Blocks(blocks) = &mut actor.work
            && blocks.op == Op::Write
        {
            blocks.direct = false;
            mapped = true;
        }
    }
    match mapped {
        true => Ok(()),
        false => Err(Error::Usage(
            "--engine mmap is for writers, and the foreground has none: add --op write, or \
             --actor write"
                .to_owned(),
        )),
    }
}

/// Whether the first that reads or writes blocks goes past the page cache; `None` without one.
pub(super) fn go_direct(actors: &[ActorSpec]) -> Option<bool> {
    actors.iter().find_map(|actor| match &actor.work {
        Work::Blocks(blocks) => Some(blocks.direct),
        Work::Task(_) => None,
    })
}

/// Refuses direct I/O that the file system doesn't do.
pub(super) fn check_direct(
    actors: &[ActorSpec],
    engine: Engine,
    canary: bool,
    survey: &Survey,
) -> Result<(), Error> {
    let null = engine == Engine::Null;
    let place = names::shown(survey.place.path());
    let direct = actors.iter().filter_map(|actor| match actor.work {
        Work::Blocks(Blocks {
            direct: true,
            block_bytes,
            ..
        }) => Some((actor, block_bytes)),
        _ => None,
    });
    for (actor, block_bytes) in direct {
        match &survey.direct {
            _ if null && !canary => {}
            Ok(unit) if null || u64::from(block_bytes).is_multiple_of(*unit) => {}
            Ok(unit) => {
                return Err(Error::Usage(format!(
                    "block-size {block_bytes} of {}: direct I/O on {place} takes multiples of \
                     {unit} bytes; give one, or let it go through the page cache (buffered=true)",
                    actor.name
                )));
            }
            Err(why) => {
                return Err(Error::Usage(format!(
                    "{place}: no direct I/O on this file system ({why}), and {} asks for it; add \
                     --set buffered=true to go through the page cache, or give a directory on a drive",
                    actor.name
                )));
            }
        }
    }
    Ok(())
}

/// Finds faults for which no single option is to blame.
pub(super) fn check_batches(actors: &[ActorSpec]) -> Result<(), Error> {
    for actor in actors {
        let name = &actor.name;
        if let (LoopKind::Closed { depth }, Work::Blocks(blocks)) = (actor.arrival, &actor.work)
            && blocks.batch > depth
        {
            let batch = blocks.batch;
            return Err(Error::Usage(format!(
                "batch {batch} of {name} is more than its depth {depth}: raise the depth or lower \
                 the batch"
            )));
        }
    }
    Ok(())
}
