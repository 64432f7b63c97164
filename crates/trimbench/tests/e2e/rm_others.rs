//! `trimbench rm` beside others who see what is removed, or are asked, or come back later.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::common::gate::lacks;
use crate::common::loop_fs::{must, names};
use crate::common::run::{run, start};
use crate::rm_place::{MIB, SLOW, USERS, answered_as, ext4, half_way, place, rm, seen, written};

#[test]
fn in_place_nobody_finds_a_file_cut_short() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    fs::create_dir(here.join("t")).unwrap();
    written(&here.join("t/big"), 32);
    let mut running = start(rm(
        here,
        &[&["-r", "--set", "trash=false", "t"], &SLOW[..]].concat(),
    ));
    let length = || fs::metadata(here.join("t/big")).map(|found| found.len());
    let mut seen = Vec::new();
    running.until("the name's end", || {
        seen.extend(length().ok());
        length().is_err()
    });
    assert!(seen.iter().all(|&length| length == 32 * MIB as u64));
    running.signal(Signal::INT);
    let done = running.wait();
    done.fails_with(130, &["went all at once"]);
}

#[test]
fn a_directory_that_can_not_be_read_is_asked_about() {
    if lacks(USERS) {
        return;
    }
    let (_outer, place) = place();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
    // It can neither be read nor written to, so rm asks on a terminal.
    for (arguments, answers) in [
        (&["-r", "d"][..], ["n\n", "y\n"]),
        (&["-ri", "d"], ["n\n", "y\n"]),
    ] {
        fs::create_dir(place.join("d")).unwrap();
        must("chown", &["65534", &place.join("d").to_string_lossy()]);
        fs::set_permissions(place.join("d"), fs::Permissions::from_mode(0o000)).unwrap();
        for answer in answers {
            let done = answered_as(65534, &place, arguments, answer);
            let asked = "attempt removal of inaccessible directory 'd'?";
            assert_eq!(done.text().matches(asked).count(), 1, "{}", done.text());
            assert_eq!(place.join("d").exists(), answer == "n\n", "{arguments:?}");
        }
    }
}

#[test]
fn what_is_small_goes_first_and_what_was_not_begun_is_told() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    written(&here.join("one"), 32);
    written(&here.join("two"), 32);
    fs::write(here.join("notes.txt"), "x").unwrap();
    let arguments = [
        &["--set", "trash=false", "one", "two", "notes.txt"],
        &SLOW[..],
    ]
    .concat();
    let mut running = start(rm(here, &arguments));
    running.until("the first", || !here.join("one").exists());
    running.signal(Signal::INT);
    let done = running.wait();
    done.fails_with(130, &["'two' was not begun with, and isn't resumed"]);
    assert_eq!(seen(here), ["two"], "{}", done.text());
}

#[test]
fn whose_directory_has_another_name_now_is_not_forgotten() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let (here, state) = (fs.path(), tempfile::tempdir().unwrap());
    let queue = here.join("q");
    fs::create_dir(&queue).unwrap();
    let with_notes = |mut command: Command| {
        command.env("XDG_STATE_HOME", state.path());
        command
    };
    fs::create_dir(queue.join("t")).unwrap();
    fs::set_permissions(queue.join("t"), fs::Permissions::from_mode(0o777)).unwrap();
    written(&queue.join("t/big"), 32);
    let slow = rm(&queue, &[&["-r", "t"], &SLOW[..]].concat());
    let mut running = start(with_notes(slow));
    running.until("a piece", || half_way(&queue));
    running.signal(Signal::KILL);
    running.wait();

    fs::rename(&queue, here.join("q.1")).unwrap();
    fs::create_dir(&queue).unwrap();
    let all = || {
        run(with_notes(rm(
            state.path(),
            &["--resume=all", "--slowdown", "100%"],
        )))
    };
    let notes = || names(&state.path().join("trimbench/trash")).len();
    let done = all();
    assert!(
        done.succeeds().stderr.contains("it waits"),
        "{}",
        done.text()
    );
    assert_eq!(notes(), 1);
    assert_eq!(seen(&here.join("q.1")), ["trash"]);

    // Whoever goes on with it there is noted there, once.
    let mut running = start(with_notes(rm(
        here,
        &[&["--resume", "q.1"], &SLOW[..]].concat(),
    )));
    running.until("a later note", || {
        notes() == 1 && noted_in(state.path(), "q.1")
    });
    running.signal(Signal::INT);
    running.wait();
    all().succeeds();
    assert_eq!(seen(&here.join("q.1")), [""; 0]);
    assert_eq!(notes(), 0);
}

/// Whether a trash is noted to lie in such a directory.
fn noted_in(state: &Path, directory: &str) -> bool {
    let notes = fs::read_dir(state.join("trimbench/trash"))
        .unwrap()
        .flatten();
    notes
        .filter_map(|note| fs::read_link(note.path()).ok())
        .any(|to| {
            to.parent()
                .is_some_and(|parent| parent.ends_with(directory))
        })
}
