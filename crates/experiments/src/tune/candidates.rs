//! Which values of `discard_max_bytes` are worth trying.

use std::path::PathBuf;
use std::time::Duration;

use bench::Survey;
use bench::plan::{
    ActorSpec, Deletion, LoopKind, Method, Place, Plan, Program, TaskSpec, Unlink, Work, task,
};
use bench::scenario::Phases;
use linux::limit;
use linux::space::Space;
use record::Target;
use record::units::{MIB, percent_exact};
use storage::TargetError;

use crate::Error;
use crate::tune::trials::{Policy, Trial};

/// From one value to the next: a handful covers the sizes at which drives differ.
const STEP: u64 = 4;

/// Smaller discards cost each drive that was measured more than they spare
/// (a/b, where cost and size break even, is 57 MiB and above).
const LEAST: u64 = 1 << 20;

/// The limits of a device, all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// `discard_max_bytes` now.
    pub now_bytes: u64,
    /// `discard_max_hw_bytes`.
    pub hw_bytes: u64,
    /// `discard_granularity`; 0 counts as 1.
    pub granularity_bytes: u64,
}

impl Range {
    /// The largest limit that can be set.
    pub fn most_bytes(&self) -> u64 {
        limit::most(self.hw_bytes, self.granularity_bytes)
    }
}

/// Returns at most `count` values, the largest first, the present one among them.
///
/// All but the present one are multiples of the granularity, and none exceeds the limits of
/// the hardware and the kernel. At most one is above `most_bytes`, because all above it do
/// the same. That is the lesser of the file system's unit and the size of the deletion.
pub(crate) fn limits(range: &Range, most_bytes: u64, count: usize) -> Vec<u64> {
    let granularity = range.granularity_bytes.max(1);
    let whole = |bytes: u64| bytes / granularity * granularity;
    let now = range.now_bytes;
    let mut all = vec![now];
    let settable = range.most_bytes();
    if !are_alike(settable, now, most_bytes) && settable > now {
        all.push(settable);
    }
    let mut next = whole(settable.min(most_bytes) / STEP);
    while all.len() < count && next >= LEAST.max(granularity) {
        // Too near to the present one, it would tell nothing new.
        if next > now.saturating_mul(2) || next < now / 2 {
            all.push(next);
        }
        next = whole(next / STEP);
    }
    all.sort_unstable_by(|a, b| b.cmp(a));
    all
}

/// Returns the present limit and those of `wanted` that act differently from it and from each
/// other, the largest first.
pub(crate) fn different(wanted: &[u64], now: u64, most_bytes: u64) -> Vec<u64> {
    let mut all = wanted.to_vec();
    all.retain(|&limit| !are_alike(limit, now, most_bytes));
    all.push(now);
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup_by(|b, a| are_alike(*a, *b, most_bytes));
    all
}

/// Whether two limits act alike where no discard is larger than `most_bytes`.
fn are_alike(a: u64, b: u64, most_bytes: u64) -> bool {
    a.min(most_bytes) == b.min(most_bytes)
}

// How a trial is run.

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
            arrival: LoopKind::evenly(FSYNCS_PER_S),
            seed: 0,
        };
        let phases = Phases {
            settle: Some(Duration::from_secs(4)),
            baseline: Some(Duration::from_secs(2)),
            recovery: Some(Duration::from_millis(500)),
            ..Phases::default()
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
            ..Plan::plain(place.clone(), direct, FOREGROUND, phases)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn range(now_bytes: u64, hw_bytes: u64) -> Range {
        Range {
            now_bytes,
            hw_bytes,
            granularity_bytes: 4096,
        }
    }

    #[test]
    fn from_the_hardwares_limit_down() {
        let unit = 128 * MIB;
        let all = limits(&range(GIB, GIB), unit, 4);
        assert_eq!(all, [GIB, 32 * MIB, 8 * MIB, 2 * MIB]);
        // One that was made smaller before can be made larger again.
        let all = limits(&range(16 * MIB, 2 * GIB), unit, 4);
        assert_eq!(all, [2 * GIB, 16 * MIB, 2 * MIB]);
        assert_eq!(limits(&range(4096, 4096), unit, 4), [4096]);
        // Of an NVMe drive's 2 TiB the kernel takes less than 4 GiB.
        let all = limits(&range(GIB, 2048 * GIB), 8 * GIB, 2);
        assert_eq!(all, [4 * GIB - 4096, GIB]);
    }

    #[test]
    fn limits_that_act_alike_are_one() {
        let unit = 32 * MIB;
        let wanted = [64 * MIB, 32 * MIB, 16 * MIB, 16 * MIB];
        assert_eq!(different(&wanted, GIB, unit), [GIB, 16 * MIB]);
        // Without the present one among them the largest stands for all.
        let wanted = [64 * MIB, 32 * MIB];
        assert_eq!(different(&wanted, MIB, unit), [64 * MIB, MIB]);
        assert_eq!(different(&wanted, GIB, u64::MAX), [GIB, 64 * MIB, 32 * MIB]);
    }

    proptest! {
        #[test]
        fn all_can_be_set_and_differ(
            now in 1u64..1 << 20, hw in 1u64..1 << 20, most in 1u64..1 << 34,
            granules in 0u64..64, count in 1usize..6,
        ) {
            let granularity_bytes = granules * 512;
            let unit = granularity_bytes.max(1);
            let (now_bytes, hw_bytes) = (now.min(hw) * unit, hw * unit);
            let all = limits(&Range { now_bytes, hw_bytes, granularity_bytes }, most, count);
            prop_assert!(all.contains(&now_bytes) && all.len() <= count.max(2));
            prop_assert!(all.is_sorted_by(|a, b| a > b));
            for bytes in all {
                prop_assert!(bytes > 0 && bytes <= hw_bytes && bytes % unit == 0);
            }
        }
    }
}
