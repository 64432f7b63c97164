//! `trimbench guard`: files that programs delete are freed in pieces, and no other is touched.

use std::fs::{self, File};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::gate::{Need, beside, lacks};
use crate::common::loop_fs::{Fs, must};
use crate::common::run::{run, start};
use crate::guard_place::{ended, guard, guarded, hidden, second_names, seen, started, status};
use crate::rm_place::{MIB, USERS, ext4, ground, place, written};

/// A program deletes, replaces and keeps files.
fn deletes_and_replaces(kind: Fs) {
    let Some(fs) = ground(kind, "discard", 1024) else {
        return;
    };
    let here = fs.path();
    written(&here.join("before"), 24);
    let mut running = started(here, &[]);
    running.until("the file that was there", || second_names(here) == 1);
    fs::create_dir(here.join("d")).unwrap();
    for name in ["d/new", "old", "kept"] {
        written(&here.join(name), 24);
    }
    running.until("all second names", || second_names(here) == 4);
    let free = fs.free();
    let (_, before) = fs.device().discards();
    fs::remove_file(here.join("d/new")).unwrap();
    fs::remove_file(here.join("before")).unwrap();
    written(&here.join("newer"), 24);
    fs::rename(here.join("newer"), here.join("old")).unwrap();
    running.until_said("freed", 1);
    // Four files were there, and one more came.
    running.until("only those in use", || second_names(here) == 2);
    running.until("the space", || {
        fs.free() + 8 * MIB as u64 >= free + 48 * MIB as u64
    });
    let waiting = status(here);
    assert_eq!(waiting["waiting"]["files"], 0, "{waiting}");
    let (_, after) = fs.device().discards();
    assert!(after - before >= 60 * MIB as u64, "{before} {after}");
    for name in ["kept", "old"] {
        let content = fs::read(here.join(name)).unwrap();
        assert!(content.len() == 24 * MIB && content.iter().all(|&byte| byte == 1));
    }
    ended(running);
    assert_eq!((hidden(here), seen(here).len()), (None, 3));
}

#[test]
fn on_ext4_what_is_deleted_or_replaced_is_freed() {
    deletes_and_replaces(Fs::Ext4);
}

/// XFS sends its discards when its log is forced. Guard forces it after each piece, so that all are
/// sent when the file is freed, and not seconds later at once.
#[test]
fn on_xfs_the_log_is_forced_after_each_piece() {
    deletes_and_replaces(Fs::Xfs);
}

#[test]
fn on_btrfs_what_is_deleted_or_replaced_is_freed() {
    let Some(fs) = ground(Fs::Btrfs, "discard=sync", 1024) else {
        return;
    };
    let here = fs.path();
    written(&here.join("old"), 24);
    let mut running = started(here, &["--only-scan", "--scan-every", "100ms"]);
    running.until("a second name", || second_names(here) == 1);
    assert_eq!(status(here)["found_by"], "scan");
    fs::remove_file(here.join("old")).unwrap();
    running.until_said("freed 1 file", 1);
    ended(running);
    assert_eq!(hidden(here), None);
}

#[test]
fn a_file_that_is_open_waits_whole_until_it_is_closed() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    written(&here.join("used"), 8);
    let mut running = started(here, &["--most", "50%", "--keep-names"]);
    running.until("a second name", || second_names(here) == 1);
    let open = File::open(here.join("used")).unwrap();
    fs::remove_file(here.join("used")).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(open.metadata().unwrap().len(), 8 * MIB as u64);
    let content = std::io::read_to_string(&open).unwrap();
    assert!(content.len() == 8 * MIB && content.bytes().all(|byte| byte == 1));
    assert_eq!(status(here)["waiting"]["files"], 1);
    drop(open);
    running.until_said("freed 1 file", 1);
    ended(running);
}

