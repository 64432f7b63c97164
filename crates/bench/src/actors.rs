//! The makers of the foreground's load: the plan's actors, and the canary beside them.

use std::sync::Arc;

use load::{ActorSpec, Allowance, Blocks, Engine, LoadError, LoopKind, Op, Region, Work};
use record::ActorInfo;

use crate::error::BenchError;
use crate::plan::Plan;
use crate::workplace::WorkArea;

/// The canary's name, which no actor may bear beside it.
const CANARY: &str = "canary";

/// The actors of a run, in the order of the record's head: the plan's, then the canary.
#[derive(Debug, Clone, Default)]
pub(crate) struct Actors {
    /// They have no work area yet: see [`aim`].
    pub(crate) specs: Vec<ActorSpec>,
    /// Why engines aren't those asked for, in words.
    pub(crate) notes: Vec<String>,
}

impl Actors {
    /// The actors of a plan with the engines that will really run.
    ///
    /// The head is written before there is a file to run on, so the engines are
    /// found out with queues that nothing goes through.
    ///
    /// # Errors
    /// When an engine was asked for by name and can't be had.
    pub(crate) fn resolve(plan: &Plan) -> Result<Actors, BenchError> {
        let mut actors = Actors {
            specs: specs(plan),
            notes: Vec::new(),
        };
        for spec in &mut actors.specs {
            let Work::Blocks(blocks) = &mut spec.work else {
                continue;
            };
            let (engine, notes) = blocks.engine_now()?;
            blocks.engine = engine;
            for note in notes {
                if !actors.notes.contains(&note) {
                    actors.notes.push(note);
                }
            }
        }
        Ok(actors)
    }

    /// Whether every actor is in range.
    ///
    /// # Errors
    /// [`BenchError::Load`] with the first that isn't.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        for actor in &self.specs {
            actor.check()?;
        }
        Ok(())
    }
}

/// Whether each column has a name of its own.
///
/// # Errors
/// [`BenchError::Plan`] with the name that two have.
pub(crate) fn names_differ(series: &[ActorInfo]) -> Result<(), BenchError> {
    for (i, one) in series.iter().enumerate() {
        if series[..i].iter().any(|other| other.name == one.name) {
            return Err(BenchError::Plan(format!(
                "two actors are called '{}' in the record, and the verdict couldn't tell them \
                 apart: give each a name of its own",
                one.name
            )));
        }
    }
    Ok(())
}

fn specs(plan: &Plan) -> Vec<ActorSpec> {
    let mut specs = plan.actors.clone();
    for (spec, i) in specs.iter_mut().zip(0u64..) {
        // The first one's is the plan's; the others' are far from it and from each other.
        spec.seed = plan
            .seed
            .wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if let Work::Blocks(blocks) = &mut spec.work {
            blocks.engine = plan.engine;
            if plan.engine == Engine::Null {
                blocks.op = Op::Nop;
            } else if !blocks.op.writes() {
                blocks.engine = plan.engine.for_reads();
            }
        }
    }
    specs.extend(plan.canary_per_s.map(|rate_per_s| ActorSpec {
        name: CANARY.into(),
        work: Work::Blocks(Blocks {
            // It really reads, whatever the foreground does.
            engine: plan.engine.for_reads(),
            direct: plan.file.direct,
            ..Blocks::READS
        }),
        arrival: LoopKind::evenly(rate_per_s),
        // Not the foreground's blocks in the foreground's order.
        seed: !plan.seed,
    }));
    specs
}

/// Tells an actor what it works on, and what writers may write, all together.
///
/// # Errors
/// When it can't be opened as the actor needs it.
pub(crate) fn aim(
    actor: &mut ActorSpec,
    area: WorkArea,
    allowance: Option<&Arc<Allowance>>,
) -> Result<(), LoadError> {
    match (&mut actor.work, area) {
        (Work::Blocks(blocks), WorkArea::Bytes { path, len }) if blocks.op != Op::Nop => {
            blocks.allowance = allowance.filter(|_| blocks.op.writes()).cloned();
            blocks.target = Some(Region {
                file: Arc::new(load::target::open(&path, blocks.op, blocks.direct)?),
                start: 0,
                len,
            });
        }
        (Work::Task(task), WorkArea::Folder(path)) => task.dir = path,
        // What it lacks, its start tells.
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::example;

    fn series(plan: &Plan) -> Vec<ActorInfo> {
        specs(plan).iter().flat_map(ActorSpec::series).collect()
    }

    #[test]
    fn the_canary_comes_after_the_plans_actors_and_reads_on_its_own() {
        let mut plan = example();
        plan.engine = Engine::Null;
        plan.canary_per_s = Some(100.0);
        let ops: Vec<_> = series(&plan).into_iter().map(|s| (s.name, s.op)).collect();
        let said: Vec<_> = ops.iter().map(|(n, o)| (n.as_str(), o.as_str())).collect();
        assert_eq!(said, [("reader", "nop"), ("canary", "read")]);
        let specs = specs(&plan);
        assert_ne!(specs[0].seed, specs[1].seed);
    }

    #[test]
    fn an_actors_seed_is_its_own() {
        let mut plan = example();
        plan.actors = vec![plan.actors[0].clone(); 3];
        let seeds: Vec<_> = specs(&plan).iter().map(|s| s.seed).collect();
        assert_eq!(seeds[0], plan.seed);
        assert!(seeds[1] != seeds[0] && seeds[2] != seeds[1] && seeds[2] != seeds[0]);
    }

    #[test]
    fn columns_of_the_same_name_are_refused() {
        let mut plan = example();
        plan.canary_per_s = Some(1.0);
        names_differ(&series(&plan)).unwrap();
        plan.actors[0].name = "canary".into();
        let error = names_differ(&series(&plan)).unwrap_err().to_string();
        assert!(error.contains("'canary'"), "{error}");
        // A mix has two columns, and another actor could have the name of one.
        let mut mixed = plan.actors[0].clone();
        mixed.name = "mix".into();
        if let Work::Blocks(blocks) = &mut mixed.work {
            blocks.op = Op::Mixed { read_percent: 70 };
        }
        plan.actors[0].name = "mix-write".into();
        plan.actors.push(mixed);
        let error = names_differ(&series(&plan)).unwrap_err().to_string();
        assert!(error.contains("'mix-write'"), "{error}");
    }
}
