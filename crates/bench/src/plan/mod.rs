//! The plan of a run, in full. It is written into the record's head, so that
//! anybody can repeat the run.

use std::path::PathBuf;

use record::Invocation;
use serde::{Serialize, Serializer};

use crate::scenario::Phases;

mod deletion;
mod make;
#[cfg(test)]
mod tests;

pub use deletion::{Control, Deletion};
pub use load::deleter::{
    Discard, Event, Fstrim, Lsm, Method, Program, Punch, Purge, Spill, Swap, Trigger, Truncate,
    Unlink,
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
    /// after them, and fio's series last.
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
    /// A fio job that runs beside the actors.
    pub fio: Option<FioJob>,
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
    /// Whether files are made, and the canary reads, past the page cache. Each
    /// actor says for itself.
    pub direct: bool,
}

/// A job for fio to run as foreground.
#[derive(Debug, Clone, Serialize)]
pub struct FioJob {
    /// Where it was read from, for messages.
    pub path: PathBuf,
    /// Its text, whole.
    pub text: String,
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
                direct,
            },
            engine: Engine::Auto,
            seed: 1,
            canary_per_s: None,
            fio: None,
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
            method => match method.event()? {
                Trigger::Command { argv, .. } => argv,
                Trigger::Manual => return None,
            },
        };
        argv.first().cloned()
    }

    /// Most bytes that the run writes, where that is limited: it measures the gain of a trim.
    pub fn writes_at_most(&self) -> Option<u64> {
        self.deletion.as_ref()?.method.writes_at_most()
    }

    /// The trigger of the event, where the run watches one.
    pub fn event(&self) -> Option<&Trigger> {
        self.deletion.as_ref()?.method.event()
    }
}
