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
mod last;
mod notebook;
mod pieces;
mod remaining;
mod state;
mod survey;
mod tally;
mod windows;

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use linux::trim::{Range, is_unsupported};
use record::units::names;

pub(crate) use last::is_met;
pub use last::{LastTrim, last_trims};
pub(crate) use pieces::{Pieces, refused};
pub use storage::trimmable::{FSTAB, MOUNTED, SelectError, Selected, select};
pub(crate) use survey::is_over_file;
pub use survey::{Part, Survey, state_directory};
pub(crate) use tally::Lateness;

use crate::error::ReclaimError;
use crate::event::{Event, Listener, Looked, Progress, Reply, note_all};
use crate::throttle::{LONGEST_GRANT, Pacing, Summary};
use notebook::Notebook;
use pieces::Trimmer;
use remaining::{Ended, Remaining};
use windows::{Limit, Window};

/// Trims one file system.
#[derive(Debug)]
pub struct Trim {
    path: PathBuf,
    minimum: u64,
    trimmer: Trimmer,
    remaining: Remaining,
    notebook: Notebook,
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
    /// - [`TrimError::Reclaim`] if a card says that the goal can't be met, or the note of an interrupted
    ///   trim can't be read.
    pub fn new(
        survey: Survey,
        pacing: &Pacing,
        resume: bool,
        listener: &mut Listener<'_>,
    ) -> Result<Trim, TrimError> {
        survey.probe()?;
        note_all(listener, survey.notes());
        let opened = Notebook::open(survey.cursor(), resume, listener)?;
        let Some((notebook, state)) = opened else {
            return Err(TrimError::Busy { path: survey.path });
        };
        let trimmer = Trimmer::start(&survey, &survey.work(pacing.goal()), pacing, listener)?;
        let remaining = Remaining::of(&survey, state.as_ref().map(|state| state.position));
        if remaining.looked() > 0 {
            let from = record::units::bytes(remaining.looked());
            listener(Event::Note(&format_args!("goes on after {from}")));
        }
        Ok(Trim {
            trimmer,
            notebook,
            before: state.map_or(0, |state| state.trimmed_bytes),
            progress: Progress {
                total_bytes: remaining.all(),
                ..Progress::default()
            },
            remaining,
            minimum: survey.asked.minimum,
            path: survey.path,
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
        let noted = self.notebook.is_noted();
        let summary = match stopped.is_some() || interrupted {
            true => self.trimmer.throttle.end(),
            false => {
                let looking = &mut relay(listener, self.progress);
                self.trimmer.throttle.finish(looking)?
            }
        };
        let bytes = self.before + self.progress.freed_bytes;
        if done && let Err(error) = self.notebook.keep(bytes, &summary) {
            let error = crate::error::words(&error);
            listener(Event::Note(&format_args!(
                "that it was trimmed can't be kept for alerts: {error}"
            )));
        }
        Ok(Trimmed {
            bytes,
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
            let trimmed = self.trimmer.throttle.freed_bytes();
            let left = self
                .remaining
                .expected(trimmed, self.progress.looked.now_bytes);
            let advice = self
                .trimmer
                .throttle
                .grant(left, &mut relay(listener, self.progress))?;
            let began = Instant::now();
            let mut limit = Limit {
                bytes: advice.allow,
                seconds: if advice.allow == u64::MAX {
                    f64::INFINITY
                } else {
                    self.trimmer.busy_limit
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
        let away_s = self.trimmer.throttle.away_s();
        let range = self.range(&window, start);
        let mut listener = relay(listener, self.progress);
        let counted = self.trimmer.window(&window, range, &mut listener)?;
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
        self.progress.freed_bytes += count.came.bytes;
        self.progress.looked.windows += 1;
        let ended = match count.cut_short {
            true => Ended::CutShort,
            false if self.trimmer.throttle.away_s() > away_s => Ended::Unmeasured,
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

// The progress, the result and the errors of a trim.

/// Why a file system isn't trimmed, or not to its end.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TrimError {
    #[error("{path}: not a directory", path = names::shown(path))]
    NotADirectory { path: PathBuf },
    /// Nothing can be trimmed there, which is no fault.
    #[error("{path}: the discard operation is not supported{why}", path = names::shown(path))]
    Unsupported { path: PathBuf, why: String },
    #[error("{path}: trimming takes CAP_SYS_ADMIN; run as root", path = names::shown(path))]
    NotPermitted { path: PathBuf },
    #[error("{path}: it is read-only; remount it for writing", path = names::shown(path))]
    ReadOnly { path: PathBuf },
    /// Another process trims it. Two of them would overwrite each other's notes.
    #[error("{path}: it is being trimmed already; wait until that is done, or stop it", path = names::shown(path))]
    Busy { path: PathBuf },
    #[error(transparent)]
    Reclaim(#[from] ReclaimError),
}

/// The result of a trim.
#[derive(Debug)]
pub struct Trimmed {
    /// Bytes of free space that were trimmed, those of the interrupted run included.
    pub bytes: u64,
    /// The last progress.
    pub progress: Progress,
    /// The throttle's summary.
    pub summary: Summary,
    /// The position in bytes where it was interrupted; `None` if it was not.
    pub stopped: Option<u64>,
    /// Whether that position is noted, so that the trim can be resumed.
    pub noted: bool,
    /// The reason why the note stays although the trim is done.
    pub kept: Option<ReclaimError>,
}
