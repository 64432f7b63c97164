//! The makers of the foreground's load: the plan's actors, and the canary beside them.

use std::path::PathBuf;
use std::sync::Arc;

use load::{ActorSpec, Blocks, EngineChoice, LoadError, PatternKind, Region, TaskSpec};
use record::ActorInfo;

use crate::error::BenchError;
use crate::plan::{Actor, Arrival, Engine, Op, Pattern, Plan, Work};
use crate::workplace::WorkArea;

/// Bytes that the canary reads.
const CANARY_BYTES: u32 = 4096;

/// The canary's name, which no actor may bear beside it.
const CANARY: &str = "canary";

/// The actors of a run, in the order of the record's head: the plan's, then the canary.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lineup {
    /// They have no work area yet: see [`aim`].
    pub(crate) actors: Vec<Member>,
    /// Why engines aren't those asked for, in words.
    pub(crate) notes: Vec<String>,
}

/// An actor and the engine that it runs on.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) spec: ActorSpec,
    pub(crate) engine: load::Engine,
}

impl Lineup {
    /// The actors of a plan with the engines that will really run.
    ///
    /// The head is written before there is a file to run on, so the engines are
    /// found out with queues that nothing goes through.
    ///
    /// # Errors
    /// When an engine was asked for by name and can't be had, or a plan names a
    /// task that there isn't.
    pub(crate) fn resolve(plan: &Plan) -> Result<Lineup, BenchError> {
        let mut lineup = Lineup::default();
        for mut spec in specs(plan)? {
            let mut engine = load::Engine::Sync;
            if let load::Work::Blocks(blocks) = &mut spec.work {
                let (found, notes) = blocks.engine_now()?;
                engine = found;
                blocks.engine = exactly(engine);
                for note in notes {
                    if !lineup.notes.contains(&note) {
                        lineup.notes.push(note);
                    }
                }
            }
            lineup.actors.push(Member { spec, engine });
        }
        Ok(lineup)
    }

    /// The same without a look at the kernel: it assumes the best engine.
    pub(crate) fn assume(plan: &Plan) -> Result<Lineup, BenchError> {
        let engine_of = |spec: &ActorSpec| match &spec.work {
            load::Work::Task(_) => load::Engine::Sync,
            load::Work::Blocks(blocks) => match blocks.engine {
                _ if blocks.op == load::Op::Nop => load::Engine::Null,
                EngineChoice::Auto | EngineChoice::IoUring => load::Engine::IoUring,
                EngineChoice::IoPoll => load::Engine::IoPoll,
                EngineChoice::SqPoll => load::Engine::SqPoll,
                EngineChoice::Libaio => load::Engine::Libaio,
                EngineChoice::Sync => load::Engine::Sync,
                EngineChoice::Mmap => load::Engine::Mmap,
                EngineChoice::MmapSync => load::Engine::MmapSync,
                EngineChoice::Null => load::Engine::Null,
            },
        };
        let member = |spec: ActorSpec| Member {
            engine: engine_of(&spec),
            spec,
        };
        Ok(Lineup {
            actors: specs(plan)?.into_iter().map(member).collect(),
            notes: Vec::new(),
        })
    }

    /// Their entries in the record's head, one for each column.
    pub(crate) fn series(&self) -> Vec<ActorInfo> {
        let series = |member: &Member| member.spec.series(member.engine);
        self.actors.iter().flat_map(series).collect()
    }

