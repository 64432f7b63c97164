//! Tells a device of what is free on a mounted file system, in windows as a pacer
//! allows.
//!
//! One call over all, as fstrim(8) makes it, can't be paced, watched or stopped.
//! A window is one piece of the pacer's: what it came to is known when the call
//! returns, from the devices' statistics, for XFS says how long the window was.
//! What a window will hold is told beforehand by ext4 and XFS; elsewhere windows
//! learn from one another. Of what XFS told beforehand the devices may see nothing, as
//! below a thin volume: that is trimmed all the same, and no discard is waited for.
//!
//! | file system | windows |
//! |---|---|
//! | ext2, ext3, ext4 | whole block groups, which it remembers as trimmed; parts of one that is so fragmented that it would hurt |
//! | XFS | free extents, and parts of one, within allocation groups |
//! | btrfs | whole chunks of its logical address space, for a chunk that a range doesn't begin with is passed over; what belongs to no chunk goes in one call, before the others |
//! | FAT, exFAT, NTFS, f2fs without `discard` | anywhere |
//! | f2fs with `discard`, which only queues what it is to trim; others | one call |
//!
//! ext4 knows of one `minimum` for all its groups, that of the last call: a group that
//! was trimmed with a larger one counts as trimmed from our second window on.

mod cost;
mod forecast;
mod identity;
mod late;
mod outcome;
mod state;
mod survey;
mod windows;

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use linux::trim::{Range, fitrim, is_unsupported};
use pace::Policy;
use ssd::Card;
use storage::layout::Layout;

pub use outcome::{TrimError, TrimProgress, Trimmed};
pub use state::StateError;
pub use storage::trimmable::{FSTAB, MOUNTED, SelectError, Selected, select};
pub use survey::{Asked, Survey, state_directory};

use crate::error::ReclaimError;
use crate::throttle::{Purpose, Setup, Throttle, ThrottleOptions, nameless};
use crate::watch::{Progress, Watch};
use forecast::KernelForecast;
use late::Lateness;
use state::{Cursor, Left, Turn};
use windows::{Limit, Window, WindowResult, Windows};

/// After so long the pacer is asked again, however much it allowed.
const LONGEST_GRANT: Duration = Duration::from_millis(100);

/// How often it is noted how far it came: often at first, then ever less.
const FIRST_NOTE: Duration = Duration::from_millis(200);
const NOTE_EVERY: Duration = Duration::from_secs(5);

/// One window may keep the device busy for so long, and for no more than this
/// share of what a goal allows for each second.
const BUSY: f64 = 0.020;
const BUSY_SHARE: f64 = 0.2;
const LEAST_BUSY: f64 = 0.002;

/// Up to where it goes on, what is told of block groups is read in slices of this.
const SLICE: Duration = Duration::from_millis(50);

/// A call in which the machine slept for so long was cut short: ext4 and XFS return early,
/// and without an error, when it is to be suspended (Linux 6.12 `ext4_trim_interrupted`,
/// `xfs_trim_should_stop`). So they do for a freeze without sleep, which doesn't show.
const SLEPT: Duration = Duration::from_millis(10);

/// The kernel counts a discard a moment after it tells whoever waits for it.
const COUNTED: Duration = Duration::from_millis(1);

/// Called at least ten times a second; `Break` stops it.
pub type Tick<'a> = dyn FnMut(&TrimProgress) -> ControlFlow<()> + 'a;

/// Trims one file system.
#[derive(Debug)]
pub struct Trim {
    path: PathBuf,
    directory: Arc<File>,
    throttle: Throttle,
    windows: Windows,
    ahead: KernelForecast,
    minimum: u64,
    /// Whether the file system says how much it trimmed.
    exact: bool,
    /// Whether the devices' statistics count.
    counted: bool,
    /// On a file of another file system, which discards what becomes a hole in it when
    /// it next commits: this file of ours makes it do so.
    below: Option<Arc<File>>,
    /// PacedReclaimers name of the device that it lies on.
    device: Option<String>,
    late: Lateness,
    /// Bytes that can be free.
    free: u64,
    busy_limit: f64,
    cursor: Option<Cursor>,
    /// Held to the end.
    _turn: Option<Turn>,
    /// Whether the last note is written, and when that was tried.
    noted: bool,
    looked: Instant,
    note_every: Duration,
    before: u64,
    started_at: u64,
    progress: TrimProgress,
    /// What belongs to no chunk of a btrfs is still to be trimmed.
    unallocated: bool,
    /// A window that was cut short.
    again: Option<Window>,
    notes: Vec<String>,
}

