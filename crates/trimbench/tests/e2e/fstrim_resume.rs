//! `trimbench fstrim` interrupted, killed, and gone on with.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::fstrim::{fstrim, is_remembered, trimmed, used};
use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, must};
use crate::common::run::start;

/// The one note that is there, if there is one.
fn note(states: &Path) -> Option<PathBuf> {
    let all = fs::read_dir(states).unwrap();
    let mut paths = all.map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|end| end == "json"))
}

fn position(states: &Path) -> u64 {
    let text = note(states).and_then(|path| fs::read_to_string(path).ok());
    let value: Option<serde_json::Value> = text.and_then(|text| serde_json::from_str(&text).ok());
    value.map_or(0, |value| value["position"].as_u64().unwrap())
}

#[test]
fn stopped_or_killed_it_goes_on() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    let made = used(Fs::Ext4);
    let at = made.path().to_string_lossy().into_owned();
    // A group every quarter of a second: half a second has seen some, and not all.
    let slow = ["--rate", "300M", "--resume", &at];
    let mut first = start(fstrim(states.path(), &slow));
    first.until("the first windows are noted", || {
        position(states.path()) > 0
    });
    first.signal(Signal::KILL);
    first.wait();
    let killed = position(states.path());
    assert!(killed > 0 && killed < 1 << 30, "{killed}");

    let mut second = start(fstrim(states.path(), &slow));
    second.until("it went on", || position(states.path()) > killed);
    second.signal(Signal::TERM);
    let stopped = second.wait();
    stopped.fails_with(
        130,
        &[
            "goes on after",
            "interrupted at",
            "trimbench fstrim --resume",
        ],
    );
    let left = position(states.path());
    assert!(left > killed, "{left} {killed}");

    let last = trimmed(states.path(), &["--resume", "--slowdown", "50%", &at]);
    assert!(
        last.succeeds().stderr.contains("goes on after"),
        "{}",
        last.text()
    );
    assert_eq!(note(states.path()), None, "it is done");
    let twin = used(Fs::Ext4);
    must("fstrim", &[&twin.path().to_string_lossy()]);
    let difference = made
        .device()
        .allocated()
        .abs_diff(twin.device().allocated());
    assert!(difference < 6 << 20, "{difference}");
}

#[test]
fn a_note_that_is_not_ours_is_refused_and_replaced_only_without_resume() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    let made = used(Fs::Ext4);
    let at = made.path().to_string_lossy().into_owned();
    let mut slow = start(fstrim(states.path(), &["--rate", "200M", &at]));
    slow.until("it is noted", || position(states.path()) > 0);
    slow.signal(Signal::INT);
    slow.wait().fails_with(130, &["--resume"]);
    let path = note(states.path()).unwrap();
    let good = fs::read_to_string(&path).unwrap();
    let refused = |text: &str, said: &str| {
        fs::write(&path, text).unwrap();
        let done = trimmed(states.path(), &["--resume", &at]);
        done.fails_with(1, &[said, "without --resume"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "it is left");
    };
    refused("{}", "no state of a trim");
    refused("\u{0}\u{7f}", "no state of a trim");
    refused(&good.replace("fstrim/1", "fstrim/2"), "form");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
    trimmed(states.path(), &["--resume", &at]).fails_with(1, &["symbolic link"]);
    // Only some of it was asked for: whoever asks for all begins anew.
    fs::remove_file(&path).unwrap();
    let part = good.replace("\"minimum\":0", "\"minimum\":4096");
    assert_ne!(part, good);
    fs::write(&path, &part).unwrap();
    let done = trimmed(states.path(), &["--resume", "--slowdown", "50%", &at]);
    let said = &done.succeeds().stderr;
    assert!(
        said.contains("--minimum: it begins anew"),
        "{}",
        done.text()
    );
    assert!(!path.exists(), "it is done");
    // The file system grows between both.
    fs::write(&path, &good).unwrap();
    let device = made.device().path().to_string_lossy().into_owned();
    must("umount", &[&at]);
    made.device().resize(1280);
    // Mounted, it would take CAP_SYS_RESOURCE.
    must("resize2fs", &["-f", &device]);
    must("mount", &["-o", "nodiscard", &device, &at]);
    let grown = trimmed(states.path(), &["-v", "--resume", "--slowdown", "50%", &at]);
    let said = &grown.succeeds().stderr;
    assert!(said.contains("it begins anew"), "{}", grown.text());
    assert!(!path.exists() && Path::new("/etc/hostname").exists());
    is_remembered(made.path(), &grown);
}

/// What was noted can't be removed: a directory has taken its place.
#[test]
fn one_that_is_done_is_done_whatever_stays_noted() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    let made = used(Fs::Ext4);
    let at = made.path().to_string_lossy().into_owned();
    let mut slow = start(fstrim(states.path(), &["-v", "--rate", "500M", &at]));
    slow.until("it is noted", || position(states.path()) > 0);
    let path = note(states.path()).unwrap();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let done = slow.wait();
    assert!(
        done.succeeds().stdout.contains("trimmed"),
        "{}",
        done.text()
    );
    let said = &done.stderr;
    assert!(said.contains("what was noted stays"), "{}", done.text());
}

/// Nothing is left behind by a wait that is never met.
#[test]
fn it_stops_at_once() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    let made = used(Fs::Ext4);
    let at = made.path().to_string_lossy().into_owned();
    let mut never = start(fstrim(states.path(), &["--rate", "1k", &at]));
    never.until("it has begun", || note(states.path()).is_some());
    std::thread::sleep(Duration::from_millis(300));
    never.signal(Signal::TERM);
    never.wait().fails_with(130, &["interrupted at"]);
}
