//! Findings about a mounted file system.

use record::DiscardSetting;
use record::Transport;
use record::units::names::shown;
use storage::drive::Drive;
use storage::stack::{LayerKind, Mounted, Stack};
use storage::{Commit, FileSystem};

use super::super::Inspection;
use super::super::policy::Trimmer;
use super::{Finding, MOUNTS, drives};

pub(super) fn of(facts: &Inspection, stack: &Stack) -> Vec<Finding> {
    let Some(fs) = &stack.file_system else {
        return Vec::new();
    };
    [
        untrimmed(facts, stack, fs),
        inert(facts, stack, fs),
        btrfs_sync(fs),
        deleted(fs),
        quotas(fs),
        discards_again(facts, fs),
        in_caller(fs),
        not_issuing(stack, fs),
        turning(facts, stack, fs),
    ]
    .into_iter()
    .flatten()
    .map(|one| one.with("untrimmed", untrimmed_cost(facts, stack)))
    .collect()
}

/// The cost of never trimming.
fn untrimmed_cost(facts: &Inspection, stack: &Stack) -> &'static str {
    let drives = || stack.drives().filter_map(|layer| facts.drive(&layer.name));
    // Flash says that it does not rotate, and a LUN often says nothing.
    let is_lun = |one: &Drive| {
        one.transport == Transport::Scsi && one.rotational == Some(true) && !one.turns()
    };
    let mut layers = stack.layers.iter();
    match () {
        () if drives().any(Drive::is_virtual) => super::HOST_KEEPS,
        () if layers.any(|one| one.kind == LayerKind::Multipath) || drives().any(is_lun) => {
            "the array keeps every block that was ever written, so that a thin volume only grows"
        }
        () => "the drive keeps copying data that was deleted: writes get slower and wear it sooner",
    }
}

fn options(fs: &Mounted) -> String {
    format!("{} {} {}", fs.mount_point, fs.kind, fs.options.join(","))
}

/// No discards by the mount, and nothing that trims it.
fn untrimmed(facts: &Inspection, stack: &Stack, fs: &Mounted) -> Option<Finding> {
    let off = fs.sends == DiscardSetting::Off;
    let can = fs.rules().can_trim() && !fs.read_only && stack.open;
    let policy = &facts.policy;
    let trimmed = policy.trims(&fs.mount_point).next().is_some() || policy.may_trim();
    if !off || !can || trimmed || turns(facts, stack) {
        return None;
    }
    let at = &fs.mount_point;
    let runs = |one: &&Trimmer| one.inactive.is_none() && !one.is_for_pools();
    let mut running = policy.trimmers.iter().filter(runs);
    let is_risky = |one: &Stack| super::is_risky(facts, one);
    let left_out = policy.fstab_notrim.contains(at) || fs.options.iter().any(|one| one == NOT_THIS);
    let found = match running.next() {
        _ if left_out => Finding::new("timer-misses-mount.left-out", at)
            .evidence("/etc/fstab", format!("{at} {NOT_THIS}")),
        None => {
            let (name, which) = match (facts.stacks.iter().any(is_risky), policy.has_systemd) {
                (true, true) => ("nothing-trims.alone", shown(at)),
                (false, true) => ("nothing-trims", String::new()),
                (true, false) => ("nothing-trims.cron", shown(at)),
                (false, false) => ("nothing-trims.cron", "--all".to_owned()),
            };
            // A program that is not in cron's PATH is found by its path alone.
            let program = std::env::current_exe().map_or_else(|_| "trimbench".to_owned(), shown);
            Finding::new(name, at)
                .with("which", which)
                .with("program", program)
                .with("times", linux::host::weekly(&linux::SysRoot::host()))
        }
        Some(first) => Finding::new("timer-misses-mount", at)
            .with("timer", &first.name)
            .evidence(&first.file, covers(first)),
    };
    Some(found.evidence(MOUNTS, options(fs)))
}

/// Keeps a file system from being trimmed with others.
const NOT_THIS: &str = "X-fstrim.notrim";

/// The mounts of a trimmer, as evidence.
pub(super) fn covers(one: &Trimmer) -> String {
    match one.covers.is_empty() {
        true => "trims no mount here".to_owned(),
        false => format!("trims {}", one.covers.join(" ")),
    }
}