#[test]
fn a_file_with_another_name_is_never_opened_or_changed() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    written(&here.join("one"), 4);
    fs::hard_link(here.join("one"), here.join("two")).unwrap();
    let mut running = started(here, &[]);
    running.until("a second name", || second_names(here) == 1);
    fs::remove_file(here.join("one")).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let content = fs::read(here.join("two")).unwrap();
    assert!(content.len() == 4 * MIB && content.iter().all(|&byte| byte == 1));
    fs::remove_file(here.join("two")).unwrap();
    running.until_said("freed 1 file", 1);
    ended(running);
}

#[test]
fn its_goal_is_changed_while_it_runs() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let goal = [
        ".",
        "--min-size",
        "1M",
        "--slowdown",
        "5%",
        "--max-latency",
        "50ms",
        "--deadline",
        "1h",
        "--profile",
        "ideal",
        "--quiet",
        "--any-owner",
    ];
    let mut running = start(guard(here, &goal));
    running.until("a status", || {
        hidden(here).is_some_and(|hidden| here.join(hidden).join("status").exists())
    });
    assert_eq!(status(here)["goal"]["slowdown"], 0.05);
    guarded(
        here,
        &["set", "--slowdown", "30%", "--max-latency", "20ms", "."],
    )
    .succeeds();
    running.until("the new goal", || status(here)["goal"]["slowdown"] == 0.3);
    assert_eq!(status(here)["goal"]["max_latency_ms"], 20.0);
    let shown = guarded(here, &["status", "."]).succeeds().stdout.clone();
    for part in ["guarded by process", "--slowdown 30%", "1.0 MiB or more"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let figures = guarded(here, &["status", "--metrics", "-", "."]);
    for part in [
        "guard_up{directory=\".\"} 1.0",
        "goal_slowdown_ratio{directory=\".\"} 0.3",
        "# EOF",
    ] {
        assert!(
            figures.succeeds().stdout.contains(part),
            "{}",
            figures.text()
        );
    }
    guarded(here, &["status", "--metrics", "lost+found/g.prom", "."]).succeeds();
    let file = fs::read_to_string(here.join("lost+found/g.prom")).unwrap();
    assert!(file.contains("guard_up{directory=\".\"} 1.0"), "{file}");
    assert_eq!(ended(running).stderr, "");
    guarded(here, &["set", "--slowdown", "30%", "."]).fails_with(2, &["is not guarded"]);
    guarded(here, &["status", "."]).fails_with(2, &["is not guarded"]);
}

#[test]
fn stop_removes_all_and_drain_waits_for_it() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    written(&here.join("kept"), 4);
    written(&here.join("old"), 8);
    let mut running = started(here, &[]);
    running.until("second names", || second_names(here) == 2);
    fs::remove_file(here.join("old")).unwrap();
    guarded(here, &["drain", "."]).succeeds();
    assert_eq!(second_names(here), 1);
    guarded(here, &["stop", "--remove", "."]).succeeds();
    running.wait().succeeds();
    assert_eq!(hidden(here), None);
    assert_eq!(seen(here), ["kept"]);
    guarded(here, &["stop", "."]).succeeds();
}

#[test]
fn what_is_deleted_while_no_guard_runs_is_freed_at_the_next_start() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    for name in ["kept", "old", "older"] {
        written(&here.join(name), 8);
    }
    let mut running = started(here, &["--keep-names"]);
    running.until("second names", || second_names(here) == 3);
    let done = ended(running);
    assert!(
        done.stderr
            .contains("3 files in use keep their second name"),
        "{}",
        done.stderr
    );
    fs::remove_file(here.join("old")).unwrap();
    assert_eq!(status(here)["waiting"]["files"], 1);
    let mut running = started(here, &["--keep-names"]);
    running.until_said("were deleted while no guard ran", 1);
    running.until_said("freed 1 file", 1);
    ended(running);
    fs::remove_file(here.join("older")).unwrap();
    // The same without a guard.
    guarded(here, &["stop", "--remove", "."]).succeeds();
    assert_eq!((hidden(here), seen(here)), (None, vec!["kept".to_owned()]));
}

