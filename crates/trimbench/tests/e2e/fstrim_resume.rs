//! `trimbench fstrim` interrupted, killed, and gone on with.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use super::fstrim::{fstrim, is_remembered, trimmed, used};
use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, must, unmount};
use crate::common::run::{Done, Running, start};

/// A file system to be trimmed, and the directory in which it is noted how far that is.
struct Trim {
    states: TempDir,
    made: LoopFs,
    at: String,
}

impl Trim {
    fn new() -> Trim {
        let made = used(Fs::Ext4);
        Trim {
            states: tempfile::tempdir().unwrap(),
            at: made.path().to_string_lossy().into_owned(),
            made,
        }
    }

    fn arguments<'a>(&'a self, options: &[&'a str]) -> Vec<&'a str> {
        [options, &[self.at.as_str()]].concat()
    }

    fn start(&self, options: &[&str]) -> Running {
        start(fstrim(self.states.path(), &self.arguments(options)))
    }

    fn run(&self, options: &[&str]) -> Done {
        trimmed(self.states.path(), &self.arguments(options))
    }

    /// The one note that is there, if there is one.
    fn note(&self) -> Option<PathBuf> {
        let all = fs::read_dir(self.states.path()).unwrap();
        let mut paths = all.map(|entry| entry.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|end| end == "json"))
    }

    fn position(&self) -> u64 {
        let text = self.note().and_then(|path| fs::read_to_string(path).ok());
        let value: Option<serde_json::Value> =
            text.and_then(|text| serde_json::from_str(&text).ok());
        value.map_or(0, |value| value["position"].as_u64().unwrap())
    }
}

#[test]
fn stopped_or_killed_it_goes_on() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let trim = Trim::new();
    // A group takes more than half a second: between two looks it can't have seen all.
    let slow = ["--set", "rate=200M", "--resume"];
    let mut first = trim.start(&slow);
    first.until("the first windows are noted", || trim.position() > 0);
    first.signal(Signal::KILL);
    first.wait();
    let killed = trim.position();
    assert!(killed > 0 && killed < 1 << 30, "{killed}");
    // A part that is trimmed in between leaves that alone.
    let part = ["--slowdown", "50%", "--offset", "896M", "--length", "64M"];
    trim.run(&part).succeeds();
    assert_eq!(trim.position(), killed);

    let mut second = trim.start(&slow);
    second.until("it went on", || trim.position() > killed);
    second.signal(Signal::TERM);
    let stopped = second.wait();
    stopped.fails_with(
        143,
        &[
            "goes on after",
            "interrupted at",
            "trimbench fstrim --resume --set=rate=200M '",
        ],
    );
    let left = trim.position();
    assert!(left > killed, "{left} {killed}");

    let last = trim.run(&["--resume", "--slowdown", "50%"]);
    assert!(
        last.succeeds().stderr.contains("goes on after"),
        "{}",
        last.text()
    );
    assert_eq!(trim.note(), None, "it is done");
    let twin = used(Fs::Ext4);
    must("fstrim", &[&twin.path().to_string_lossy()]);
    let difference = trim
        .made
        .device()
        .allocated()
        .abs_diff(twin.device().allocated());
    assert!(difference < 6 << 20, "{difference}");
}

#[test]
fn a_note_that_is_not_believed_is_said_and_it_begins_anew() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let trim = Trim::new();
    let mut slow = trim.start(&["--set", "rate=200M"]);
    slow.until("it is noted", || trim.position() > 0);
    slow.signal(Signal::INT);
    slow.wait().fails_with(130, &["--resume"]);
    let path = trim.note().unwrap();
    let good = fs::read_to_string(&path).unwrap();
    // Or a timer that meets one would trim nothing, week after week.
    let anew = |said: &str| {
        let done = trim.run(&["--resume", "--slowdown", "50%"]);
        let told = &done.succeeds().stderr;
        assert!(
            told.contains(said) && told.contains("it begins anew"),
            "{said}: {}",
            done.text()
        );
        assert!(!path.exists(), "it is done");
    };
    for (text, said) in [
        ("{}", "no state of a trim"),
        ("\u{0}\u{7f}", "no state of a trim"),
        (
            &good.replace("fstrim/1", "fstrim/2"),
            "wrote it as trimbench.fstrim/2",
        ),
    ] {
        fs::write(&path, text).unwrap();
        anew(said);
    }
    std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
    anew("symbolic link");
    // Only some of it was asked for: whoever asks for all begins anew.
    let part = good.replace("\"minimum\":0", "\"minimum\":4096");
    assert_ne!(part, good);
    fs::write(&path, &part).unwrap();
    let done = trim.run(&["--resume", "--slowdown", "50%"]);
    let said = &done.succeeds().stderr;
    assert!(
        said.contains("--minimum: it begins anew"),
        "{}",
        done.text()
    );
    assert!(!path.exists(), "it is done");
    // The file system grows between both.
    fs::write(&path, &good).unwrap();
    let device = trim.made.device().path().to_string_lossy().into_owned();
    unmount(&trim.at);
    trim.made.device().resize(1280);
    // Mounted, it would take CAP_SYS_RESOURCE.
    must("resize2fs", &["-f", &device]);
    must("mount", &["-o", "nodiscard", &device, &trim.at]);
    let grown = trim.run(&["-v", "--resume", "--slowdown", "50%"]);
    let said = &grown.succeeds().stderr;
    assert!(said.contains("it begins anew"), "{}", grown.text());
    assert!(!path.exists() && Path::new("/etc/hostname").exists());
    is_remembered(trim.made.path(), &grown);
}

/// The note can't be removed, because a directory has its name.
#[test]
fn one_that_is_done_is_done_whatever_stays_noted() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let trim = Trim::new();
    let mut slow = trim.start(&["-v", "--set", "rate=200M"]);
    slow.until("it is noted", || trim.position() > 0);
    let path = trim.note().unwrap();
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
    let trim = Trim::new();
    let mut never = trim.start(&["--set", "rate=1k"]);
    never.until("it has begun", || trim.note().is_some());
    std::thread::sleep(Duration::from_millis(300));
    never.signal(Signal::TERM);
    never.wait().fails_with(143, &["interrupted at"]);
}
