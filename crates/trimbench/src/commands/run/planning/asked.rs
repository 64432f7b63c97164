//! The request: the scenario with the options laid over it.

use bench::scenario::{self, Deletion, General, How, Idle, Options, Part, Phases, Scenario};

use crate::commands::run::args::{DeletionArgs, ForegroundArgs, PhaseArgs, RunArgs};
use crate::exit::Error;

/// A scenario, with its name if it has one, and all that the options set.
pub(crate) struct Asked {
    /// The scenario's name.
    pub(crate) name: Option<String>,
    /// The scenario, with the options laid over it.
    pub(crate) scenario: Scenario,
}

impl Asked {
    /// Reads the scenario, if one is named, and lays the options over it.
    pub(crate) fn of(args: &RunArgs) -> Result<Asked, Error> {
        let (name, base) = match &args.scenario.scenario {
            Some(name) => {
                let (name, scenario) = Scenario::find(name)?;
                (Some(name), scenario)
            }
            None => (None, Scenario::default()),
        };
        let on_device = args.device.device.is_some();
        if let (Some(name), true) = (&name, on_device) {
            refuse_files_on_device(name, &base)?;
        }
        let (scenario, idle) = base.overlaid(options(args))?;
        let asked = Asked { name, scenario };
        if let Some(idle) = idle.iter().find(|idle| !(on_device && asked.clears(idle))) {
            return Err(asked.refuse(idle));
        }
        let general = &asked.scenario.general;
        if general.remount == Some(true) && general.control != Some(true) {
            return Err(Error::Usage(
                "--remount only does something with --control: add that, or leave it out".into(),
            ));
        }
        Ok(asked)
    }

    /// A raw device is discarded in chunks.
    fn clears(&self, idle: &Idle) -> bool {
        idle.key == "chunk" && self.scenario.deletion.how() == Some(How::Unlink)
    }

    fn refuse(&self, idle: &Idle) -> Error {
        let what = match idle.part {
            Part::Actor => "foreground",
            Part::Deletion => "deletion",
        };
        let beside = match &self.name {
            Some(name) => format!(", and not with scenario '{name}' as it is asked for"),
            None => String::new(),
        };
        Error::Usage(format!(
            "--{} only does something with {}{beside}: leave it out, or change the {what}",
            idle.key,
            idle.need.in_options(),
        ))
    }
}

fn refuse_files_on_device(name: &str, scenario: &Scenario) -> Result<(), Error> {
    let files = scenario.deletion.given();
    let files = files.iter().find(|key| !["how", "size"].contains(key));
    let other = scenario.deletion.how() != Some(How::Unlink);
    if files.is_some() || other || scenario.general.control == Some(true) {
        return Err(Error::Usage(format!(
            "scenario '{name}' deletes files, and a raw device has none: give a directory, or \
             leave out --scenario"
        )));
    }
    Ok(())
}

/// Returns the options that a scenario could also set.
fn options(args: &RunArgs) -> Options {
    let (foreground, deletion) = (&args.foreground, &args.deletion);
    Options {
        general: General {
            fio: foreground.fio.clone(),
            engine: foreground.engine,
            canary_per_s: foreground.canary,
            seed: foreground.seed,
            control: deletion.control,
            remount: deletion.remount,
            ..General::default()
        },
        foreground: scenario::Foreground {
            size_bytes: foreground.foreground_size,
        },
        first: first(foreground),
        beside: foreground.actor.clone(),
        deletion: deletion_part(deletion),
        phases: phases(&args.phases),
    }
}

fn first(args: &ForegroundArgs) -> scenario::Actor {
    scenario::Actor {
        name: None,
        op: args.op,
        pattern: args.pattern,
        block_bytes: args.block_size,
        depth: args.depth,
        batch: args.batch,
        rate_per_s: args.rate,
        poisson: args.arrival,
        buffered: args.buffered,
        read_percent: args.reads,
        size_bytes: None,
    }
}

fn deletion_part(args: &DeletionArgs) -> Deletion {
    Deletion {
        how: args.delete,
        command: args.delete_with.clone(),
        size_bytes: args.size,
        files: args.files,
        extent_bytes: args.extent_size,
        parallel: args.parallel,
        chunk_bytes: args.chunk,
        sleep: args.sleep,
        fsync: args.fsync,
        no_sync: args.no_sync,
        from: args.from,
        at_once: args.at_once,
        every: args.every,
        levels: args.levels,
        file_bytes: args.file_size,
        write_rate_bytes_per_s: args.write_rate,
        run_for: args.run_for,
        event: args.event.clone(),
        event_at: args.event_at,
        event_quiet: args.event_quiet,
    }
}

fn phases(args: &PhaseArgs) -> Phases {
    Phases {
        settle: args.settle,
        baseline: args.baseline,
        recovery: args.recovery,
        drain_limit: args.drain_limit,
        interval: args.interval,
        low: args.low,
    }
}
