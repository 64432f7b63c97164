//! `trimbench guard`: what is freed in any way is trimmed, and no debt is forgotten.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::SeekFrom;
use rustix::process::Signal;

use crate::common::gate::times;
use crate::common::loop_fs::{Fs, LoopFs, must, names};
use crate::common::run::run;
use crate::guard_place::{Place, ended, place};
use crate::rm_place::{MIB, written};

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
fn nothing_is_forgotten(fs: &Place) {
    let drained = (0..5).any(|_| {
        fs.guarded(&["drain", "."]).succeeds();
        untrimmed(fs) == 0
    });
    assert!(drained, "{:#}", fs.status());
}

fn truncated_punched_and_small(kind: Fs) {
    let Some(fs) = place(kind, "nodiscard") else {
        return;
    };
    let here = fs.path();
    let mut running = fs.trims(&["--set", "max-age=10s", "--set", "most=50%"]);
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
    running.until("its age", || fs.status()["trim"]["age_p99_s"].is_f64());
    let found = fs.status();
    let trim = &found["trim"];
    assert!(
        trim["trimmed_bytes"].as_u64() >= Some(40 * MIB as u64),
        "{found}"
    );
    assert!(
        trim["age_p99_s"].as_f64() >= trim["age_p50_s"].as_f64(),
        "{found}"
    );
    let shown = fs.guarded(&["status", "."]).succeeds().stdout.clone();
    for part in ["debt", "trimmed", "99 % within", "--slowdown 100%"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let holed = fs::read(here.join("holed")).unwrap();
    let is = |range: std::ops::Range<usize>, byte| holed[range].iter().all(|&b| b == byte);
    assert!(is(0..4 * MIB, 1) && is(4 * MIB..12 * MIB, 0) && is(12 * MIB..16 * MIB, 1));
    fs.guarded(&["stop", "."]).succeeds();
    running.wait().succeeds();
    let left = names(here);
    assert!(
        !left.iter().any(|name| name.contains("trimbench")),
        "{left:?}"
    );
    fs.guarded(&["status", "."])
        .fails_with(2, &["is not guarded"]);
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
    let Some(fs) = place(kind, "nodiscard") else {
        return;
    };
    let here = fs.path();
    let mut random = fastrand::Rng::with_seed(26);
    let kills = times(4, 100);
    for _ in 0..kills {
        let running = fs.trims(&["--set", "most=90%"]);
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
    let running = fs.trims(&["--set", "most=90%"]);
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
    let Some(fs) = place(Fs::Xfs, "nodiscard") else {
        return;
    };
    let running = fs.trims(&[]);
    nothing_is_forgotten(&fs);
    let first = ended(running);
    assert!(
        first.stderr.contains("may never have been trimmed"),
        "{}",
        first.text()
    );
    let again = ended(fs.trims(&[]));
    assert!(!again.stderr.contains("trimmed again"), "{}", again.text());
    assert!(!again.stderr.contains("may never"), "{}", again.text());
    let name = fs.path().join("unseen");
    fs::write(&name, vec![9; 8 * MIB]).unwrap();
    File::open(&name).unwrap().sync_all().unwrap();
    fs::remove_file(&name).unwrap();
    fs.remount("ro");
    fs.remount("rw");
    let third = ended(fs.trims(&[]));
    assert!(
        third.stderr.contains("used and freed unseen"),
        "{}",
        third.text()
    );
}

/// Small holes wait for `min-run`, and a long run doesn't wait with them.
#[test]
fn on_ext4_short_runs_wait_for_more() {
    let Some(fs) = place(Fs::Ext4, "nodiscard") else {
        return;
    };
    let here = fs.path();
    let mut running = fs.trims(&["--set", "min-run=1M", "--set", "most=90%"]);
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
        let trim = &fs.status()["trim"];
        let bytes = |name: &str| trim[name].as_u64().unwrap();
        (200 * 8192..8 * MIB as u64).contains(&bytes("debt_bytes"))
            && trim["waits"]["short_bytes"].as_u64() >= Some(200 * 8192)
            && bytes("min_run_bytes") == MIB as u64
    });
    let held = untrimmed(&fs);
    assert!((200 * 8192..8 * MIB as u64).contains(&held), "{held}");
    let shown = fs.guarded(&["status", "."]).succeeds().stdout.clone();
    assert!(shown.contains("in runs below 1.0 MiB (min-run)"), "{shown}");
    nothing_is_forgotten(&fs);
    ended(running);
}

