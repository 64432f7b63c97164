//! How a guard stands. Its process writes that in place, so that it frees no block.

use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pace::{GoalResult, Kept};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::GuardError;
use super::start::running;
use super::state::{self, State};
use crate::trim::LastTrim;
use crate::{ReclaimError, directory};

const STATUS: &str = "status";

/// The file has this length, padded with blanks: a block.
const LENGTH: usize = 4096;

/// How often trims kept the goal since the guard's start. Each series of trims counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goals {
    /// Series of trims in which the goal was met.
    pub met: u64,
    /// Series in which it was missed.
    pub missed: u64,
    /// Series in which the loss was so near the goal that neither is certain.
    pub unsure: u64,
    /// Series that were too short, or had too few reads beside them, to measure the loss.
    pub not_measured: u64,
    /// Series beside which nothing else used the drive.
    pub nobody_else: u64,
}

impl Goals {
    pub(super) fn judge(&mut self, goals: &[GoalResult]) {
        let by_weight = [
            (Kept::Missed, &mut self.missed),
            (Kept::Met, &mut self.met),
            (Kept::Unsure, &mut self.unsure),
            (Kept::NotMeasured, &mut self.not_measured),
            (Kept::NobodyElse, &mut self.nobody_else),
        ];
        let mut counts = by_weight.into_iter();
        if let Some((_, count)) = counts.find(|(kept, _)| goals.iter().any(|it| it.kept == *kept)) {
            *count += 1;
        }
    }
}

/// The report of a running guard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Where the file system is mounted.
    pub mount: PathBuf,
    /// Kernel names of the devices whose discards are counted: the lowest ones.
    #[serde(default)]
    pub devices: Vec<String>,
    /// The guard's process.
    pub pid: u32,
    /// How long it has run, in seconds.
    pub running_s: u64,
    /// The share of its throughput that other I/O may lose.
    pub slowdown: f64,
    /// The latency that may be added to others' reads, in milliseconds.
    pub max_latency_ms: Option<f64>,
    /// The share of the file system that may wait to be trimmed. Above it, trims are faster.
    pub most: f64,
    /// Debt that is older is trimmed faster, in seconds.
    pub max_age_s: f64,
    /// Whether the goal was kept.
    pub goals: Goals,
    /// The last series of trims; on btrfs, the discards of the last ten seconds with any. `None`:
    /// nothing was trimmed yet.
    #[serde(default)]
    pub last: Option<LastTrim>,
    /// The debt and the trims.
    pub trim: TrimReport,
}

/// The debt and the trims of a guard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TrimReport {
    /// Bytes that were freed and are to be trimmed.
    pub debt_bytes: u64,
    /// Free bytes that may be trimmed or not: all at the first start.
    pub unknown_bytes: u64,
    /// Bytes that may have been used and freed again between two looks.
    pub unseen_bytes: u64,
    /// Extents that are to be trimmed.
    pub extents: u64,
    /// How long the oldest debt has waited, in seconds.
    pub oldest_s: Option<f64>,
    /// How long half of the trimmed bytes had waited, in seconds.
    pub age_p50_s: Option<f64>,
    /// How long 99 of 100 trimmed bytes had waited at most, in seconds.
    pub age_p99_s: Option<f64>,
    /// Bytes for whose trim the kernel was asked since the start. Space that is freed twice counts
    /// twice, and so does space that the kernel skips because it knows it to be trimmed.
    pub trimmed_bytes: u64,
    /// Bytes that the devices discarded meanwhile, for whatever program.
    pub discarded_bytes: u64,
    /// The number of these discards; 0 where the devices don't count them.
    pub discards: u64,
    /// How long the devices were busy with that, in seconds.
    pub busy_s: f64,
    /// Trims of a range (`FITRIM`) since the start; on btrfs, discards of the devices.
    pub windows: u64,
    /// Runs of fewer bytes wait for more, up to half of the greatest age: by their trims' cost.
    pub min_run_bytes: u64,
    /// Why the debt waits; `None` on btrfs, where the kernel decides.
    pub waits: Option<Waits>,
    /// On btrfs, how many discards a second the kernel may send.
    pub discards_per_s: Option<u32>,
}

/// Why debt isn't trimmed yet, in bytes. They add up to the debt and what is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// It was freed less than [`FRESH_FOR`](super::FRESH_FOR) ago, and may be used again.
    pub fresh_bytes: u64,
    /// It lies in runs below `min_run_bytes`.
    pub short_bytes: u64,
    /// It is less than [`LITTLE`](super::LITTLE) in all.
    pub little_bytes: u64,
    /// It is outside the hours in which guard trims.
    pub hours_bytes: u64,
    /// Nothing: it is trimmed as fast as the goal allows.
    pub due_bytes: u64,
}

/// Writes the report, in place, if it has changed.
pub(super) fn write(state: BorrowedFd<'_>, status: &Status) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(status)?;
    text.resize(LENGTH, b' ');
    let file = directory::make(state, STATUS, OFlags::empty())?;
    let mut before = vec![0; LENGTH];
    let same = file.read_exact_at(&mut before, 0).is_ok() && before == text;
    match same {
        true => Ok(()),
        false => file.write_all_at(&text, 0),
    }
}

/// Reads the last report; `None` where there is none yet.
pub(super) fn read(state: BorrowedFd<'_>) -> Option<Status> {
    let mut text = String::new();
    let file = directory::open(state, STATUS).ok()?;
    file.take(LENGTH as u64).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Removes the report.
pub(super) fn remove(state: BorrowedFd<'_>) {
    directory::remove(state, STATUS);
}

/// Returns how the guard of a file system stands.
///
/// # Errors
/// [`GuardError::NotGuarded`] where none runs, or it has only begun.
pub fn status(path: &Path) -> Result<Status, GuardError> {
    let found = read(running(path)?.directory());
    found.ok_or_else(|| GuardError::NotGuarded { path: path.into() })
}

/// Returns how each guard that runs stands.
///
/// # Errors
/// [`GuardError::Reclaim`] if their states can't be read, which takes root.
pub fn statuses() -> Result<Vec<Status>, GuardError> {
    let home = state::home();
    let states = State::all().map_err(ReclaimError::io("read the states of guards in", &home))?;
    Ok(states
        .iter()
        .filter_map(|it| read(it.directory()))
        .collect())
}

#[cfg(test)]
mod tests {
    use pace::Limit;

    use super::*;

    #[test]
    fn a_series_counts_once_by_the_weightiest_part_of_its_goal() {
        let result = |kept| GoalResult {
            limit: Limit::Slowdown(0.1),
            kept,
            measured: None,
            witness: None,
            first_missed_s: None,
            worst: None,
        };
        let mut goals = Goals::default();
        for parts in [
            &[Kept::NotMeasured][..],
            &[Kept::NobodyElse, Kept::NotMeasured],
            &[Kept::NobodyElse],
            &[Kept::Met, Kept::Unsure],
            &[Kept::Met, Kept::Missed],
            &[],
        ] {
            let parts: Vec<GoalResult> = parts.iter().copied().map(result).collect();
            goals.judge(&parts);
        }
        let expected = Goals {
            met: 1,
            missed: 1,
            unsure: 0,
            not_measured: 2,
            nobody_else: 1,
        };
        assert_eq!(goals, expected);
    }
}
