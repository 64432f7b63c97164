//! `trimbench rm` of btrfs subvolumes and snapshots: as the pacer allows, or not at all.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::common::gate::soak;
use crate::common::loop_fs::{Fs, must};
use crate::common::run::{run, start, trimbench};
use crate::rm_place::{Ground, MIB, SLOW, ground, removed, rm, seen, written};

const QUICK: [&str; 3] = ["-r", "--slowdown", "50%"];

fn btrfs() -> Option<Ground> {
    ground(Fs::Btrfs, "discard=sync", 2048)
}

fn path(here: &Path, name: &str) -> String {
    here.join(name).to_string_lossy().into_owned()
}

fn create(here: &Path, name: &str) {
    must("btrfs", &["subvolume", "create", &path(here, name)]);
}

/// A subvolume `sub` with a file, and this many read-only snapshots, each with a file of its own.
fn snapshots(here: &Path, count: usize, mib: usize) -> Vec<String> {
    create(here, "sub");
    let names: Vec<String> = (0..count)
        .map(|number| format!("snap{number:02}"))
        .collect();
    for name in &names {
        let _ = fs::remove_file(here.join("sub/own"));
        written(&here.join("sub/own"), mib);
        let (from, to) = (path(here, "sub"), path(here, name));
        must("btrfs", &["subvolume", "snapshot", "-r", &from, &to]);
    }
    fs::remove_file(here.join("sub/own")).unwrap();
    must("sync", &["-f", &path(here, ".")]);
    names
}

fn with<'a>(options: &[&'a str], names: &'a [String]) -> Vec<&'a str> {
    let names = names.iter().map(String::as_str);
    options.iter().copied().chain(names).collect()
}

/// The subvolumes that were deleted and that the kernel has not freed.
fn deleted(here: &Path) -> String {
    must("btrfs", &["subvolume", "list", "-d", &path(here, ".")])
}

#[test]
fn snapshots_are_freed_when_rm_ends_and_their_number_is_printed() {
    let Some(fs) = btrfs() else { return };
    let here = fs.path();
    let names = snapshots(here, 3, 16);
    let done = removed(here, &with(&[&QUICK[..], &["-v"]].concat(), &names));
    let text = done.succeeds().text();
    assert!(
        text.contains("the kernel's cleaner freed 3 subvolumes in "),
        "{text}"
    );
    assert!(text.contains("freed 4"), "what each had: {text}");
    assert!(
        text.find("snap00'").unwrap() < text.find("snap02'").unwrap(),
        "{text}"
    );
    assert_eq!(
        (seen(here), deleted(here)),
        (vec!["sub".to_owned()], String::new())
    );
}

/// One, and then at most twice as many each time.
#[test]
fn small_snapshots_share_a_piece() {
    let Some(fs) = btrfs() else { return };
    let here = fs.path();
    let names = snapshots(here, 12, 2);
    let done = removed(
        here,
        &with(&["-r", "--chunk", "96M", "--json", "-"], &names),
    );
    let json: serde_json::Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
    let summary = &json["file_systems"][0];
    assert_eq!(summary["cleaner"]["subvolumes"], 12, "{json}");
    let pieces = summary["decisions"]["count"].as_u64().unwrap();
    assert!((3..9).contains(&pieces), "{json}");
    assert_eq!(deleted(here), "");
}

#[test]
fn subvolumes_that_others_deleted_just_before_are_counted_apart() {
    let Some(fs) = btrfs() else { return };
    let here = fs.path();
    let names = snapshots(here, 6, 2);
    for name in &names[1..] {
        must("btrfs", &["subvolume", "delete", &path(here, name)]);
    }
    let done = removed(
        here,
        &with(&[&QUICK[..], &["--json", "-"]].concat(), &names[..1]),
    );
    let json: serde_json::Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
    let cleaner = &json["file_systems"][0]["cleaner"];
    assert_eq!(cleaner["subvolumes"], 1, "{json}");
    let others = cleaner["others"].as_u64().unwrap();
    assert!((1..=5).contains(&others), "{json}");
}

/// As snapper has them.
#[test]
fn a_read_only_snapshot_below_a_directory_is_deleted_with_it() {
    let Some(fs) = btrfs() else { return };
    let here = fs.path();
    create(here, "sub");
    written(&here.join("sub/file"), 8);
    fs::create_dir_all(here.join(".snapshots/1")).unwrap();
    fs::write(here.join(".snapshots/1/info.xml"), "").unwrap();
    let (from, to) = (path(here, "sub"), path(here, ".snapshots/1/snapshot"));
    must("btrfs", &["subvolume", "snapshot", "-r", &from, &to]);
    let done = removed(here, &[&QUICK[..], &[".snapshots/1"]].concat());
    let text = done.succeeds().text();
    assert!(text.contains("cleaner freed 1 subvolume in "), "{text}");
    assert_eq!(seen(&here.join(".snapshots")), [""; 0]);
    assert!(here.join("sub/file").exists());
}

