//! How far a deletion is: atomics, so that asking never waits for it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use record::units::names;

use super::victim::Victim;
use super::{CommandOutcome, DeletionOutcome, DeletionProgress};
use crate::clock::{Clock, Nanos};
use crate::workers::Workers;

/// Shared by the deleter's threads and whoever watches them. Times are 0 until they come.
#[derive(Debug)]
pub(super) struct Progress {
    clock: Clock,
    began_at: AtomicU64,
    /// When the latest call so far returned.
    call_returned_at: AtomicU64,
    /// When the last one did; set once all is done.
    returned_at: AtomicU64,
    total_bytes: u64,
    freed_bytes: AtomicU64,
    written_bytes: AtomicU64,
    files_total: u64,
    files_done: AtomicU64,
    errors: AtomicU64,
    /// For each thread, when the call it is in began.
    calls: Box<[AtomicU64]>,
    stop: AtomicBool,
    over: AtomicBool,
    workers: Workers,
    story: Mutex<Story>,
    changed: Condvar,
}

/// The facts that are read only at the end.
#[derive(Debug, Default)]
struct Story {
    threads_started: usize,
    threads_running: usize,
    first_error: Option<String>,
    command: Option<CommandOutcome>,
}

impl Progress {
    pub(super) fn new(clock: Clock, threads: usize, total_bytes: u64, files: u64) -> Arc<Progress> {
        Arc::new(Progress {
            clock,
            began_at: AtomicU64::new(0),
            call_returned_at: AtomicU64::new(0),
            returned_at: AtomicU64::new(0),
            total_bytes,
            freed_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            files_total: files,
            files_done: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            calls: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            stop: AtomicBool::new(false),
            over: AtomicBool::new(false),
            workers: Workers::default(),
            story: Mutex::new(Story::default()),
            changed: Condvar::new(),
        })
    }

    /// That of a deletion of these files.
    pub(super) fn of(clock: Clock, threads: usize, victims: &[Victim]) -> Arc<Progress> {
        let total_bytes = victims.iter().map(|victim| victim.bytes).sum();
        Progress::new(clock, threads, total_bytes, victims.len() as u64)
    }

    fn story(&self) -> std::sync::MutexGuard<'_, Story> {
        self.story.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read(&self) -> DeletionProgress {
        let at = |word: &AtomicU64| match word.load(Ordering::Acquire) {
            0 => None,
            ns => Some(Nanos(ns)),
        };
        DeletionProgress {
            // First: whoever sees the return also sees all that was freed.
            returned_at: at(&self.returned_at),
            began_at: at(&self.began_at),
            total_bytes: self.total_bytes,
            freed_bytes: self.freed_bytes.load(Ordering::Relaxed),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            files_total: self.files_total,
            files_done: self.files_done.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            in_call_since: self.calls.iter().filter_map(at).min(),
        }
    }

    /// How many threads may be in a call at once.
    pub(super) fn slots(&self) -> usize {
        self.calls.len()
    }

    /// The threads and programs that delete.
    pub(super) fn workers(&self) -> &Workers {
        &self.workers
    }

    pub(super) fn is_done(&self) -> bool {
        self.returned_at.load(Ordering::Acquire) != 0
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(super) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// The work is done; only watching remains.
    pub(super) fn mark_over(&self) {
        self.over.store(true, Ordering::Release);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Sleeps, unless it is asked to stop.
    pub(super) fn pause(&self, length: Duration) {
        let until = Instant::now() + length;
        while !self.stopping() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    /// Waits at most so long for the end; whether it came.
    pub(super) fn wait(&self, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        let mut story = self.story();
        while !self.is_done() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            story = self
                .changed
                .wait_timeout(story, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }

    pub(super) fn outcome(&self, abandoned: bool) -> DeletionOutcome {
        let story = self.story();
        DeletionOutcome {
            progress: self.read(),
            first_error: story.first_error.clone(),
            command: story.command.clone(),
            abandoned,
        }
    }

    /// Something will be freed by the call that begins now.
    pub(super) fn add_freed(&self, bytes: u64) {
        self.freed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_freed(&self, bytes: u64) {
        self.freed_bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(super) fn add_written(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn file_done(&self) {
        self.files_done.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_files_done(&self, files: u64) {
        self.files_done.fetch_max(files, Ordering::Relaxed);
    }

    pub(super) fn fail(&self, path: &Path, what: &str, error: &dyn std::fmt::Display) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.story()
            .first_error
            .get_or_insert_with(|| format!("{}: can't {what}: {error}", names::shown(path)));
    }

    pub(super) fn set_command(&self, outcome: CommandOutcome) {
        self.story().command = Some(outcome);
    }

    /// Where a thread marks its calls.
    pub(super) fn call(&self, slot: usize) -> Call<'_> {
        Call {
            progress: self,
            slot,
        }
    }

    /// Keeps the deletion from ending while its threads are being started.
    pub(super) fn hold(self: &Arc<Self>) -> Running {
        self.story().threads_running += 1;
        Running {
            progress: self.clone(),
            slot: usize::MAX,
        }
    }

    /// A thread of the deleter begins; the last one to end ends the deletion.
    pub(super) fn enter(self: &Arc<Self>) -> Running {
        let mut story = self.story();
        let slot = story.threads_started;
        story.threads_started += 1;
        story.threads_running += 1;
        Running {
            progress: self.clone(),
            slot,
        }
    }
}

/// Marks the calls of one thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    progress: &'a Progress,
    /// The number of the thread, from 0.
    pub(super) slot: usize,
}

impl Call<'_> {
    /// Unlinks a file, which frees so many bytes, and counts it or the failure.
    pub(super) fn unlink(&self, path: &Path, bytes: u64) {
        match self.make(bytes, || std::fs::remove_file(path)) {
            Ok(()) => self.progress.file_done(),
            Err(error) => self.progress.fail(path, "unlink it", &error),
        }
    }

    /// Makes a call that frees so many bytes, counted as it begins.
    pub(super) fn make<T>(&self, bytes: u64, call: impl FnOnce() -> T) -> T {
        let progress = self.progress;
        let now = progress.clock.now().0;
        let mark = &progress.calls[self.slot];
        mark.store(now, Ordering::Release);
        // Only the first call finds 0 there.
        let _ = progress
            .began_at
            .compare_exchange(0, now, Ordering::AcqRel, Ordering::Relaxed);
        progress.add_freed(bytes);
        let result = call();
        let now = progress.clock.now().0;
        progress.call_returned_at.fetch_max(now, Ordering::AcqRel);
        mark.store(0, Ordering::Release);
        result
    }
}

/// Held by a running thread.
pub(super) struct Running {
    progress: Arc<Progress>,
    slot: usize,
}

impl Running {
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    pub(super) fn slot(&self) -> usize {
        self.slot
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut story = self.progress.story();
        story.threads_running -= 1;
        if story.threads_running == 0 {
            let at = match self.progress.call_returned_at.load(Ordering::Acquire) {
                0 => self.progress.clock.now().0,
                at => at,
            };
            self.progress.returned_at.store(at, Ordering::Release);
            self.progress.changed.notify_all();
        }
    }
}
