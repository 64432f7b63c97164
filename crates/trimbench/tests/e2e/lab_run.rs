//! `trimbench run` on drives of the laboratory finds what their cards say.

use std::fs;

use crate::common::gate::{alone, beside, few, lacks};
use crate::common::run::{at_once, run, trimbench};
use crate::lab_drive::{NEEDS, OwnLab, dd};
use crate::quick::{Files, Measured, command_on};

/// A drive that takes 0.6 s for a discard, so that the few of a small deletion
/// make a stall, and writes fast, so that the test is over soon.
const DRIVE: &str = "--size 3G --set a=600ms --set write.latency=0 --set write.per_mib=0ns/MiB";
/// An open loop judges by the age of its oldest read: other work on the machine
/// doesn't unsettle it as it does a closed loop's rate.
const RUN: &str = "--size 512M --set foreground.size=64M --rate 500 --settle 2s --baseline 8s \
                   --recovery 1s --set phases.interval=100ms";

/// A run on a drive with a profile and a file system.
fn measured(profile: &str, fs: &str, options: &str) -> Measured {
    let lab = OwnLab::new();
    let mount = lab.mount();
    let mut drive = vec!["--profile", profile, "--fs", fs, "--mount"];
    drive.extend([mount.to_str().unwrap(), "-o", options]);
    drive.extend(DRIVE.split(' '));
    let name = lab.dir().file_name().unwrap().to_str().unwrap();
    lab.up(name, &drive);
    let files = Files::new();
    let arguments: Vec<&str> = RUN.split_whitespace().collect();
    let done = run(lab.in_here(command_on(&mount, &files, &arguments)));
    files.read(done).succeeds()
}

/// A run that stalls.
fn stalled(fs: &str) -> Measured {
    let measured = measured("870-evo", fs, "discard");
    let found = &measured.verdict["verdict"];
    assert_eq!(found, "stall", "{fs}: {}", measured.done.text());
    measured
}

/// A run whose discards cost nothing.
fn unharmed(fs: &str, options: &str) -> Measured {
    let measured = measured("ideal", fs, options);
    let busy_s = measured.verdict["discard"]["active_s"].as_f64().unwrap();
    assert!(busy_s > 1.0, "discards took {busy_s} s");
    let found = &measured.verdict["verdict"];
    // One that was TRIM's would be about as long as the discards.
    let stalled_s = measured.foreground()["stall"]["seconds"].as_f64();
    let brief = found == "stall" && stalled_s.is_some_and(|s| s < 0.3 * busy_s);
    // A busy machine may drown what there would be to tell, never make it up.
    let noisy = measured.reasons().contains(&"too-noisy");
    let so = found == "none" || brief || noisy;
    assert!(so, "{}", measured.done.text());
    measured
}

/// A run that sends no discards.
fn without_discards() -> Measured {
    let measured = measured("870-evo", "ext4", "nodiscard");
    let found = &measured.verdict["verdict"];
    assert_eq!(found, "none", "{}", measured.done.text());
    measured
}

#[test]
fn a_run_fits_what_the_drive_can_store() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let mount = lab.mount();
    let at = mount.to_str().unwrap();
    let up = |name: &str, limit: &str, more: &[&str]| {
        let drive = ["up", name, "--profile", "ideal", "--size", "64G", "--set"];
        let limit = format!("store-limit={limit}");
        lab.lab(&[&drive[..], &[&limit], more].concat())
    };
    let made = up(
        "small",
        "2G",
        &["--fs", "ext4", "--mount", at, "-o", "discard"],
    );
    // The command that it prints fits.
    let next = format!("trimbench run {at} ");
    assert!(made.succeeds().stderr.contains(&next), "{}", made.text());
    let short = ["--settle", "0s", "--baseline", "1s", "--recovery", "200ms"];
    let files = Files::new();
    let measured = files.read(run(lab.in_here(command_on(&mount, &files, &short))));
    assert_eq!(
        measured.end()["reason"],
        "completed",
        "{}",
        measured.done.text()
    );
    for line in fs::read_to_string("/proc/mounts").unwrap().lines() {
        assert!(!line.contains(at) || line.contains(" rw"), "{line}");
    }
    let mut large = trimbench();
    large.args(["run", "--size", "8G", "--dry-run", at]);
    run(lab.in_here(large)).fails_with(2, &["too little space", "the drive small", "store-limit"]);
    // There is no run for a drive that stores next to nothing, and nothing is removed from a full one.
    lab.lab(&["down", "small"]).succeeds();
    let options = ["--fs", "ext4", "--mount", at, "-o", "discard"];
    let made = up("tiny", "80M", &options);
    assert!(
        !made.succeeds().stderr.contains("trimbench run"),
        "{}",
        made.text()
    );
    let file = mount.join("file");
    let of = format!("of={}", file.display());
    assert!(!dd(&[
        "if=/dev/urandom",
        &of,
        "bs=1M",
        "count=200",
        "oflag=direct"
    ]));
    let mut rm = trimbench();
    rm.arg("rm").arg(&file);
    run(lab.in_here(rm)).fails_with(2, &["the drive tiny", "Nothing was begun"]);
    assert!(file.exists());
}

#[test]
fn a_drive_that_stalls_stalls_under_every_file_system() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = few();
    // Each waits for its drive for most of its time.
    let on = |fs| move || stalled(fs);
    let systems = ["ext4", "xfs", "btrfs"];
    let all = at_once([&on("ext4"), &on("xfs"), &on("btrfs")]);
    for (fs, measured) in systems.into_iter().zip(all) {
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
    // The discards take 0.6 s each, and hold nobody up: in the drive's cgroup the
    // loop driver doesn't either. Those of ext4 come from the kernel's threads,
    // those of btrfs from our commit, whose thread must not be in that cgroup.
    let free = |fs, options| move || unharmed(fs, options);
    let all: [&(dyn Fn() -> Measured + Sync); 3] = [
        &without_discards,
        &free("ext4", "discard"),
        &free("btrfs", "discard=sync"),
    ];
    let [off, ..] = at_once(all);
    assert!(off.reasons().contains(&"no-discards"));
}