#[test]
fn a_mount_with_discard_is_remounted_only_if_asked_and_given_back() {
    let Some(fs) = place(Fs::Ext4, "discard") else {
        return;
    };
    for dry_run in [&[][..], &["--dry-run"]] {
        let at = fs.path().display();
        let temporary = format!("trimbench guard --remount {at}");
        let once = format!("mount -o remount,nodiscard {at}");
        let commands = ["mounted with discard", &*temporary, &*once];
        fs.guarded(&[&["."], dry_run].concat())
            .fails_with(2, &commands);
    }
    let intended = fs
        .guarded(&[".", "--remount", "-n"])
        .succeeds()
        .stdout
        .clone();
    assert!(
        intended.contains("would remount it with nodiscard, trim"),
        "{intended}"
    );
    let has_discard = |fs: &LoopFs| fs.options().split(',').any(|option| option == "discard");
    let mut running = fs.trims(&["--remount", "--set", "between=00:00-23:59"]);
    assert!(!has_discard(&fs), "{}", fs.options());
    running.until_said("remounted with nodiscard", 1);
    ended(running);
    assert!(has_discard(&fs), "{}", fs.options());
    let running = fs.trims(&["--remount"]);
    running.signal(Signal::KILL);
    running.wait();
    let began = Instant::now();
    while !has_discard(&fs) && began.elapsed() < Duration::from_secs(15) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(has_discard(&fs), "{}", fs.options());
}

#[test]
fn xfs_with_discard_is_refused_with_the_commands_that_mount_it_anew() {
    let Some(fs) = place(Fs::Xfs, "discard") else {
        return;
    };
    let (device, at) = (fs.device().path().display(), fs.path().display());
    let mount = format!("mount -t xfs -o nodiscard {device} {at}");
    let umount = format!("umount {at}");
    for remount in [&["--remount"][..], &[]] {
        let commands = ["only when it is mounted", &*umount, &mount];
        fs.guarded(&[&["."], remount].concat())
            .fails_with(2, &commands);
    }
    assert_eq!(fs.all_states(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_part_of_a_file_system_is_refused_with_the_whole() {
    let Some(fs) = place(Fs::Ext4, "nodiscard") else {
        return;
    };
    let here = fs.path();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::create_dir(here.join("below")).unwrap();
    let whole = format!("trimbench guard {}", here.display());
    fs.guarded(&["below"])
        .fails_with(2, &["is a part of the file system", &whole]);
    let [below, bound] = [here.join("below"), elsewhere.path().to_owned()];
    let [from, to] = [&below, &bound].map(|path| path.to_string_lossy().into_owned());
    must("mount", &["--bind", &from, &to]);
    let refused = run(fs.guard_in(&bound, &["."]));
    must("umount", &[&to]);
    refused.fails_with(2, &["is a part of the file system", &whole]);
    fs.guarded(&["nowhere"]).fails_with(2, &["nowhere"]);
    fs.guarded(&[".", "--set", "between=6-7"])
        .fails_with(2, &["times of the day"]);
}

#[test]
fn a_file_system_that_cannot_be_listed_or_trimmed_is_refused_with_what_helps() {
    let Some(fs) = place(Fs::Ext4, "nodiscard") else {
        return;
    };
    let tmpfs = fs.guard_in(std::path::Path::new("/dev/shm"), &["."]);
    run(tmpfs).fails_with(2, &["trimbench inspect"]);
    must("mount", &["-o", "remount,ro", &fs.path().to_string_lossy()]);
    fs.guarded(&["."])
        .fails_with(2, &["read-only", "mount -o remount,rw /"]);
}
