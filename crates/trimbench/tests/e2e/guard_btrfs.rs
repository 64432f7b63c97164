//! `trimbench guard` on btrfs: the rate of the kernel's own trims.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::loop_fs::{Fs, LoopFs, must};
use crate::common::run::{Running, start};
use crate::guard_place::{Place, place};
use crate::rm_place::written;

/// Where the kernel has the limits of a mounted btrfs.
fn limits(fs: &LoopFs) -> PathBuf {
    let device = fs.device().path();
    let name = device.file_name().unwrap();
    let all = fs::read_dir("/sys/fs/btrfs").unwrap();
    let mut all = all.map(|entry| entry.unwrap().path());
    let own = all.find(|path| path.join("devices").join(name).exists());
    own.unwrap().join("discard")
}

fn iops_limit(fs: &LoopFs) -> String {
    let text = fs::read_to_string(limits(fs).join("iops_limit")).unwrap();
    text.trim().to_owned()
}

#[track_caller]
fn steers(fs: &Place, arguments: &[&str], before: &str) -> Running {
    let mut running = start(fs.guard(&[&["."], arguments].concat()));
    running.until_said("trims what is freed", 1);
    running.until("another rate", || iops_limit(fs) != before);
    running
}

#[test]
fn on_btrfs_the_kernels_rate_is_set_and_put_back() {
    let Some(fs) = place(Fs::Btrfs, "discard=async") else {
        return;
    };
    let here = fs.path();
    let before = iops_limit(&fs);
    let other = if before == "10" { "11" } else { &before };
    fs::write(limits(&fs).join("iops_limit"), other).unwrap();
    let mut running = steers(&fs, &[], other);
    running.until_said(&format!("iops_limit, which was {other}, until it ends"), 1);
    fs.guarded(&["."]).fails_with(2, &["guarded already"]);
    // What is freed is trimmed at once by an order: the kernel waits two minutes.
    written(&here.join("gone"), 64);
    let held = || fs::metadata(fs.device().image()).unwrap().blocks() * 512;
    let full = held();
    fs::remove_file(here.join("gone")).unwrap();
    File::open(here).unwrap().sync_all().unwrap();
    must("sync", &["-f", &here.to_string_lossy()]);
    running.until("the drive holds less", || {
        fs.guarded(&["drain", "."]).succeeds();
        held() + (60 << 20) <= full
    });
    running.until("a report", || {
        fs.status()["trim"]["discards_per_s"].is_u64()
    });
    let shown = fs.guarded(&["status", "."]).succeeds().stdout.clone();
    assert!(
        shown.contains("as the kernel decides: 2 minutes"),
        "{shown}"
    );
    fs.guarded(&["stop", "."]).succeeds();
    running.wait().succeeds();
    assert_eq!(iops_limit(&fs), other);
    // A killed one's is put back, too.
    let running = steers(&fs, &["--slowdown", "5%"], other);
    running.signal(Signal::KILL);
    running.wait();
    let began = Instant::now();
    while iops_limit(&fs) != other && began.elapsed() < Duration::from_secs(15) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(iops_limit(&fs), other);
}

#[test]
fn a_btrfs_that_does_not_trim_by_itself_is_refused() {
    let Some(fs) = place(Fs::Btrfs, "nodiscard") else {
        return;
    };
    fs.guarded(&["."])
        .fails_with(2, &["mount -o remount,discard=async /"]);
    fs.remount("discard=async");
    for option in [
        &["--set", "between=01:00-02:00"][..],
        &["--set", "min-run=1M"],
        &["--max-latency", "5ms"],
    ] {
        for dry_run in [&[][..], &["-n"]] {
            let arguments = [&["."], option, dry_run].concat();
            fs.guarded(&arguments)
                .fails_with(2, &["only sets its rate", option[0]]);
        }
    }
    let intended = fs.guarded(&[".", "-n"]).succeeds().stdout.clone();
    assert!(intended.contains("would set the rate"), "{intended}");
    assert!(fs.all_states().is_empty());
}
