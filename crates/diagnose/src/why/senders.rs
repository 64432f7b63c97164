//! The senders of discards as a report names them: those of one file system together, with the
//! process that freed the space.
//!
//! The file system's identity decides. Events of discards name the device, and those of deletions
//! the file system; the list of mounts says which file systems lie on which devices.

use std::collections::{BTreeMap, HashSet};

use linux::mounts::DeviceNumber;
use storage::FileSystem;
use storage::deletions::Identity;
use storage::disks::{Disks, Place};

use super::Subject;
use super::frames::Reason;
use super::observe::Observation;
use super::report::{Deleted, Deletion, SenderWork};
use super::sampler::SampledThread;
use super::trace::{Deleter, Sender, Trace, is_worker};

/// btrfs' background discards wait so long at least, in seconds (`BTRFS_DISCARD_UNUSED_DELAY`,
/// fs/btrfs/discard.c).
const ASYNC_DELAY_S: f64 = 10.0;

/// A process that freed less than one part in so many of what was discarded is not to blame.
const TINY: u64 = 10;

/// On btrfs the same of all processes: it discards little more than what was freed, and its events
/// count all that a deletion of files frees. Those of ext4 leave out small extents, and those of XFS
/// have no bytes.
const MOST: u64 = 2;

/// The name of several workers of the kernel.
pub(crate) const WORKERS: &str = "kworkers";

/// The senders of discards, those of one file system together. `mounted`: the file systems.
/// `deleted`: subvolumes that were freed meanwhile, by mount point. `threads`: those of known processes.
pub(crate) fn senders(
    trace: &Trace,
    disks: &Disks,
    mounted: &[Place],
    deleted: &BTreeMap<String, Deleted>,
    threads: &[SampledThread],
) -> Vec<SenderWork> {
    // Events name threads.
    let process = |tid: u32| {
        let known = threads.iter().find(|one| one.thread.tid == tid);
        known.map_or(tid, |one| one.thread.pid)
    };
    let mut found: Vec<SenderWork> = Vec::new();
    // With when it sent its last discard.
    let mut keys: Vec<(_, f64)> = Vec::new();
    let all = trace.senders.iter().map(|sender| {
        let reason = reason(sender, mounted);
        (sender, reason, identity(trace, sender, reason, mounted))
    });
    let all: Vec<_> = all.collect();
    for (sender, reason, identity) in &all {
        let (reason, identity) = (*reason, identity.clone());
        let mut deletion = deletion(trace, sender, reason, identity.as_ref());
        if let Some(one) = &mut deletion {
            one.pid = process(one.pid);
        }
        let cleaned = match (reason, &deletion) {
            (Reason::BtrfsCommit, None) => cleaned(deleted, sender, identity.as_ref(), mounted),
            _ => None,
        };
        let program =
            (is_programs(reason) && !is_worker(&sender.comm)).then_some(process(sender.pid));
        let deleter = deletion.as_ref().map(|one| one.pid);
        let deleter = deleter.filter(|pid| *pid != process(sender.pid));
        let key = (
            sender.device,
            reason,
            identity,
            program,
            deleter,
            cleaned.clone(),
        );
        let work = SenderWork {
            device: disks.name(sender.device),
            reason,
            program: sender.comm.clone(),
            pid: Some(process(sender.pid)),
            discards: sender.discards,
            bytes: sender.bytes,
            mean_ms: (sender.completed > 0)
                .then(|| sender.in_drive_s * 1e3 / sender.completed as f64),
            longest_ms: sender.longest_s * 1e3,
            in_drive_s: sender.in_drive_s,
            deleted: cleaned,
            deletion,
        };
        match keys.iter().position(|one| one.0 == key) {
            Some(index) => {
                let (known, last_s) = (&mut found[index], &mut keys[index].1);
                known.add(&work);
                // Each has all that its deleter had freed by then.
                if sender.last_s >= *last_s {
                    (known.deletion, *last_s) = (work.deletion, sender.last_s);
                }
            }
            None => {
                keys.push((key, sender.last_s));
                found.push(work);
            }
        }
    }
    found.sort_by(|a, b| b.in_drive_s.total_cmp(&a.in_drive_s));
    found
}

/// The file system that sends discards for this reason.
fn system(reason: Reason) -> Option<FileSystem> {
    Some(match reason {
        Reason::ExtCommit | Reason::ExtCall => FileSystem::Ext,
        Reason::XfsLog => FileSystem::Xfs,
        Reason::BtrfsCommit | Reason::BtrfsAsync => FileSystem::Btrfs,
        Reason::F2fs => FileSystem::F2fs,
        Reason::Fat => FileSystem::Fat,
        _ => return None,
    })
}

