//! `trimbench rm` and signals that aren't to end it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::common::run::start;
use crate::rm_place::{SLOW, ext4, removed, seen, written};

/// `trimbench rm` in a directory, by a shell that does something before.
fn rm_after(before: &str, directory: &Path, arguments: &[&str]) -> Command {
    let line = format!("{before}; exec \"$0\" rm \"$@\"");
    let mut command = Command::new("sh");
    command
        .args(["-c", &line, env!("CARGO_BIN_EXE_trimbench")])
        .args(arguments)
        .current_dir(directory)
        .env("XDG_STATE_HOME", directory.join("lost+found/state"));
    command
}

/// As under `nohup`, and as what a script starts in the background.
#[test]
fn what_it_was_started_to_ignore_does_not_stop_it() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let slowly = [&["big"], &SLOW[..]].concat();
    for (name, ignored) in [("HUP", Signal::HUP), ("INT", Signal::INT)] {
        let before = format!("trap '' {name}");
        for stopped in [false, true] {
            // Long enough to be stopped, or else soon over.
            written(&here.join("big"), if stopped { 16 } else { 6 });
            let mut running = start(rm_after(&before, here, &slowly));
            running.until("the trash", || seen(here) == ["trash"]);
            running.signal(ignored);
            // Twice would end it at once.
            std::thread::sleep(Duration::from_millis(50));
            running.signal(ignored);
            if stopped {
                running.signal(Signal::TERM);
                running.wait().fails_with(143, &["interrupted", "--resume"]);
                removed(here, &["--resume", "--slowdown", "100%"]).succeeds();
            } else {
                running.wait().succeeds();
            }
            assert_eq!(seen(here), [""; 0], "{name} {stopped}");
        }
    }
}

/// An output that can't be written is reported, and kills no deletion half-way.
#[test]
fn a_limit_of_file_sizes_ends_nothing() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    for (blocks, said) in [
        (
            0,
            "'big' was removed in place: no trash can be made beside it: File too large",
        ),
        // Enough for the owner file and the journal.
        (
            16,
            "there is no canary (its file can't be made: File too large",
        ),
    ] {
        written(&here.join("big"), 4);
        let before = format!("ulimit -f {blocks}");
        let mut command = rm_after(&before, here, &["big", "--slowdown", "50%"]);
        // Its outputs are pipes, which may grow.
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(stderr.contains(said), "{stderr}");
        assert_eq!(seen(here), [""; 0], "{blocks}");
    }
}

#[test]
fn the_exit_code_is_that_of_the_signal() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        written(&here.join("big"), 16);
        let mut running = start(rm_after("true", here, &[&["big"], &SLOW[..]].concat()));
        running.until("the trash", || seen(here) == ["trash"]);
        running.signal(signal);
        running
            .wait()
            .fails_with(code, &["interrupted", "--resume"]);
        removed(here, &["--resume", "--slowdown", "100%"]).succeeds();
    }
}
