//! `trimbench rm` beside others who have what is removed, or are asked, or come back later.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::Signal;

use crate::common::gate::{LOOP_EXT4, Need, alone, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, must, names, unmount};
use crate::common::run::{run, start};
use crate::rm_place::{
    MIB, SLOW, USERS, answered_as, ext4, half_way, place, removed, rm, seen, written,
};

/// A file of this many MiB.
const BIG: usize = 8;

/// A mount of a file; unmounted when dropped.
struct Bound<'a>(&'a Path);

impl<'a> Bound<'a> {
    fn new(file: &Path, on: &'a Path) -> Bound<'a> {
        let [file, at] = [file, on].map(|path| path.to_string_lossy());
        must("mount", &["--bind", &file, &at]);
        Bound(on)
    }
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        unmount(&self.0.to_string_lossy());
    }
}

/// A process with mounts of its own, as a container is; killed when dropped.
struct Container(Child);

impl Container {
    /// With a file mounted there, for it alone.
    fn new(file: &Path, on: &Path) -> Container {
        let mount = "mount --make-rprivate / && mount --bind \"$0\" \"$1\" && exec sleep 600";
        let child = Command::new("unshare")
            .args(["--mount", "sh", "-c", mount])
            .args([file, on])
            .spawn()
            .unwrap();
        let container = Container(child);
        while fs::metadata(container.sees(on)).map_or(0, |found| found.len()) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        container
    }

    fn sees(&self, path: &Path) -> PathBuf {
        let root = format!("/proc/{}/root", self.0.id());
        Path::new(&root).join(path.strip_prefix("/").unwrap())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// By way of the trash, in a tree, in place, and in place where nobody else comes.
const WAYS: [(u32, &[&str]); 4] = [
    (0o755, &["t/big"]),
    (0o755, &["-r", "t"]),
    (0o755, &["--no-trash", "t/big"]),
    (0o700, &["--no-trash", "t/big"]),
];

/// Removes a file each way, while it is mounted elsewhere, where its content stays visible.
fn stays_whole<T>(here: &Path, mounts: impl Fn(&Path) -> T, sees: impl Fn(&T) -> PathBuf) {
    for (mode, arguments) in WAYS {
        let _ = fs::create_dir(here.join("t"));
        fs::set_permissions(here.join("t"), fs::Permissions::from_mode(mode)).unwrap();
        written(&here.join("t/big"), BIG);
        let mounted = mounts(&here.join("t/big"));
        let done = removed(here, arguments);
        let said = &done.succeeds().stderr;
        assert!(said.contains("is mounted elsewhere"), "{}", done.text());
        assert!(!here.join("t/big").exists());
        let content = fs::read(sees(&mounted)).unwrap();
        assert!(
            content.len() == BIG * MIB && content.iter().all(|&byte| byte == 1),
            "{arguments:?}: {} bytes are left",
            content.len()
        );
    }
}

#[test]
fn a_file_that_is_mounted_elsewhere_keeps_its_content() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let outside = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    let on = outside.path();
    stays_whole(fs.path(), |file| Bound::new(file, on), |_| on.to_owned());
}

#[test]
fn a_file_that_a_container_has_mounted_keeps_its_content() {
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("unshare")]) {
        return;
    }
    // What other tests have mounted would stay mounted there when they unmount it.
    let _turn = alone();
    let fs = LoopFs::new(Fs::Ext4, "discard", 512, On::Tmpfs);
    let outside = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    let on = outside.path();
    let mounts = |file: &Path| Container::new(file, on);
    stays_whole(fs.path(), mounts, |container| container.sees(on));
}

#[test]
fn in_place_nobody_finds_a_file_cut_short() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    fs::create_dir(here.join("t")).unwrap();
    written(&here.join("t/big"), 32);
    let mut running = start(rm(here, &[&["-r", "--no-trash", "t"], &SLOW[..]].concat()));
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
    let arguments = [&["--no-trash", "one", "two", "notes.txt"], &SLOW[..]].concat();
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
            &["--resume", "--all", "--slowdown", "100%"],
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