/// Whether a file system sends discards for this reason.
fn sends(place: &Place, reason: Reason) -> bool {
    let own = place.file_system.map(|own| match own {
        FileSystem::Ext3 => FileSystem::Ext,
        own => own,
    });
    own.is_some() && own == system(reason)
}

/// Why these were sent. A worker serves many file systems: the stack of one discard says nothing of
/// the next one, unless a single file system, or loop devices alone, can have sent both.
fn reason(sender: &Sender, mounted: &[Place]) -> Reason {
    let over = || {
        mounted
            .iter()
            .filter(|place| place.exact.contains(&sender.on))
    };
    let by_worker = |place: &Place| place.discards_later && place.tops.contains(&sender.device);
    let (only, more) = (over().next(), over().nth(1));
    let single = match (only, more) {
        _ if sender.reason == Reason::Loop => !over().any(by_worker),
        (None, _) => true,
        (Some(only), None) => system(sender.reason).is_none() || sends(only, sender.reason),
        _ => false,
    };
    match sender.inferred && !single {
        true => Reason::Unknown,
        false => sender.reason,
    }
}

/// Whether a program sends them itself, so that its name matters and not the file system's.
pub(crate) fn is_programs(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Trim
            | Reason::Device
            | Reason::ExtCall
            | Reason::Fat
            | Reason::BtrfsCommit
            | Reason::Unknown
    )
}

impl SenderWork {
    /// Adds the work of another sender, or of a later time.
    pub(crate) fn add(&mut self, other: &SenderWork) {
        let discards = self.discards + other.discards;
        self.mean_ms = match (self.mean_ms, other.mean_ms) {
            (Some(a), Some(b)) if discards > 0 => {
                Some((a * self.discards as f64 + b * other.discards as f64) / discards as f64)
            }
            (a, b) => a.or(b),
        };
        self.discards = discards;
        self.bytes += other.bytes;
        self.in_drive_s += other.in_drive_s;
        self.longest_ms = self.longest_ms.max(other.longest_ms);
        if self.pid != other.pid {
            self.pid = None;
            if is_worker(&self.program) {
                self.program = WORKERS.to_owned();
            }
        }
    }
}

/// The file system that sent these; `None` where several may have.
fn identity(trace: &Trace, sender: &Sender, reason: Reason, mounted: &[Place]) -> Option<Identity> {
    system(reason)?;
    let may = |place: &&Place| sends(place, reason) && place.exact.contains(&sender.on);
    let may: Vec<&Place> = mounted.iter().filter(may).collect();
    // Volumes of one drive: the same thread sent them to the volume first.
    let through = |place: &&&Place| {
        let others = trace.senders.iter().filter(|one| {
            (one.pid, one.reason) == (sender.pid, reason)
                && one.on != sender.on
                && place.exact.contains(&one.on)
        });
        let only = |one: &Sender| may.iter().filter(|may| may.exact.contains(&one.on)).count() == 1;
        others.into_iter().any(only)
    };
    match may[..] {
        [] => Some(Identity::Device(sender.on)),
        [only] => only.identity.clone(),
        _ => {
            let through: Vec<&&Place> = may.iter().filter(through).collect();
            let ids: HashSet<_> = through
                .iter()
                .filter_map(|one| one.identity.as_ref())
                .collect();
            let mut ids = ids.into_iter();
            ids.next().filter(|_| ids.next().is_none()).cloned()
        }
    }
}

/// The process that freed the space which a sender discards.
fn deletion(
    trace: &Trace,
    sender: &Sender,
    reason: Reason,
    identity: Option<&Identity>,
) -> Option<Deletion> {
    let identity = identity?;
    let delay_s = match reason {
        Reason::BtrfsAsync => ASYNC_DELAY_S,
        _ => 0.0,
    };
    let within_call = matches!(reason, Reason::ExtCall | Reason::Fat);
    // A commit's discards are sent at once: what was freed before a pause is discarded. Others come
    // in rounds.
    let commits = matches!(
        reason,
        Reason::ExtCommit | Reason::XfsLog | Reason::BtrfsCommit
    );
    let paused_s = sender.pause.began_s.filter(|_| commits);
    let is_large = |one: &Deleter| one.bytes == 0 || one.bytes.saturating_mul(TINY) >= sender.bytes;
    let is_recent = |one: &Deleter| paused_s.is_none_or(|at_s| one.last_s > at_s);
    let rank = |one: &Deleter| (is_recent(one) && is_large(one), is_large(one));
    let order = |a: &&Deleter, b: &&Deleter| {
        let within = match rank(a) {
            (false, true) => a.last_s.total_cmp(&b.last_s),
            _ => (a.bytes, a.files).cmp(&(b.bytes, b.files)),
        };
        rank(a).cmp(&rank(b)).then(within)
    };
    let counts_all = system(reason) == Some(FileSystem::Btrfs);
    // Others go on beside it: a program that syncs has btrfs discard its log's old blocks.
    let is_over = |one: &Deleter| counts_all && !is_recent(one);
    let all = trace.deleters.iter().filter(|one| {
        one.on.as_ref() == Some(identity)
            && one.first_s + delay_s <= sender.last_s
            && !is_over(one)
            && match within_call {
                true => one.pid == sender.pid,
                // Workers of the kernel free what a program has deleted.
                false => !one.comm.starts_with("kworker"),
            }
    });
    let freed: u64 = all.clone().map(|one| one.bytes).sum();
    if counts_all && freed.saturating_mul(MOST) < sender.bytes {
        return None;
    }
    let most = all.max_by(order)?;
    Some(Deletion {
        program: most.comm.clone(),
        pid: most.pid,
        // No event counts what a file system does not tell.
        files: Some(most.files).filter(|files| *files > 0),
        bytes: Some(most.bytes).filter(|bytes| *bytes > 0),
    })
}

