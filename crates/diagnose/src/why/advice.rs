//! Advice: steps that would help.

use linux::SysRoot;

use super::frames::Reason;
use super::report::{Deletion, SenderWork, Verdict, Why};
use super::sentence::culprit;
use crate::inspect::{Finding, Options, Scope, inspect};

/// Findings of an inspection that make discards slow where they are.
const FINDINGS: [&str; 9] = [
    "btrfs-sync",
    "discard-in-caller",
    "ext4-rediscards",
    "firmware-wedges",
    FAULT,
    "raid5-splits",
    "thin-granularity",
    "trim-unqueued",
    "vdo-flood",
];

/// The finding where discards do harm, however they are paced.
const FAULT: &str = "md-discard-fault";

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
    at_place(sys, culprit(why, victim), at.as_deref(), privileged)
}

fn at_place(
    sys: &SysRoot,
    sender: Option<&SenderWork>,
    at: Option<&str>,
    privileged: bool,
) -> Vec<String> {
    let found = |place: Option<&str>| {
        let place = place.filter(|place| place.starts_with('/'));
        place.map_or_else(Vec::new, |place| findings(sys, place, privileged))
    };
    let device = sender.map(|sender| format!("/dev/{}", sender.device));
    let (own, below) = (found(at), found(device.as_deref()));
    if let Some(fault) = own.iter().chain(&below).find(|one| one.id == FAULT) {
        return vec![format!("{}; {}", sentence(fault), fault.cost)];
    }
    let by_reason = sender.and_then(|sender| by_reason(sender, at));
    by_reason
        .into_iter()
        .chain(own.iter().map(sentence))
        .collect()
}

/// Programs that users call to delete, so that another program can take their place.
const DELETING: [&str; 8] = [
    "rm",
    "find",
    "unlink",
    "rmdir",
    "truncate",
    "shred",
    "rsync",
    "trimbench",
];

/// How to delete at a pace what this process deleted.
fn paced(deletion: Option<&Deletion>, at: &str) -> String {
    const RM: &str =
        "delete with `trimbench rm`, which keeps to a goal for what other I/O may lose";
    match deletion {
        Some(one) if !DELETING.contains(&one.program.as_str()) => format!(
            "`trimbench guard {at}` trims what {} deletes, with a goal for what other I/O may lose; \
             {at} is then mounted without discard",
            record::units::names::harmless(&one.program)
        ),
        Some(_) => RM.to_owned(),
        None => {
            format!("{RM}; for programs that delete by themselves, `trimbench guard {at}` trims so")
        }
    }
}

fn by_reason(sender: &SenderWork, at: Option<&str>) -> Option<String> {
    let at = at.map_or("MOUNT".to_owned(), record::units::names::shown);
    Some(match sender.reason {
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
            "{}; or mount {at} without discard and let `trimbench fstrim {at}` trim at night",
            paced(sender.deletion.as_ref(), &at)
        ),
        Reason::BtrfsAsync => "lower iops_limit in /sys/fs/btrfs/UUID/discard".to_owned(),
        Reason::F2fs => "mount without discard and trim at night".to_owned(),
        // The findings name the remount.
        Reason::BtrfsCommit | Reason::Loop | Reason::Layer | Reason::Unknown => return None,
    })
}

fn findings(sys: &SysRoot, at: &str, privileged: bool) -> Vec<Finding> {
    let options = Options {
        privileged,
        ..Options::default()
    };
    let Ok(found) = inspect(sys, &Scope::Path(at.into()), &options) else {
        return Vec::new();
    };
    let mut found = found.findings;
    found.retain(|one| FINDINGS.contains(&one.id));
    found
}

fn sentence(finding: &Finding) -> String {
    let Finding { what, id, .. } = finding;
    match &finding.remedy {
        Some(remedy) => format!("{what} ({id}): {remedy}"),
        None => format!("{what} ({id})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(program: Option<&str>) -> SenderWork {
        SenderWork {
            device: "sda".to_owned(),
            reason: Reason::ExtCommit,
            program: "kworker/0:1".to_owned(),
            pid: None,
            discards: 1,
            bytes: 1,
            mean_ms: None,
            longest_ms: 0.0,
            in_drive_s: 0.0,
            deleted: None,
            deletion: program.map(|program| Deletion {
                program: program.to_owned(),
                pid: 7,
                files: None,
                bytes: None,
            }),
        }
    }

    #[test]
    fn no_trim_is_advised_where_discards_do_harm() {
        let line = "1 0 9:0 / /data rw - ext4 /dev/md0 rw,discard\n";
        let machine = testkit::Machine::new(line);
        machine.device("virtual/block/md0", "9:0", Some(1 << 30));
        machine.write("sys/devices/virtual/block/md0/md/level", "raid10\n");
        let sys = SysRoot::at(machine.root());
        let sender = SenderWork {
            device: "md0".to_owned(),
            ..sender(Some("postgres"))
        };
        let advice = |at| at_place(&sys, Some(&sender), at, true);
        machine.write("proc/sys/kernel/osrelease", "6.11.0-8-generic\n");
        for at in [Some("/data"), None] {
            let only = advice(at);
            assert!(
                only[0].contains("bugs/2117395") && only.len() == 1,
                "{only:?}"
            );
            assert!(!only[0].contains("trimbench"), "{only:?}");
        }
        machine.write("proc/sys/kernel/osrelease", "6.16.1\n");
        assert!(advice(None)[0].contains("trimbench guard"));
    }

    #[test]
    fn advice_on_a_servers_deletion_is_guard_and_on_rms_is_rm() {
        let advice = |program| by_reason(&sender(program), Some("/data")).unwrap();
        let server = advice(Some("mariadbd"));
        assert!(
            server.starts_with("`trimbench guard /data` trims what mariadbd deletes"),
            "{server}"
        );
        assert!(!server.contains("trimbench rm"), "{server}");
        let rm = advice(Some("rm"));
        assert!(
            rm.contains("`trimbench rm`") && !rm.contains("guard"),
            "{rm}"
        );
        let unknown = advice(None);
        assert!(
            unknown.contains("`trimbench rm`") && unknown.contains("guard /data"),
            "{unknown}"
        );
    }
}
