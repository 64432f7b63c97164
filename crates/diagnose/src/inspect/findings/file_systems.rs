//! Findings about a mounted file system.

use record::DiscardSetting;
use storage::FileSystem;
use storage::drive::Drive;
use storage::stack::{Mounted, Stack};
use units::names::shown;

use super::super::Inspection;
use super::super::policy::Trimmer;
use super::{Finding, MOUNTS, drives};

/// The cost of never trimming.
const UNTRIMMED: &str = "the drive keeps copying data that was deleted: writes get slower and wear \
                         it sooner";

pub(super) fn of(facts: &Inspection, stack: &Stack) -> Vec<Finding> {
    let Some(fs) = &stack.file_system else {
        return Vec::new();
    };
    [
        untrimmed(facts, stack, fs),
        inert(facts, stack, fs),
        btrfs_sync(fs),
        quotas(fs),
        discards_again(facts, fs),
        fat(fs),
        not_issuing(stack, fs),
        turning(facts, stack, fs),
    ]
    .into_iter()
    .flatten()
    .collect()
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
    let at = shown(&fs.mount_point);
    let running: Vec<_> = policy
        .trimmers
        .iter()
        .filter(|one| one.inactive.is_none())
        .collect();
    let left_out = policy.fstab_notrim.contains(&fs.mount_point)
        || fs.options.iter().any(|one| one == NOT_THIS);
    let found = match running.first() {
        _ if left_out => Finding::new(
            "timer-misses-mount",
            &fs.mount_point,
            format!("{NOT_THIS} in /etc/fstab keeps fstrim and its timer from {at}"),
        )
        .evidence("/etc/fstab", format!("{} {NOT_THIS}", fs.mount_point))
        .remedy(format!(
            "remove {NOT_THIS} from its line in /etc/fstab; or, if what uses it must not be \
             slowed down, trimbench fstrim {at} from a timer of its own"
        )),
        None => Finding::new(
            "nothing-trims",
            &fs.mount_point,
            "the drive takes discards, and no known trimmer sends any: no discard option, and no timer or \
             cron file that trimbench knows to trim it",
        )
        .remedy("systemctl enable --now fstrim.timer, or trimbench fstrim --install-timer"),
        Some(first) => Finding::new(
            "timer-misses-mount",
            &fs.mount_point,
            format!("{} trims other mounts, and not this one", first.name),
        )
        .evidence(&first.file, covers(first))
        .remedy(format!(
            "list {at} in /etc/fstab, or trimbench fstrim {at} from a timer of its own"
        )),
    };
    Some(found.evidence(MOUNTS, options(fs)).cost(UNTRIMMED))
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
    let in_fstab = facts.policy.fstab_discard.contains(&fs.mount_point);
    if fs.is_online()
        && let Some(stop) = stack.stops_at.as_deref()
    {
        let drive = facts.drive(stop);
        let why = stack
            .layer(stop)
            .map_or(String::new(), |layer| format!(": {}", layer.why));
        return Some(
            Finding::new(
                "option-inert",
                &fs.mount_point,
                format!("mounted with discard, and discards stop at {stop}{why}"),
            )
            .evidence(MOUNTS, options(fs))
            .evidence(super::queue(stop, "discard_max_bytes"), limit(stack, stop))
            .cost(match drive.is_some_and(Drive::is_virtual) {
                true => drives::HOST_KEEPS,
                false => UNTRIMMED,
            })
            .remedy(match drive {
                Some(drive) if drive.limits.max_hw_bytes == 0 && !drives::is_mendable(drive) => {
                    format!("{stop} takes no TRIM: take discard from the mount's options")
                }
                _ => format!(
                    "mend {stop} first (its own finding says how); the option needs no change"
                ),
            }),
        );
    }
    if in_fstab && fs.sends == DiscardSetting::Off {
        return Some(
            Finding::new(
                "option-inert",
                &fs.mount_point,
                "/etc/fstab has discard, and the mount does not: a remount did not take it",
            )
            .evidence("/etc/fstab", format!("{} discard", fs.mount_point))
            .evidence(MOUNTS, options(fs))
            .cost(UNTRIMMED)
            .remedy(fs.rules().discard_on(&fs.source, fs.mount_point.as_ref())),
        );
    }
    None
}

fn limit(stack: &Stack, name: &str) -> u64 {
    stack.layer(name).map_or(0, |layer| layer.limits.max_bytes)
}

