//! How a trial is run.

use std::path::PathBuf;
use std::time::Duration;

use bench::Survey;
use bench::plan::{
    ActorSpec, Deletion, LoopKind, Method, Place, Plan, Program, TaskSpec, Timing, Unlink, Work,
    task,
};
use linux::space::Space;
use record::Target;
use record::units::{MIB, percent_exact};
use storage::TargetError;

use crate::Error;
use crate::tune::trials::{Policy, Trial};

/// Names of those whose losses are measured.
pub(crate) const READER: &str = "reader";
pub(crate) const SYNCER: &str = "syncer";

/// How many reads are in flight: a drive that stalls serves so many between two
/// discards.
const DEPTH: u32 = 8;
/// How often a second a log's record is written and made durable.
const FSYNCS_PER_S: f64 = 20.0;
/// The log's file: written over from its beginning when it is full.
const LOG: u64 = 4 * MIB;
/// Bytes of the file that the readers read.
const FOREGROUND: u64 = 64 * MIB;
/// How long a run takes beside writing its file and freeing it.
pub const BESIDE: Duration = Duration::from_secs(6);

/// The load and the deletion that all trials have in common.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Bytes that each run deletes.
    pub size_bytes: u64,
    /// Share of the readers' throughput that what is paced may cost, 0 to 1.
    pub slowdown: f64,
    /// This program, to delete and to trim.
    pub program: PathBuf,
    /// Where the file system is mounted.
    pub mount_point: PathBuf,
    /// Whether the file system discards once more what a deletion has emptied, and
    /// later (btrfs): it counts, too.
    pub discards_twice: bool,
}

impl Setup {
    /// Bytes that a run writes.
    pub fn written_bytes(&self) -> u64 {
        self.size_bytes + FOREGROUND + LOG
    }

    /// The run of a trial in a directory; `direct`: whether its files can be read past
    /// the page cache.
    pub fn plan(&self, trial: &Trial, place: &Place, direct: bool) -> Plan {
        let readers = LoopKind::Closed { depth: DEPTH };
        let log = ActorSpec {
            name: SYNCER.into(),
            work: Work::Task(TaskSpec {
                size_bytes: LOG,
                ..TaskSpec::of(&task::OVERWRITE_FSYNC)
            }),
            arrival: LoopKind::Open {
                rate_per_s: FSYNCS_PER_S,
                poisson: false,
                depth: 1,
            },
            seed: 0,
        };
        let timing = Timing {
            interval: Duration::from_millis(100),
            settle_limit: Duration::from_secs(4),
            baseline: Duration::from_secs(2),
            recovery: Duration::from_millis(500),
            drain_limit: Duration::from_secs(60),
        };
        Plan {
            actors: vec![ActorSpec::reader(direct, readers), log],
            deletion: Some(Deletion {
                method: self.method(trial),
                size_bytes: self.size_bytes,
                files: 1,
                extent_bytes: None,
                commit: true,
            }),
            ..Plan::plain(place.clone(), direct, FOREGROUND, timing)
        }
    }

    fn method(&self, trial: &Trial) -> Method {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let (program, at) = (text(&self.program), text(&self.mount_point));
        let share = percent_exact(self.slowdown);
        let (slowdown, set) = (
            format!("--slowdown={share}"),
            format!("--set=slowdown={share}"),
        );
        let words = match trial.policy {
            Policy::Online if self.discards_twice => vec!["tune", &at, "--free-all", "{}"],
            Policy::Online => return Unlink { parallel: 1 }.into(),
            // In place: a run that is ended early removes the files that it made, and no trash.
            Policy::PacedRm => vec!["rm", "-f", "--quiet", "--set=trash=false", &slowdown, "{}"],
            Policy::PacedFstrim => vec!["tune", &at, &set, "--trim-after", "{}"],
        };
        let words = words.into_iter().map(str::to_owned);
        let argv = std::iter::once(program).chain(words).collect();
        Program { argv }.into()
    }
}

/// The same place as its settings and its free space are now.
///
/// # Errors
/// When it is gone.
pub(crate) fn surveyed_anew(survey: &Survey) -> Result<Survey, Error> {
    let gone = |error: TargetError| Error::Usage(error.to_string());
    let found = storage::describe(survey.place.path()).map_err(gone)?;
    let mut survey = survey.clone();
    for device in &mut survey.devices {
        let now = found.devices.iter().find(|now| now.name == device.name);
        if let Some(now) = now {
            device.discard = now.discard;
        }
    }
    survey.space = Space::of(survey.place.path()).map_err(|error| gone(error.into()))?;
    survey.target = Target {
        // Judged without that limit: a trial's trim may take what was free before, too.
        discards_at_most: None,
        ..found.target
    };
    survey.mount = found.mount;
    Ok(survey)
}
