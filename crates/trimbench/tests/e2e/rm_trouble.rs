//! `trimbench rm` where the disk, the system or other users get in its way. It has the right exit
//! code and a clear message, and leaves nothing half-deleted in sight that could be out of it.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::common::gate::{beside, lacks, times};
use crate::common::loop_fs::{must, names, unmount};
use crate::common::run::{run, start};
use crate::lab_drive::{NEEDS, OwnLab};
use crate::rm_place::{
    MIB, SLOW, USERS, ext4, half_way, place, removed, removed_as, rm, seen, tree, written,
};

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn a_drive_that_fails_half_way() {
    let _turn = beside();
    if lacks(NEEDS) {
        return;
    }
    let lab = OwnLab::new();
    let mount = lab.mount();
    let name = text(Path::new(lab.dir().file_name().unwrap()));
    let options = "--profile ideal --size 512M --fs ext4 -o discard --mount";
    let mut options: Vec<&str> = options.split(' ').collect();
    let mounted = text(&mount);
    options.push(&mounted);
    let device = text(&lab.up(&name, &options));
    let fault = |words: &[&str]| {
        lab.lab(&[&["fault", &name], words].concat()).succeeds();
    };
    let again = || {
        unmount(&mounted);
        // The journal was aborted: as anybody would after such a drive.
        let _ = Command::new("e2fsck").args(["-fy", &device]).output();
        must("mount", &["-o", "discard", &device, &mounted]);
    };
    // What can't be read stays, and is told.
    tree(&mount.join("t"));
    again();
    fault(&["read", "error"]);
    let done = removed(&mount, &["-r", "t"]);
    fault(&["clear"]);
    done.fails_with(1, &["Input/output error"]);
    again();
    assert_eq!(
        fs::read_to_string(mount.join("t/b/c/three")).unwrap(),
        "b/c/three"
    );

    // Discards that fail are never paid: all goes nevertheless, and it is said.
    written(&mount.join("big"), 8);
    fault(&["discard", "error"]);
    let done = removed(&mount, &["-r", "t", "big", "--slowdown", "100%"]);
    fault(&["clear"]);
    done.succeeds();
    assert_eq!(seen(&mount), [""; 0]);

    // The journal can't be written any more: out of sight, and gone on with once it can.
    fs::create_dir(mount.join("t")).unwrap();
    written(&mount.join("t/big"), 32);
    let mut running = start(rm(&mount, &[&["-r", "t"], &SLOW[..]].concat()));
    running.until("a piece on the disk", || half_way(&mount));
    fault(&["write", "error"]);
    let done = running.wait();
    fault(&["clear"]);
    // Which of the two it meets first depends on the moment; the second says what to do.
    let failed = ["Input/output error", "Read-only file system"];
    assert!(
        failed.iter().any(|said| done.stderr.contains(said)),
        "{}",
        done.text()
    );
    done.fails_with(1, &["cannot ", "--resume"]);
    again();
    assert_eq!(seen(&mount), ["trash"]);
    removed(&mount, &["--resume", "--slowdown", "100%"]).succeeds();
    assert_eq!(seen(&mount), [""; 0]);
}

#[test]
fn read_only_half_way() {
    let Some(fs) = ext4("discard,errors=remount-ro", 512) else {
        return;
    };
    let here = fs.path();
    fs::create_dir(here.join("t")).unwrap();
    written(&here.join("t/big"), 32);
    let mut running = start(rm(here, &[&["-r", "t"], &SLOW[..]].concat()));
    running.until("a piece on the disk", || half_way(here));
    let device = fs.device().path().file_name().unwrap();
    let trigger = Path::new("/sys/fs/ext4")
        .join(device)
        .join("trigger_fs_error");
    fs::write(trigger, "1").unwrap();
    let done = running.wait();
    // At whatever moment it came: by the name that was given, and what to do.
    let words = [
        "cannot remove 't",
        "Read-only file system",
        "dmesg",
        "--resume",
    ];
    done.fails_with(1, &words);
    assert_eq!(done.stderr.lines().count(), 2, "{}", done.text());
    assert_eq!(seen(here), ["trash"]);
    let (device, mount) = (text(fs.device().path()), text(here));
    unmount(&mount);
    must("mount", &["-o", "discard", &device, &mount]);
    removed(here, &["--resume", "--slowdown", "100%"]).succeeds();
    assert_eq!(seen(here), [""; 0]);
}

