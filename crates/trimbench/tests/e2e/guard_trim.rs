//! `trimbench guard --by trim`: what is freed in any way is trimmed, and no debt is forgotten.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::SeekFrom;
use rustix::process::Signal;

use crate::common::gate::times;
use crate::common::loop_fs::{Fs, LoopFs, must};
use crate::common::run::{Running, start};
use crate::guard_place::{ended, guard, guarded, hidden, seen, status};
use crate::rm_place::{MIB, ext4, ground, written};

/// A guard by trims that runs.
#[track_caller]
fn trims(fs: &LoopFs, arguments: &[&str]) -> Running {
    let fast = [".", "--by", "trim", "--slowdown", "100%"];
    let mut running = start(guard(fs.path(), &[&fast, arguments].concat()));
    running.until_said("trims what is freed", 1);
    let pid = running.pid().as_raw_nonzero().get();
    // A killed one may have left a status.
    running.until("a status", || status(fs.path())["pid"] == pid);
    running
}

/// Bytes of free extents that the drive still holds: data in the image of the loop device.
fn untrimmed(fs: &LoopFs) -> u64 {
    let directory = File::open(fs.path()).unwrap();
    must("sync", &["-f", &fs.path().to_string_lossy()]);
    let image = File::open(fs.device().image()).unwrap();
    let mut free = linux::trim::FreeSpace::open(&directory).unwrap();
    let (mut at, mut held) = (0, 0);
    while let Some(extent) = free.behind(at).unwrap() {
        at = extent.end;
        let mut from = extent.start;
        while let Ok(data) = rustix::fs::seek(image.as_fd(), SeekFrom::Data(from)) {
            if data >= extent.end {
                break;
            }
            let hole = rustix::fs::seek(image.as_fd(), SeekFrom::Hole(data)).unwrap();
            held += hole.min(extent.end) - data;
            from = hole;
        }
    }
    held
}

/// All that is free is trimmed when `drain` returns. XFS frees blocks of its own trees a little later,
/// which the next one trims.
#[track_caller]
fn nothing_is_forgotten(fs: &LoopFs) {
    let drained = (0..5).any(|_| {
        guarded(fs.path(), &["drain", "."]).succeeds();
        untrimmed(fs) == 0
    });
    assert!(drained, "{:#}", status(fs.path()));
}