    /// Whether every actor is in range.
    ///
    /// # Errors
    /// [`BenchError::Load`] with the first that isn't.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        for member in &self.actors {
            member.spec.check()?;
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

fn specs(plan: &Plan) -> Result<Vec<ActorSpec>, BenchError> {
    let mut specs = Vec::new();
    for (i, actor) in (0u64..).zip(&plan.actors) {
        // The first one's is the plan's; the others' are far from it and from each other.
        let seed = plan
            .seed
            .wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        specs.push(ActorSpec {
            name: actor.name.clone(),
            work: work(plan, actor)?,
            arrival: arrival(actor.arrival),
            seed,
        });
    }
    specs.extend(plan.canary_per_s.map(|per_s| canary(plan, per_s)));
    Ok(specs)
}

fn work(plan: &Plan, actor: &Actor) -> Result<load::Work, BenchError> {
    Ok(match &actor.work {
        Work::Task {
            kind,
            block_bytes,
            size_bytes,
        } => load::Work::Task(TaskSpec {
            kind: load::task::kind(kind).ok_or_else(|| no_such_task(&actor.name, kind))?,
            dir: PathBuf::new(),
            block_bytes: *block_bytes,
            size_bytes: *size_bytes,
        }),
        Work::Blocks {
            op,
            pattern,
            block_bytes,
            direct,
            ..
        } => load::Work::Blocks(Blocks {
            op: match op {
                _ if plan.engine == Engine::Null => load::Op::Nop,
                Op::Read => load::Op::Read,
                Op::Write => load::Op::Write,
                Op::Append => load::Op::Append,
                &Op::Mixed { read_percent } => load::Op::Mixed { read_percent },
                Op::Nop => load::Op::Nop,
            },
            pattern: match pattern {
                Pattern::Random => PatternKind::Random,
                Pattern::Sequential => PatternKind::Sequential,
            },
            block_bytes: *block_bytes,
            engine: match (plan.engine, op) {
                (Engine::Auto, _) => EngineChoice::Auto,
                (Engine::IoUring, _) => EngineChoice::IoUring,
                (Engine::Libaio, _) => EngineChoice::Libaio,
                (Engine::Sync, _) => EngineChoice::Sync,
                (Engine::Mmap | Engine::MmapSync, Op::Read | Op::Nop) => EngineChoice::Auto,
                (Engine::Mmap, _) => EngineChoice::Mmap,
                (Engine::MmapSync, _) => EngineChoice::MmapSync,
                (Engine::Null, _) => EngineChoice::Null,
            },
            target: None,
            direct: *direct,
        }),
    })
}

fn no_such_task(actor: &str, kind: &str) -> BenchError {
    let names: Vec<_> = load::task::KINDS.iter().map(|kind| kind.name).collect();
    BenchError::Plan(format!(
        "{actor}: there is no task '{kind}'; the tasks are {}",
        names.join(", ")
    ))
}

fn arrival(arrival: Arrival) -> load::Arrival {
    match arrival {
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
    }
}

fn canary(plan: &Plan, rate_per_s: f64) -> ActorSpec {
    ActorSpec {
        name: CANARY.into(),
        work: load::Work::Blocks(Blocks {
            op: load::Op::Read,
            pattern: PatternKind::Random,
            block_bytes: CANARY_BYTES,
            // It really reads, whatever the foreground does.
            engine: match plan.engine {
                Engine::Auto | Engine::Null | Engine::Mmap | Engine::MmapSync => EngineChoice::Auto,
                Engine::IoUring => EngineChoice::IoUring,
                Engine::Libaio => EngineChoice::Libaio,
                Engine::Sync => EngineChoice::Sync,
            },
            target: None,
            direct: plan.file.direct,
        }),
        arrival: load::Arrival::Open {
            rate_per_s,
            poisson: false,
            depth: 1,
        },
        // Not the foreground's blocks in the foreground's order.
        seed: !plan.seed,
    }
}

fn exactly(engine: load::Engine) -> EngineChoice {
    match engine {
        load::Engine::IoUring => EngineChoice::IoUring,
        load::Engine::IoPoll => EngineChoice::IoPoll,
        load::Engine::SqPoll => EngineChoice::SqPoll,
        load::Engine::Libaio => EngineChoice::Libaio,
        load::Engine::Sync => EngineChoice::Sync,
        load::Engine::Mmap => EngineChoice::Mmap,
        load::Engine::MmapSync => EngineChoice::MmapSync,
        load::Engine::Null => EngineChoice::Null,
    }
}

/// Tells an actor what it works on.
///
/// # Errors
/// When it can't be opened as the actor needs it.
pub(crate) fn aim(actor: &mut ActorSpec, area: WorkArea) -> Result<(), LoadError> {
    match (&mut actor.work, area) {
        (load::Work::Blocks(blocks), WorkArea::Bytes { path, len })
            if blocks.op != load::Op::Nop =>
        {
            blocks.target = Some(Region {
                file: Arc::new(load::target::open(&path, blocks.op, blocks.direct)?),
                start: 0,
                len,
            });
        }
        (load::Work::Task(task), WorkArea::Folder(path)) => task.dir = path,
        // What it lacks, its start tells.
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::example;

    #[test]
    fn the_canary_comes_after_the_plans_actors_and_reads_on_its_own() {
        let mut plan = example();
        plan.engine = Engine::Null;
        plan.canary_per_s = Some(100.0);
        let lineup = Lineup::assume(&plan).unwrap();
        let ops: Vec<_> = lineup
            .series()
            .into_iter()
            .map(|s| (s.name, s.op))
            .collect();
        let said: Vec<_> = ops.iter().map(|(n, o)| (n.as_str(), o.as_str())).collect();
        assert_eq!(said, [("reader", "nop"), ("canary", "read")]);
        assert_ne!(lineup.actors[0].spec.seed, lineup.actors[1].spec.seed);
    }

    #[test]
    fn an_actors_seed_is_its_own() {
        let mut plan = example();
        plan.actors = vec![plan.actors[0].clone(); 3];
        let seeds: Vec<_> = specs(&plan).unwrap().iter().map(|s| s.seed).collect();
        assert_eq!(seeds[0], plan.seed);
        assert!(seeds[1] != seeds[0] && seeds[2] != seeds[1] && seeds[2] != seeds[0]);
    }

    #[test]
    fn columns_of_the_same_name_are_refused() {
        let mut plan = example();
        plan.canary_per_s = Some(1.0);
        let series = |plan: &Plan| Lineup::assume(plan).unwrap().series();
        names_differ(&series(&plan)).unwrap();
        plan.actors[0].name = "canary".into();
        let error = names_differ(&series(&plan)).unwrap_err().to_string();
        assert!(error.contains("'canary'"), "{error}");
        // A mix has two columns, and another actor could have the name of one.
        let mut mixed = plan.actors[0].clone();
        mixed.name = "mix".into();
        if let Work::Blocks { op, .. } = &mut mixed.work {
            *op = Op::Mixed { read_percent: 70 };
        }
        plan.actors[0].name = "mix-write".into();
        plan.actors.push(mixed);
        let error = names_differ(&series(&plan)).unwrap_err().to_string();
        assert!(error.contains("'mix-write'"), "{error}");
    }

    #[test]
    fn a_task_that_there_isnt_names_those_that_there_are() {
        let mut plan = example();
        plan.actors[0].work = Work::Task {
            kind: "fsnyc".into(),
            block_bytes: 4096,
            size_bytes: 0,
        };
        let error = Lineup::assume(&plan).unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains("'fsnyc'"),
            "{error}"
        );
    }
}
