//! `trimbench why` and `watch` beside btrfs' cleaner: who waits for it, and which subvolumes it frees.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::gate::{self, Need, lacks};
use crate::common::loop_fs::{Fs, must};
use crate::common::run::{run, start, trimbench};
use crate::rm_place::{ground, written};
use crate::watch::updates;
use crate::why::conforms;

const SNAPSHOTS: usize = 24;
const FILES: usize = 48_000;

/// Needs a transaction again and again, until the file `wait` is gone.
const WAITER: &str = "import os, time
own = str(os.getpid())
os.mkdir(own)
while os.path.exists('wait'):
    os.mkdir(own + '/new')
    os.rmdir(own + '/new')
    time.sleep(0.001)";

/// Read-only snapshots of a subvolume with many small files, of which each keeps some. Returns their
/// numbers.
fn snapshots(here: &Path) -> BTreeSet<u64> {
    let path = |name: &str| here.join(name).to_string_lossy().into_owned();
    must("btrfs", &["quota", "enable", &path(".")]);
    must("btrfs", &["subvolume", "create", &path("sub")]);
    let write = |number: usize| {
        let content: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..))
            .take(1024)
            .collect();
        fs::write(here.join(format!("sub/{number}")), content).unwrap();
    };
    (0..FILES).for_each(write);
    for turn in 0..SNAPSHOTS {
        (turn..FILES).step_by(SNAPSHOTS).for_each(write);
        let to = path(&format!("snap{turn}"));
        must("btrfs", &["subvolume", "snapshot", "-r", &path("sub"), &to]);
    }
    must("sync", &["-f", &path(".")]);
    let listed = must("btrfs", &["subvolume", "list", "-r", &path(".")]);
    let number = |line: &str| line.split_whitespace().nth(1)?.parse().ok();
    listed.lines().filter_map(number).collect()
}

/// The subvolumes that a wait's `deleted` names: the freed ones, and those still to free.
fn numbers(deleted: &Value) -> [BTreeSet<u64>; 2] {
    ["freed", "pending"].map(|kind| {
        let all = deleted[kind].as_array().unwrap().iter();
        all.map(|one| one.as_u64().unwrap()).collect()
    })
}

#[test]
fn who_waits_for_btrfs_cleaner_reads_which_subvolumes_it_frees() {
    let Some(place) = ground(Fs::Btrfs, "nodiscard", 2048) else {
        return;
    };
    if lacks(&[Need::Tool("python3")]) {
        return;
    }
    let here = place.path();
    let at = here.to_str().unwrap();
    let real = snapshots(here);
    assert_eq!(real.len(), SNAPSHOTS);
    fs::write(here.join("wait"), "").unwrap();
    // Commits make all others wait until the cleaner lets the transaction end.
    let waiters = "while [ -e wait ]; do sync -f .; done &
        for i in 1 2 3 4 5 6; do python3 -c \"$0\" & done; wait";
    let mut command = trimbench();
    command
        .args(["why", "--json", "-", "--", "sh", "-c", waiters, WAITER])
        .current_dir(here);
    let why = start(command);
    let mut command = trimbench();
    let often = ["--interval", "200ms", "--json", "-"];
    command.args(["watch", at]).args(often);
    let mut watch = start(command);
    watch.until_printed(1);
    for turn in 0..SNAPSHOTS {
        let name = here.join(format!("snap{turn}"));
        must("btrfs", &["subvolume", "delete", name.to_str().unwrap()]);
    }
    // It wakes the cleaner.
    must("btrfs", &["filesystem", "sync", at]);
    must("btrfs", &["subvolume", "sync", at]);
    watch.signal(Signal::TERM);
    fs::remove_file(here.join("wait")).unwrap();
    let found = conforms(&why.wait().succeeds().stdout);
    let victims = found["victims"].as_array().unwrap().iter();
    let mut waits = victims.flat_map(|victim| victim["waits"].as_array().unwrap());
    let wait = waits.find(|wait| !wait["deleted"].is_null());
    let wait = wait.unwrap_or_else(|| panic!("no subvolume: {found:#}"));
    assert_eq!(wait["at"], at);
    let place = wait["place"].as_str().unwrap();
    assert!(["cleaner", "quotas"].contains(&place), "{wait:#}");
    let [freed, pending] = numbers(&wait["deleted"]);
    assert!(
        !freed.is_empty() && freed.is_subset(&real),
        "{freed:?} of {real:?}"
    );
    assert!(pending.is_empty(), "all were freed: {pending:?}");
    let sentence = found["sentence"].as_str().unwrap();
    let words = format!(" on {at}: the cleaner freed subvolume");
    assert!(sentence.contains(&words), "{found:#}");

    let watched = updates(&watch.wait().stdout);
    let all = watched
        .iter()
        .flat_map(|one| one["blocked"].as_array().unwrap());
    let mut named = all.filter(|one| !one["deleted"].is_null()).peekable();
    assert!(named.peek().is_some(), "{watched:#?}");
    for one in named {
        let place = one["place"].as_str().unwrap();
        assert!(["cleaner", "quotas"].contains(&place), "{one:#}");
        assert!(
            numbers(&one["deleted"])
                .iter()
                .all(|some| some.is_subset(&real)),
            "{one:#}"
        );
    }
}

