//! `trimbench rm` on each file system: what is shared, what comes late, what is no directory.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::Path;

use crate::common::loop_fs::{Fs, must};
use crate::common::run::Done;
use crate::rm_place::{Ground, MIB, ground, removed, removed_as, seen, written};

const QUICK: [&str; 2] = ["--slowdown", "50%"];

fn quickly(here: &Path, arguments: &[&str]) -> Done {
    removed(here, &[&QUICK[..], arguments].concat())
}

/// All that was freed came back, but for what a file system rounds.
fn is_paid(what: &str, done: &Done) {
    let text = done.text();
    let given_up = text.split("no discards came for ").nth(1);
    let little =
        given_up.is_none_or(|rest| rest.split(' ').nth(1).is_some_and(|u| u.starts_with("KiB")));
    assert!(little, "{what}: {text}");
}

/// Large and small files, fresh and on the disk; a hole of 4 TiB; a second name elsewhere.
fn fill(here: &Path) {
    fs::create_dir(here.join("t")).unwrap();
    written(&here.join("t/big"), 24);
    for number in 0..60 {
        fs::write(here.join(format!("t/small{number}")), vec![1; 200_000]).unwrap();
    }
    // Not written yet: no discard ever comes for it.
    fs::write(here.join("t/fresh"), vec![1; 8 * MIB]).unwrap();
    let sparse = here.join("t/sparse");
    written(&sparse, 2);
    must("truncate", &["-s", "4T", &sparse.to_string_lossy()]);
    // XFS reserves for a file that grows by appending, beyond its end.
    let grown = File::create(here.join("t/grown")).unwrap();
    for at in 0..20 {
        grown
            .write_all_at(&vec![1; MIB / 2], (at * MIB / 2) as u64)
            .unwrap();
    }
    written(&here.join("linked"), 4);
    fs::hard_link(here.join("linked"), here.join("t/linked")).unwrap();
}

fn goes(fs: &Ground, what: &str) {
    let here = fs.path();
    for written in [true, false] {
        fill(here);
        if written {
            must("sync", &["-f", &here.to_string_lossy()]);
        }
        let done = quickly(here, &["-r", "t"]);
        done.succeeds();
        is_paid(what, &done);
        assert_eq!(seen(here), ["linked"], "{what}");
        assert_eq!(fs::metadata(here.join("linked")).unwrap().len(), 4 << 20);
        fs::remove_file(here.join("linked")).unwrap();
    }
}

#[test]
fn ext4_owes_only_what_was_on_the_disk() {
    if let Some(fs) = ground(Fs::Ext4, "discard", 1024) {
        goes(&fs, "ext4");
    }
}

#[test]
fn xfs_owes_only_what_was_on_the_disk() {
    if let Some(fs) = ground(Fs::Xfs, "discard", 1024) {
        goes(&fs, "XFS");
    }
}

#[test]
fn btrfs_owes_only_what_was_on_the_disk() {
    if let Some(fs) = ground(Fs::Btrfs, "discard=sync", 2048) {
        goes(&fs, "btrfs");
    }
}

#[test]
fn a_limit_of_latency_alone_holds_up_no_commit_and_needs_no_right_to_read() {
    for (kind, options) in [
        (Fs::Ext4, "discard"),
        (Fs::Xfs, "discard"),
        (Fs::Btrfs, "discard=sync"),
    ] {
        let Some(fs) = ground(kind, options, 2048) else {
            return;
        };
        // Files may be made and deleted here, and their names not be listed.
        let here = fs.path().join("hidden");
        fs::create_dir(&here).unwrap();
        for name in ["root's", "user's"] {
            written(&here.join(name), 48);
        }
        chown(&here, Some(65534), Some(65534)).unwrap();
        fs::set_permissions(&here, Permissions::from_mode(0o300)).unwrap();
        let limit = ["--max-latency", "1s"];
        removed(&here, &[&limit[..], &["root's"]].concat()).succeeds();
        removed_as(65534, &here, &[&limit[..], &["-f", "user's"]].concat()).succeeds();
        assert!(seen(&here).is_empty(), "{kind:?}");
    }
}

#[test]
fn nobody_waits_for_two_minutes_of_grace() {
    let Some(fs) = ground(Fs::Btrfs, "discard=async", 2048) else {
        return;
    };
    let here = fs.path();
    fill(here);
    let done = quickly(here, &["-r", "t"]);
    assert!(
        done.succeeds().stderr.contains("discard=async"),
        "{}",
        done.text()
    );
    assert_eq!(seen(here), ["linked"]);
}