impl Trim {
    /// What was surveyed; with `resume` from where it was interrupted.
    ///
    /// # Errors
    /// [`TrimError::Unsupported`] where nothing can be trimmed; if the goal can't be met by
    /// what a card says, what was noted of an interrupted one can't be read, or somebody
    /// else trims it now.
    pub fn new(
        survey: Survey,
        policy: Policy,
        card: Option<&Card>,
        options: &ThrottleOptions,
        resume: bool,
    ) -> Result<Trim, TrimError> {
        survey.probe()?;
        let mut notes = survey.notes();
        let mut cursor = survey.cursor();
        let mut turn = None;
        match cursor.as_ref().map(Cursor::turn) {
            None => notes.push(
                "what this file system is known by can't be told: an interrupted trim begins anew"
                    .to_owned(),
            ),
            Some(Ok(None)) => return Err(TrimError::Busy { path: survey.path }),
            Some(Ok(held)) => turn = held,
            Some(Err(error)) => {
                notes.push(format!(
                    "how far it comes can't be kept ({error}): an interrupted trim begins anew"
                ));
                cursor = None;
            }
        }
        let state = match (&cursor, resume) {
            (Some(cursor), true) => match cursor.read()? {
                Left::Here(state) => Some(state),
                Left::Nothing => None,
                Left::Outdated(why) => {
                    notes.push(format!("{why}: it begins anew"));
                    None
                }
            },
            _ => None,
        };
        let mut windows = survey.windows();
        let started_at = windows.left();
        if let Some(state) = &state {
            windows.seek(state.position);
        }
        let work = survey.work(&policy);
        let (throttle, more) = Throttle::start(&Setup {
            on: survey.directory.as_fd(),
            stack: &survey.stack,
            purpose: Purpose::Trim,
            work: &work,
            policy,
            card,
            options,
        })?;
        notes.extend(more);
        let ahead = KernelForecast::at(&survey.fs.layout, &survey.directory, survey.device());
        let below = match survey.is_over_file() {
            true => nameless(survey.directory.as_fd()).ok().map(Arc::new),
            false => None,
        };
        // It comes before the others: one that has trimmed nothing of them may not have
        // come to its end.
        let unallocated =
            matches!(survey.fs.layout, Layout::Chunks(_)) && windows.left() == started_at;
        Ok(Trim {
            throttle,
            windows,
            ahead,
            minimum: survey.asked.minimum,
            exact: survey.is_exact(),
            counted: survey.is_counted(),
            below,
            device: survey.device().map(str::to_owned),
            late: Lateness::default(),
            free: survey.free,
            busy_limit: busy_limit(&policy),
            before: state.map_or(0, |state| state.trimmed_bytes),
            started_at,
            cursor,
            _turn: turn,
            noted: false,
            looked: Instant::now(),
            note_every: FIRST_NOTE,
            progress: TrimProgress {
                total_bytes: started_at,
                ..TrimProgress::default()
            },
            unallocated,
            again: None,
            path: survey.path,
            directory: Arc::new(survey.directory),
            notes,
        })
    }

    /// What deserves saying, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Where it goes on, in bytes of those to be looked at; 0 from the beginning.
    pub fn goes_on_from(&self) -> u64 {
        self.started_at.saturating_sub(self.windows.left())
    }

    /// Trims. Interrupted, it says how far it came.
    ///
    /// # Errors
    /// What the kernel said; how far it came is noted.
    pub fn run(mut self, tick: &mut Tick<'_>) -> Result<Trimmed, TrimError> {
        let begun = self.windows.left();
        let outcome = self.all(tick, begun);
        let interrupted = matches!(outcome, Err(TrimError::Reclaim(ReclaimError::Interrupted)));
        let done = self.is_done();
        let mut kept = None;
        if done {
            kept = self
                .cursor
                .as_ref()
                .and_then(|cursor| cursor.remove().err());
        } else if self.progress.windows > 0 {
            self.note(true);
        }
        let stopped = match outcome {
            Ok(()) => None,
            Err(_) if interrupted && !done => Some(self.windows.position()),
            Err(_) if interrupted => None,
            Err(error) => return Err(error),
        };
        let mut looking = Looking {
            tick,
            base: self.progress,
        };
        let noted = self.cursor.is_some() && self.noted;
        let summary = match stopped.is_some() || interrupted {
            true => self.throttle.end(),
            false => self.throttle.finish(&mut looking)?,
        };
        Ok(Trimmed {
            bytes: self.before + self.progress.trimmed_bytes,
            progress: self.progress,
            summary,
            stopped,
            noted,
            kept,
        })
    }