#[test]
fn a_second_guard_there_or_below_is_refused() {
    let (_outer, here) = place();
    fs::create_dir(here.join("below")).unwrap();
    let _turn = beside();
    let running = started(&here, &[]);
    guarded(&here, &["."]).fails_with(2, &["is guarded already (by process"]);
    guarded(&here, &["below"]).fails_with(2, &["would never be freed"]);
    guarded(&here, &["nowhere"]).fails_with(1, &["open the directory"]);
    fs::write(here.join("file"), "").unwrap();
    guarded(&here, &["file"]).fails_with(2, &["is not a directory"]);
    ended(running);
    let running = started(&here.join("below"), &[]);
    ended(running);
}

/// A descriptor instead of a second name: the link count stays, and nothing is left in the directory.
#[test]
fn a_descriptor_keeps_a_deleted_file_too() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    written(&here.join("kept"), 8);
    let mut running = started(here, &["--hold", "fd"]);
    running.until("a file that is held", || {
        status(here)["guarded"]["files"] == 1
    });
    written(&here.join("old"), 24);
    running.until("two", || status(here)["guarded"]["files"] == 2);
    let links = std::os::unix::fs::MetadataExt::nlink(&here.join("old").metadata().unwrap());
    assert_eq!((links, second_names(here)), (1, 0));
    let (free, (_, before)) = (fs.free(), fs.device().discards());
    fs::remove_file(here.join("old")).unwrap();
    running.until_said("freed 1 file with 24.0 MiB", 1);
    running.until("the space", || fs.free() >= free + 20 * MIB as u64);
    let (_, after) = fs.device().discards();
    assert!(after - before >= 20 * MIB as u64, "{before} {after}");
    ended(running);
    assert_eq!((hidden(here), seen(here)), (None, vec!["kept".to_owned()]));
    // A file that waits under a second name is held, and freed.
    let mut running = started(here, &["--keep-names"]);
    running.until("a second name", || second_names(here) == 1);
    ended(running);
    fs::remove_file(here.join("kept")).unwrap();
    let mut running = started(here, &["--hold", "fd"]);
    running.until_said("freed 1 file", 1);
    ended(running);
    assert_eq!((hidden(here), seen(here).len()), (None, 0));
}

/// More waits than may, and then nothing is free: what a program deletes comes back at once.
#[test]
fn a_full_disk_gets_its_space_back_at_once() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let before = fs.free();
    let arguments = [".", "--min-size", "1M", "--most", "0.1%"];
    let mut running = start(guard(here, &arguments));
    running.until("a hidden directory", || hidden(here).is_some());
    for name in ["one", "two", "kept"] {
        written(&here.join(name), 48);
    }
    running.until("second names", || second_names(here) == 3);
    fs::remove_file(here.join("one")).unwrap();
    running.until_said("more than 0.1 % of the file system waits to be freed", 1);
    fs::remove_file(here.join("two")).unwrap();
    // Takes what becomes free, so that there is nothing until the guard says so.
    let full = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut filler = File::create(here.join("filler")).unwrap();
            let until = Instant::now() + Duration::from_secs(60);
            while !full.load(Ordering::Relaxed) && Instant::now() < until {
                if std::io::Write::write_all(&mut filler, &vec![3; MIB]).is_err() {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        });
        running.until_said("less than 1 % of the file system is free", 1);
        full.store(true, Ordering::Relaxed);
    });
    running.until("nothing waits", || status(here)["waiting"]["files"] == 0);
    fs::remove_file(here.join("filler")).unwrap();
    running.until("all space but that of the last file", || {
        fs.free() + 64 * MIB as u64 > before
    });
    let kept = fs::read(here.join("kept")).unwrap();
    assert!(kept.len() == 48 * MIB && kept.iter().all(|&byte| byte == 1));
    ended(running);
}

#[test]
fn a_read_only_file_system_is_refused() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    must("mount", &["-o", "remount,ro", &fs.path().to_string_lossy()]);
    guarded(fs.path(), &["."]).fails_with(2, &["read-only", "rw"]);
}

