//! The plan of a run, in full: made of a scenario and a survey, with what the scenario leaves out. It
//! is written into the record's head, so that anybody can repeat the run.

use std::path::PathBuf;

use load::deleter::whole_blocks;
use record::Invocation;
use record::units::MIB;
use serde::{Serialize, Serializer};
use storage::FileSystem;

use crate::error::BenchError;
use crate::preflight::direct_fits;
use crate::scenario::{Counters, Phases, Scenario};
use crate::sizes;
use crate::sizes::LEAST;
use crate::survey::Survey;

#[cfg(test)]
mod tests;

pub use load::deleter::{
    Discard, Event, Fstrim, Lsm, Method, Program, Punch, Purge, Spill, Swap, Truncate, Unlink,
};
pub use load::{ActorSpec, Blocks, Engine, LoopKind, Op, PatternKind, TaskSpec, Work, task};
#[cfg(test)]
pub(crate) use tests::{example, example_deletion};

/// A whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// Name of the scenario it was made from, if it was made from one.
    pub scenario: Option<String>,
    /// The figure to which the scenario draws attention. The verdict's sentence begins with the
    /// actors that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look_at: Option<String>,
    /// How the run was asked for: goes into the record's head.
    #[serde(skip)]
    pub run: Option<Invocation>,
    /// Where it runs.
    pub place: Place,
    /// The foreground. Settling and live progress follow the first actor. The canary comes
    /// after them.
    pub actors: Vec<ActorSpec>,
    /// The file that reads, writes and the canary share.
    pub file: ForegroundFile,
    /// The engine asked for, for all actors that know engines.
    pub engine: Engine,
    /// Seed of offsets and arrivals; each actor has its own drawn from it.
    pub seed: u64,
    /// Reads per second of the canary: one outstanding 4 KiB read, open loop.
    /// `None` leaves it out.
    pub canary_per_s: Option<f64>,
    /// The deletion; `None` only measures the foreground.
    pub deletion: Option<Deletion>,
    /// The control run, if any.
    #[serde(serialize_with = "Control::in_words")]
    pub control: Control,
    /// How long the phases last.
    #[serde(rename = "timing", serialize_with = "lengths")]
    pub phases: Phases,
    /// Below which share of the baseline an interval counts as stalled; `None`
    /// for the judge's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Go on although the devices' counters are off, so that nobody knows of discards.
    pub blind: bool,
}

/// Where a run takes place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In a directory of a mounted file system.
    Directory(PathBuf),
    /// On a raw device, whose data are destroyed.
    Device {
        /// The device node.
        path: PathBuf,
        /// Whether known data on it, such as a file system, may be destroyed.
        force: bool,
    },
}

impl Place {
    /// The path that was named.
    pub fn path(&self) -> &std::path::Path {
        match self {
            Place::Directory(path) | Place::Device { path, .. } => path,
        }
    }
}

/// The foreground's file (or region of the device): a database's table, which
/// reading, overwriting and mixed actors share with the canary. It is made only
/// where one of those needs it; see [`Plan::needs_file`].
#[derive(Debug, Clone, Serialize)]
pub struct ForegroundFile {
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// Whether trimbench chose the size, by the free space.
    pub chosen: bool,
    /// Whether files are made, and the canary reads, past the page cache. Each
    /// actor says for itself.
    pub direct: bool,
}

/// Writes how long the phases last, each with its default.
fn lengths<S: Serializer>(phases: &Phases, serializer: S) -> Result<S::Ok, S::Error> {
    let lengths = [
        ("interval_s", phases.interval()),
        ("settle_limit_s", phases.settle()),
        ("baseline_s", phases.baseline()),
        ("recovery_s", phases.recovery()),
        ("drain_limit_s", phases.drain_limit()),
    ];
    serializer.collect_map(lengths.map(|(name, length)| (name, length.as_secs_f64())))
}