/// An option that does nothing.
fn inert(facts: &Inspection, stack: &Stack, fs: &Mounted) -> Option<Finding> {
    let at = &fs.mount_point;
    if fs.is_online()
        && let Some(stop) = stack.stops_at.as_deref()
    {
        let layer = stack.layer(stop);
        let why = layer.map_or(String::new(), |layer| format!(": {}", layer.why));
        let takes_none =
            |drive: &Drive| drive.limits.max_hw_bytes == 0 && !drives::is_mendable(drive);
        let case = match facts.drive(stop) {
            Some(drive) if takes_none(drive) => "option-inert.none",
            _ => "option-inert",
        };
        let limit = layer.map_or(0, |layer| layer.limits.max_bytes);
        return Some(
            Finding::new(case, at)
                .with("stop", stop)
                .with("why", why)
                .evidence(MOUNTS, options(fs))
                .evidence(super::queue(stop, "discard_max_bytes"), limit),
        );
    }
    (facts.policy.fstab_discard.contains(at) && fs.sends == DiscardSetting::Off).then(|| {
        Finding::new("option-inert.fstab", at)
            .with("command", fs.rules().discard_on(&fs.source, at.as_ref()))
            .evidence("/etc/fstab", format!("{at} discard"))
            .evidence(MOUNTS, options(fs))
    })
}

/// A finding of a mount that its line in the table of mounts shows.
fn mounted(name: &str, fs: &Mounted) -> Finding {
    let finding = Finding::new(name, &fs.mount_point).with("kind", &fs.kind);
    finding.evidence(MOUNTS, options(fs))
}

fn btrfs_sync(fs: &Mounted) -> Option<Finding> {
    let waits = fs.rules() == FileSystem::Btrfs && fs.sends == DiscardSetting::On;
    waits.then(|| mounted("btrfs-sync", fs))
}

/// Fewer deleted snapshots are freed soon.
const MANY: usize = 10;

/// Deleted snapshots that the cleaner frees in the background, one after the other.
fn deleted(fs: &Mounted) -> Option<Finding> {
    let count = fs.deleted_subvolumes;
    (count >= MANY).then(|| mounted("btrfs-deleted", fs).with("count", count))
}

/// Quotas make each deletion of a snapshot a search through all trees.
fn quotas(fs: &Mounted) -> Option<Finding> {
    fs.quotas.then(|| {
        Finding::new("btrfs-quotas", &fs.mount_point)
            .evidence("/sys/fs/btrfs/UUID/qgroups/enabled", 1)
    })
}

/// Each small deletion discards what is free behind it once more.
fn discards_again(facts: &Inspection, fs: &Mounted) -> Option<Finding> {
    let kernel = linux::host::version_of(facts.kernel());
    (fs.is_online() && fs.rules().discards_again(kernel, fs.journal)).then(|| {
        mounted("ext4-rediscards", fs).evidence("/proc/sys/kernel/osrelease", facts.kernel())
    })
}

/// A deletion that waits for the drive.
fn in_caller(fs: &Mounted) -> Option<Finding> {
    let waits = fs.is_online() && fs.rules().commit(fs.journal) == Commit::Within;
    waits.then(|| mounted("discard-in-caller", fs))
}

fn not_issuing(stack: &Stack, fs: &Mounted) -> Option<Finding> {
    let other = fs.rules() == FileSystem::Other && !fs.is_online();
    (other && !fs.read_only && stack.open).then(|| mounted("fs-not-issuing", fs))
}

/// A drive that turns and is trimmed all the same.
fn turning(facts: &Inspection, stack: &Stack, fs: &Mounted) -> Option<Finding> {
    let trimmed = fs.is_online() || facts.policy.trims(&fs.mount_point).next().is_some();
    if !trimmed || !stack.open || !turns(facts, stack) {
        return None;
    }
    let drive = stack.drives().next()?;
    let finding = Finding::new("hdd-trimmed", &drive.name).with("at", shown(&fs.mount_point));
    Some(finding.limit("rotational", 1))
}

fn turns(facts: &Inspection, stack: &Stack) -> bool {
    let mut drives = stack.drives();
    drives.any(|layer| facts.drive(&layer.name).is_some_and(Drive::turns))
}
