//! Advice: steps that would help.

use linux::SysRoot;

use super::frames::Reason;
use super::report::{Verdict, Why};
use super::sentence::culprit;
use crate::inspect::{Asked, Now, Options, inspect};

/// Findings of an inspection that make discards slow where they are.
const FINDINGS: [&str; 8] = [
    "btrfs-sync",
    "ext4-rediscards",
    "fat-in-caller",
    "firmware-wedges",
    "raid5-splits",
    "thin-granularity",
    "trim-unqueued",
    "vdo-flood",
];

/// Sentences on what would help against what a report found; none where it isn't TRIM's fault.
/// Looks at the place of the waits as `inspect` does.
pub fn advice(sys: &SysRoot, why: &Why, privileged: bool) -> Vec<String> {
    if !matches!(why.verdict, Verdict::Trim | Verdict::PartlyTrim) {
        return Vec::new();
    }
    let Some(victim) = why.victims.first() else {
        return Vec::new();
    };
    let waits = victim.waits.iter().filter(|wait| wait.cause.is_discards());
    let at = waits.filter_map(|wait| wait.at.clone()).next();
    let mut all = Vec::new();
    if let Some(sender) = culprit(why, victim) {
        all.extend(by_reason(sender.reason, at.as_deref()));
    }
    let place = at.filter(|at| at.starts_with('/'));
    all.extend(
        place
            .map(|at| findings(sys, &at, privileged))
            .unwrap_or_default(),
    );
    all
}

fn by_reason(reason: Reason, at: Option<&str>) -> Option<String> {
    let at = at.map_or("MOUNT".to_owned(), units::names::shown);
    Some(match reason {
        Reason::Trim => format!(
            "`trimbench fstrim {at}` keeps to a goal for what other I/O may lose, and can go on later"
        ),
        Reason::Device => {
            "discard with `trimbench blkdiscard`, which keeps to a goal for what other \
                           I/O may lose; or not at all: \
                           `mkfs.ext4 -E nodiscard`, `mkfs.xfs -K`, `mkfs.btrfs -K`"
                .to_owned()
        }
        Reason::Swap => "switch swap on with `discard=once` or without discard".to_owned(),
        Reason::ExtCommit | Reason::ExtCall | Reason::XfsLog | Reason::Fat => format!(
            "delete with `trimbench rm`, which keeps to a goal for what other I/O may lose; or mount \
             {at} without discard and let `trimbench fstrim {at}` trim at night"
        ),
        Reason::BtrfsAsync => "lower iops_limit in /sys/fs/btrfs/UUID/discard".to_owned(),
        Reason::F2fs => "mount without discard and trim at night".to_owned(),
        // The findings name the remount.
        Reason::BtrfsCommit | Reason::Loop | Reason::Layer | Reason::Unknown => return None,
    })
}

fn findings(sys: &SysRoot, at: &str, privileged: bool) -> Vec<String> {
    let options = Options {
        now: Now {
            unix_s: 0,
            offset_s: 0,
        },
        privileged,
        card: None,
        proof: None,
        if_deleted: Vec::new(),
    };
    let Ok(found) = inspect(sys, &Asked::Path(at.into()), &options) else {
        return Vec::new();
    };
    let matter = found
        .findings
        .into_iter()
        .filter(|one| FINDINGS.contains(&one.id));
    matter
        .map(|finding| match finding.remedy {
            Some(remedy) => format!("{} ({}): {remedy}", finding.what, finding.id),
            None => format!("{} ({})", finding.what, finding.id),
        })
        .collect()
}
