//! `trimbench tune`: what it tries, what it advises, and that all is as it was.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::gate::{LOOP_EXT4, Need, beside, few, lacks, undisturbed};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL, must};
use crate::common::run::{Running, run, start, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};

pub fn tune<S: AsRef<OsStr>>(path: &Path, arguments: &[S]) -> Command {
    let mut command = trimbench();
    command.arg("tune").arg(path).args(arguments);
    command
}

/// A drive that writes fast, and takes so long for a discard, with ext4 mounted so.
fn drive(lab: &OwnLab, profile: &str, discard: &str, option: &str) -> std::path::PathBuf {
    let mount = lab.mount();
    let name = lab.dir().file_name().unwrap().to_str().unwrap();
    // Its reads take as long as they take, not as long as a busy machine lets them.
    let figures = [
        "read.latency=600us",
        "write.latency=0",
        "write.per_mib=0ns/MiB",
        discard,
    ];
    let mut options = vec!["--profile", profile, "--size", "3G", "--fs", "ext4"];
    options.extend(["--mount", mount.to_str().unwrap(), "-o", option]);
    for figure in figures.iter().filter(|figure| !figure.is_empty()) {
        options.extend(["--set", figure]);
    }
    lab.up(name, &options)
}

/// One run each of online discard as it is and of another way; what is better is set.
fn applied(size: &str, other: &str) -> Vec<String> {
    let size = format!("size={size}");
    let all = ["--set", &size, "--set", "repeats=1", "--set", other];
    let words = all.iter().chain(&["--yes", "--apply"]);
    words.map(|word| (*word).to_owned()).collect()
}

/// Returns the result of a run as JSON, and its output. If the finding is one to which a noisy
/// machine leads, the output is the error.
#[track_caller]
fn advised(mut command: Command, unclear: &[&str]) -> (Value, String) {
    let files = TempDir::new().unwrap();
    let json = files.path().join("tune.json");
    command.arg("--json").arg(&json);
    let told = run(command);
    let text = told.succeeds().stdout.clone();
    let found: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let finding = found["advice"]["finding"].as_str().unwrap();
    assert!(!unclear.contains(&finding), "{text}");
    (found, text)
}

pub fn limit(device: &Path) -> std::path::PathBuf {
    let name = device.file_name().unwrap().to_str().unwrap();
    Path::new("/sys/block")
        .join(name)
        .join("queue/discard_max_bytes")
}

pub fn number(path: &Path) -> u64 {
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

#[test]
fn says_what_it_would_try_and_refuses_what_cannot_be() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    let told = run(tune(fs.path(), &["--dry-run", "--for", "5m"]))
        .succeeds()
        .stdout
        .clone();
    for part in [
        "(as it is)",
        "paced rm",
        "paced fstrim",
        "never longer than 5 min",
        "in all",
    ] {
        assert!(told.contains(part), "{part:?} missing in:\n{told}");
    }
    let device = fs.device().path().to_owned();
    let by_device = run(tune(
        &device,
        &["--dry-run", "--set=policies=online", "--set=limits=1M"],
    ));
    let told = &by_device.succeeds().stdout;
    assert!(
        told.contains("1.0 MiB") && !told.contains("paced rm"),
        "{told}"
    );

    let none: &[&str] = &[];
    let refused = |path: &Path, arguments: &[&str], words: &[&str]| {
        run(tune(path, arguments)).fails_with(2, words);
    };
    refused(
        fs.path(),
        &["--set", "size=1T"],
        &["size=1.0 TiB can't be tried", "free space", "stay free"],
    );
    refused(fs.path(), &["--set", "limits=5"], &["multiples of"]);
    refused(fs.path(), &["--set", "slowdown=0"], &["0.1%"]);
    refused(
        fs.path(),
        &["--for", "5s"],
        &["--for 5s", "one run of each"],
    );
    refused(
        Path::new("/no/such"),
        none,
        &["/no/such", "give a block device"],
    );
    refused(Path::new("/proc"), none, &["no block device"]);
    fs.remount("ro");
    refused(fs.path(), none, &["read-only"]);
    drop(fs);
    let small = LoopFs::new(Fs::Ext4, "discard", 1100, On::Tmpfs);
    refused(small.path(), none, &["too little room"]);
    let btrfs = LoopFs::new(Fs::Btrfs, "discard=async", SMALL, On::Tmpfs);
    refused(btrfs.path(), none, &["two minutes late and paces them"]);
    drop(btrfs);
    let btrfs = LoopFs::new(Fs::Btrfs, "nodiscard", SMALL, On::Tmpfs);
    refused(btrfs.path(), none, &["without discard", "discard=sync"]);
    let xfs = LoopFs::new(Fs::Xfs, "nodiscard", SMALL, On::Tmpfs);
    refused(xfs.path(), none, &["XFS", "with discard"]);
}

