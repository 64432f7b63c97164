//! Orders to a running guard: a file in the directory of its state, which only root can write to.
//!
//! The command writes the file under another name and renames it. The guard removes the file when
//! it accepts the order, which is the answer.

use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::GuardError;
use super::start::running;
use crate::{ReclaimError, directory};

const ORDER: &str = "order";
const ORDER_NEW: &str = "order.new";
/// Exists while an order to drain isn't carried out.
const DRAINING: &str = "draining";

/// An order is a few hundred bytes; nothing longer is read.
const LONGEST: u64 = 4096;

/// The longest wait for the guard's answer: it reads orders at its next look, but not during a
/// call.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The content of an order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// The share of its throughput that other I/O may lose from now on, above 0 to 1.
    pub slowdown: Option<f64>,
    /// The latency that may be added to other reads from now on, in milliseconds.
    pub max_latency_ms: Option<f64>,
    /// Trim at once all that waits.
    pub drain: bool,
    /// End the guard.
    pub stop: bool,
}

impl Request {
    /// The order in a few words.
    pub(super) fn in_words(&self) -> String {
        let mut words = Vec::new();
        if let Some(slowdown) = self.slowdown {
            words.push(format!(
                "the goal is --slowdown {} from now on",
                record::units::percent_exact(slowdown)
            ));
        }
        if let Some(ms) = self.max_latency_ms {
            words.push(format!("the goal is --max-latency {ms}ms from now on"));
        }
        if self.drain {
            words.push("trims what waits at once".to_owned());
        }
        if self.stop {
            words.push("asked to stop".to_owned());
        }
        words.join("; ")
    }
}

/// The orders that a guard carries out now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Orders {
    pub(super) drain: bool,
    pub(super) stop: bool,
}

impl Orders {
    pub(super) fn add(&mut self, request: &Request) {
        self.drain |= request.drain;
        self.stop |= request.stop;
    }
}

/// The event that [`order`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The guard has accepted it.
    Accepted,
    /// Nothing waits to be trimmed any more.
    Drained,
    /// The guard has ended.
    Ended,
}

/// Gives an order to the guard of a file system, and waits until it is carried out. `stop` ends the
/// waiting, and not the order.
///
/// # Errors
/// [`GuardError::NotGuarded`] where no guard runs, or [`GuardError::NoAnswer`].
pub fn order(
    path: &Path,
    request: &Request,
    until: Order,
    stop: &std::sync::atomic::AtomicBool,
) -> Result<(), GuardError> {
    let guard = running(path)?;
    let state = guard.directory();
    let failed = || ReclaimError::io::<Errno>("give an order to the guard of", path);
    if request.drain {
        directory::make(state, DRAINING, OFlags::empty()).map_err(failed())?;
    }
    put(state, request).map_err(failed())?;
    let began = Instant::now();
    let stopped = || stop.load(std::sync::atomic::Ordering::Relaxed);
    while directory::has(state, ORDER) && guard.is_locked() {
        if began.elapsed() > ANSWER_WITHIN || stopped() {
            directory::remove(state, ORDER);
            return Err(GuardError::NoAnswer {
                path: path.into(),
                after: began.elapsed(),
            });
        }
        std::thread::sleep(LOOK_EVERY);
    }
    loop {
        let over = match until {
            Order::Accepted => true,
            Order::Drained => !directory::has(state, DRAINING) || !guard.is_locked(),
            Order::Ended => !guard.is_locked(),
        };
        if over || stopped() {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// An order to drain is carried out.
pub(super) fn drained(state: BorrowedFd<'_>) {
    directory::remove(state, DRAINING);
}

fn put(state: BorrowedFd<'_>, request: &Request) -> Result<(), Errno> {
    let text = serde_json::to_vec(request).unwrap_or_default();
    let written = directory::make(state, ORDER_NEW, OFlags::TRUNC)?.write_all(&text);
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    rustix::fs::renameat(state, ORDER_NEW, state, ORDER)
}

/// Whether an order waits.
pub(super) fn is_waiting(state: BorrowedFd<'_>) -> bool {
    directory::has(state, ORDER)
}

/// Reads an order. One that can't be understood is removed.
pub(super) fn read(state: BorrowedFd<'_>) -> Option<Request> {
    let file = directory::open(state, ORDER).ok()?;
    let mut text = String::new();
    let read = file.take(LONGEST).read_to_string(&mut text);
    let request = read.ok().and_then(|_| serde_json::from_str(&text).ok());
    if request.is_none() {
        accept(state);
    }
    request
}

/// Answers an order.
pub(super) fn accept(state: BorrowedFd<'_>) {
    directory::remove(state, ORDER);
}

/// Removes an order that no guard will accept.
pub(super) fn clear(state: BorrowedFd<'_>) {
    for name in [ORDER, ORDER_NEW, DRAINING] {
        directory::remove(state, name);
    }
}