#[test]
fn little_space_lifts_the_pace() {
    let Some(fs) = ext4("discard", 256) else {
        return;
    };
    let here = fs.path();
    written(&here.join("big"), 64);
    let hog = File::create(here.join("theirs")).unwrap();
    let (flags, size) = (rustix::fs::FallocateFlags::empty(), fs.free() - (1 << 20));
    rustix::fs::fallocate(&hog, flags, 0, size).unwrap();
    let done = removed(here, &["big", "--slowdown", "1%"]);
    assert!(
        done.succeeds().stderr.contains("little space is free"),
        "{}",
        done.text()
    );
    assert_eq!(seen(here), ["theirs"]);
}

#[test]
fn what_vanishes_meanwhile_is_no_failure() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    // Somebody tidies up the trash.
    fs::create_dir(here.join("t")).unwrap();
    for name in ["a", "b", "c"] {
        written(&here.join("t").join(name), 4);
    }
    let mut running = start(rm(here, &[&["-r", "t"], &SLOW[..]].concat()));
    running.until("the trash", || seen(here) == ["trash"]);
    let trash = names(here).remove(0);
    // What is in it changes meanwhile.
    while here.join(&trash).exists() {
        let _ = fs::remove_dir_all(here.join(&trash));
    }
    running.wait().succeeds();
    assert_eq!(seen(here), [""; 0]);
    // Two at the same tree, and rm.
    for round in 0..times(5, 100) {
        for directory in 0..20 {
            let directory = here.join(format!("t/{directory}"));
            fs::create_dir_all(&directory).unwrap();
            for number in 0..40 {
                fs::write(directory.join(number.to_string()), [1; 5000]).unwrap();
            }
        }
        let quick = ["-rf", "--set", "trash=false", "--slowdown", "100%", "t"];
        let ours = [start(rm(here, &quick)), start(rm(here, &quick))];
        let mut theirs = Command::new("rm");
        theirs.args(["-rf", "t"]).current_dir(here);
        let theirs = (round % 2 == 0).then(|| run(theirs));
        for running in ours {
            running.wait().succeeds();
        }
        drop(theirs);
        assert_eq!(seen(here), [""; 0]);
    }
}

#[test]
fn what_must_not_change_keeps_name_and_content() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let attributes = |change: &str, name: &str| must("chattr", &[change, &text(&here.join(name))]);
    for flag in ["i", "a"] {
        let (set, clear) = (format!("+{flag}"), format!("-{flag}"));
        fs::create_dir_all(here.join("t/d")).unwrap();
        for name in ["t/big", "t/d/in", "alone"] {
            written(&here.join(name), 2);
        }
        for name in ["t/big", "t/d", "alone"] {
            attributes(&set, name);
        }
        let done = removed(here, &["-r", "t", "alone", "--slowdown", "100%"]);
        let kept: Vec<u64> = ["t/big", "t/d/in", "alone"]
            .iter()
            .map(|name| fs::metadata(here.join(name)).map_or(0, |found| found.len()))
            .collect();
        for name in ["t/big", "t/d", "alone"] {
            attributes(&clear, name);
        }
        let stays = |name: &str| format!("cannot remove '{name}': Operation not permitted");
        done.fails_with(1, &[&stays("t/big"), &stays("t/d/in"), &stays("alone")]);
        assert_eq!(seen(here), ["alone", "t"], "+{flag}: {}", done.text());
        assert_eq!(kept, [2 << 20; 3], "+{flag}");
        removed(here, &["-r", "t", "alone", "--slowdown", "100%"]).succeeds();
        assert_eq!(seen(here), [""; 0]);
    }
}

