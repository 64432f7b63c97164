//! `trimbench guard --by trim` on btrfs: the rate of the kernel's own trims.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::loop_fs::{Fs, LoopFs, must};
use crate::common::run::{Running, start};
use crate::guard_place::{ended, guard, guarded, hidden, status};
use crate::rm_place::{ground, written};

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
fn steers(fs: &LoopFs, arguments: &[&str], before: &str) -> Running {
    let mut running = start(guard(fs.path(), &[&["."], arguments].concat()));
    running.until_said("trims what is freed", 1);
    running.until("another rate", || iops_limit(fs) != before);
    running
}

#[test]
fn on_btrfs_the_kernels_rate_is_set_and_put_back() {
    let Some(fs) = ground(Fs::Btrfs, "discard=async", 512) else {
        return;
    };
    let here = fs.path();
    let before = iops_limit(&fs);
    let other = if before == "10" { "11" } else { &before };
    fs::write(limits(&fs).join("iops_limit"), other).unwrap();
    let mut running = steers(&fs, &[], other);
    running.until_said("--by trim, because btrfs trims by itself", 1);
    running.until_said(&format!("iops_limit, which was {other}, until it ends"), 1);
    guarded(here, &[".", "--by", "trim"]).fails_with(2, &["guarded already"]);
    // What is freed is trimmed at once by an order: the kernel waits two minutes.
    written(&here.join("gone"), 64);
    let held = || fs::metadata(fs.device().image()).unwrap().blocks() * 512;
    let full = held();
    fs::remove_file(here.join("gone")).unwrap();
    File::open(here).unwrap().sync_all().unwrap();
    must("sync", &["-f", &here.to_string_lossy()]);
    running.until("the drive holds less", || {
        guarded(here, &["drain", "."]).succeeds();
        held() + (60 << 20) <= full
    });
    running.until("a report", || status(here)["by"] == "trim");
    guarded(here, &["stop", "."]).succeeds();
    running.wait().succeeds();
    assert_eq!(iops_limit(&fs), other);
    // A killed one's is put back, too.
    let running = steers(&fs, &["--by", "trim", "--slowdown", "5%"], other);
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
    let Some(fs) = ground(Fs::Btrfs, "nodiscard", 512) else {
        return;
    };
    let here = fs.path();
    guarded(here, &[".", "--by", "trim"]).fails_with(2, &["discard=async"]);
    let mut running = start(guard(here, &["."]));
    running.until_said("--by link, because on btrfs", 1);
    running.until("a status", || hidden(here).is_some());
    ended(running);
    fs.remount("discard=async");
    for option in [
        &["--between", "01:00-02:00"][..],
        &["--min-run", "1M"],
        &["--max-latency", "5ms"],
    ] {
        let arguments = [&[".", "--by", "trim"], option].concat();
        guarded(here, &arguments).fails_with(2, &["only sets its rate", option[0]]);
    }
    assert_eq!(hidden(here), None);
}