fn btrfs_sync(fs: &Mounted) -> Option<Finding> {
    if fs.rules() != FileSystem::Btrfs || fs.sends != DiscardSetting::On {
        return None;
    }
    let at = shown(&fs.mount_point);
    Some(
        Finding::new(
            "btrfs-sync",
            &fs.mount_point,
            "discard without =async has each commit wait for its discards; it overrides the default",
        )
        .evidence(MOUNTS, options(fs))
        .cost("every fsync and commit waits until the drive has done all discards before it")
        .remedy(format!("mount -o remount,discard=async {at}, and the same in /etc/fstab")),
    )
}

/// Quotas make each deletion of a snapshot a search through all trees.
fn quotas(fs: &Mounted) -> Option<Finding> {
    let at = shown(&fs.mount_point);
    fs.quotas.then(|| {
        Finding::new(
            "btrfs-quotas",
            &fs.mount_point,
            "btrfs accounts quotas (qgroups) for each extent",
        )
        .evidence("/sys/fs/btrfs/UUID/qgroups/enabled", 1)
        .cost(
            "after a snapshot was deleted, commits wait for the accounting, without any discard: \
             such stalls are not TRIM's",
        )
        .remedy(format!(
            "btrfs quota disable {at}, or btrfs quota enable --simple {at} (Linux 6.7)"
        ))
    })
}

/// Each small deletion discards what is free behind it once more.
fn discards_again(facts: &Inspection, fs: &Mounted) -> Option<Finding> {
    let kernel = linux::host::version_of(&facts.kernel);
    if !fs.is_online() || !fs.rules().discards_again(kernel, fs.journal) {
        return None;
    }
    let at = shown(&fs.mount_point);
    Some(
        Finding::new(
            "ext4-rediscards",
            &fs.mount_point,
            "for each freed extent, ext4 discards all free space up to the next used block once more",
        )
        .evidence(MOUNTS, options(fs))
        .evidence("/proc/sys/kernel/osrelease", &facts.kernel)
        .cost(
            "rm of 30,000 files of 12 KiB sent 254 GB of discards, and a simulated Crucial T500 \
             stalled for 30 s",
        )
        .remedy(format!(
            "mount -o remount,nodiscard {at}, and trimbench guard {at}, or fstrim from time to time"
        )),
    )
}

fn fat(fs: &Mounted) -> Option<Finding> {
    if fs.rules() != FileSystem::Fat || !fs.is_online() {
        return None;
    }
    let at = shown(&fs.mount_point);
    Some(
        Finding::new(
            "fat-in-caller",
            &fs.mount_point,
            format!(
                "{} discards within the call that deletes, cluster chain by chain",
                fs.kind
            ),
        )
        .evidence(MOUNTS, options(fs))
        .cost("rm waits for every discard, one after the other")
        .remedy(format!(
            "mount it without discard, and run trimbench fstrim {at}"
        )),
    )
}

fn not_issuing(stack: &Stack, fs: &Mounted) -> Option<Finding> {
    let other = fs.rules() == FileSystem::Other && !fs.is_online();
    if !other || fs.read_only || !stack.open {
        return None;
    }
    Some(
        Finding::new(
            "fs-not-issuing",
            &fs.mount_point,
            format!("trimbench knows no way in which {} sends discards", fs.kind),
        )
        .evidence(MOUNTS, options(fs))
        .cost(UNTRIMMED)
        .remedy("see the file system's manual; ZFS: zpool get autotrim, zpool trim"),
    )
}

/// A drive that turns and is trimmed all the same.
fn turning(facts: &Inspection, stack: &Stack, fs: &Mounted) -> Option<Finding> {
    let trimmed = fs.is_online() || facts.policy.trims(&fs.mount_point).next().is_some();
    if !trimmed || !stack.open || !turns(facts, stack) {
        return None;
    }
    let drive = stack.drives().next()?;
    Some(
        Finding::new(
            "hdd-trimmed",
            &drive.name,
            format!(
                "{} turns and is trimmed: probably a shingled drive",
                drive.name
            ),
        )
        .evidence(super::queue(&drive.name, "rotational"), 1)
        .cost("TRIM helps shingled drives, and each can take seconds; on others it does nothing")
        .remedy(format!(
            "trimbench fit {} measures what it costs",
            shown(&fs.mount_point)
        )),
    )
}

fn turns(facts: &Inspection, stack: &Stack) -> bool {
    let mut drives = stack.drives();
    drives.any(|layer| facts.drive(&layer.name).is_some_and(Drive::turns))
}