#[test]
fn a_large_file_that_no_snapshot_shares_is_emptied_first() {
    let Some(fs) = btrfs() else { return };
    let here = fs.path();
    create(here, "sub");
    written(&here.join("sub/shared"), 8);
    let (from, to) = (path(here, "sub"), path(here, "snap"));
    must("btrfs", &["subvolume", "snapshot", "-r", &from, &to]);
    written(&here.join("sub/exclusive"), 32);
    let done = removed(here, &[&QUICK[..], &["-v", "sub"]].concat());
    let text = done.succeeds().text();
    assert!(text.contains("removed 'sub/exclusive'"), "{text}");
    assert!(!text.contains("sub/shared"), "{text}");
    let shared = fs::read(here.join("snap/shared")).unwrap();
    assert!(shared.len() == 8 * MIB && shared.iter().all(|&byte| byte == 1));
}

#[test]
fn a_subvolume_that_is_needed_is_refused_with_the_reason() {
    let Some(fs) = btrfs() else { return };
    let here = fs.path();
    for name in ["outer", "outer/inner", "default", "mounted", "holder"] {
        create(here, name);
        fs::write(here.join(name).join("precious"), "").unwrap();
    }
    must(
        "btrfs",
        &["subvolume", "set-default", &path(here, "default")],
    );
    fs::create_dir(here.join("holder/at")).unwrap();
    let mounts = [("mounted", "there"), ("outer/inner", "holder/at")];
    fs::create_dir(here.join("there")).unwrap();
    for (from, to) in mounts {
        must("mount", &["--bind", &path(here, from), &path(here, to)]);
    }
    for (name, why) in [
        (
            "outer",
            "it contains the subvolume 'inner': remove that first",
        ),
        ("outer/inner", "the subvolume is mounted at "),
        (
            "default",
            "it is the default subvolume: choose another first",
        ),
        ("mounted", "the subvolume is mounted at "),
        (
            "holder",
            "something is mounted in the subvolume: unmount that first",
        ),
    ] {
        removed(here, &[&QUICK[..], &[name]].concat()).fails_with(1, &[why]);
        assert!(here.join(name).join("precious").exists(), "{name}");
    }
    for (_, to) in mounts {
        must("umount", &[&path(here, to)]);
    }
    // Inside out, and one that nothing keeps any more.
    removed(here, &[&QUICK[..], &["outer/inner"]].concat()).succeeds();
    removed(
        here,
        &[&QUICK[..], &["outer", "mounted", "holder"]].concat(),
    )
    .succeeds();
    must(
        "btrfs",
        &["subvolume", "set-default", "5", &path(here, ".")],
    );
}

#[test]
fn a_dry_run_shows_what_only_a_subvolume_has_where_quotas_count_it() {
    let Some(fs) = btrfs() else { return };
    let here = fs.path();
    let names = snapshots(here, 2, 16);
    let arguments = with(&["-r", "--dry-run"], &names);
    let unknown = removed(here, &arguments);
    let text = unknown.succeeds().text();
    assert_eq!(
        text.matches("free an unknown amount (no quotas count it)")
            .count(),
        2,
        "{text}"
    );
    assert!(text.contains("2 subvolumes, in this order"), "{text}");
    must("btrfs", &["quota", "enable", &path(here, ".")]);
    must("btrfs", &["quota", "rescan", "-w", &path(here, ".")]);
    let known = removed(here, &arguments);
    let text = known.succeeds().text();
    assert_eq!(
        text.matches("free 16.0 MiB that only it has").count(),
        2,
        "{text}"
    );
    assert!(text.contains("free at least 32.0 MiB"), "{text}");
    assert_eq!(seen(here).len(), 3);
    let json = [&QUICK[..], &["--json", "-"]].concat();
    let done = removed(here, &with(&json, &names));
    let json: serde_json::Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
    // Perhaps 0: two small snapshots may be accounted between two looks.
    let quotas = &json["file_systems"][0]["cleaner"]["quotas_s"];
    assert!(quotas.is_number(), "{json}");
}

/// As snapper's `.snapshots/17`.
#[test]
fn a_dry_run_of_a_directory_counts_the_subvolumes_in_it() {
    let Some(fs) = btrfs() else { return };
    let here = fs.path();
    create(here, "sub");
    for number in ["17", "18"] {
        fs::create_dir_all(here.join("all").join(number)).unwrap();
        let _ = fs::remove_file(here.join("sub/own"));
        written(&here.join("sub/own"), 16);
        let to = path(here, &format!("all/{number}/snapshot"));
        must(
            "btrfs",
            &["subvolume", "snapshot", "-r", &path(here, "sub"), &to],
        );
    }
    fs::remove_file(here.join("sub/own")).unwrap();
    must("sync", &["-f", &path(here, ".")]);
    let dry = || removed(here, &["-r", "--dry-run", "all"]).succeeds().text();
    let text = dry();
    let told = "'all': would free 0 B in 5 names and, with 2 subvolumes in it, an unknown amount";
    assert!(text.contains(told), "{text}");
    must("btrfs", &["quota", "enable", &path(here, ".")]);
    must("btrfs", &["quota", "rescan", "-w", &path(here, ".")]);
    let text = dry();
    let told = "in 5 names and, with 2 subvolumes in it, at least 32.0 MiB, paced";
    assert!(text.contains(told), "{text}");
}

