//! Clears what an ended guard left: second names of files in use, and files that wait.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pace::Goal;

use super::error::GuardError;
use super::names::SecondNames;
use super::place::{Place, hidden_in, open_directory};
use super::{Guard, GuardOptions, Tell};
use crate::throttle::ThrottleOptions;

/// The result of clearing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleared {
    /// No guard had left anything there.
    Nothing,
    /// This is left: files that other processes have open, or all where it was interrupted.
    Left(SecondNames),
}

/// The options of a guard that finds no new files.
pub(super) fn options() -> GuardOptions {
    GuardOptions {
        min_bytes: u64::MAX,
        any_owner: false,
        scan_every: Duration::from_secs(2),
        only_scan: true,
        most: 1.0,
        goal: Goal::default(),
        keep_names: false,
        hand_over: false,
        hold: super::Hold::Link,
        throttle: ThrottleOptions::default(),
    }
}

/// Removes the second names of files in use that an ended guard left in a directory, and with
/// `remove` frees the files that wait, within the goal.
///
/// # Errors
/// As [`Guard::start`].
pub fn clear(
    path: &Path,
    remove: bool,
    stop: &AtomicBool,
    tell: Tell<'_>,
) -> Result<Cleared, GuardError> {
    let directory = open_directory(path)?;
    if hidden_in(directory.as_fd()).is_empty() {
        return Ok(Cleared::Nothing);
    }
    let mut place = Place::open(path, &mut Vec::new())?;
    place.orders.remove = remove;
    place.orders.stop = true;
    let guard = Guard {
        places: vec![place],
        options: options(),
        card: None,
        retries: std::collections::HashMap::new(),
    };
    let left = guard.end(stop, tell);
    let names = left.first().map(|left| left.names);
    Ok(Cleared::Left(names.unwrap_or_default()))
}