    fn all(&mut self, tick: &mut Tick<'_>, begun: u64) -> Result<(), TrimError> {
        self.note(true);
        self.read_on(tick)?;
        while !self.is_done() {
            let left = self.expected();
            let mut looking = Looking {
                tick,
                base: self.progress,
            };
            let advice = self.throttle.grant(left, &mut looking)?;
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
            // What is left of a grant isn't worth a window that would cut an extent.
            while !self.is_done()
                && limit.bytes > advice.allow / 2
                && limit.seconds > 0.0
                && (first || began.elapsed() < LONGEST_GRANT)
            {
                let used = self.window(limit, tick)?;
                limit.bytes = limit.bytes.saturating_sub(used.bytes);
                limit.seconds -= used.seconds;
                self.progress.looked_bytes = self.started_at.saturating_sub(self.windows.left());
                self.progress.looked_now_bytes = begun.saturating_sub(self.windows.left());
                first = false;
            }
            self.note(false);
        }
        Ok(())
    }

    /// Reads what is told of block groups up to the first that is to be trimmed: of a large
    /// file system that takes long.
    fn read_on(&mut self, tick: &mut Tick<'_>) -> Result<(), TrimError> {
        let Some(group) = self.windows.number().filter(|_| !self.is_done()) else {
            return Ok(());
        };
        let mut looking = Looking {
            tick,
            base: self.progress,
        };
        while !self.ahead.skip_to(group, SLICE) {
            self.throttle.report(&mut looking, true)?;
        }
        Ok(())
    }

    /// Nothing is left. What belongs to no chunk is trimmed even where no chunk is asked
    /// for: those that a deletion emptied are gone, and what they held belongs to it.
    fn is_done(&self) -> bool {
        !self.unallocated && self.windows.is_done()
    }

    /// Bytes that will still be trimmed, as far as what was trimmed goes.
    fn expected(&self) -> u64 {
        let left = self.windows.left() as f64;
        let all = self.progress.total_bytes.max(1) as f64;
        let usual = self.free as f64 / all;
        let looked = self.progress.looked_now_bytes as f64;
        // What is free is believed as if a tenth of it had been seen.
        let weight = all / 10.0;
        let trimmed = self.throttle.freed_bytes() as f64;
        let density = (trimmed + usual * weight) / (looked + weight);
        ((left * density.min(1.0)) as u64).max(1)
    }

