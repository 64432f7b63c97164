//! Trims what programs free on a file system, all the time, without a stall.
//!
//! The file system runs without `discard`, so that freeing space costs nothing then. The guard
//! looks at the free extents, and trims those that were freed since, oldest and longest first, as
//! the throttle allows. On btrfs the kernel itself does so, and the guard sets its rate.
//!
//! | part | responsibility |
//! |---|---|
//! | [`Guard`] | one file system's guard |
//! | `start` | which file systems can be guarded, and what makes others fit |
//! | `state` | a locked directory of root's for each file system |
//! | `orders`, `status` | the orders that a running guard takes, and what it reports |
//! | `common` | what both ways have: state, orders, messages |
//! | `trims` | the way of ext4 and XFS: the loop of looks and trims |
//! | `debt` | what is free and not certainly trimmed: pure |
//! | `look` | the kernel's list of free extents, and the sign that it was incomplete |
//! | `due` | which debt is due, how fast it is trimmed, and why the rest waits |
//! | `pick` | the order of trims, and their windows: pure |
//! | `note` | the debt on the disk |
//! | `series` | one throttled series of trims |
//! | `ages`, `hours` | how late trims come; the hours of a day in which they run |
//! | `btrfs` | the way of btrfs: the rate of the kernel's own trims |

mod ages;
mod btrfs;
mod common;
mod debt;
mod due;
mod error;
mod hours;
mod look;
mod note;
mod orders;
mod pick;
mod series;
mod start;
mod state;
mod status;
mod trims;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pace::Goal;
use storage::remount::RemountError;

use crate::event::Listener;
use crate::throttle::Pacing;

pub use due::{FRESH_FOR, LITTLE, LITTLE_FOR};
pub use error::GuardError;
pub use hours::Hours;
pub use orders::{Order, Request, order};
pub use status::{Goals, Status, TrimReport, Waits, status};

use btrfs::BtrfsGuard;
use start::{Candidate, Way};
use trims::TrimGuard;

/// The pause between two rounds, in which orders are taken.
const TICK: Duration = Duration::from_millis(250);

/// The slowdown at which space is trimmed while more waits than is allowed.
const HURRIED: f64 = 0.5;

/// The options of a guard.
#[derive(Debug, Clone)]
pub struct GuardOptions {
    /// The share of its throughput that other I/O may lose.
    pub goal: Goal,
    /// Above this share of the file system, debt is trimmed faster.
    pub most: f64,
    /// Debt that is older is trimmed faster.
    pub max_age: Duration,
    /// Runs of fewer bytes wait up to half of `max_age`; `None`: as long as their trims would cost
    /// more than they save ([`pace::Worth`]).
    pub min_run: Option<u64>,
    /// The hours in which it trims; `None`: always.
    pub between: Option<Hours>,
    /// Switch a mount to `nodiscard`, and back at the end.
    pub remount: bool,
    /// How it is paced, but for the policy, which follows from the goal and from what is due.
    pub pacing: Pacing,
}

/// The remains of an ended guard.
#[derive(Debug)]
pub struct Left {
    /// Where the file system is mounted.
    pub mount: PathBuf,
    /// Bytes that were freed and not trimmed; 0 if they are too few to be worth a trim.
    pub debt_bytes: u64,
    /// Why the guard ended without an order or a signal.
    pub failed: Option<String>,
    /// Why the mount's option isn't as it was.
    pub not_restored: Option<RemountError>,
}

/// A running guard of one file system.
#[derive(Debug)]
pub struct Guard(Kind);

#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there are as many as guarded file systems"
)]
enum Kind {
    Trims(TrimGuard),
    Limit(BtrfsGuard),
}

impl Guard {
    /// Takes charge of a mounted file system.
    ///
    /// # Errors
    /// [`GuardError::Refused`] if it can't be guarded, and [`GuardError::Guarded`] if another guard
    /// runs.
    pub fn start(
        path: &Path,
        options: GuardOptions,
        listener: &mut Listener<'_>,
    ) -> Result<Guard, GuardError> {
        let (found, way) = Candidate::examine(path, &options)?;
        match way {
            Way::Limit => BtrfsGuard::start(found, options, listener).map(Kind::Limit),
            Way::Trims { looker, remount } => {
                let way = (looker, remount);
                TrimGuard::start(found, way, options, listener).map(Kind::Trims)
            }
        }
        .map(Guard)
    }

    /// Guards until `listener` or an order ends it. Returns what is left.
    pub fn run(self, listener: &mut Listener<'_>) -> Left {
        match self.0 {
            Kind::Trims(guard) => guard.run(listener),
            Kind::Limit(guard) => guard.run(listener),
        }
    }
}

/// Returns what a guard would do at a path, in a sentence.
///
/// # Errors
/// As [`Guard::start`].
pub fn intend(path: &Path, options: &GuardOptions) -> Result<String, GuardError> {
    let (_, way) = Candidate::examine(path, options)?;
    Ok(match way {
        Way::Limit => "would set the rate of the kernel's own trims (discard=async)".to_owned(),
        Way::Trims { looker, remount } => {
            let look = looker.look().map_err(|source| GuardError::Io {
                action: "list the free extents of",
                path: path.to_owned(),
                source,
            })?;
            let remounts = if remount {
                "remount it with nodiscard, "
            } else {
                ""
            };
            let free = record::units::bytes(look.free.covered());
            format!(
                "would {remounts}trim the {free} that are free, as far as they aren't trimmed, and then \
                 what is freed"
            )
        }
    })
}
