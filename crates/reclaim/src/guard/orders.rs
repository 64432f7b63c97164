//! Orders to a running guard: files in the directory of its state, which only root can write to.
//!
//! The command makes the file. The guard removes it when the order is carried out.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::GuardError;
use super::start::running;
use crate::{ReclaimError, directory};

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// An order to a running guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Trim at once all that waits.
    Drain,
    /// End.
    Stop,
}

impl Order {
    const ALL: [Order; 2] = [Order::Drain, Order::Stop];

    /// The name of its file.
    fn file(self) -> &'static str {
        match self {
            Order::Drain => "drain",
            Order::Stop => "stop",
        }
    }

    /// The order in words, for a note of the guard.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Order::Drain => "trims what waits at once",
            Order::Stop => "asked to stop",
        }
    }
}

/// Gives an order to the guard of a file system, and waits until it is carried out. `stop` ends the
/// waiting, and not the order.
///
/// # Errors
/// [`GuardError::NotGuarded`] where no guard runs.
pub fn order(path: &Path, order: Order, stop: &AtomicBool) -> Result<(), GuardError> {
    let guard = running(path)?;
    let state = guard.directory();
    let failed = ReclaimError::io::<Errno>("give an order to the guard of", path);
    directory::make(state, order.file(), OFlags::empty()).map_err(failed)?;
    while directory::has(state, order.file()) && guard.is_locked() && !stop.load(Ordering::Relaxed)
    {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// The orders that are given, but for those that are known.
pub(super) fn new(state: BorrowedFd<'_>, known: &[Order]) -> Vec<Order> {
    let mut all = Order::ALL.to_vec();
    all.retain(|order| !known.contains(order) && directory::has(state, order.file()));
    all
}

/// An order is carried out.
pub(super) fn done(state: BorrowedFd<'_>, order: Order) {
    directory::remove(state, order.file());
}

/// Removes the orders to a guard that has ended.
pub(super) fn clear(state: BorrowedFd<'_>) {
    for order in Order::ALL {
        done(state, order);
    }
}
