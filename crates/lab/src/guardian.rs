//! The process that takes a drive down when its server has died.
//!
//! A server can be killed at any moment, and a drive without a server disturbs others. Every I/O on
//! it fails, and so do programs that look at all loop devices, e.g. `mkfs.btrfs`.
//!
//! So each server starts a guardian, which waits for the server's lock. It has a session of its
//! own, and keeps no file of the drive open. A server whose guardian was killed starts another.
//! When both are killed at once, the next command of the laboratory finds the drive
//! ([`Lab::sweep`](crate::Lab::sweep)).
//!
//! It also ends a drive whose maker was killed half-way.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::down::{self, Down};
use crate::error::LabError;
use crate::lock;
use crate::place::Place;
use crate::serve::{self, log};

/// The variable that makes the program that serves a drive guard it instead.
const GUARDS: &str = "TRIMBENCH_LAB_GUARDS";
/// The time between two attempts to take down a drive that is still in use.
const RETRY: Duration = Duration::from_secs(1);

/// Whether this process was started as a guardian.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os(GUARDS).is_some()
}

/// The whole life of a guardian.
///
/// # Errors
/// If the drive's files can't be read.
pub(crate) fn guard(dir: &Path) -> Result<(), LabError> {
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"lab-guardian");
    // Whoever ends all processes of this program at once ends the servers; their
    // drives are taken down then, and that ends this one, too.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
    let place = Place::new(dir.to_owned());
    let Ok(_claim) = lock::claim(&place.guardian()) else {
        return Ok(()); // there is one, or the drive is gone already
    };
    // What can't be had the server has told.
    let _ = serve::protect();
    let mut said = String::new();
    while let Some(hold) =
        lock::wait_and_lock(&place.hold()).map_err(LabError::io("cannot lock", place.hold()))?
    {
        if !place.is_dead() {
            drop(hold);
            let server = place.server();
            lock::wait(&server).map_err(LabError::io("cannot lock", &server))?;
            continue;
        }
        match down::take_down(&place, Down::ByForce, down::SOON) {
            Ok(()) => break,
            Err(error) if error.to_string() != said => {
                said = error.to_string();
                log(&format!("guardian: {said}"));
            }
            Err(_) => {}
        }
        // Others may try meanwhile.
        drop(hold);
        sleep(RETRY);
    }
    Ok(())
}

/// A server's guardian.
#[derive(Debug)]
pub(crate) struct Guardian {
    process: Child,
    started: Instant,
}

impl Guardian {
    /// Starts it: this program again, with the same arguments.
    ///
    /// # Errors
    /// If it can't be started.
    pub(crate) fn start() -> std::io::Result<Guardian> {
        let mut arguments = std::env::args_os();
        let mut command = Command::new("/proc/self/exe");
        if let Some(name) = arguments.next() {
            command.arg0(name);
        }
        let process = command
            .args(arguments)
            .env(GUARDS, "1")
            .stdin(Stdio::null())
            .current_dir("/")
            .spawn()?;
        Ok(Guardian {
            process,
            started: Instant::now(),
        })
    }

    /// Starts another if it was killed.
    pub(crate) fn keep(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) || self.started.elapsed() < RETRY {
            return;
        }
        match Guardian::start() {
            Ok(new) => *self = new,
            Err(error) => {
                self.started = Instant::now();
                log(&format!("cannot start another guardian: {error}"));
            }
        }
    }
}
