//! The stores of simulated drives: they fill up while a command works on a drive, or several drives
//! of a stripe share the data.

use std::fs::{self, File};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};

use crate::common::gate::{beside, lacks};
use crate::common::loop_fs::{must, unmount};
use crate::common::run::{Done, run, start, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};
use crate::quick::{Files, command_on};

const NAME: &str = "full";

/// A small file system for a drive's store.
struct Place(PathBuf);

impl Place {
    fn new(lab: &OwnLab) -> Place {
        let mut dir = lab.dir().as_os_str().to_owned();
        dir.push("-store");
        fs::create_dir(&dir).unwrap();
        let place = Place(dir.into());
        must(
            "mount",
            &["-t", "tmpfs", "-o", "size=1600m", "none", &place.text()],
        );
        place
    }

    fn text(&self) -> String {
        self.0.to_str().unwrap().to_owned()
    }

    fn store(&self) -> PathBuf {
        self.0.join("store")
    }

    /// Allocates all that is free, also what has become free since the last time.
    fn fill(&self) {
        let mut hog = File::options();
        let hog = hog.create(true).append(true);
        let hog = hog.open(self.0.join("theirs")).unwrap();
        let (mut at, mut piece) = (hog.metadata().unwrap().len(), 64 << 20);
        while piece >= 4096 {
            match fallocate(&hog, FallocateFlags::empty(), at, piece) {
                Ok(()) => at += piece,
                Err(_) => piece /= 2,
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        unmount(&self.text());
        let _ = fs::remove_dir(&self.0);
    }
}

/// A drive of 2 GiB with ext4, in a store that holds less. It writes slowly, so that a run lasts
/// until the store is full. It goes before its store's place.
struct Full {
    lab: OwnLab,
    place: Place,
}

impl Full {
    fn new() -> Full {
        let lab = OwnLab::new();
        let place = Place::new(&lab);
        let (store, mount) = (place.store(), lab.mount());
        let mut options = vec!["--profile", "ideal", "--size", "2G", "--fs", "ext4"];
        options.extend(["--set", "write.per_mib=20ms/MiB"]);
        options.extend(["--store", store.to_str().unwrap(), "-o", "discard"]);
        options.extend(["--mount", mount.to_str().unwrap()]);
        lab.up(NAME, &options);
        Full { lab, place }
    }

    fn stored(&self) -> u64 {
        self.lab.stats(NAME)["stored_bytes"].as_u64().unwrap()
    }

    /// The command failed, and printed which store is full.
    fn is_named(&self, done: &Done, command: &str) {
        let text = done.text();
        assert_eq!(done.code(), Some(1), "{text}");
        for part in [
            format!("trimbench {command}: the store of the drive {NAME}"),
            format!("({}) is full", self.place.store().display()),
            "free space on its file system".to_owned(),
        ] {
            assert!(done.stderr.contains(&part), "{part} missing: {text}");
        }
    }
}

#[test]
fn a_run_names_the_store_that_filled_up() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let full = Full::new();
    let before = full.stored();
    let files = Files::new();
    let command = command_on(&full.lab.mount(), &files, &["--size", "256M"]);
    let mut running = start(full.lab.in_here(command));
    running.until("it writes", || full.stored() > before + (8 << 20));
    full.place.fill();
    full.is_named(&running.wait(), "run");
}

#[test]
fn rm_names_the_store_that_filled_up() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let full = Full::new();
    let file = full.lab.mount().join("file");
    let of = format!("of={}", file.display());
    must(
        "dd",
        &["if=/dev/urandom", &of, "bs=1M", "count=200", "conv=fsync"],
    );
    // A commit for each piece, and each needs new blocks of the journal.
    let mut command = trimbench();
    command.args(["rm", "--chunk", "1M", "--sleep", "50ms"]);
    command.arg(&file);
    let mut running = start(full.lab.in_here(command));
    running.until("it has begun", || !file.exists());
    // Also the space of each discard, before the next piece needs some.
    while !running.is_over() {
        full.place.fill();
        thread::sleep(Duration::from_millis(5));
    }
    full.is_named(&running.wait(), "rm");
}

/// A run may write as much as both drives of a stripe can store; with other profiles, as one can.
#[test]
fn a_run_on_striped_drives_takes_the_stores_of_all_of_them() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    for (profile, fits) in [("raid0", true), ("single", false), ("raid1", false)] {
        let lab = OwnLab::new();
        let options = [
            "--profile",
            "ideal",
            "--size",
            "4G",
            "--set",
            "store-limit=1100M",
        ];
        let drives = ["one", "two"].map(|name| lab.up(name, &options));
        let mount = lab.mount();
        let mount = mount.to_str().unwrap();
        let devices = drives.each_ref().map(|drive| drive.to_str().unwrap());
        let made = ["-q", "-f", "-d", profile, "-m", "raid1"];
        must("mkfs.btrfs", &[&made[..], &devices].concat());
        fs::create_dir(mount).unwrap();
        must("mount", &[devices[0], mount]);
        // Beside the GiB that stays free, two drives can store it together, and one can't.
        let mut command = trimbench();
        command.args([
            "run",
            mount,
            "--size",
            "1000M",
            "--set",
            "foreground.size=64M",
        ]);
        command.args(["--dry-run"]);
        let done = run(lab.in_here(command));
        unmount(mount);
        let _ = fs::remove_dir(mount);
        match fits {
            true => {
                done.succeeds();
            }
            false => {
                assert_eq!(done.code(), Some(2), "{profile}: {}", done.text());
                let why = done.stderr.contains("can store");
                assert!(why, "{profile}: {}", done.text());
            }
        }
    }
}
