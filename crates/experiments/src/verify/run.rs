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
use crate::verify::recover::recover;
use crate::verify::report::{Report, SCHEMA, Trimmed};
use crate::verify::shared::{Carried, Remover, Shared};
use crate::verify::slot::{Content, Slot};
use crate::verify::stage::{self, Progress, Work};
use crate::verify::state::{SlotState, State};
use crate::verify::{Plan, VerifyError, recover, trimmed};
use linux::files::Aligned;

/// Between two checkpoints, at which everything is forced to the medium.
const ROUND: Duration = Duration::from_secs(5);

/// So many damaged places are described; the rest is counted.
const DESCRIBED: usize = 1000;

/// Called at least ten times a second while a test runs.
pub type Tick<'a> = &'a mut dyn FnMut(&Progress);

/// Writes self-describing data, discards beside them, and reads them back. `remover` removes some
/// of the files. Stops soon after `stop` is true. Removes what it made, unless a state file is to
/// remember it.
///
/// # Errors
/// When the place can't be used, or the test's own files can't be made. Errors of the drive are
/// part of the report.
pub fn verify(
    plan: &Plan,
    stop: &AtomicBool,
    remover: Option<Remover<'_>>,
    tick: Tick<'_>,
) -> Result<Report, VerifyError> {
    let earlier = earlier(plan)?;
    let mut surveyed = survey(plan, earlier.as_ref())?;
    let resumed = earlier.is_some();
    let mut state = match earlier {
        Some(state) => state,
        None => State::new(plan, &surveyed),
    };
    let mut carried = Carried::new();
    carried.counts.notes.append(&mut surveyed.notes);
    let shared = Shared::new(plan, &surveyed, state.volume, stop, remover, carried);
    let ended = session(&shared, &mut state, resumed, tick);
    let mut carried = shared.end();
    carried.ended(ended)?;
    let finished = carried.counts.fatal.is_none() && !stop.load(Ordering::Relaxed) && !plan.check;
    let mut report = Report {
        resumed,
        ..blank(plan, &surveyed, &state)
    };
    let mut left = Some(surveyed);
    if let Some(surveyed) = left.take_if(|_| finished && plan.remount) {
        let mounted = mount_anew(plan, surveyed, &state, &mut carried);
        if let Some((surveyed, remounted)) = carried.ended(mounted)? {
            report.remounted = remounted;
            let shared = Shared::new(plan, &surveyed, state.volume, stop, None, carried);
            let checked = check_kept(&shared, &state, tick);
            carried = shared.end();
            carried.ended(checked)?;
            left = Some(surveyed);
        }
    }
    report.add(carried, stop.load(Ordering::Relaxed));
    // A directory that can't be removed must not cost the result.
    if let Some(Err(why)) = left.map(|surveyed| leave(plan, surveyed.place, finished)) {
        report.notes.push(why);
    }
    Ok(report)
}

/// The state that an earlier process left.
fn earlier(plan: &Plan) -> Result<Option<State>, VerifyError> {
    let Some(path) = &plan.state else {
        return Ok(None);
    };
    let state = State::read(path)?;
    let bad = |why: String| VerifyError::State {
        path: path.clone(),
        why,
    };
    match &state {
        None if plan.check => Err(bad(
            "it does not exist, so nothing can be checked".to_owned()
        )),
        Some(state) if state.path != plan.place.path() => Err(bad(format!(
            "it belongs to {}; name that, or another state file",
            record::units::names::shown(&state.path)
        ))),
        _ => Ok(state),
    }
}

