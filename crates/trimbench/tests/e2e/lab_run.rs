//! `trimbench run` on drives of the laboratory finds what their cards say.

use crate::common::gate::{alone, lacks};
use crate::common::run::{at_once, run};
use crate::lab_drive::{NEEDS, OwnLab};
use crate::quick::{Files, Measured, command_on};

/// A drive that takes 0.3 s for a discard, so that the few of a small deletion
/// make a stall, and writes fast, so that the test is over soon.
const DRIVE: &str = "--size 3G --set a=300ms --set write.latency=0 --set write.per_mib=0ns/MiB";
/// An open loop judges by the age of its oldest read: other work on the machine
/// doesn't unsettle it as it does a closed loop's rate.
const RUN: &str = "--size 1G --foreground-size 64M --rate 500 --settle 4s --baseline 2s \
                   --recovery 1s --interval 100ms";

/// A run on a drive with a profile and a file system.
fn measured(profile: &str, fs: &str, options: &str, more: &[&str]) -> Measured {
    let lab = OwnLab::new();
    let mount = lab.mount();
    let mut drive = vec!["--profile", profile, "--fs", fs, "--mount"];
    drive.extend([mount.to_str().unwrap(), "-o", options]);
    drive.extend(DRIVE.split(' '));
    let name = lab.dir().file_name().unwrap().to_str().unwrap();
    lab.up(name, &drive);
    let files = Files::new();
    let arguments: Vec<&str> = RUN.split_whitespace().chain(more.iter().copied()).collect();
    let done = run(lab.in_here(command_on(&mount, &files, &arguments)));
    files.read(done).succeeds()
}

fn says(measured: &Measured, verdict: &str) {
    let found = &measured.verdict["verdict"];
    assert_eq!(found, verdict, "{}", measured.done.text());
}

#[test]
fn a_drive_that_stalls_stalls_under_every_file_system() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = alone();
    // Each waits for its drive for most of its time.
    let on = |fs| move || measured("870-evo", fs, "discard", &[]);
    let systems = ["ext4", "xfs", "btrfs"];
    let all = at_once([&on("ext4"), &on("xfs"), &on("btrfs")]);
    for (fs, measured) in systems.into_iter().zip(all) {
        says(&measured, "stall");
        // The record tells what it was made on.
        let device = &measured.head()["devices"][0];
        assert_eq!(device["model"], "simulated samsung-870-evo-2tb");
        let warnings = measured.verdict["warnings"].to_string();
        for part in [
            "no drive but a simulation",
            "discard.a",
            "the drive's cgroup",
        ] {
            assert!(warnings.contains(part), "{part} missing: {warnings}");
        }
        assert!(!warnings.contains("(fuse)"), "{warnings}");
        assert_eq!(
            warnings.contains("block groups"),
            fs == "btrfs",
            "{warnings}"
        );
    }
}

#[test]
fn without_discards_or_with_free_ones_nothing_stalls() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = alone();
    let without = || measured("870-evo", "ext4", "nodiscard", &[]);
    // The discards take 0.3 s each, and hold nobody up: in the drive's cgroup the
    // loop driver doesn't either. Those of ext4 come from the kernel's threads,
    // those of btrfs from our commit, whose thread must not be in that cgroup.
    let free = |fs, options| move || measured("ideal", fs, options, &[]);
    let all: [&(dyn Fn() -> Measured + Sync); 3] = [
        &without,
        &free("ext4", "discard"),
        &free("btrfs", "discard=sync"),
    ];
    let [off, free @ ..] = at_once(all);
    says(&off, "none");
    assert!(off.reasons().contains(&"no-discards"));
    for free in free {
        says(&free, "none");
        let busy = free.verdict["discard"]["active_s"].as_f64().unwrap();
        assert!(busy > 1.0, "discards took {busy} s");
    }
}