#[test]
fn what_is_shared_is_not_waited_for() {
    for (kind, options) in [(Fs::Xfs, "discard"), (Fs::Btrfs, "discard=sync")] {
        let Some(fs) = ground(kind, options, 2048) else {
            return;
        };
        let here = fs.path();
        let path = |name: &str| here.join(name).to_string_lossy().into_owned();
        written(&here.join("big"), 24);
        must("cp", &["--reflink=always", &path("big"), &path("copy")]);
        let done = quickly(here, &["big"]);
        done.succeeds();
        is_paid("shared", &done);
        assert!(!done.text().contains("no discards came"), "{}", done.text());
        let copy = fs::read(here.join("copy")).unwrap();
        assert!(copy.len() == 24 * MIB && copy.iter().all(|&byte| byte == 1));
    }
}

#[test]
fn subvolumes_are_deleted_and_snapshots_keep_what_they_have() {
    let Some(fs) = ground(Fs::Btrfs, "discard=sync", 2048) else {
        return;
    };
    let here = fs.path();
    let path = |name: &str| here.join(name).to_string_lossy().into_owned();
    must("btrfs", &["subvolume", "create", &path("sub")]);
    fs::create_dir(here.join("sub/d")).unwrap();
    written(&here.join("sub/d/big"), 8);
    must(
        "btrfs",
        &["subvolume", "snapshot", "-r", &path("sub"), &path("snap")],
    );
    // Another device number: -x stays out of one below, and says so.
    fs::create_dir(here.join("above")).unwrap();
    must("btrfs", &["subvolume", "create", &path("above/below")]);
    fs::write(here.join("above/below/theirs"), "").unwrap();
    assert_ne!(
        fs::metadata(here.join("above")).unwrap().dev(),
        fs::metadata(here.join("above/below")).unwrap().dev()
    );
    quickly(here, &["-rx", "above"]).fails_with(
        1,
        &["skipping 'above/below', since it's on a different device"],
    );
    assert!(here.join("above/below/theirs").exists());
    quickly(here, &["-r", "above"]).succeeds();
    // In place, too, the file system must be committed for its discards.
    written(&here.join("alone"), 4);
    let done = quickly(here, &["--set", "trash=false", "alone"]);
    done.succeeds();
    is_paid("in place", &done);

    let done = quickly(here, &["-r", "sub"]);
    let deleted = "the kernel's cleaner freed 1 subvolume in ";
    assert!(done.succeeds().stderr.contains(deleted), "{}", done.text());
    assert!(!done.text().contains("no discards came"), "{}", done.text());
    assert_eq!(
        fs::metadata(here.join("snap/d/big")).unwrap().len(),
        8 << 20
    );
    // A snapshot that may not be written to.
    quickly(here, &["-r", "snap"]).succeeds();
    assert_eq!(seen(here), [""; 0]);
}

#[test]
fn the_subvolumes_of_a_btrfs_are_paced_as_one() {
    let Some(fs) = ground(Fs::Btrfs, "discard=sync", 2048) else {
        return;
    };
    let here = fs.path();
    fs::create_dir(here.join("t")).unwrap();
    written(&here.join("t/own"), 8);
    for name in ["t/one", "t/two"] {
        let path = here.join(name).to_string_lossy().into_owned();
        must("btrfs", &["subvolume", "create", &path]);
        written(&here.join(name).join("big"), 8);
    }
    let done = quickly(here, &["-r", "t"]);
    let said = &done.succeeds().stderr;
    assert!(said.contains("freed 24."), "{}", done.text());
    let accounts = said.matches("trimbench rm: freed ").count();
    assert_eq!(accounts, 1, "{}", done.text());
}

/// A truncation takes new metadata, which a used-up quota refuses; unlinking doesn't.
#[test]
fn a_used_up_quota_is_no_obstacle() {
    let Some(fs) = ground(Fs::Btrfs, "discard=sync", 1024) else {
        return;
    };
    let at = fs.path().to_string_lossy().into_owned();
    let volume = fs.path().join("volume");
    let path = volume.to_string_lossy().into_owned();
    must("btrfs", &["subvolume", "create", &path]);
    must("btrfs", &["quota", "enable", &at]);
    written(&volume.join("big"), 64);
    must("btrfs", &["quota", "rescan", "-w", &at]);
    must("btrfs", &["qgroup", "limit", "8M", &path]);
    must("sync", &["-f", &at]);
    let big = File::options()
        .write(true)
        .open(volume.join("big"))
        .unwrap();
    let refused = big.set_len(1 << 20).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::QuotaExceeded);
    drop(big);
    let done = removed(&volume, &["big", "missing"]);
    let said = "freed at once, not in pieces: emptying failed: Disk quota exceeded";
    done.fails_with(1, &[said, "missing"]);
    assert_eq!(seen(&volume), [""; 0]);
}