/// btrfs removes block groups that a file has left empty, and discards them a second time, up to a
/// minute later. A run must have seen that, or online discard would look half as dear as
/// `trimbench rm`. Now and then the kernel keeps the groups: then there is nothing to see.
#[test]
fn a_run_sees_what_btrfs_discards_again() {
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("mkfs.btrfs")]) {
        return;
    }
    let _turn = beside();
    let fs = LoopFs::new(Fs::Btrfs, "discard=sync", 4096, On::Tmpfs);
    let file = fs.path().join("file");
    let size = 2 << 30;
    let made = fs::File::create_new(&file).unwrap();
    fallocate(&made, FallocateFlags::empty(), 0, size).unwrap();
    made.sync_all().unwrap();
    drop(made);
    let name = fs.device().path().file_name().unwrap().to_owned();
    let discarded = || {
        let stat = Path::new("/sys/block").join(&name).join("stat");
        let sectors = fs::read_to_string(stat).unwrap();
        let sectors = sectors.split_whitespace().nth(13).unwrap();
        sectors.parse::<u64>().unwrap() * 512
    };
    let file_systems = fs::read_dir("/sys/fs/btrfs").unwrap();
    let mut paths = file_systems.map(|entry| entry.unwrap().path());
    let state = paths.find(|path| path.join("devices").join(&name).exists());
    let groups = state.unwrap().join("allocation/data/total_bytes");
    let (before, all) = (discarded(), number(&groups));
    let arguments = [OsStr::new("--free-all"), file.as_os_str()];
    run(tune(fs.path(), &arguments)).succeeds();
    let (after, kept) = (discarded(), number(&groups));
    assert!(!file.exists());
    let discarded_now = after - before;
    println!("{discarded_now} bytes discarded, {kept} of {all} kept in groups");
    assert!(discarded_now + (64 << 20) >= size + all - kept);
    for _ in 0..3 {
        must(
            "btrfs",
            &["filesystem", "sync", fs.path().to_str().unwrap()],
        );
    }
    let late = discarded() - after;
    assert!(late < 64 << 20, "{late} bytes were discarded after it");
    run(tune(fs.path(), &arguments)).fails_with(1, &["file", "can't remove it"]);
}

/// btrfs passes over a block group that a trim doesn't begin with: what lies before a file
/// must not keep it from being trimmed.
#[test]
fn a_file_within_a_block_group_of_btrfs_is_trimmed() {
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("mkfs.btrfs")]) {
        return;
    }
    let _turn = beside();
    let fs = LoopFs::new(Fs::Btrfs, "nodiscard", SMALL, On::Tmpfs);
    let file = |name: &str| fs.path().join(name);
    for (name, mib) in [("kept", 16), ("gone", 64)] {
        fs::write(file(name), vec![7u8; mib << 20]).unwrap();
        fs::File::open(file(name)).unwrap().sync_all().unwrap();
    }
    let before = fs.device().allocated();
    let states = TempDir::new().unwrap();
    let gone = file("gone");
    let mut trim = tune(fs.path(), &[OsStr::new("--trim-after"), gone.as_os_str()]);
    trim.env("STATE_DIRECTORY", states.path());
    let done = run(trim);
    done.succeeds();
    let after = fs.device().allocated();
    assert!(
        before > after + (60 << 20),
        "{before} {after}: {}",
        done.text()
    );
}

/// The point of a policy at a limit.
#[track_caller]
fn point<'v>(found: &'v Value, policy: &str, limit: u64) -> &'v Value {
    let points = found["points"].as_array().unwrap();
    let mut all = points.iter();
    let point = all.find(|p| p["policy"] == policy && p["limit_bytes"] == limit);
    point.unwrap_or_else(|| panic!("no {policy} at {limit}: {points:?}"))
}

fn median(point: &Value, figure: &str) -> f64 {
    point[figure]["median"].as_f64().unwrap()
}

/// A paced way takes longer than online discard, and discards as much.
#[track_caller]
fn takes_longer_paced(found: &Value, policy: &str, limit: u64) {
    let (now, paced) = (point(found, "online", limit), point(found, policy, limit));
    assert!(
        median(paced, "freeing_s") > median(now, "freeing_s"),
        "{found}"
    );
    let size = found["size_bytes"].as_f64().unwrap();
    assert!(median(paced, "discard_bytes") >= 0.9 * size, "{found}");
}