impl Plan {
    /// An experiment that does nothing yet, for whoever adds actors and a deletion:
    /// the best engine, and no canary.
    pub fn plain(place: Place, direct: bool, file_bytes: u64, phases: Phases) -> Plan {
        Plan {
            scenario: None,
            look_at: None,
            run: None,
            place,
            actors: Vec::new(),
            file: ForegroundFile {
                size_bytes: file_bytes,
                chosen: false,
                direct,
            },
            engine: Engine::Auto,
            seed: 1,
            canary_per_s: None,
            deletion: None,
            control: Control::Off,
            phases,
            low: None,
            blind: false,
        }
    }

    /// Whether the foreground's file is there at all: an actor works on it, or
    /// the canary reads it.
    pub fn needs_file(&self) -> bool {
        self.canary_per_s.is_some() || self.actors.iter().any(|actor| actor.work.shares_file())
    }

    /// The outside program that deletes, if one does.
    pub(crate) fn program(&self) -> Option<String> {
        let argv = match &self.deletion.as_ref()?.method {
            Method::Program(program) => &program.argv,
            method => &method.event()?.argv,
        };
        argv.first().cloned()
    }

    /// Most bytes that the run writes, where that is limited: it measures the gain of a trim.
    pub fn writes_at_most(&self) -> Option<u64> {
        self.deletion.as_ref()?.method.writes_at_most()
    }

    /// The event, where the run watches one.
    pub fn event(&self) -> Option<&Event> {
        self.deletion.as_ref()?.method.event()
    }
}

/// The files to delete, and the method.
#[derive(Debug, Clone, Serialize)]
pub struct Deletion {
    /// How.
    pub method: Method,
    /// Bytes over all files; of a continuous deletion ([`Method::is_continuous`])
    /// the most that is live at once.
    pub size_bytes: u64,
    /// Number of files; a deletion that goes on makes its own.
    pub files: u32,
    /// Fragments the files on purpose: size of their extents, in bytes.
    pub extent_bytes: Option<u64>,
    /// Whether a commit is forced after the last deletion call.
    pub commit: bool,
}

impl Deletion {
    /// Bytes of each file: whole blocks, whatever the number of files.
    pub fn file_bytes(&self) -> u64 {
        let own = self.method.file_bytes(self.size_bytes);
        own.unwrap_or_else(|| whole_blocks(self.size_bytes / u64::from(self.files.max(1))))
    }

    /// Files that the run makes before it begins, to delete them.
    pub(crate) fn files_before(&self) -> u32 {
        match self.method.how().has_files {
            true => self.files,
            false => 0,
        }
    }
}

record::kinds! {
    /// How the control run keeps discards away.
    pub enum Control["control"] {
        /// no control
        Off = "off",
        /// a second name of each file is unlinked first, which frees nothing
        SecondName = "second-name",
        /// the file system is remounted nodiscard for the same deletion, and back
        Nodiscard = "remount",
    }
}

impl Control {
    /// Whether it says anything about a method. A second name keeps a file's space only from an
    /// unlink, and no option of a mount keeps FITRIM or a raw device from discarding. An event
    /// happens once.
    pub fn suits(self, method: &Method) -> bool {
        let how = method.how();
        !how.discards && (self == Control::Nodiscard || how.spares_names)
    }

    /// The control to take on a file system. Where a remount doesn't switch discards off, that is a
    /// second name, if one suits.
    pub(super) fn on(self, fs: FileSystem, method: &Method) -> Control {
        match self {
            Control::Nodiscard
                if !fs.remount_switches_discard() && Control::SecondName.suits(method) =>
            {
                Control::SecondName
            }
            control => control,
        }
    }

    /// How often the same is deleted, each time in files of its own.
    pub fn deletions(self) -> u32 {
        match self {
            Control::Nodiscard => 2,
            Control::SecondName | Control::Off => 1,
        }
    }

    /// Writes the method in words, as verdicts name it; null for none.
    pub(super) fn in_words<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Control::Off => serializer.serialize_none(),
            Control::SecondName => serializer.serialize_str("second name"),
            Control::Nodiscard => serializer.serialize_str("nodiscard"),
        }
    }
}

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
        plan.file.chosen = scenario.foreground.size_bytes.is_none();
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
                if maps && blocks.op == Op::Write {
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
