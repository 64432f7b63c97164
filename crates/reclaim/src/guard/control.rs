//! Orders to a running guard: a file in its hidden directory, which only its own user can write to.
//!
//! The command writes the file under another name and renames it. The guard removes the file when
//! it accepts the order, which is the answer.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use linux::owner::{Found, Held};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::error::GuardError;
use super::place::{hidden_in, open_directory};

const ORDER: &str = "order";
const ORDER_NEW: &str = "order.new";
/// Exists while an order to drain isn't carried out.
const DRAINING: &str = "draining";
/// Where the guard writes how it stands.
pub(super) const STATUS: &str = "status";

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
    /// Free at once all that waits.
    pub drain: bool,
    /// End the guard.
    pub stop: bool,
    /// Before the end, free all that waits, within the goal.
    pub remove: bool,
}

impl Request {
    /// The order in a few words.
    pub(super) fn in_words(&self) -> String {
        let mut words = Vec::new();
        if let Some(slowdown) = self.slowdown {
            words.push(format!(
                "the goal is --slowdown {} from now on",
                units::percent_exact(slowdown)
            ));
        }
        if let Some(ms) = self.max_latency_ms {
            words.push(format!("the goal is --max-latency {ms}ms from now on"));
        }
        if self.drain {
            words.push("frees what waits at once".to_owned());
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
    pub(super) remove: bool,
}

impl Orders {
    pub(super) fn add(&mut self, request: &Request) {
        self.drain |= request.drain;
        self.stop |= request.stop;
        self.remove |= request.remove;
    }
}

/// The event that [`order`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The guard has accepted it.
    Taken,
    /// Nothing waits to be freed any more.
    Drained,
    /// The guard has ended.
    Ended,
}

/// Gives an order to the guard of a directory, and waits until it is carried out. `stop` ends the
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
    let directory = open_directory(path)?;
    let (name, hidden) = running(&directory, path)?;
    let failed = |errno: Errno| GuardError::Io {
        action: "give an order in",
        path: path.join(&name),
        source: errno.into(),
    };
    if request.drain {
        create(hidden.as_fd(), DRAINING).map_err(failed)?;
    }
    put(hidden.as_fd(), request).map_err(failed)?;
    let began = Instant::now();
    let stopped = || stop.load(std::sync::atomic::Ordering::Relaxed);
    let runs = || matches!(Held::find(&directory, &name), Found::InUse { .. });
    while exists(hidden.as_fd(), ORDER) && runs() {
        if began.elapsed() > ANSWER_WITHIN || stopped() {
            let _ = rustix::fs::unlinkat(&hidden, ORDER, AtFlags::empty());
            return Err(GuardError::NoAnswer {
                path: path.into(),
                after: began.elapsed(),
            });
        }
        std::thread::sleep(LOOK_EVERY);
    }
    loop {
        let over = match until {
            Order::Taken => true,
            Order::Drained => !exists(hidden.as_fd(), DRAINING) || !runs(),
            Order::Ended => !runs(),
        };
        if over || stopped() {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The hidden directory of a guard that runs.
pub(super) fn running(directory: &OwnedFd, path: &Path) -> Result<(String, OwnedFd), GuardError> {
    let not = || GuardError::NotGuarded { path: path.into() };
    for name in hidden_in(directory.as_fd()) {
        if matches!(Held::find(directory, &name), Found::InUse { .. })
            && let Some(hidden) = open_own(directory.as_fd(), &name)
        {
            return Ok((name, hidden));
        }
    }
    Err(not())
}

/// Opens a hidden directory if it is this user's alone.
pub(super) fn open_own(directory: BorrowedFd<'_>, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let hidden = rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&hidden).ok()?;
    let own = rustix::process::geteuid().as_raw();
    (stat.st_uid == own && stat.st_mode & 0o022 == 0).then_some(hidden)
}

fn exists(hidden: BorrowedFd<'_>, name: &str) -> bool {
    rustix::fs::statat(hidden, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

fn create(hidden: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(hidden, name, flags, Mode::RUSR | Mode::WUSR).map(drop)
}

/// An order to drain is carried out.
pub(super) fn drained(hidden: BorrowedFd<'_>) {
    let _ = rustix::fs::unlinkat(hidden, DRAINING, AtFlags::empty());
}

fn put(hidden: BorrowedFd<'_>, request: &Request) -> Result<(), Errno> {
    let text = serde_json::to_vec(request).unwrap_or_default();
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(hidden, ORDER_NEW, flags, Mode::RUSR | Mode::WUSR)?;
    let written = File::from(file).write_all(&text);
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    rustix::fs::renameat(hidden, ORDER_NEW, hidden, ORDER)
}

/// Whether an order waits.
pub(super) fn is_waiting(hidden: BorrowedFd<'_>) -> bool {
    exists(hidden, ORDER)
}

/// Reads an order and removes its file, also if it can't be understood.
pub(super) fn take(hidden: BorrowedFd<'_>) -> Option<Request> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::openat(hidden, ORDER, flags, Mode::empty()).ok()?;
    let mut text = String::new();
    let read = File::from(file).take(LONGEST).read_to_string(&mut text);
    let _ = rustix::fs::unlinkat(hidden, ORDER, AtFlags::empty());
    read.ok()?;
    serde_json::from_str(&text).ok()
}

/// Removes an order that no guard will accept.
pub(super) fn finish(hidden: BorrowedFd<'_>) {
    for name in [ORDER, ORDER_NEW, DRAINING] {
        let _ = rustix::fs::unlinkat(hidden, name, AtFlags::empty());
    }
}

/// Removes all files of this module.
pub(super) fn clear(hidden: BorrowedFd<'_>) {
    finish(hidden);
    let _ = rustix::fs::unlinkat(hidden, STATUS, AtFlags::empty());
}