#[test]
fn what_stalls_is_told_with_what_each_choice_costs() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = few();
    let lab = OwnLab::new();
    // Discards of 128 MiB at most, each of which takes 0.2 s.
    let device = drive(&lab, "870-evo", "a=200ms", "discard");
    let before = number(&limit(&device));
    let files = TempDir::new().unwrap();
    let file = |name: &str| files.path().join(name);
    let [json, records] = ["tune.json", "records"].map(file);
    let told = run(lab.in_here(tune(
        &device,
        &[
            "--set=size=256M",
            "--set=policies=online,rm",
            "--set=repeats=1",
            "--set=limits=64M",
            "--set=slowdown=50%",
            "--yes",
            "--json",
            json.to_str().unwrap(),
            "--set",
            &format!("records={}", records.display()),
        ],
    )));
    let text = &told.succeeds().stdout;
    println!("{text}");
    for part in [
        "slows down other I/O",
        "wear",
        "not advised",
        "on the frontier",
        "worst 100 ms",
    ] {
        assert!(text.contains(part), "{part:?} missing in:\n{text}");
    }
    assert_eq!(number(&limit(&device)), before);
    let found: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(found["schema"], "trimbench.tune/1");
    let points = found["points"].as_array().unwrap();
    let now = point(&found, "online", before);
    let half = point(&found, "online", 64 << 20);
    // More discards, none larger than it may be, and each as long.
    let discards = median(half, "discards");
    let least = median(half, "discard_bytes") / f64::from(64u32 << 20);
    assert!(
        discards >= least && discards > median(now, "discards"),
        "{points:?}"
    );
    for way in [now, half] {
        let lost_s = median(way, "lost_s");
        assert!(lost_s >= 0.6 * 0.2 * median(way, "discards"), "{points:?}");
    }
    takes_longer_paced(&found, "paced-rm", before);
    assert_ne!(found["advice"]["finding"], "nothing-stalls");
    assert_eq!(found["applied"], false);
    assert_eq!(
        fs::read_dir(records).unwrap().count(),
        found["runs"].as_array().unwrap().len()
    );
}

#[test]
fn where_nothing_stalls_nothing_changes() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = few();
    let lab = OwnLab::new();
    let device = drive(&lab, "ideal", "", "discard");
    let before = number(&limit(&device));
    let arguments = [
        "--set=size=256M",
        "--set=repeats=1",
        "--set",
        &format!("limits={before}"),
        "--set=policies=online",
        // Deleting takes some of the processors' time from the readers, too.
        "--set=slowdown=50%",
        "--apply",
        "-y",
    ];
    let command = lab.in_here(tune(&lab.mount(), &arguments));
    let unclear = ["within-noise", "too-little", "too-few-runs"];
    let (found, text) = advised(command, &unclear);
    assert_eq!(found["advice"]["finding"], "nothing-stalls", "{text}");
    for part in ["Nothing to change", "All is as it was"] {
        assert!(text.contains(part), "{part:?} missing in:\n{text}");
    }
    assert_eq!(number(&limit(&device)), before);
}

#[test]
fn a_better_limit_is_set_and_its_rule_printed() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = few();
    let lab = OwnLab::new();
    let device = drive(&lab, "870-evo", "a=60ms", "discard");
    // Somebody has made discards small on a drive on which that costs a lot.
    fs::write(limit(&device), (4 << 20).to_string()).unwrap();
    let mut arguments = applied("192M", "limits=128M");
    arguments.extend(["--set".into(), "policies=online".into()]);
    let command = lab.in_here(tune(&lab.mount(), &arguments));
    let (_, text) = advised(command, &["within-noise", "too-few-runs"]);
    assert!(
        text.contains("set discard_max_bytes to 134217728"),
        "{text}"
    );
    assert_eq!(number(&limit(&device)), 128 << 20);
    let rule = "ATTR{queue/discard_max_bytes}=\"134217728\"\n";
    assert!(text.contains(rule), "{text}");
    let set = text.split("\nSet:\n").nth(1).unwrap();
    assert!(!set.contains("fstab") && !set.contains("timer"), "{text}");
}

#[test]
fn what_is_trimmed_later_is_told_to_need_a_timer() {
    if lacks(NEEDS) {
        return;
    }
    // What it costs is little: beside others it drowns.
    let Some(_turn) = undisturbed() else { return };
    let lab = OwnLab::new();
    let device = drive(&lab, "870-evo", "a=90ms", "nodiscard");
    let now = number(&limit(&device));
    // Of three runs, the middle one counts: a busy machine spoils one of them now and then.
    let mut arguments = applied("768M", "policies=fstrim");
    for word in &mut arguments {
        *word = word.replace("repeats=1", "repeats=3");
    }
    arguments.push("--set=slowdown=50%".to_owned());
    let command = lab.in_here(tune(&lab.mount(), &arguments));
    let (found, text) = advised(command, &["within-noise", "goal-missed", "too-few-runs"]);
    println!("{text}");
    assert_eq!(found["advice"]["finding"], "paced-fstrim", "{text}");
    takes_longer_paced(&found, "paced-fstrim", now);
    assert_eq!(found["applied"], true);
    // It was mounted so, and its discards were as large: nothing but the timer was missing.
    // Of systemd, or of cron where that doesn't run.
    let needs = "All is as it was.\nIt needs a";
    for part in [
        "Only with the timer",
        needs,
        " fstrim --all ",
        " --slowdown=50",
    ] {
        assert!(text.contains(part), "{part:?} missing in:\n{text}");
    }
}

