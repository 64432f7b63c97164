//! The thread that finds large files and gives them their second name.
//!
//! It scans all at the start. Then the kernel reports new files where it can (`fanotify`, root
//! alone), and a scan now and then finds files that grew while they stayed open. Elsewhere scans
//! find all new files; the larger the tree, the longer the pause between them.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use units::names::quoted;

use super::error::GuardError;
use super::events::Events;
use super::keep::{Descriptors, keep};
use super::names::free_share;
use super::place::Place;
use super::scan::{Rules, Scanned, scan};
use super::{Event, GuardOptions, SHORT, Tell};

/// Scans may take this share of a processor's time, and of the disk's.
const SCAN_SHARE: u32 = 20;

/// The pause between two scans where the kernel reports changes, at least.
const SELDOM: Duration = Duration::from_secs(30);

/// The time between two looks at whether the guard has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How new files are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FoundBy {
    /// The kernel reports them (fanotify).
    Fanotify,
    /// The directory is scanned now and then.
    Scan,
}

impl fmt::Display for FoundBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FoundBy::Fanotify => "fanotify",
            FoundBy::Scan => "scan",
        })
    }
}

/// Finds the large files of one place.
#[derive(Debug)]
pub(super) struct Finder {
    path: PathBuf,
    directory: OwnedFd,
    hidden: OwnedFd,
    descriptors: Option<Arc<Descriptors>>,
    rules: Rules,
    every: Duration,
    events: Option<Events>,
}

impl Finder {
    pub(super) fn new(
        place: &Place,
        options: &GuardOptions,
        tell: Tell<'_>,
    ) -> Result<Finder, GuardError> {
        let failed = |source: io::Error| GuardError::Io {
            action: "keep open",
            path: place.path().to_owned(),
            source,
        };
        let own = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map_err(failed);
        let (directory, hidden) = (own(place.directory())?, own(place.hidden())?);
        let stat = rustix::fs::fstat(&directory).map_err(|errno| failed(errno.into()))?;
        let euid = rustix::process::geteuid();
        let owner = match (euid.is_root(), options.any_owner) {
            (true, true) => None,
            (true, false) => Some(stat.st_uid),
            // The kernel would mostly refuse, and freeing needs the owner.
            (false, _) => Some(euid.as_raw()),
        };
        let events = match options.only_scan {
            true => None,
            false => match Events::of(directory.as_fd()) {
                Ok(events) => Some(events),
                Err(error) => {
                    tell(Event::Note(format!(
                        "{}: new files are found by a scan every {} (the kernel reports none: {})",
                        quoted(place.path()),
                        units::duration_exact(options.scan_every),
                        crate::words::of_io(&error)
                    )));
                    None
                }
            },
        };
        Ok(Finder {
            path: place.path().to_owned(),
            directory,
            hidden,
            descriptors: place.descriptors(),
            rules: Rules {
                min_bytes: options.min_bytes,
                owner,
                device: stat.st_dev,
            },
            every: options.scan_every,
            events,
        })
    }

    pub(super) fn found_by(&self) -> FoundBy {
        match self.events {
            Some(_) => FoundBy::Fanotify,
            None => FoundBy::Scan,
        }
    }

    /// Finds files until the guard has ended.
    pub(super) fn run(mut self, ended: &AtomicBool, tell: Tell<'_>) {
        let goes_on = || !ended.load(Ordering::Relaxed);
        let mut told = Told::default();
        while goes_on() {
            let began = Instant::now();
            let rules = self.rules_now();
            let mut scanned = scan(
                self.directory.as_fd(),
                keep(&self.hidden, self.descriptors.as_deref()),
                &rules,
                &goes_on,
            );
            if let Some(events) = &mut self.events {
                events.scanned();
            }
            let least = if self.events.is_some() {
                SELDOM
            } else {
                self.every
            };
            let next = Instant::now() + least.max(began.elapsed() * SCAN_SHARE);
            told.tell(&self.path, &mut scanned, tell);
            while goes_on() && Instant::now() < next {
                if self.wait(&mut scanned) {
                    break;
                }
                told.tell(&self.path, &mut scanned, tell);
            }
        }
    }

    /// Returns the rules at this share of free space. Where space is short, no file is large
    /// enough: its space would come free later than its program expects.
    fn rules_now(&self) -> Rules {
        match free_share(&self.hidden) < SHORT {
            true => Rules {
                min_bytes: u64::MAX,
                ..self.rules
            },
            false => self.rules,
        }
    }

    /// Waits a moment, for changes where the kernel reports them. Returns whether to scan at once.
    fn wait(&mut self, scanned: &mut Scanned) -> bool {
        let rules = self.rules_now();
        let Some(events) = &mut self.events else {
            std::thread::sleep(LOOK_EVERY);
            return false;
        };
        let at = (
            self.directory.as_fd(),
            keep(&self.hidden, self.descriptors.as_deref()),
        );
        match events.follow(at, &rules, LOOK_EVERY, scanned) {
            Ok(lost) => lost,
            Err(_) => {
                self.events = None;
                true
            }
        }
    }
}

/// The notes that were printed for a place.
#[derive(Debug, Default)]
struct Told {
    refused: Vec<i32>,
    too_deep: bool,
    guarded: Vec<u32>,
}

impl Told {
    /// Reports what can't be guarded, each fact once.
    fn tell(&mut self, path: &std::path::Path, scanned: &mut Scanned, tell: Tell<'_>) {
        let path = quoted(path);
        for (errno, files) in scanned.refused.drain() {
            if !self.refused.contains(&errno) {
                self.refused.push(errno);
                let errno = Errno::from_raw_os_error(errno);
                tell(Event::Note(format!(
                    "{path}: {files} files got no second name, because {}: their space comes free \
                     at once when they are deleted{}",
                    crate::words::of(errno),
                    remedy(errno)
                )));
            }
        }
        if scanned.too_deep > 0 && !std::mem::replace(&mut self.too_deep, true) {
            tell(Event::Note(format!(
                "{path}: {} directories are more than 100 levels deep, and are left out",
                scanned.too_deep
            )));
        }
        for pid in scanned.guarded.drain(..) {
            if !self.guarded.contains(&pid) {
                self.guarded.push(pid);
                tell(Event::Note(format!(
                    "{path}: another guard (process {pid}) works in a directory in it, which is left to it"
                )));
            }
        }
    }
}

fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::PERM | Errno::ACCESS => {
            " (fs.protected_hardlinks lets only root and a file's owner link it)"
        }
        Errno::ROFS => "; remount the file system with rw",
        Errno::NOSPC | Errno::DQUOT => "; free some space",
        _ => "",
    }
}