/// Nothing is deleted, so nobody waits for a cleaner, whatever else keeps a commit.
#[test]
fn a_commit_beside_an_idle_cleaner_names_no_subvolume() {
    let Some(place) = ground(Fs::Btrfs, "nodiscard", 512) else {
        return;
    };
    let commits = "for i in $(seq 20); do mkdir d$i; sync -f .; done";
    let mut command = trimbench();
    command
        .args(["why", "--json", "-", "--", "sh", "-c", commits])
        .current_dir(place.path());
    let found = conforms(&run(command).succeeds().stdout);
    let mut victims = found["victims"].as_array().unwrap().iter();
    let no_cleaner = |wait: &Value| wait["deleted"].is_null() && wait["place"] != "cleaner";
    assert!(
        victims.all(|one| one["waits"].as_array().unwrap().iter().all(no_cleaner)),
        "{found:#}"
    );
}

/// Nobody waits for the cleaner of a few large files, and their discards come with a later commit.
#[test]
fn watch_and_why_name_deleted_snapshots_for_the_discards_of_their_commit() {
    let Some(place) = ground(Fs::Btrfs, "discard=sync", 2048) else {
        return;
    };
    let here = place.path();
    let path = |name: &str| here.join(name).to_string_lossy().into_owned();
    for name in ["one", "two"] {
        must("btrfs", &["subvolume", "create", &path(name)]);
        written(&here.join(name).join("large"), 64);
    }
    must("sync", &["-f", &path(".")]);
    let mut command = trimbench();
    command.args(["watch", &path("."), "--json", "-"]);
    let mut watch = start(command);
    watch.until_printed(2);
    let mut command = trimbench();
    command.args(["why", "--all", "--for", "8s", "--json", "-"]);
    let why = start(command);
    std::thread::sleep(Duration::from_millis(500));
    for name in ["one", "two"] {
        must("btrfs", &["subvolume", "delete", &path(name)]);
    }
    // They are read five times a second.
    std::thread::sleep(Duration::from_millis(2500));
    must("btrfs", &["filesystem", "sync", &path(".")]);
    must("btrfs", &["subvolume", "sync", &path(".")]);
    std::thread::sleep(Duration::from_millis(1500));
    must("btrfs", &["filesystem", "sync", &path(".")]);
    std::thread::sleep(Duration::from_millis(1500));
    watch.signal(Signal::TERM);
    let watched = updates(&watch.wait().stdout);
    let explained: Value = serde_json::from_str(&why.wait().stdout).unwrap();
    for reports in [watched, vec![explained]] {
        let senders = reports
            .iter()
            .flat_map(|one| one["senders"].as_array().unwrap());
        // A busy kernel may have no stack for them.
        let of_commit = |one: &&Value| one["reason"] == "btrfs-commit" && one["bytes"] != 0;
        let commits: Vec<&Value> = senders.filter(of_commit).collect();
        let is_large = |one: &&&Value| one["bytes"].as_u64().unwrap() > 64 << 20;
        if !commits.iter().any(|one| is_large(&one)) {
            gate::note_skip("a stack of the commit's discards");
            continue;
        }
        // The commit that the deletion is in discards little, and the next one what the cleaner freed.
        let named = commits.iter().filter(|one| !one["deleted"].is_null());
        let named: Vec<bool> = named.map(|one| is_large(&one)).collect();
        assert!(
            !named.is_empty() && named.iter().all(|large| *large),
            "{reports:#?}"
        );
    }
}