#[test]
fn discards_that_cost_nothing_are_switched_on() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let Some(_turn) = undisturbed() else { return };
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    let arguments = applied("64M", "policies=online");
    let now = format!("limits={}", number(&limit(fs.device().path())));
    let more = ["--set=slowdown=50%", "--set", &now, "--json", "/dev/full"];
    let more = more.map(str::to_owned).to_vec();
    let told = run(tune(fs.path(), &[arguments, more].concat()));
    // What can't be written keeps nothing else from being done, and told.
    told.fails_with(1, &["/dev/full"]);
    let text = told.stdout;
    let unclear = [
        "Too little was deleted",
        "within the noise",
        "inconclusive",
        "no run that counts",
    ];
    assert!(!unclear.iter().any(|said| text.contains(said)), "{text}");
    assert!(fs.options().contains("discard"), "{text}");
    assert!(text.contains("mount -o remount,discard"), "{text}");
    assert!(text.contains("add discard to the options of"), "{text}");
}

/// A temporary setting of another process, which it puts back just now, isn't the usual one.
#[test]
fn what_changes_before_it_begins_is_told() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    let file = limit(fs.device().path());
    let usual = number(&file) / 4096 * 4096;
    let other = fs::File::open(&file).unwrap();
    flock(&other, FlockOperation::LockExclusive).unwrap();
    fs::write(&file, (16 << 20).to_string()).unwrap();
    let arguments = ["--set", "size=64M", "--json", "-", "--yes"];
    let mut running = start(tune(fs.path(), &arguments));
    running.until_said("Will try", 1);
    fs::write(&file, usual.to_string()).unwrap();
    drop(other);
    running
        .wait()
        .fails_with(1, &["discard_max_bytes", "just now", "try again"]);
    assert_eq!(number(&file), usual);
}

#[test]
fn where_somebody_takes_the_room_no_more_is_run() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    let all_but_the_reserve = fs.free() - (1 << 30);
    let arguments = ["--set", "size=64M", "--set", "policies=online", "--yes"];
    let mut running = start(tune(fs.path(), &arguments));
    running.until("a run begins", || !fs.names().is_empty());
    let hog = fs::File::create_new(fs.path().join("hog")).unwrap();
    fallocate(&hog, FallocateFlags::empty(), 0, all_but_the_reserve).unwrap();
    let told = running.wait();
    let text = &told.succeeds().stdout;
    assert!(text.contains("no more runs"), "{text}");
    assert_eq!(fs.names(), ["hog"]);
}

/// Ends a run while its settings aren't the old ones; they come back.
fn ends_early(signal: Signal) {
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    let file = limit(fs.device().path());
    let usual = number(&file);
    fs::write(&file, (8 << 20).to_string()).unwrap();
    let options = fs.options();
    let command = tune(
        fs.path(),
        &["--set", "size=64M", "--set", "limits=16M", "-y"],
    );
    let mut running: Running = start(command);
    running.until("the settings change", || {
        number(&file) == 16 << 20 && fs.options() != options
    });
    running.signal(signal);
    let done = running.wait();
    if signal == Signal::TERM {
        assert_eq!(done.code(), Some(143), "{}", done.text());
        assert!(done.stderr.contains("put back"), "{}", done.text());
        assert_eq!(fs.names(), [""; 0]);
    }
    // What a kill leaves is put back by those who watched it.
    for _ in 0..2000 {
        if number(&file) == 8 << 20 && fs.options() == options {
            // A loop device keeps it for whoever has it next. It takes whole blocks only, which
            // its own limit isn't.
            fs::write(&file, (usual / 4096 * 4096).to_string()).unwrap();
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{} bytes, {}", number(&file), fs.options());
}

#[test]
fn sigterm_puts_everything_back() {
    let _turn = beside();
    if !lacks(LOOP_EXT4) {
        ends_early(Signal::TERM);
    }
}

#[test]
fn kill_minus_9_puts_everything_back() {
    let _turn = beside();
    if !lacks(LOOP_EXT4) {
        ends_early(Signal::KILL);
    }
}
