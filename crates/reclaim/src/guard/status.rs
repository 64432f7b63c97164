//! How a guard stands. The second names are counted where they are; the rest its process writes
//! into its hidden directory, in place, so that it frees no block.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use linux::owner::{Found, Held};
use pace::Kept;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::GuardOptions;
use super::by_trim::TrimReport;
use super::control::{STATUS, open_own};
use super::error::GuardError;
use super::finder::FoundBy;
use super::names::{SecondNames, names};
use super::place::{hidden_in, open_directory};
use crate::throttle::Summary;

/// The file has this length, padded with blanks: a block.
const LENGTH: usize = 4096;

/// Files that were freed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Freed {
    /// How many.
    pub files: u64,
    /// Their allocated bytes.
    pub bytes: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl Freed {
    pub(super) fn count(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// The files that a guard has freed since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Files.
    pub files: u64,
    /// Their allocated bytes.
    pub bytes: u64,
    /// Batches of files in which the goal was kept.
    pub goal_met: u64,
    /// Batches in which it was missed.
    pub goal_missed: u64,
}

impl Totals {
    pub(super) fn add(&mut self, freed: &Freed) {
        self.files += freed.files;
        self.bytes += freed.bytes;
    }

    pub(super) fn judge(&mut self, summary: &Summary) {
        let missed = |kept: Kept| summary.goals.iter().any(|goal| goal.kept == kept);
        match () {
            () if missed(Kept::Missed) => self.goal_missed += 1,
            () if missed(Kept::Met) => self.goal_met += 1,
            () => {}
        }
    }
}

/// How a guard stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The guarded directory.
    pub directory: PathBuf,
    /// The guard's process; `None` where none runs.
    pub pid: Option<u32>,
    /// Its second names, counted now.
    pub names: SecondNames,
    /// The report of its process; `None` where there is none yet.
    pub reported: Option<Reported>,
}

/// The report of a guard's process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// The guard's process.
    pub pid: u32,
    /// Files below this, in bytes, get no second name.
    pub min_bytes: u64,
    /// The share of their throughput that others may lose.
    pub slowdown: f64,
    /// The latency that may be added to others' reads, in milliseconds.
    pub max_latency_ms: Option<f64>,
    /// The share of the file system that may wait to be freed.
    pub most: f64,
    /// How new files are found.
    pub found_by: Option<FoundBy>,
    /// The files that it has freed since its start.
    pub freed: Totals,
    /// The files that it keeps by descriptors, which nobody else can count.
    #[serde(default)]
    pub held: Option<SecondNames>,
    /// How the trims stand, where it works by trims.
    #[serde(default)]
    pub trim: Option<TrimReport>,
}

impl Status {
    pub(super) fn of(
        path: &Path,
        options: &GuardOptions,
        found_by: Option<FoundBy>,
        freed: &Totals,
    ) -> Status {
        Status {
            directory: path.to_owned(),
            pid: Some(std::process::id()),
            names: SecondNames::default(),
            reported: Some(Reported {
                pid: std::process::id(),
                min_bytes: options.min_bytes,
                slowdown: options.goal.slowdown,
                max_latency_ms: options.goal.max_latency.map(|max| max.as_secs_f64() * 1e3),
                most: options.most,
                found_by,
                freed: *freed,
                held: None,
                trim: None,
            }),
        }
    }
}

/// Writes what the process reports, in place, if it has changed.
pub(super) fn write(hidden: BorrowedFd<'_>, reported: &Option<Reported>) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(reported)?;
    text.resize(LENGTH, b' ');
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(
        hidden,
        STATUS,
        flags,
        Mode::RUSR | Mode::WUSR,
    )?);
    let mut before = vec![0; LENGTH];
    let same = file.read_exact_at(&mut before, 0).is_ok() && before == text;
    match same {
        true => Ok(()),
        false => file.write_all_at(&text, 0),
    }
}

fn read(hidden: BorrowedFd<'_>) -> Option<Reported> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::openat(hidden, STATUS, flags, Mode::empty()).ok()?;
    let mut text = String::new();
    File::from(file)
        .take(LENGTH as u64)
        .read_to_string(&mut text)
        .ok()?;
    serde_json::from_str(&text).ok()
}

/// Returns how the guard of a directory stands, and what an ended one left there.
///
/// # Errors
/// [`GuardError::NotGuarded`] where nothing of a guard is there that this user may look at.
pub fn status(path: &Path) -> Result<Status, GuardError> {
    let directory = open_directory(path)?;
    for name in hidden_in(directory.as_fd()) {
        let Some(hidden) = open_own(directory.as_fd(), &name) else {
            continue;
        };
        let runs = match Held::find(&directory, &name) {
            Found::InUse { .. } => true,
            Found::Held(_) => false,
            Found::Left(_) | Found::Gone => continue,
        };
        let reported = read(hidden.as_fd());
        let pid = reported.as_ref().map(|reported| reported.pid);
        return Ok(Status {
            directory: path.to_owned(),
            pid: pid.filter(|_| runs),
            names: reported
                .as_ref()
                .and_then(|reported| reported.held)
                .filter(|_| runs)
                .unwrap_or_else(|| names(hidden.as_fd()).sums()),
            reported: reported.filter(|_| runs),
        });
    }
    Err(GuardError::NotGuarded { path: path.into() })
}
