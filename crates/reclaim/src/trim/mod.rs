//! Trims the free space of a mounted file system, in windows as a pacer allows.
//!
//! One call over all, as fstrim(8) makes it, can't be paced, watched or stopped. A window is one
//! piece of the pacer's. Its result is read from the devices' statistics when the call returns,
//! because XFS only reports the window's length.
//!
//! ext4 and XFS show beforehand how much a window will hold. Elsewhere windows learn from one
//! another. Below a thin volume the devices may see nothing of the space that XFS showed: it is
//! trimmed all the same, and no discard is waited for.
//!
//! | file system | windows |
//! |---|---|
//! | ext2, ext3, ext4 | whole block groups, which ext4 remembers as trimmed; free extents of a group that is too fragmented to be trimmed at once |
//! | XFS | free extents, and parts of one, within allocation groups |
//! | btrfs | whole chunks of its logical address space, because the kernel skips a chunk that doesn't begin in the range; first, in one call, the space that belongs to no chunk |
//! | FAT, exFAT, NTFS, f2fs without `discard` | anywhere |
//! | f2fs with `discard`, which only queues what it is to trim; other file systems | one call |
//!
//! ext4 keeps one `minimum` for all its groups, the last call's. So a group that was trimmed with a
//! larger one counts as trimmed from our second window on.

mod cost;
mod forecast;
mod identity;
mod late;
mod notebook;
mod outcome;
mod pieces;
mod remaining;
mod state;
mod survey;
mod tally;
mod windows;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linux::trim::{Range, is_unsupported};
use pace::Policy;
use ssd::Card;

pub use outcome::{TrimError, Trimmed};
pub(crate) use pieces::{Pieces, refused};
pub use state::StateError;
pub use storage::trimmable::{FSTAB, MOUNTED, SelectError, Selected, select};
pub use survey::{Asked, Survey, state_directory};

use crate::error::ReclaimError;
use crate::event::{Event, Listener, Looked, Progress, Reply, note_all};
use crate::throttle::{Purpose, Setup, Throttle, ThrottleOptions};
use notebook::Notebook;
use remaining::{Ended, Remaining};
use tally::Tally;
use windows::{Limit, Window};

/// The pacer is asked at least this often, however much it allowed.
const LONGEST_GRANT: Duration = Duration::from_millis(100);

/// The longest time in seconds for which one window may keep the device busy. It is also at most
/// [`BUSY_SHARE`] of the time that a goal allows in each second.
const BUSY: f64 = 0.020;
const BUSY_SHARE: f64 = 0.2;
const LEAST_BUSY: f64 = 0.002;

/// If the machine slept for this long during a call, the call was cut short. ext4 and XFS return
/// early and without an error when the machine is to be suspended (Linux 6.12
/// `ext4_trim_interrupted`, `xfs_trim_should_stop`). They also return early for a freeze without
/// sleep, which trimbench can't detect.
const SLEPT: Duration = Duration::from_millis(10);

/// Trims one file system.
#[derive(Debug)]
pub struct Trim {
    path: PathBuf,
    directory: Arc<File>,
    minimum: u64,
    throttle: Throttle,
    remaining: Remaining,
    tally: Tally,
    notebook: Notebook,
    busy_limit: f64,
    /// Bytes that an interrupted trim had trimmed.
    before: u64,
    progress: Progress,
}

impl Trim {
    /// Makes a trim of what was surveyed. With `resume` it continues an interrupted one.
    ///
    /// # Errors
    /// - [`TrimError::Unsupported`] where nothing can be trimmed;
    /// - [`TrimError::Busy`] if another process trims the file system now;
    /// - [`TrimError::Reclaim`] if a card says that the goal can't be met;
    /// - [`TrimError::State`] if the note of an interrupted trim can't be read.
    pub fn new(
        survey: Survey,
        policy: Policy,
        card: Option<&Card>,
        options: &ThrottleOptions,
        resume: bool,
        listener: &mut Listener<'_>,
    ) -> Result<Trim, TrimError> {
        survey.probe()?;
        note_all(listener, survey.notes());
        let opened = Notebook::open(survey.cursor(), resume, listener)?;
        let Some((notebook, state)) = opened else {
            return Err(TrimError::Busy { path: survey.path });
        };
        let setup = Setup {
            on: survey.directory.as_fd(),
            stack: &survey.stack,
            purpose: Purpose::Trim,
            work: &survey.work(&policy),
            policy,
            card,
            options,
        };
        let throttle = Throttle::start(&setup, listener)?;
        let remaining = Remaining::of(&survey, state.as_ref().map(|state| state.position));
        if remaining.looked() > 0 {
            let from = units::bytes(remaining.looked());
            listener(Event::Note(&format_args!("goes on after {from}")));
        }
        Ok(Trim {
            throttle,
            tally: Tally::of(&survey),
            notebook,
            busy_limit: busy_limit(&policy),
            before: state.map_or(0, |state| state.trimmed_bytes),
            progress: Progress {
                total_bytes: remaining.all(),
                ..Progress::default()
            },
            remaining,
            minimum: survey.asked.minimum,
            path: survey.path,
            directory: Arc::new(survey.directory),
        })
    }

