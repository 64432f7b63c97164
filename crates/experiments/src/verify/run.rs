//! A whole test: fill, churn in rounds, read all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use storage::FileSystem;

use crate::verify::block::BLOCK;
use crate::verify::cause::CauseCount;
use crate::verify::check::read_past_cache;
use crate::verify::finding::Finding;
use crate::verify::joined::joined;
use crate::verify::pattern::Pattern;
use crate::verify::place::{Place, Surveyed, survey};
use crate::verify::report::{Report, SCHEMA};
use crate::verify::shared::{Counts, Shared};
use crate::verify::slot::{Content, Slot};
use crate::verify::stage::{self, Progress, Work};
use crate::verify::{Plan, VerifyError};
use linux::files::Aligned;

/// Between two moments at which everything is forced to the medium.
const ROUND: Duration = Duration::from_secs(5);

/// So many damaged places are described; the rest is counted.
const DESCRIBED: usize = 1000;

/// Called at least ten times a second while a test runs.
pub type Tick<'a> = &'a mut dyn FnMut(&Progress);

/// Writes self-describing data, discards beside them, and reads them back. Stops soon after `stop`
/// is true. Removes what it made.
///
/// # Errors
/// When the place can't be used, or the test's own files can't be made. Errors of the drive are
/// part of the report.
pub fn verify(plan: &Plan, stop: &AtomicBool, tick: Tick<'_>) -> Result<Report, VerifyError> {
    let surveyed = survey(plan)?;
    let shared = Shared::new(plan, &surveyed, stop);
    session(&shared, tick)?;
    let seconds = shared.now_s();
    let counts = shared.end();
    let mut report = Report {
        seconds,
        ..blank(plan, &surveyed)
    };
    report.notes = surveyed.notes;
    report.add(counts, stop.load(Ordering::Relaxed));
    // A directory that can't be removed must not cost the result.
    if let Place::Directory { home, .. } = surveyed.place {
        report.notes.extend(home.remove().err());
    }
    Ok(report)
}

/// Everything between opening the files and the end.
///
/// # Errors
/// When the files can't be opened.
fn session(shared: &Shared<'_>, tick: Tick<'_>) -> Result<(), VerifyError> {
    let (count, blocks) = shared.surveyed.slots(shared.plan.workers);
    let slots = (1..=count).map(|number| shared.place.slot(number, blocks));
    let mut slots = slots.collect::<Result<Vec<_>, _>>()?;
    stage::run(shared, &mut slots, Work::Fill, None, tick);
    churn(shared, &mut slots, tick);
    if !shared.is_over() {
        stage::run(shared, &mut slots, Work::Read, None, tick);
    }
    look_for_drive(shared, &slots);
    Ok(())
}

/// So many files or regions are tried to find out whether the drive is gone.
const TRIED: usize = 8;

/// Once the test can't go on, finds out whether the drive can be read at all.
fn look_for_drive(shared: &Shared<'_>, slots: &[Slot]) {
    if !shared.is_fatal() {
        return;
    }
    let mut buffer = Aligned::new(BLOCK);
    let mut readable = |slot: &Slot, block| {
        let at = slot.base + Slot::offset(block);
        read_past_cache(&slot.file, buffer.get(BLOCK), at).is_ok()
    };
    let tried = slots.iter().filter_map(|slot| {
        // What was never written, or failed to be, may be read without the drive.
        let mut blocks = 0..slot.length;
        let written = |at: &usize| matches!(slot.content(*at), Content::Data(_));
        Some((slot, blocks.find(written)?))
    });
    let tried: Vec<_> = tried.take(TRIED).collect();
    let gone = !tried.is_empty() && !tried.iter().any(|(slot, block)| readable(slot, *block));
    shared.count(|counts| counts.gone = gone);
}

/// Writes, frees and reads in rounds, and forces all of it to the medium after each.
fn churn(shared: &Shared<'_>, slots: &mut [Slot], tick: Tick<'_>) {
    let end = Instant::now() + shared.plan.duration;
    let _ = shared.churn_ends.set(end);
    sync(shared, slots);
    while !shared.is_over() && Instant::now() < end {
        let end = end.min(Instant::now() + ROUND);
        let over = AtomicBool::new(false);
        let over = &over;
        thread::scope(|scope| {
            let trimmer = shared.plan.fstrim.then(|| {
                scope.spawn(move || {
                    stage::trim_loop(shared, &|| over.load(Ordering::Relaxed));
                })
            });
            stage::run(shared, slots, Work::Churn, Some(end), tick);
            over.store(true, Ordering::Relaxed);
            // A trim in flight is waited for; it keeps the end of the round waiting.
            drop(trimmer.map(thread::ScopedJoinHandle::join));
        });
        sync(shared, slots);
    }
}

/// Forces all of it to the medium.
fn sync(shared: &Shared<'_>, slots: &[Slot]) {
    for slot in slots {
        if let Err(error) = slot.file.sync_all() {
            shared.failed("sync", &error);
            return;
        }
    }
    if let Place::Directory { home, .. } = shared.place
        && let Err(error) = home.sync()
    {
        shared.failed("sync", &error);
    }
}

/// The report of a test of which nothing is known yet.
fn blank(plan: &Plan, surveyed: &Surveyed) -> Report {
    let (files, _) = surveyed.slots(plan.workers);
    Report {
        schema: SCHEMA,
        origin: storage::origin([&surveyed.path]),
        path: record::units::names::shown(&surveyed.path),
        fs: surveyed.fs.clone(),
        device: surveyed.device.as_ref().map(record::units::names::shown),
        checksum: "crc32c",
        size_bytes: surveyed.size_bytes,
        files,
        workers: plan.workers,
        direct: surveyed.place.is_direct(),
        ..Report::default()
    }
}

impl Report {
    /// Adds all that was found.
    fn add(&mut self, mut counts: Counts, stopped: bool) {
        self.outcome = counts.outcome(stopped);
        let unreadable = |finding: &Finding| finding.pattern == Pattern::Unreadable;
        let btrfs = self.fs.as_deref().map(FileSystem::of) == Some(FileSystem::Btrfs);
        if btrfs && counts.findings.iter().any(unreadable) {
            counts.notes.push(
                "btrfs reports an input/output error, too, where data do not match their checksum: \
                 the kernel's log shows which it was (dmesg)"
                    .to_owned(),
            );
        }
        self.operations = counts.operations;
        self.failures = counts.failures();
        let found = counts.findings.len();
        self.findings = joined(counts.findings);
        self.finding_count = counts.finding_count - (found - self.findings.len()) as u64;
        self.causes = CauseCount::of(&self.findings);
        self.findings.truncate(DESCRIBED);
        self.ended_by = counts.fatal;
        self.notes.append(&mut counts.notes);
    }
}