    /// One window. What it used of what is allowed.
    fn window(&mut self, limit: Limit, tick: &mut Tick<'_>) -> Result<Limit, TrimError> {
        let mut window = match (self.unallocated, self.again.take()) {
            (true, _) => NO_CHUNK,
            (false, Some(window)) => window,
            (false, None) => self.windows.next(limit, &mut self.ahead),
        };
        let before = self.throttle.discards();
        let told = Arc::new(AtomicU64::new(0));
        let job = {
            let (told, directory) = (Arc::clone(&told), Arc::clone(&self.directory));
            let start = self.windows.begins(&window);
            let range = Range {
                start,
                length: match window.length {
                    u64::MAX => u64::MAX,
                    length => window.start + length - start,
                },
                minimum: self.minimum,
            };
            move || {
                told.store(fitrim(&directory, range)?, Ordering::Relaxed);
                Ok(())
            }
        };
        let slept = linux::clock::suspended();
        let away_s = self.throttle.away_s();
        let began = Instant::now();
        let mut looking = Looking {
            tick,
            base: self.progress,
        };
        match self.throttle.call(&mut looking, job)? {
            Ok(()) => {}
            // Its end is known only roughly; before it something was trimmed, now or when
            // this was interrupted.
            Err(error) if is_end(&error) && self.goes_on_from() > 0 => {
                self.windows.end();
                return Ok(Limit {
                    bytes: 0,
                    seconds: 0.0,
                });
            }
            Err(error) => return Err(self.failed(error)),
        }
        let cut_short = linux::clock::suspended().saturating_sub(slept) > SLEPT;
        let told = told.load(Ordering::Relaxed);
        let due = match self.exact {
            true => told,
            false => window.holds.unwrap_or(told),
        };
        if let Some(anchor) = self.below.as_ref().filter(|_| due > 0) {
            if let Some(device) = self.device.as_ref().filter(|_| !self.exact) {
                late::done_by(device, &mut self.throttle, &mut looking)?;
            }
            self.throttle.commit(anchor, &mut looking)?;
            let late = &mut self.late;
            late.wait(&mut self.throttle, due, before.bytes, &mut looking)?;
        } else if self.counted && !self.exact {
            // XFS sends them and goes on (Linux ≥ 6.6 `xfs_trim_perag_extents`).
            if !self.throttle.settle(&mut looking)? {
                // What wasn't seen may come yet.
                window.holds = None;
            }
        }
        let took = began.elapsed();
        let mut now = self.throttle.read_within(took)?;
        if self.counted && self.exact && now.bytes.saturating_sub(before.bytes) < told {
            std::thread::sleep(COUNTED);
            now = self.throttle.read_within(took)?;
        }
        let seen = now.bytes.saturating_sub(before.bytes);
        let bytes = match self.counted && !self.exact {
            true => seen.min(window.length),
            false => due,
        };
        // What was told beforehand is trimmed, whether the devices see it or not.
        let trimmed = match self.counted && !self.exact {
            true => bytes.max(window.holds.unwrap_or(0)),
            false => bytes,
        };
        // All that will come has come.
        let swallowed = match self.counted {
            true => trimmed.saturating_sub(seen),
            false => 0,
        };
        self.throttle.freed(trimmed, swallowed);
        let busy = match (self.counted, now.busy, before.busy) {
            (true, Some(now), Some(before)) => now.saturating_sub(before).min(took),
            _ if bytes > 0 => took,
            _ => Duration::ZERO,
        };
        let came = WindowResult {
            bytes,
            discards: now.commands.saturating_sub(before.commands),
            busy: busy.as_secs_f64(),
        };
        self.progress.trimmed_bytes += bytes;
        self.progress.windows += 1;
        match (self.unallocated, cut_short) {
            // It stays as it is: the same call again.
            (true, true) => {}
            (true, false) => self.unallocated = false,
            (false, true) => self.again = Some(window),
            // Nobody saw how long it took.
            (false, false) if self.throttle.away_s() > away_s => self.windows.pass(&window),
            (false, false) => self.windows.landed(&window, came, limit),
        }
        Ok(Limit {
            bytes: trimmed,
            seconds: came.busy,
        })
    }

    /// Notes how far it came, if it is time. On a disk that is full, or that others
    /// have made read-only, it trims all the same.
    fn note(&mut self, now: bool) {
        let due = self.looked.elapsed() >= self.note_every;
        if let Some(cursor) = self.cursor.as_ref().filter(|_| now || due) {
            let trimmed = self.before + self.progress.trimmed_bytes;
            self.noted = cursor.write(self.windows.position(), trimmed).is_ok();
            if !now {
                self.note_every = (self.note_every * 2).min(NOTE_EVERY);
            }
            self.looked = Instant::now();
        }
    }

    fn failed(&self, error: io::Error) -> TrimError {
        survey::explained(&self.path, error)
    }
}

/// The range for what belongs to no chunk, which goes with any: where no chunk is, unless
/// an old mkfs put one there, and the shortest that btrfs takes, a sector of its own, at
/// most a page of the largest kind.
const NO_CHUNK: Window = Window {
    start: 0,
    length: 64 << 10,
    spans: 0,
    holds: None,
};

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

/// Passes a throttle's progress on as that of the trim.
struct Looking<'a, 'b> {
    tick: &'a mut Tick<'b>,
    base: TrimProgress,
}

impl Watch for Looking<'_, '_> {
    fn tick(&mut self, progress: &Progress) -> ControlFlow<()> {
        (self.tick)(&TrimProgress {
            debt_bytes: progress.debt_bytes,
            added_latency: progress.added_latency,
            ..self.base
        })
    }
}