fn truncated_punched_and_small(kind: Fs) {
    let Some(fs) = ground(kind, "nodiscard", 512) else {
        return;
    };
    let here = fs.path();
    let mut running = trims(&fs, &["--max-age", "10s", "--most", "50%"]);
    for name in ["cut", "holed", "gone"] {
        written(&here.join(name), 16);
    }
    fs::create_dir(here.join("small")).unwrap();
    for i in 0..500 {
        fs::write(here.join(format!("small/{i}")), [7; 9000]).unwrap();
    }
    must("sync", &["-f", &here.to_string_lossy()]);
    nothing_is_forgotten(&fs);
    let before = fs.free();
    let open = |name| File::options().write(true).open(here.join(name)).unwrap();
    open("cut").set_len(0).unwrap();
    must(
        "fallocate",
        &[
            "-p",
            "-o",
            "4M",
            "-l",
            "8M",
            &here.join("holed").to_string_lossy(),
        ],
    );
    fs::remove_file(here.join("gone")).unwrap();
    fs::remove_dir_all(here.join("small")).unwrap();
    must("sync", &["-f", &here.to_string_lossy()]);
    // XFS frees the space of unlinked files behind the call.
    running.until("the space", || fs.free() >= before + 40 * MIB as u64);
    running.until("all is trimmed", || untrimmed(&fs) == 0);
    running.until("its age", || status(here)["trim"]["age_p99_s"].is_f64());
    let found = status(here);
    assert_eq!(found["by"], "trim", "{found}");
    let trim = &found["trim"];
    assert!(
        trim["trimmed_bytes"].as_u64() >= Some(40 * MIB as u64),
        "{found}"
    );
    assert!(
        trim["age_p99_s"].as_f64() >= trim["age_p50_s"].as_f64(),
        "{found}"
    );
    let shown = guarded(here, &["status", "."]).succeeds().stdout.clone();
    for part in ["debt", "trimmed", "99 % within", "--slowdown 100%"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let holed = fs::read(here.join("holed")).unwrap();
    let is = |range: std::ops::Range<usize>, byte| holed[range].iter().all(|&b| b == byte);
    assert!(is(0..4 * MIB, 1) && is(4 * MIB..12 * MIB, 0) && is(12 * MIB..16 * MIB, 1));
    guarded(here, &["stop", "--remove", "."]).succeeds();
    running.wait().succeeds();
    assert_eq!((hidden(here), seen(here).len()), (None, 2));
}

#[test]
fn on_ext4_all_that_is_freed_is_trimmed() {
    truncated_punched_and_small(Fs::Ext4);
}

#[test]
fn on_xfs_all_that_is_freed_is_trimmed() {
    truncated_punched_and_small(Fs::Xfs);
}

/// Files come and go, many of them between two looks, while the guard is killed.
fn killed(kind: Fs) {
    let Some(fs) = ground(kind, "nodiscard", 512) else {
        return;
    };
    let here = fs.path();
    let mut random = fastrand::Rng::with_seed(26);
    let kills = times(4, 100);
    for _ in 0..kills {
        let running = trims(&fs, &["--most", "90%"]);
        let until = Instant::now() + Duration::from_millis(random.u64(50..1500));
        while Instant::now() < until {
            let name = here.join(random.u32(..30).to_string());
            if random.bool() {
                fs::write(&name, vec![random.u8(1..); random.usize(4096..2 * MIB)]).unwrap();
                File::open(&name).unwrap().sync_all().unwrap();
            } else {
                let _ = fs::remove_file(&name);
            }
        }
        running.signal(Signal::KILL);
        running.wait();
        // Unseen: nobody looks.
        let name = here.join("unseen");
        fs::write(&name, vec![9; MIB]).unwrap();
        File::open(&name).unwrap().sync_all().unwrap();
        fs::remove_file(&name).unwrap();
    }
    let running = trims(&fs, &["--most", "90%"]);
    nothing_is_forgotten(&fs);
    ended(running);
    eprintln!("{kills} kills: no debt forgotten");
}

#[test]
fn killed_at_any_moment_on_ext4_no_debt_is_forgotten() {
    killed(Fs::Ext4);
}

#[test]
fn killed_at_any_moment_on_xfs_no_debt_is_forgotten() {
    killed(Fs::Xfs);
}

/// The trims of an ended guard are certain only where nothing was used meanwhile.
#[test]
fn on_xfs_a_restart_owes_only_what_is_uncertain() {
    let Some(fs) = ground(Fs::Xfs, "nodiscard", 512) else {
        return;
    };
    let running = trims(&fs, &[]);
    nothing_is_forgotten(&fs);
    let first = ended(running);
    assert!(
        first.stderr.contains("may never have been trimmed"),
        "{}",
        first.text()
    );
    let again = ended(trims(&fs, &[]));
    assert!(!again.stderr.contains("trimmed again"), "{}", again.text());
    assert!(!again.stderr.contains("may never"), "{}", again.text());
    let name = fs.path().join("unseen");
    fs::write(&name, vec![9; 8 * MIB]).unwrap();
    File::open(&name).unwrap().sync_all().unwrap();
    fs::remove_file(&name).unwrap();
    fs.remount("ro");
    fs.remount("rw");
    let third = ended(trims(&fs, &[]));
    assert!(
        third.stderr.contains("used and freed unseen"),
        "{}",
        third.text()
    );
}

/// Small holes wait for `--min-run`, and a long run doesn't wait with them.
#[test]
fn on_ext4_short_runs_wait_for_more() {
    let Some(fs) = ground(Fs::Ext4, "nodiscard", 512) else {
        return;
    };
    let here = fs.path();
    let mut running = trims(&fs, &["--min-run", "1M", "--most", "90%"]);
    fs::create_dir(here.join("small")).unwrap();
    let small = |i: usize| here.join(format!("small/{i}"));
    (0..400).for_each(|i| fs::write(small(i), [7; 9000]).unwrap());
    written(&here.join("long"), 80);
    // The guard has to see them in use.
    must("sync", &["-f", &here.to_string_lossy()]);
    nothing_is_forgotten(&fs);
    // Every second one, so that no two touch.
    (0..400)
        .step_by(2)
        .for_each(|i| fs::remove_file(small(i)).unwrap());
    fs::remove_file(here.join("long")).unwrap();
    must("sync", &["-f", &here.to_string_lossy()]);
    running.until("the long run is trimmed, and the holes wait", || {
        let trim = &status(here)["trim"];
        let bytes = |name: &str| trim[name].as_u64().unwrap();
        (200 * 8192..8 * MIB as u64).contains(&bytes("debt_bytes"))
            && bytes("short_bytes") >= 200 * 8192
            && bytes("min_run_bytes") == MIB as u64
    });
    let held = untrimmed(&fs);
    assert!((200 * 8192..8 * MIB as u64).contains(&held), "{held}");
    let shown = guarded(here, &["status", "."]).succeeds().stdout.clone();
    assert!(
        shown.contains("in runs below 1.0 MiB wait for more"),
        "{shown}"
    );
    nothing_is_forgotten(&fs);
    ended(running);
}

#[test]
fn a_mount_with_discard_is_remounted_only_if_asked_and_given_back() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    guarded(here, &[".", "--by", "trim"]).fails_with(2, &["mounted with discard", "--remount"]);
    let has_discard = |fs: &LoopFs| fs.options().split(',').any(|option| option == "discard");
    let mut running = trims(&fs, &["--remount", "--between", "00:00-23:59"]);
    assert!(!has_discard(&fs), "{}", fs.options());
    running.until_said("remounted with nodiscard", 1);
    ended(running);
    assert!(has_discard(&fs), "{}", fs.options());
    let running = trims(&fs, &["--remount"]);
    running.signal(Signal::KILL);
    running.wait();
    let began = Instant::now();
    while !has_discard(&fs) && began.elapsed() < Duration::from_secs(15) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(has_discard(&fs), "{}", fs.options());
}