#[test]
fn where_openat2_is_forbidden_it_says_so_and_ends() {
    if lacks(&[Need::Tool("strace")]) {
        return;
    }
    let _turn = beside();
    let (_outer, here) = place();
    let ours = guard(&here, &[".", "--by", "link"]);
    let mut traced = Command::new("strace");
    traced.args(["-f", "-o", "/dev/null", "-e", "inject=openat2:error=ENOSYS"]);
    traced.arg(ours.get_program()).args(ours.get_args());
    traced.current_dir(&here);
    for (name, value) in ours.get_envs() {
        traced.env(name, value.unwrap_or_default());
    }
    run(traced).fails_with(2, &["openat2", "RestrictSUIDSGID"]);
    assert_eq!(hidden(&here), None);
}

#[test]
fn a_dry_run_says_what_it_would_have_caught() {
    let (_outer, here) = place();
    let _turn = beside();
    for name in ["large", "small", "cut"] {
        written(&here.join(name), if name == "small" { 1 } else { 4 });
    }
    let arguments = [
        ".",
        "--min-size",
        "2M",
        "--dry-run",
        "--for",
        "3s",
        "--scan-every",
        "200ms",
    ];
    let running = start(guard(&here, &arguments));
    std::thread::sleep(Duration::from_millis(1500));
    fs::remove_file(here.join("large")).unwrap();
    fs::remove_file(here.join("small")).unwrap();
    File::options()
        .write(true)
        .open(here.join("cut"))
        .unwrap()
        .set_len(0)
        .unwrap();
    let done = running.wait();
    let text = &done.succeeds().stdout;
    for part in [
        "freed 9.0 MiB here",
        "44 %  1 file deleted of 2.0 MiB or more",
        "11 %  1 file",
        "by truncating",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(hidden(&here), None);
    guarded(&here, &[".", "--dry-run"]).fails_with(2, &["--for"]);
}

/// A user guards files of its own, and none of others.
#[test]
fn a_user_guards_its_own_files() {
    let (_outer, here) = place();
    let _turn = beside();
    if lacks(USERS) {
        return;
    }
    let user = 65_534;
    for directory in [here.parent().unwrap(), &here] {
        std::os::unix::fs::chown(directory, Some(user), Some(user)).unwrap();
    }
    written(&here.join("roots"), 4);
    written(&here.join("own"), 4);
    std::os::unix::fs::chown(here.join("own"), Some(user), Some(user)).unwrap();
    let mut mode = fs::metadata(here.join("own")).unwrap().permissions();
    mode.set_readonly(true);
    fs::set_permissions(here.join("own"), mode).unwrap();
    let copy = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir_in("/dev/shm")
        .unwrap();
    let binary = crate::common::run::copied_to(copy.path());
    let mut command = std::process::Command::new("setpriv");
    command
        .args(["--clear-groups", "--reuid=65534", "--regid=65534"])
        .arg(&binary)
        .args(["guard", ".", "--min-size", "1M", "--scan-every", "100ms"])
        .current_dir(&here);
    let mut running = start(command);
    running.until_said("found by a scan", 1);
    running.until("a second name", || second_names(&here) == 1);
    fs::remove_file(here.join("own")).unwrap();
    fs::remove_file(here.join("roots")).unwrap();
    running.until_said("freed 1 file", 1);
    ended(running);
    assert_eq!(hidden(&here), None);
}

#[test]
fn an_image_store_is_refused_unless_little_may_wait() {
    let (_outer, here) = place();
    let _turn = beside();
    let layers = here.join("overlay2");
    for directory in [&layers, &here.join("image")] {
        fs::create_dir(directory).unwrap();
    }
    guarded(&layers, &[".", "--by", "link"])
        .fails_with(2, &["image store of Docker", "--by trim", "--most 2%"]);
    assert_eq!(hidden(&layers), None);
    ended(started(&layers, &["--most", "2%"]));
}