    /// Trims. If it is interrupted, the result says where it stopped.
    ///
    /// # Errors
    /// [`TrimError`] with the kernel's error. How far the trim came is noted before that.
    pub fn run(mut self, listener: &mut Listener<'_>) -> Result<Trimmed, TrimError> {
        let begun = self.remaining.looked();
        let outcome = self.all(listener, begun);
        let interrupted = matches!(outcome, Err(TrimError::Reclaim(ReclaimError::Interrupted)));
        let done = self.remaining.is_done();
        let mut kept = None;
        if done {
            kept = self.notebook.remove();
        } else if self.progress.looked.windows > 0 {
            self.note(true);
        }
        let stopped = match outcome {
            Ok(()) => None,
            Err(_) if interrupted && !done => Some(self.remaining.position()),
            Err(_) if interrupted => None,
            Err(error) => return Err(error),
        };
        let mut looking = relay(listener, self.progress);
        let noted = self.notebook.is_noted();
        let summary = match stopped.is_some() || interrupted {
            true => self.throttle.end(),
            false => self.throttle.finish(&mut looking)?,
        };
        Ok(Trimmed {
            bytes: self.before + self.progress.freed_bytes,
            progress: self.progress,
            summary,
            stopped,
            noted,
            kept,
        })
    }

    fn all(&mut self, listener: &mut Listener<'_>, begun: u64) -> Result<(), TrimError> {
        self.note(true);
        while !self.remaining.is_done() {
            let trimmed = self.throttle.freed_bytes();
            let left = self
                .remaining
                .expected(trimmed, self.progress.looked.now_bytes);
            let advice = self
                .throttle
                .grant(left, &mut relay(listener, self.progress))?;
            let began = Instant::now();
            let mut limit = Limit {
                bytes: advice.allow,
                seconds: if advice.allow == u64::MAX {
                    f64::INFINITY
                } else {
                    self.busy_limit
                },
            };
            let mut first = true;
            let least_s = limit.seconds / 2.0;
            // What is left of a grant isn't worth a window that would cut an extent or a group.
            while !self.remaining.is_done()
                && limit.bytes > advice.allow / 2
                && limit.seconds >= least_s
                && (first || began.elapsed() < LONGEST_GRANT)
            {
                let used = self.window(limit, listener)?;
                limit.bytes = limit.bytes.saturating_sub(used.bytes);
                limit.seconds -= used.seconds;
                let bytes = self.remaining.looked();
                self.progress.looked = Looked {
                    bytes,
                    now_bytes: bytes.saturating_sub(begun),
                    ..self.progress.looked
                };
                first = false;
            }
            self.note(false);
        }
        Ok(())
    }

    /// Trims one window. Returns what it used of what is allowed.
    fn window(&mut self, limit: Limit, listener: &mut Listener<'_>) -> Result<Limit, TrimError> {
        let (window, start) = self.remaining.next(limit);
        let slept = linux::clock::suspended();
        let away_s = self.throttle.away_s();
        let mut looking = relay(listener, self.progress);
        let range = self.range(&window, start);
        let counted = pieces::window_of(
            &self.directory,
            &mut self.throttle,
            &mut self.tally,
            &window,
            range,
            &mut looking,
        )?;
        let count = match counted {
            Ok(count) => count,
            // Its end is known only roughly; before it something was trimmed, now or when
            // this was interrupted.
            Err(error) if is_end(&error) && self.remaining.looked() > 0 => {
                self.remaining.end();
                return Ok(Limit {
                    bytes: 0,
                    seconds: 0.0,
                });
            }
            Err(error) => return Err(self.failed(error)),
        };
        let cut_short = linux::clock::suspended().saturating_sub(slept) > SLEPT;
        self.progress.freed_bytes += count.came.bytes;
        self.progress.looked.windows += 1;
        let ended = match cut_short {
            true => Ended::CutShort,
            false if self.throttle.away_s() > away_s => Ended::Unmeasured,
            false => Ended::Whole,
        };
        self.remaining
            .landed(&count.window, ended, count.came, limit);
        Ok(Limit {
            bytes: count.trimmed,
            seconds: count.came.busy,
        })
    }

    /// Returns the range that the call for a window names.
    fn range(&self, window: &Window, start: u64) -> Range {
        Range {
            start,
            length: match window.length {
                u64::MAX => u64::MAX,
                length => window.start + length - start,
            },
            minimum: self.minimum,
        }
    }

    /// Notes how far it came, if it is time or `now`.
    fn note(&mut self, now: bool) {
        let trimmed = self.before + self.progress.freed_bytes;
        self.notebook.note(now, self.remaining.position(), trimmed);
    }

    fn failed(&self, error: io::Error) -> TrimError {
        survey::explained(&self.path, error)
    }
}

fn is_end(error: &io::Error) -> bool {
    !is_unsupported(error) && error.kind() == io::ErrorKind::InvalidInput
}

/// How long one window may keep the device busy, in seconds.
fn busy_limit(policy: &Policy) -> f64 {
    match policy {
        Policy::Adaptive(goal) if goal.slowdown < 1.0 => {
            (BUSY_SHARE * goal.slowdown).clamp(LEAST_BUSY, BUSY)
        }
        _ => f64::INFINITY,
    }
}

/// Passes on the events of a throttle, with how far the trim is.
fn relay(listener: &mut Listener<'_>, base: Progress) -> impl FnMut(Event<'_>) -> Reply {
    move |event| match event {
        Event::Progress(progress) => listener(Event::Progress(Progress {
            debt_bytes: progress.debt_bytes,
            added_latency: progress.added_latency,
            ..base
        })),
        event => listener(event),
    }
}
