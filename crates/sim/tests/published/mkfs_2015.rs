//! "Focusing on Ext4 and XFS TRIM Operations", 2015: a thin volume of 10 TiB on an array.

use std::time::Duration;

use sim::{PolicyKind, Setup, WorkloadKind};
use testkit::measured::near;

use super::{run, single};

const TIB: u64 = 1 << 40;

fn setup(policy: PolicyKind, workload: WorkloadKind) -> Setup {
    Setup {
        volume: 10 * TIB,
        readers: 0,
        per_discard: Duration::ZERO,
        interval: Duration::from_secs(1),
        limit: Duration::from_secs(3600),
        ..Setup::new(single("emc-xtremio-10tb"), policy, workload)
    }
}

/// Seconds without discards, of the text: they are work of the host.
const MKFS_PLAIN_S: f64 = 4.86;
const RM_PLAIN_S: f64 = 16.4;

#[test]
fn mkfs_rm_and_fstrim_take_as_long_as_in_the_text() {
    let outcome = run(&setup(PolicyKind::None, WorkloadKind::Mkfs));
    let mkfs = outcome.figures.deletion_s.unwrap() + MKFS_PLAIN_S;
    near("mkfs s", mkfs, 152.1, 0.15);

    let files = 64;
    let drop = Setup {
        size: 1018 << 30,
        files,
        per_file: Duration::from_secs_f64(RM_PLAIN_S / files as f64),
        ..setup(PolicyKind::Ext4Online, WorkloadKind::DropMany)
    };
    let outcome = run(&drop);
    // The text's rm waited for the discards: they were inside the journal's commit then.
    let rm = outcome.figures.drained_s.unwrap();
    println!("{:?}", outcome.figures);
    near("rm s", rm.max(RM_PLAIN_S), 292.6, 0.15);

    // fstrim of what a deletion without `discard` left mapped, beside all that was free before.
    let trim = Setup {
        policy: PolicyKind::Fstrim,
        ..drop
    };
    let outcome = run(&trim);
    println!("{:?}", outcome.figures);
    let began = 60.0;
    let end = outcome.record.end.as_ref().unwrap().at_s - trim.recovery.as_secs_f64();
    near("fstrim s", end - began, 689.0, 0.15);
    near("rm / mkfs", rm / mkfs, 292.6 / 152.1, 0.15);
}