#[test]
fn snapshots_that_wait_when_it_is_interrupted_are_whole_and_are_resumed() {
    let Some(fs) = btrfs() else { return };
    let here = fs.path();
    let names = snapshots(here, 8, 8);
    let slowly = [&["-r"], &SLOW[..]].concat();
    let mut running = start(rm(here, &with(&slowly, &names)));
    running.until("the first to be deleted", || !here.join(&names[0]).exists());
    running.signal(Signal::INT);
    running.wait().fails_with(130, &["interrupted", "--resume"]);
    let left: Vec<&String> = names
        .iter()
        .filter(|name| here.join(name).exists())
        .collect();
    assert!(!left.is_empty() && left.len() < 8, "{left:?}");
    for name in left {
        assert_eq!(
            fs::metadata(here.join(name).join("own")).unwrap().len(),
            8 << 20
        );
    }
    removed(here, &["--resume"]).succeeds();
    assert_eq!(
        (seen(here), deleted(here)),
        (vec!["sub".to_owned()], String::new())
    );
}

/// Whatever has the name of a snapshot by then stays.
#[test]
fn a_resume_deletes_no_other_subvolume_of_that_name() {
    let Some(fs) = btrfs() else { return };
    let here = fs.path();
    let names = snapshots(here, 8, 8);
    let slowly = [&["-r"], &SLOW[..]].concat();
    let mut running = start(rm(here, &with(&slowly, &names)));
    running.until("the first to be deleted", || !here.join(&names[0]).exists());
    running.signal(Signal::KILL);
    running.wait();
    let last = &names[7];
    must("btrfs", &["subvolume", "delete", &path(here, last)]);
    create(here, last);
    removed(here, &["--resume"]).succeeds();
    assert_eq!(seen(here), [last, "sub"]);
}

#[test]
fn kills_at_random_moments_leave_a_clean_file_system_and_a_resume_that_ends() {
    for round in 0..if soak() { 50 } else { 2 } {
        let Some(fs) = btrfs() else { return };
        let here = fs.path();
        let mut names = snapshots(here, 19, 4);
        // One that is emptied before it is deleted.
        written(&here.join("sub/big"), 32);
        names.insert(fastrand::usize(..20), "sub".to_owned());
        let running = start(rm(here, &with(&["-r", "--slowdown", "10%"], &names)));
        std::thread::sleep(Duration::from_millis(fastrand::u64(..3000)));
        running.signal(Signal::KILL);
        running.wait();
        fs.while_unmounted(|device| {
            must("btrfs", &["check", "--readonly", device]);
        });
        fs.remount("discard=sync");
        removed(here, &["--resume"]).succeeds();
        let left: Vec<&String> = names
            .iter()
            .filter(|name| here.join(name).exists())
            .collect();
        // Killed before the journal was whole, it has done nothing.
        assert!(
            left.is_empty() || left.len() == 20,
            "round {round}: {left:?}"
        );
        assert!(!seen(here).contains(&"trash".to_owned()), "round {round}");
        assert_eq!(deleted(here), "", "round {round}");
    }
}

/// The kernel frees no subvolume with an open file: `rm` reports that and goes on, `inspect` counts.
#[test]
fn subvolumes_that_a_process_keeps_are_reported_and_counted() {
    let Some(fs) = btrfs() else { return };
    let here = fs.path();
    let names: Vec<String> = (0..10).map(|number| format!("open{number}")).collect();
    let mut open = Vec::new();
    for name in &names {
        create(here, name);
        fs::write(here.join(name).join("file"), name).unwrap();
        open.push(fs::File::open(here.join(name).join("file")).unwrap());
    }
    let inspected = || {
        let mut command = trimbench();
        command.args(["inspect", &path(here, ".")]);
        run(command).text()
    };
    assert!(!inspected().contains("btrfs-deleted"));
    for name in &names[1..] {
        must("btrfs", &["subvolume", "delete", &path(here, name)]);
    }
    let done = removed(here, &[&QUICK[..], &["open0"]].concat());
    let kept = "its space comes free when no process has a file of it open";
    assert!(done.succeeds().stderr.contains(kept), "{}", done.text());
    let found = "10 deleted subvolumes or snapshots wait for btrfs' cleaner";
    let text = inspected();
    assert!(text.contains(found), "{text}");
}