/// Everything between opening the files and the end, or an unmount.
fn session(
    shared: &Shared<'_>,
    state: &mut State,
    resumed: bool,
    tick: Tick<'_>,
) -> Result<(), VerifyError> {
    let plan = shared.plan;
    let mut slots = match resumed {
        true => check_kept(shared, state, tick)?,
        false => {
            let (count, blocks) = shared.surveyed.slots(plan.workers);
            let slots = (1..=count).map(|number| shared.place.slot(number, blocks));
            let mut slots = slots.collect::<Result<Vec<_>, _>>()?;
            stage::run(shared, &mut slots, Work::Fill, None, tick);
            slots
        }
    };
    if plan.check {
        return Ok(());
    }
    let churned = churn(shared, &mut slots, state, tick);
    look_for_drive(shared, &slots);
    churned?;
    if !shared.is_over() {
        stage::run(shared, &mut slots, Work::Read, None, tick);
        read_trimmed(shared, &slots);
        look_for_drive(shared, &slots);
    }
    if plan.remount {
        sync(shared, &slots);
        state.slots = slots.iter().map(SlotState::of).collect();
        state.slots.iter_mut().for_each(|slot| slot.frozen = true);
    }
    Ok(())
}

/// Opens the slots of a state, and checks them against it.
fn check_kept(
    shared: &Shared<'_>,
    state: &State,
    tick: Tick<'_>,
) -> Result<Vec<Slot>, VerifyError> {
    let mut slots = Vec::new();
    for kept in &state.slots {
        let mut slot = shared.place.slot(kept.number, kept.blocks())?;
        tick(&stage::progress(
            shared,
            "checking what was forced to the medium",
            None,
        ));
        recover(shared, &mut slot, kept);
        slots.push(slot);
    }
    look_for_drive(shared, &slots);
    Ok(slots)
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

/// Writes, frees and reads in rounds, with a checkpoint before each.
fn churn(
    shared: &Shared<'_>,
    slots: &mut [Slot],
    state: &mut State,
    tick: Tick<'_>,
) -> Result<(), VerifyError> {
    let plan = shared.plan;
    let began = Instant::now();
    let before_s = state.done_s;
    let left = plan
        .duration
        .saturating_sub(Duration::from_secs_f64(before_s));
    let _ = shared.churn_ends.set(began + left);
    if let (Some(_), Place::Directory { home, .. }) = (&plan.state, shared.place) {
        home.keep()?;
    }
    let mut rounds = 0;
    while !shared.is_over() && began.elapsed() < left {
        checkpoint(shared, slots, state, rounds)?;
        let end = began + left.min(began.elapsed() + ROUND);
        let over = AtomicBool::new(false);
        let over = &over;
        thread::scope(|scope| {
            let trimmer = plan.fstrim.then(|| {
                scope.spawn(move || {
                    stage::trim_loop(shared, &|| over.load(Ordering::Relaxed));
                })
            });
            stage::run(shared, slots, Work::Churn, Some(end), tick);
            over.store(true, Ordering::Relaxed);
            // A trim in flight is waited for; it keeps the end of the round waiting.
            drop(trimmer.map(thread::ScopedJoinHandle::join));
        });
        state.done_s = before_s + began.elapsed().as_secs_f64();
        rounds += 1;
    }
    slots.iter_mut().for_each(|slot| slot.frozen = false);
    sync(shared, slots);
    if !shared.is_fatal() {
        checkpoint(shared, slots, state, rounds)?;
        slots.iter_mut().for_each(|slot| slot.frozen = false);
    }
    Ok(())
}

/// Forces everything to the medium and writes it down. With a state file, every other slot is
/// only read until the next checkpoint, so that after a crash it must be as it is now.
fn checkpoint(
    shared: &Shared<'_>,
    slots: &mut [Slot],
    state: &mut State,
    round: u32,
) -> Result<(), VerifyError> {
    let Some(path) = &shared.plan.state else {
        sync(shared, slots);
        return Ok(());
    };
    if !sync(shared, slots) {
        return Ok(());
    }
    for slot in slots.iter_mut() {
        slot.frozen = (slot.number + round).is_multiple_of(2);
    }
    state.slots = slots.iter().map(SlotState::of).collect();
    state.write(path)
}

/// Whether all of it is on the medium.
fn sync(shared: &Shared<'_>, slots: &[Slot]) -> bool {
    for slot in slots {
        if let Err(error) = slot.file.sync_all() {
            shared.failed("sync", &error);
            return false;
        }
    }
    let synced = match shared.place {
        Place::Directory { home, .. } => home.sync(),
        Place::Device { .. } => Ok(()),
    };
    if let Err(error) = &synced {
        shared.failed("sync", error);
    }
    synced.is_ok()
}

/// Reads what trimmed space of a file system holds, as root.
fn read_trimmed(shared: &Shared<'_>, slots: &[Slot]) {
    let (Place::Directory { home, .. }, Some(device)) = (shared.place, &shared.surveyed.device)
    else {
        return;
    };
    let _ = home.sync();
    if shared.plan.fstrim {
        stage::trim_once(shared);
    }
    match trimmed::read(shared, slots, device) {
        Ok(found) => shared.count(|counts| counts.trimmed.add(&found)),
        Err(error) => {
            let next = match rustix::process::geteuid().is_root() {
                true => "; this container or its device rules may forbid it",
                false => "; that needs root",
            };
            shared.note(format!(
                "what trimmed space reads as is not known: {} can't be read: {error}{next}",
                record::units::names::shown(device)
            ));
        }
    }
}

/// Unmounts and mounts the file system. Returns whether that was done.
fn mount_anew(
    plan: &Plan,
    mut surveyed: Surveyed,
    state: &State,
    carried: &mut Carried,
) -> Result<(Surveyed, bool), VerifyError> {
    let mut note = |why: &str| {
        carried
            .counts
            .notes
            .push(format!("not mounted anew: {why}"))
    };
    let target = match recover::target(&surveyed) {
        Ok(target) => target,
        Err(why) => {
            note(&why);
            return Ok((surveyed, false));
        }
    };
    if let Place::Directory { home, .. } = &mut surveyed.place {
        home.keep()?;
    }
    drop(surveyed);
    let done = recover::remount(&target)?;
    if let Err(why) = &done {
        note(why);
    }
    Ok((survey(plan, Some(state))?, done.is_ok()))
}

/// The report of a test of which nothing is known yet.
fn blank(plan: &Plan, surveyed: &Surveyed, state: &State) -> Report {
    let (files, _) = surveyed.slots(plan.workers);
    Report {
        schema: SCHEMA,
        path: record::units::names::shown(&surveyed.path),
        fs: surveyed.fs.clone(),
        device: surveyed.device.as_ref().map(record::units::names::shown),
        checksum: "crc32c",
        size_bytes: state.size_bytes,
        files,
        workers: plan.workers,
        direct: surveyed.place.is_direct(),
        ..Report::default()
    }
}

impl Report {
    /// Adds all that was found.
    fn add(&mut self, carried: Carried, stopped: bool) {
        let mut counts = carried.counts;
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
        if btrfs && counts.trimmed.old_data_bytes + counts.trimmed.other_bytes > 0 {
            counts.notes.push(
                "btrfs frees an extent once no file uses a part of it, so some of the space that \
                 files freed was not trimmed"
                    .to_owned(),
            );
        }
        self.seconds = carried.began.elapsed().as_secs_f64();
        self.operations = counts.operations;
        self.trimmed = Some(counts.trimmed).filter(|trimmed| *trimmed != Trimmed::default());
        self.failures = counts.failures();
        let found = counts.findings.len();
        self.findings = joined(counts.findings);
        self.finding_count = counts.finding_count - (found - self.findings.len()) as u64;
        self.causes = CauseCount::of(&self.findings);
        self.findings.truncate(DESCRIBED);
        self.ended_by = counts.fatal;
        self.notes = counts.notes;
    }
}

/// Removes what the test made. With a state file, only once the test is finished.
///
/// # Errors
/// A note about what stays.
fn leave(plan: &Plan, place: Place, finished: bool) -> Result<(), String> {
    if let Some(path) = &plan.state {
        if !finished {
            return Ok(());
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!(
                    "{} could not be removed: {error}",
                    record::units::names::shown(path)
                ));
            }
            _ => {}
        }
    }
    match place {
        Place::Directory { home, .. } => home.remove(),
        Place::Device { .. } => Ok(()),
    }
}