/// The subvolumes of a file system that its cleaner freed for a commit which a sender discards. They
/// were gone before its first discard, and not before the first of the commit before: the cleaner goes on
/// beside that.
fn cleaned(
    deleted: &BTreeMap<String, Deleted>,
    sender: &Sender,
    identity: Option<&Identity>,
    mounted: &[Place],
) -> Option<Deleted> {
    let is_here = |one: &&Place| identity.is_some() && one.identity.as_ref() == identity;
    let mut here = mounted.iter().filter(is_here);
    let found = here.find_map(|place| deleted.get(&place.at))?;
    let from_s = sender.pause.last_ended_s.unwrap_or(f64::NEG_INFINITY);
    found.gone_between(from_s, sender.pause.ended_s)
}

/// The names of the drives that a subject works on: where these processes of it wait, send discards
/// or delete.
pub(super) fn drives(observation: &Observation, subject: &Subject, pids: &[u32]) -> Vec<String> {
    let trace = &observation.trace;
    let deletes_on = |place: &Place, own: &dyn Fn(&Deleter) -> bool| {
        let mut all = trace.deleters.iter();
        all.any(|one| one.on.is_some() && one.on == place.identity && own(one))
    };
    let below = |own: &dyn Fn(&Deleter) -> bool| -> Vec<DeviceNumber> {
        let all = observation.mounted.iter();
        let all = all.filter(|place| deletes_on(place, own));
        all.flat_map(|place| place.devices.iter().copied())
            .collect()
    };
    let mut all = below(&|one| pids.contains(&one.pid));
    let sent = trace.senders.iter().filter(|one| pids.contains(&one.pid));
    all.extend(sent.map(|one| one.device));
    let places = observation.sampled.places.iter();
    all.extend(places.flat_map(|place| &place.devices));
    if all.is_empty() {
        all = below(&|one| is_unseen_child(observation, subject, one));
    }
    let names = all.into_iter().map(|one| observation.disks.name(one));
    names.collect()
}

/// Whether this may be a child of the command that no look met: its number is later.
fn is_unseen_child(observation: &Observation, subject: &Subject, one: &Deleter) -> bool {
    matches!(subject, Subject::Family(first) if one.pid > *first)
        && one.first_s >= observation.from_s
}

/// The discards that are still to come of what these processes deleted: of file systems that send
/// them after the call, and haven't sent as much as was freed.
pub(super) fn to_come(
    observation: &Observation,
    subject: &Subject,
    pids: &[u32],
) -> Option<String> {
    let (trace, mounted) = (&observation.trace, &observation.mounted);
    let any_seen = trace.deleters.iter().any(|one| pids.contains(&one.pid));
    let is_own = |one: &&Deleter| {
        pids.contains(&one.pid) || !any_seen && is_unseen_child(observation, subject, one)
    };
    let late = |place: &&Place| {
        let here = |one: &&Deleter| one.on.is_some() && one.on == place.identity;
        let own = trace.deleters.iter().filter(here).filter(is_own);
        let last_s = own.clone().map(|one| one.last_s).reduce(f64::max);
        let freed: u64 = own.map(|one| one.bytes).sum();
        let sent = |last_s: f64| {
            let all = trace.senders.iter();
            let here = |one: &&Sender| sends(place, one.reason) && place.exact.contains(&one.on);
            let mut here = all.filter(here);
            let bytes: u64 = here.clone().map(|one| one.bytes).sum();
            freed > 0 && bytes >= freed
                || here.any(|one| one.last_s >= last_s || one.reason == Reason::ExtCall)
        };
        place.discards_later && last_s.is_some_and(|last_s| !sent(last_s))
    };
    let place = mounted.iter().find(late)?;
    let (name, when) = place.file_system?.sends_later()?;
    Some(format!(
        " The discards of what was deleted on {} are still to come: {name} sends them {when}.",
        record::units::names::shown(&place.at)
    ))
}

#[cfg(test)]
mod tests;
