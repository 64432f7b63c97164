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
//! | `common` | what both ways have: state, orders, messages, how late trims come |
//! | `trims` | the way of ext4 and XFS: the loop of looks and trims |
//! | `look` | the kernel's list of free extents, and the sign that it was incomplete |
//! | `pick` | the windows of trims: pure. Their order and their time are `pace`'s ([`pace::trims`]) |
//! | `note` | the debt on the disk |
//! | `series` | why debt waits, and one throttled series of trims |
//! | [`Hours`] | the hours of a day in which they run |
//! | `btrfs` | the way of btrfs: the rate of the kernel's own trims |

mod btrfs;
mod common;
mod look;
mod note;
mod orders;
mod pick;
mod series;
mod start;
mod state;
mod status;
mod trims;

use std::fmt;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use pace::Goal;
use record::units::names::quoted;
use storage::remount::RemountError;

pub use orders::{Order, Request, order};
pub use pace::trims::{FRESH_FOR, LITTLE, LITTLE_FOR};
pub use status::{Goals, Status, TrimReport, Waits, status, statuses};

use crate::ReclaimError;
use crate::event::{Listener, note_all};
use crate::throttle::Pacing;
use btrfs::BtrfsGuard;
use start::{Candidate, Way};
use trims::TrimGuard;

/// The pause between two rounds, in which orders are taken.
const TICK: Duration = Duration::from_millis(250);

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
        note_all(listener, &found.fault);
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
    let (found, way) = Candidate::examine(path, options)?;
    let mut intention = match way {
        Way::Limit => "would set the rate of the kernel's own trims (discard=async)".to_owned(),
        Way::Trims { looker, remount } => {
            let look = looker
                .look()
                .map_err(ReclaimError::io("list the free extents of", path))?;
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
    };
    if let Some(fault) = found.fault {
        intention += &format!("; {fault}");
    }
    Ok(intention)
}

// The hours of a day in which trims run.

const DAY: u32 = 24 * 60;

/// From one minute of the local day to another, over midnight where the end comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    from: u32,
    to: u32,
}

impl Hours {
    /// Whether a minute of the day is within.
    fn has(self, minute: u32) -> bool {
        match self.from <= self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }

    /// Whether it is the time now, by the local clock.
    pub fn is_now(self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let unix = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(0));
        let local = unix + linux::clock::local_offset_s(unix);
        let minute = local.div_euclid(60).rem_euclid(i64::from(DAY));
        self.has(u32::try_from(minute).unwrap_or(0))
    }
}

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Hours, String> {
        let wrong = || format!("{text}: must be two times of the day, as in 01:00-06:00");
        let minute = |text: &str| -> Option<u32> {
            let (hour, minute) = text.split_once(':')?;
            let number = |text: &str, end: u32| {
                let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                text.parse().ok().filter(|&n: &u32| digits && n < end)
            };
            Some(number(hour, 24)? * 60 + number(minute, 60)?)
        };
        let (from, to) = text.split_once('-').ok_or_else(wrong)?;
        let hours = Hours {
            from: minute(from).ok_or_else(wrong)?,
            to: minute(to).ok_or_else(wrong)?,
        };
        match hours.from == hours.to {
            true => Err(wrong()),
            false => Ok(hours),
        }
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = [self.from, self.to].map(|at| format!("{:02}:{:02}", at / 60, at % 60));
        write!(f, "{from}-{to}")
    }
}

// Why a file system can't be guarded, and what makes it possible.

/// Why a file system can't be guarded, or no guard reached.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum GuardError {
    #[error(transparent)]
    Reclaim(#[from] ReclaimError),
    #[error(
        "cannot open {}: {}; name the mount point of a file system",
        quoted(path),
        crate::error::words(source)
    )]
    Path {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "{} is guarded already{}; one guard is enough: see trimbench guard status {}",
        quoted(path), by(*pid), quoted(path)
    )]
    Guarded { path: PathBuf, pid: Option<u32> },
    /// With the commands that make it possible.
    #[error(
        "{} can't be guarded: {why}; {hint}:{}",
        quoted(path),
        listed(commands)
    )]
    Refused {
        path: PathBuf,
        why: String,
        hint: &'static str,
        commands: Vec<String>,
    },
    #[error(transparent)]
    Remount(Box<storage::remount::RemountError>),
    #[error(
        "{} is not guarded; start with: trimbench guard {}",
        quoted(path),
        quoted(path)
    )]
    NotGuarded { path: PathBuf },
    #[error(
        "the guard of {} did not take the order within {} s; look with: trimbench guard status {}",
        quoted(path), after.as_secs(), quoted(path)
    )]
    NoAnswer {
        path: PathBuf,
        after: std::time::Duration,
    },
}

impl GuardError {
    /// Whether what was asked for can't be done there at all.
    pub fn is_usage(&self) -> bool {
        !matches!(self, GuardError::Reclaim(_) | GuardError::NoAnswer { .. })
    }
}

fn by(pid: Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (by process {pid})"))
}

fn listed(commands: &[String]) -> String {
    commands.iter().fold(String::new(), |mut text, command| {
        let _ = write!(text, "\n  {command}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_end_where_they_end_and_go_over_midnight() {
        let night: Hours = "23:30-06:00".parse().unwrap();
        let has = |hours: Hours, hour: u32, minute: u32| hours.has(hour * 60 + minute);
        assert!(has(night, 23, 30) && has(night, 0, 0) && has(night, 5, 59));
        assert!(!has(night, 6, 0) && !has(night, 23, 29));
        let day: Hours = "1:00-06:30".parse().unwrap();
        assert!(has(day, 1, 0) && !has(day, 6, 30) && !has(day, 0, 59));
        assert_eq!(day.to_string(), "01:00-06:30");
        for wrong in [
            "",
            "1-2",
            "24:00-01:00",
            "01:60-02:00",
            "01:00-01:00",
            "+1:00-2:00",
        ] {
            assert!(wrong.parse::<Hours>().is_err(), "{wrong}");
        }
    }
}