#[test]
fn without_permission_it_says_so() {
    if lacks(USERS) {
        return;
    }
    let (outer, place) = place();
    must("chmod", &["755", &text(outer.path())]);
    let make = |name: &str| {
        let at = place.join(name);
        tree(&at);
        fs::create_dir_all(at.join("closed/x")).unwrap();
        must("chmod", &["555", &text(&at.join("b"))]);
        must("chmod", &["0", &text(&at.join("closed"))]);
        must("chown", &["-R", "65534:65534", &text(&at)]);
    };
    // Their tree in their directory: all but what they may not.
    must("chown", &["65534", &text(&place)]);
    make("t");
    let done = removed_as(65534, &place, &["-rf", "t"]);
    let said = "cannot remove 't/b/two': Permission denied";
    done.fails_with(1, &[said, "cannot remove 't/closed': Permission denied"]);
    assert_eq!(seen(&place), ["t"]);
    assert_eq!(names(&place.join("t")), ["b", "closed"]);
    // In somebody else's directory: what is in it, and it says why in place.
    must("chown", &["0", &text(&place)]);
    must("rm", &["-rf", &text(&place.join("t"))]);
    make("t");
    let done = removed_as(65534, &place, &["-r", "t"]);
    done.fails_with(
        1,
        &["no trash can be made beside it: Permission denied", said],
    );
    assert_eq!(seen(&place), ["t"]);
    assert!(!place.join("t/one").exists());
}

#[test]
fn what_has_to_stay_stays_whole() {
    if lacks(USERS) {
        return;
    }
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    fs::create_dir_all(here.join("t/locked")).unwrap();
    written(&here.join("t/locked/big"), 2);
    must("chown", &["-R", "65534:65534", &text(here)]);
    must("chmod", &["555", &text(&here.join("t/locked"))]);
    // Its owner may write to it, and not remove its name.
    for way in [
        &["-rf", "t"][..],
        &["-rf", "--set", "trash=false", "t"],
        &["-f", "t/locked/big"],
    ] {
        let done = removed_as(65534, here, way);
        done.fails_with(1, &["cannot remove 't/locked/big': Permission denied"]);
        let kept = fs::metadata(here.join("t/locked/big")).unwrap();
        assert_eq!(kept.len(), 2 << 20, "{}", done.text());
    }
}

#[test]
fn what_goes_at_once_because_it_cannot_be_written_is_said() {
    if lacks(USERS) {
        return;
    }
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    must("chown", &["65534:65534", &text(here)]);
    // Theirs is the directory, so that it may go, but not the file.
    for way in [&["-f", "big"][..], &["-f", "--set", "trash=false", "big"]] {
        written(&here.join("big"), 2);
        let done = removed_as(65534, here, way);
        let said =
            "1 file of 2.0 MiB was freed at once, not in pieces: opening for writing failed: ";
        assert!(done.succeeds().stderr.contains(said), "{}", done.text());
        assert!(!here.join("big").exists());
    }
}

#[test]
fn in_place_and_full_speed_are_said() {
    let Some(fs) = ext4("nodiscard", 64) else {
        return;
    };
    let here = fs.path();
    tree(&here.join("t"));
    written(&here.join("big"), 2);
    let done = removed(here, &["-r", "t", "big", "--set", "trash=false"]);
    let said = &done.succeeds().stderr;
    assert_eq!(said.matches("at full speed").count(), 1, "{}", done.text());
    assert!(said.contains("mounted without discard"), "{}", done.text());
    assert!(
        said.contains("'t' was removed in place: as asked"),
        "{}",
        done.text()
    );
    // Nothing is said of what is over at once anyway.
    fs::write(here.join("small"), "").unwrap();
    assert_eq!(removed(here, &["small"]).succeeds().stderr, "");
    // Stopped in place: what is left is in sight, and that is said.
    fs.remount("discard");
    must("chmod", &["700", &text(here)]);
    written(&here.join("big"), 16);
    let mut running = start(rm(
        here,
        &[&["--set", "trash=false", "big"], &SLOW[..]].concat(),
    ));
    running.until("it is shorter", || {
        fs::metadata(here.join("big")).unwrap().len() < 16 * MIB as u64
    });
    running.signal(Signal::TERM);
    let done = running.wait();
    done.fails_with(
        143,
        &[
            "interrupted",
            "what is left of 'big', if anything, is where it was",
        ],
    );
    assert_eq!(seen(here), ["big"]);
}
