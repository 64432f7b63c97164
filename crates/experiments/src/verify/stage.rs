//! All workers at once, for a while.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linux::trim::{Range, fitrim, is_unsupported};

use crate::verify::discards::{Freed, How};
use crate::verify::place::Place;
use crate::verify::shared::Shared;
use crate::verify::slot::Slot;
use crate::verify::worker::Worker;

/// Between two trims of the whole file system.
const BETWEEN_TRIMS: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);

/// The workers' task in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Write all slots once.
    Fill,
    /// Anything, until the time is over.
    Churn,
    /// Read all slots.
    Read,
}

/// How far a test is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The present work, to be read after "verify:".
    pub doing: &'static str,
    /// Until the last reading begins; `None`: not known, or it has begun.
    pub left: Option<Duration>,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes read and compared.
    pub read_bytes: u64,
    /// Damaged places found.
    pub findings: u64,
}

impl Work {
    fn words(self) -> &'static str {
        match self {
            Work::Fill => "writing all of it",
            Work::Churn => "writing, freeing and reading",
            Work::Read => "reading all of it",
        }
    }
}

/// Has all workers work, each on slots of its own, until they are done or the time is over.
pub(crate) fn run(
    shared: &Shared<'_>,
    slots: &mut [Slot],
    work: Work,
    until: Option<Instant>,
    tick: &mut dyn FnMut(&Progress),
) {
    shared.pause.store(false, Ordering::Relaxed);
    let each = slots.len().div_ceil(shared.plan.workers.max(1) as usize);
    let running = AtomicUsize::new(slots.len().div_ceil(each));
    thread::scope(|scope| {
        for slots in slots.chunks_mut(each) {
            let running = &running;
            let seed = shared.volume ^ u64::from(slots[0].number) ^ shared.now_s().to_bits();
            scope.spawn(move || {
                let _ends = Ends(running);
                let mut worker = Worker::new(shared, slots, seed);
                match work {
                    Work::Fill => worker.fill(),
                    Work::Churn => worker.churn(),
                    Work::Read => worker.read_all(),
                }
            });
        }
        while running.load(Ordering::Relaxed) > 0 {
            if until.is_some_and(|until| Instant::now() >= until) {
                shared.pause.store(true, Ordering::Relaxed);
            }
            tick(&progress(shared, work.words(), left(shared, work)));
            thread::sleep(TICK);
        }
    });
    shared.pause.store(false, Ordering::Relaxed);
}

/// Counts a worker off however it ends.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn progress(shared: &Shared<'_>, doing: &'static str, left: Option<Duration>) -> Progress {
    let (operations, findings) = shared.count(|c| (c.operations, c.finding_count));
    Progress {
        doing,
        left,
        written_bytes: operations.written_bytes,
        read_bytes: operations.read_bytes,
        findings,
    }
}

/// The time until the last reading begins.
fn left(shared: &Shared<'_>, work: Work) -> Option<Duration> {
    match work {
        Work::Fill => {
            let written = shared.count(|counts| counts.operations.written_bytes);
            let per_byte = shared.now_s() / written as f64;
            let rest = shared.surveyed.size_bytes.saturating_sub(written) as f64;
            // Without a byte written, nothing is known.
            let rest = Duration::try_from_secs_f64(rest * per_byte).ok()?;
            Some(rest + shared.plan.duration)
        }
        Work::Churn => {
            let end = *shared.churn_ends.get()?;
            Some(end.saturating_duration_since(Instant::now()))
        }
        Work::Read => None,
    }
}

/// Trims the whole file system once. Returns whether it can be trimmed at all.
pub(crate) fn trim_once(shared: &Shared<'_>) -> bool {
    let Place::Directory { home, .. } = shared.place else {
        return false;
    };
    let Ok(directory): Result<File, _> = home.directory() else {
        return false;
    };
    let began_s = shared.now_s();
    let all = Range {
        start: 0,
        length: u64::MAX,
        minimum: 0,
    };
    match fitrim(&directory, all) {
        Ok(_) => {
            shared.discards.add(Freed {
                range: 0..u64::MAX,
                began_s,
                how: How::Fstrim,
            });
            shared.succeeded(|operations| operations.fstrims += 1);
            true
        }
        Err(error) => {
            let why = match is_unsupported(&error) {
                true => "the file system or its device can't be trimmed".to_owned(),
                false => format!("the file system was not trimmed: {error}"),
            };
            shared.note(why);
            false
        }
    }
}

/// Trims the whole file system again and again until `shared` says that it is over.
pub(crate) fn trim_loop(shared: &Shared<'_>, over: &dyn Fn() -> bool) {
    while !over() && trim_once(shared) {
        let next = Instant::now() + BETWEEN_TRIMS;
        while Instant::now() < next && !over() {
            thread::sleep(TICK);
        }
    }
}
