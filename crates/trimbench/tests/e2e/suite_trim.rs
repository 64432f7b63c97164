//! `trimbench suite`: what its trims count, beside the drive's own count.

use crate::common::gate::{LOOP_XFS, few, lacks};
use crate::common::run::{record, run, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};

#[test]
fn suite_waits_for_the_last_discards_of_a_trim_under_xfs() {
    if lacks(NEEDS) || lacks(LOOP_XFS) {
        return;
    }
    let _turn = few();
    let lab = OwnLab::new();
    // Half a second for each GiB: XFS's fstrim returns before its last discards have ended.
    let slow = ["--profile", "t500", "--size", "4G", "--slower", "60"];
    let drive = lab.up("trims", &slow);
    let directory = tempfile::tempdir().unwrap();
    let mut command = trimbench();
    command.arg("suite").arg(&drive).arg("--destroy-data");
    command.args(["--cells", "xfs/nodiscard/discard", "--steps", "fstrim"]);
    command.args(["--set", "repeats=1", "--output", "s.jsonl"]);
    let done = run({
        command.current_dir(directory.path());
        command
    });
    assert!(
        done.succeeds().stdout.contains("all discarded"),
        "{}",
        done.text()
    );
    let lines = record(&directory.path().join("s.jsonl"));
    let trim = lines.iter().find(|line| line["step"] == "fstrim").unwrap();
    let figures = &trim["outcome"]["done"];
    let stats = lab.stats("trims");
    let kinds = stats["kinds"].as_array().unwrap();
    let discards = kinds.iter().find(|one| one["kind"] == "discard").unwrap();
    // Once the whole drive was emptied, and once the free space was trimmed.
    let of_trim = discards["bytes"].as_u64().unwrap() - (4 << 30);
    assert_eq!(figures["discard_bytes"].as_u64(), Some(of_trim), "{trim}");
    let (all, returned) = (&figures["freed_s"], &figures["seconds"]);
    assert!(all.as_f64() >= returned.as_f64(), "{trim}");
}