#[test]
fn xfs_with_discard_is_refused_with_the_reason() {
    let Some(fs) = ground(Fs::Xfs, "discard", 512) else {
        return;
    };
    for remount in [&["--remount"][..], &[]] {
        let arguments = [&[".", "--by", "trim"], remount].concat();
        guarded(fs.path(), &arguments).fails_with(2, &["only when it is mounted", "nodiscard"]);
    }
    assert_eq!(hidden(fs.path()), None);
}

#[test]
fn guard_picks_the_way_that_fits_and_says_why() {
    let Some(fs) = ext4("nodiscard", 512) else {
        return;
    };
    let here = fs.path();
    fs::create_dir(here.join("below")).unwrap();
    let mut running = start(guard(here, &["."]));
    running.until_said("--by trim, because ext4 is mounted without discard", 1);
    running.until("a status", || hidden(here).is_some());
    ended(running);
    guarded(here, &["below", "--by", "trim"]).fails_with(2, &["isn't where a whole file system"]);
    let mut running = start(guard(here, &["below"]));
    running.until_said("--by link, because it is a part of what is mounted at", 1);
    ended(running);
    fs.remount("discard");
    let mut running = start(guard(here, &[".", "--by", "link"]));
    running.until_said("guards files", 1);
    ended(running);
    guarded(here, &[".", "--by", "trim", "--between", "6-7"]).fails_with(2, &["times of the day"]);
}
