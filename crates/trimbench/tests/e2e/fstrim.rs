//! `trimbench fstrim` as fstrim: what it trims, what it says, how it ends.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::common::gate::{LOOP_EXT4, Need, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, must};
use crate::common::run::{Done, copied_to, run, start, trimbench};
use crate::fstrim_drive::discards;

/// `trimbench fstrim`, with its notes in a directory of the test's own.
pub fn fstrim(states: &Path, arguments: &[&str]) -> Command {
    let mut command = trimbench();
    command
        .env("STATE_DIRECTORY", states)
        .arg("fstrim")
        .args(arguments);
    command
}

/// The same, to its end.
pub fn trimmed(states: &Path, arguments: &[&str]) -> Done {
    run(fstrim(states, arguments))
}

/// A file system of which a part was used and is free again, but not trimmed.
pub fn used(fs: Fs) -> LoopFs {
    let made = LoopFs::new(fs, "nodiscard", 1024, On::Tmpfs);
    for (name, mib) in [("kept", 40), ("gone", 150), ("kept too", 40)] {
        let path = made.path().join(name);
        fs::write(&path, vec![7u8; mib << 20]).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
    }
    fs::remove_file(made.path().join("gone")).unwrap();
    // XFS frees in the background what was unlinked; nothing is left of that here.
    made.remount("ro");
    made.remount("rw");
    made
}

/// fstrim(8) finds no more than what the canary's file lay in: ext4 forgets that a group is
/// trimmed when something in it is freed.
pub fn is_remembered(at: &Path, done: &Done) {
    let said = must("fstrim", &["-v", &at.to_string_lossy()]);
    assert!(bytes_in(&said) <= 128 << 20, "{said}: {}", done.text());
}

fn bytes_in(said: &str) -> u64 {
    let (_, rest) = said.split_once('(').unwrap();
    rest.split_once(" bytes").unwrap().0.parse().unwrap()
}

fn needs(fs: &'static str) -> bool {
    lacks(LOOP_EXT4) || lacks(&[Need::Tool(fs), Need::Tool("fstrim")])
}

/// As much is freed below as by fstrim(8) on a twin.
fn frees_as_fstrim(fs: Fs) -> (LoopFs, Done) {
    let states = tempfile::tempdir().unwrap();
    let (ours, twin) = (used(fs), used(fs));
    let before = ours.device().allocated();
    must("fstrim", &[&twin.path().to_string_lossy()]);
    let at = ours.path().to_string_lossy().into_owned();
    let done = trimmed(states.path(), &["--verbose", "--slowdown", "50%", &at]);
    done.succeeds();
    let (ours_now, twins) = (ours.device().allocated(), twin.device().allocated());
    assert!(before > ours_now + (140 << 20), "{before} {ours_now}");
    let difference = ours_now.abs_diff(twins);
    assert!(
        difference < 6 << 20,
        "{ours_now} beside {twins}: {}",
        done.text()
    );
    let said = bytes_in(&done.stdout);
    assert!(said > 140 << 20, "{}", done.text());
    // Only the last trim is kept: it is done.
    let left = fs::read_dir(states.path()).unwrap();
    let mut left = left.map(|file| file.unwrap().path());
    let kept = left.next().unwrap();
    assert!(kept.extension() == Some(OsStr::new("last")), "{kept:?}");
    assert_eq!(left.next(), None);
    (ours, done)
}

#[test]
fn ext4_remembers_all_that_we_trimmed() {
    if needs("mkfs.ext4") {
        return;
    }
    let _turn = beside();
    let (ours, done) = frees_as_fstrim(Fs::Ext4);
    is_remembered(ours.path(), &done);
    assert!(
        done.stderr.contains(": other I/O lost: not measured"),
        "{}",
        done.text()
    );
    assert!(!done.stderr.contains("trims all"), "{}", done.text());
    // A directory stands for its whole file system.
    let (states, sub) = (tempfile::tempdir().unwrap(), ours.path().join("sub"));
    fs::create_dir(&sub).unwrap();
    let dry = trimmed(states.path(), &["--dry-run", &sub.to_string_lossy()]);
    let said = "trims all of the file system that is mounted at /";
    assert!(dry.succeeds().stderr.contains(said), "{}", dry.text());
}

/// Of the first group that is asked for nothing is known: it is trimmed in parts, and ext4
/// doesn't remember it. The canary's file lies in it.
#[test]
fn all_that_is_discarded_is_paced_and_counted() {
    if needs("mkfs.ext4") {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    let made = LoopFs::new(Fs::Ext4, "nodiscard", 1024, On::Tmpfs);
    let name = |i: usize| made.path().join(i.to_string());
    (0..200).for_each(|i| fs::write(name(i), vec![7u8; 64 << 10]).unwrap());
    let sync = || must("sync", &["-f", &made.path().to_string_lossy()]);
    sync();
    (0..200)
        .step_by(2)
        .for_each(|i| fs::remove_file(name(i)).unwrap());
    sync();
    let bytes = || discards(made.device().path())[1] * 512;
    let before = bytes();
    let at = made.path().to_string_lossy().into_owned();
    let part = ["-v", "--slowdown", "50%", "--offset", "128M", &at];
    let done = trimmed(states.path(), &part);
    let said = bytes_in(&done.succeeds().stdout);
    let came = bytes() - before;
    assert!(came.abs_diff(said) < 1 << 20, "{came}: {}", done.text());
}

#[test]
fn xfs_is_trimmed_in_pieces() {
    if needs("mkfs.xfs") {
        return;
    }
    let _turn = beside();
    let (_, done) = frees_as_fstrim(Fs::Xfs);
    let said = bytes_in(&done.stdout);
    assert!(
        said < 1 << 30,
        "what was trimmed, not what was asked for: {said}"
    );
}

/// As on a thin volume: of what was never written the device sees no discards.
#[test]
fn what_is_nothing_below_costs_no_window_for_each_mib() {
    if needs("mkfs.xfs") {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    let fs = LoopFs::new(Fs::Xfs, "nodiscard", 64 << 10, On::Disk);
    let at = fs.path().to_string_lossy();
    // One for each MiB would take longer than any test may.
    let done = trimmed(states.path(), &["--verbose", &at]);
    let said = &done.succeeds().stdout;
    assert!(bytes_in(said) < 1 << 30, "{}", done.text());
}

#[test]
fn btrfs_is_trimmed_in_its_own_addresses() {
    if needs("mkfs.btrfs") {
        return;
    }
    let _turn = beside();
    frees_as_fstrim(Fs::Btrfs);
}

#[test]
fn a_range_and_a_minimum_are_kept() {
    if needs("mkfs.ext4") {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    let made = used(Fs::Ext4);
    let at = made.path().to_string_lossy().into_owned();
    let part = ["-v", "--offset", "512M", "--length", "256M", &at];
    let done = trimmed(states.path(), &part);
    let bytes = bytes_in(&done.succeeds().stdout);
    assert!((200 << 20..=256 << 20).contains(&bytes), "{}", done.text());
    // No free extent of ext4 is as long as a group.
    let none = trimmed(states.path(), &["-v", "-q", "--minimum", "128M", &at]);
    none.fails_with(2, &["--quiet"]);
    let none = trimmed(states.path(), &["-vv", "--minimum", "127M", &at]);
    let most = bytes_in(&none.succeeds().stdout);
    let all = made.free();
    assert!(most < all - (256 << 20), "{most} of {all}: {}", none.text());
}

#[test]
fn what_is_listed_is_chosen_as_fstrim_chooses() {
    if needs("mkfs.ext4") {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    let made = LoopFs::new(Fs::Ext4, "", 256, On::Tmpfs);
    let at = made.path().to_string_lossy().into_owned();
    let table = states.path().join("tab");
    let tables = format!("/nothing:{}", table.display());
    let listed = |options: &str, arguments: &[&str]| {
        fs::write(
            &table,
            format!("/dev/x {at} auto {options} 0 0\n/dev/y /no ext4 rw 0 0\n"),
        )
        .unwrap();
        let all = [&["--listed-in", &tables, "--dry-run"], arguments].concat();
        trimmed(states.path(), &all)
    };
    let chosen = |run: &Done| run.stdout.matches("would look at 256").count();
    let one = listed("defaults", &[]);
    assert_eq!(chosen(one.succeeds()), 1, "{}", one.text());
    for (options, arguments) in [
        ("rw,X-fstrim.notrim", &[] as &[&str]),
        ("rw", &["--types", "xfs,btrfs"]),
        ("rw", &["--types", "noext4"]),
    ] {
        let none = listed(options, arguments);
        assert_eq!(none.succeeds().stdout, "", "{options}: {}", none.text());
        assert!(none.stderr.contains("no file system"), "{}", none.text());
    }
    let twice = listed("defaults", &["-t", "ext4"]);
    assert_eq!(chosen(twice.succeeds()), 1, "{}", twice.text());
    // Of the whole machine only what would be.
    for (all, chosen) in [("--all", true), ("--fstab", false)] {
        let looked = trimmed(states.path(), &[all, "--dry-run"]);
        let named = looked.succeeds().stdout.contains(&at);
        assert_eq!(named, chosen, "{all}: {}", looked.text());
    }
    made.remount("ro");
    assert_eq!(listed("defaults", &[]).succeeds().stdout, "");
}

/// The path of what lies below another mount leads to a directory of that one.
#[test]
fn what_lies_below_another_mount_is_left() {
    if needs("mkfs.ext4") {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    // The first goes first, and with it what is mounted over it and in it.
    let all = [(); 3].map(|()| LoopFs::new(Fs::Ext4, "", 256, On::Tmpfs));
    let [outer, hidden, over] = &all;
    for made in [outer, over] {
        fs::create_dir(made.path().join("x")).unwrap();
    }
    let mount = |made: &LoopFs, at: &Path| {
        let device = made.device().path().to_string_lossy();
        must("mount", &[&device, &at.to_string_lossy()])
    };
    let at = outer.path().join("x");
    mount(hidden, &at);
    let at = at.to_string_lossy().into_owned();
    let table = states.path().join("tab");
    let tables = table.to_string_lossy().into_owned();
    // Listed as in fstab, and as the kernel lists what is mounted.
    let listed = || {
        let mounted = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let own = mounted.lines().find(|l| l.split(' ').nth(4) == Some(&*at));
        [format!("/dev/x {at} ext4 rw 0 0"), own.unwrap().to_owned()].map(|line| {
            fs::write(&table, line + "\n").unwrap();
            trimmed(states.path(), &["--listed-in", &tables, "--dry-run"])
        })
    };
    for done in listed() {
        assert!(done.succeeds().stdout.contains(&at), "{}", done.text());
    }
    mount(over, outer.path());
    for done in listed() {
        assert_eq!(done.succeeds().stdout, "", "{}", done.text());
    }
}

/// One file system that another process is trimming, and one that nobody is.
#[test]
fn the_second_is_refused_and_the_exit_code_says_how_many_failed() {
    if needs("mkfs.ext4") {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    let made = [256, 256].map(|mib| LoopFs::new(Fs::Ext4, "", mib, On::Tmpfs));
    let [busy, free] = [0, 1].map(|i| made[i].path().to_string_lossy().into_owned());
    let never = fstrim(states.path(), &["--set", "rate=1k", &busy]);
    let mut never = start(never);
    never.until("it has begun", || {
        fs::read_dir(states.path()).unwrap().count() > 1
    });
    let table = states.path().join("tab");
    let tables = table.to_string_lossy().into_owned();
    let listed = |all: &[&String]| {
        let lines = all.iter().map(|at| format!("/dev/x {at} auto rw 0 0\n"));
        fs::write(&table, lines.collect::<String>()).unwrap();
        trimmed(states.path(), &["-v", "--listed-in", &tables])
    };
    let refused = "it is being trimmed already";
    trimmed(states.path(), &[&busy]).fails_with(1, &[&busy, refused]);
    listed(&[&busy]).fails_with(32, &[refused]);
    let some = listed(&[&busy, &free]);
    some.fails_with(64, &[&busy, refused]);
    assert!(bytes_in(&some.stdout) > 100 << 20, "{}", some.text());
    never.signal(Signal::TERM);
    never.wait().fails_with(143, &["interrupted at"]);
    listed(&[&busy, &free]).succeeds();
    // Where nothing can be noted it trims all the same.
    let nowhere = trimmed(Path::new("/proc/nowhere"), &[&busy]);
    let said = &nowhere.succeeds().stderr;
    assert!(said.contains("can't be kept"), "{}", nowhere.text());
}

#[test]
fn what_cannot_be_trimmed_is_told() {
    let states = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let at = place.path().to_string_lossy().into_owned();
    let fails = |code: i32, arguments: &[&str], said: &str| {
        trimmed(states.path(), arguments).fails_with(code, &[said]);
    };
    fails(2, &[], "MOUNT");
    fails(2, &["--all", "/"], "cannot be used with");
    fails(2, &["--set", "rate=0", "/"], "more than 0");
    fails(
        2,
        &["--set", "rate=1M", "--slowdown", "5%", "/"],
        "it doesn't go with --slowdown",
    );
    fails(1, &["/nothing"], "/nothing");
    fails(2, &["--listed-in", "/nothing:/none"], "'/nothing'");
    fails(1, &["/etc/passwd"], "not a directory");
    fails(1, &["--dry-run", &at], "discard operation is not supported");
    if lacks(&[Need::Root]) {
        return;
    }
    fails(1, &[&at], "discard operation is not supported");
    let quiet = trimmed(states.path(), &["--quiet-unsupported", "--quiet", &at]);
    assert_eq!(quiet.succeeds().stderr, "");
}

#[test]
fn the_timer_is_written_and_what_is_others_is_left() {
    let place = tempfile::tempdir().unwrap();
    let at = format!("unit-dir={}", place.path().display());
    let install = |more: &[&str]| {
        let all = [
            &["--install-timer", "--set=replace=true", "--set", &at],
            more,
        ]
        .concat();
        trimmed(place.path(), &all)
    };
    let build = tempfile::tempdir().unwrap();
    fs::write(build.path().join("CACHEDIR.TAG"), "").unwrap();
    let mut built = Command::new(copied_to(build.path()));
    built.args(["fstrim", "--install-timer", "--set", &at]);
    run(built).fails_with(
        2,
        &["the timer would run /", "build folder", "replace=true"],
    );
    let shown = install(&["--dry-run", "--slowdown", "5%"]);
    assert!(
        shown.succeeds().stdout.contains("--slowdown=5%%"),
        "{}",
        shown.text()
    );
    // A service has another directory than whoever writes it.
    let listed = install(&["--dry-run", "--listed-in", "tab::/etc/fstab"]);
    let said = &listed.succeeds().stdout;
    for part in [
        "--listed-in=/",
        "/tab:/etc/fstab",
        "disable --now fstrim.timer",
    ] {
        assert!(said.contains(part), "{part}: {}", listed.text());
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    let done = install(&["--slowdown", "5%", "--max-latency", "20ms", "/with space"]);
    let starts = match Path::new("/run/systemd/system").exists() {
        true => &[
            "enable --now trimbench-fstrim.timer",
            "disable --now fstrim.timer",
        ][..],
        false => &[
            "systemd is not running",
            " * * 0 root /",
            "fstrim --slowdown=5\\%",
        ],
    };
    for said in starts {
        assert!(done.succeeds().stdout.contains(said), "{}", done.text());
    }
    let read =
        |kind: &str| fs::read_to_string(place.path().join(format!("trimbench-fstrim.{kind}")));
    let service = read("service").unwrap();
    for part in [
        "fstrim --slowdown=5%% --max-latency=20ms --resume",
        "\"/with space\"\n",
    ] {
        assert!(service.contains(part), "{part}: {service}");
    }
    let timer = read("timer").unwrap();
    for part in [
        "RandomizedDelaySec=",
        "FixedRandomDelay=true",
        "Persistent=true",
    ] {
        assert!(timer.contains(part), "{part}: {timer}");
    }
    let files = fs::read_dir(place.path()).unwrap().count();
    assert_eq!(files, 2, "nothing of the writing stays");
    verify(place.path());
    // The same again changes nothing; other options are shown, and need replace=true.
    let same = install(&["--slowdown", "5%", "--max-latency", "20ms", "/with space"]);
    assert!(
        !same.succeeds().stdout.contains("Changed"),
        "{}",
        same.text()
    );
    let changed = install(&["--set", "rate=1G"]);
    for line in [
        "\n  - ExecStart=",
        "\n  + ExecStart=",
        "Every week it runs: /",
    ] {
        assert!(
            changed.succeeds().stdout.contains(line),
            "{}",
            changed.text()
        );
    }
    assert!(read("service").unwrap().contains("--set=rate=1073741824"));
    // What would be another path in a unit, or more than one line.
    for (odd, why) in [(&b"/a\xffb"[..], "not UTF-8"), (b"/a\nb", "control")] {
        let mut command = fstrim(place.path(), &["--install-timer", "--set", &at]);
        command.arg(OsStr::from_bytes(odd));
        run(command).fails_with(2, &["/a", why]);
    }
    assert!(read("service").unwrap().contains("--set=rate=1073741824"));
    fs::write(place.path().join("trimbench-fstrim.timer"), "[Timer]\n").unwrap();
    install(&[]).fails_with(2, &["wasn't written by trimbench"]);
    assert_eq!(read("timer").unwrap(), "[Timer]\n");
}

#[test]
fn a_timer_is_not_replaced_by_one_with_other_options() {
    if lacks(&[Need::Root]) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let install_of = |program: &Path, more: &[&str]| {
        let mut command = Command::new(program);
        command.args(["fstrim", "--install-timer", "--set"]);
        command.arg(format!("unit-dir={}", place.path().display()));
        command.args(more);
        run(command)
    };
    // The machine empties /tmp.
    let emptied = tempfile::tempdir_in("/tmp").unwrap();
    let fleeting = copied_to(emptied.path());
    install_of(&fleeting, &[]).fails_with(2, &["empties /tmp", "replace=true"]);
    let dry = install_of(&fleeting, &["--dry-run"]);
    assert!(
        dry.succeeds().stderr.contains("empties /tmp"),
        "{}",
        dry.text()
    );
    // Neither that nor a build folder.
    let kept = tempfile::tempdir_in("/var/lib").unwrap();
    let program = copied_to(kept.path());
    let install = |more: &[&str]| install_of(&program, more);
    install(&["--slowdown", "5%"]).succeeds();
    install(&["--slowdown", "5%"]).succeeds();
    let refused = install(&["--slowdown", "20%"]);
    refused.fails_with(2, &["--slowdown=5%%", "--slowdown=20%%", "replace=true"]);
    let service = || fs::read_to_string(place.path().join("trimbench-fstrim.service")).unwrap();
    assert!(service().contains("--slowdown=5%%"));
    install(&["--slowdown", "20%", "--set=replace=true"]).succeeds();
    assert!(service().contains("--slowdown=20%%"));
}

/// Has systemd check the units.
pub fn verify(place: &Path) {
    if lacks(&[Need::Tool("systemd-analyze")]) {
        return;
    }
    for kind in ["service", "timer"] {
        let unit = place.join(format!("trimbench-fstrim.{kind}"));
        let output = Command::new("systemd-analyze")
            .arg("verify")
            .arg(&unit)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // Of our units alone: a container's own may be odd.
        let ours: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("trimbench"))
            .collect();
        let ours: Vec<&&str> = ours.iter().filter(|line| !line.contains("man ")).collect();
        assert!(ours.is_empty(), "{ours:?}");
    }
}

#[test]
fn an_offset_beyond_the_end_is_invalid_as_for_fstrim() {
    if needs("mkfs.ext4") {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    let made = LoopFs::new(Fs::Ext4, "nodiscard", 512, On::Tmpfs);
    let at = made.path().to_string_lossy().into_owned();
    trimmed(states.path(), &["--offset", "600M", &at])
        .fails_with(1, &["Invalid argument", "--offset"]);
    // A device isn't where it is mounted.
    let device = made.device().path().to_string_lossy().into_owned();
    trimmed(states.path(), &[&device]).fails_with(1, &["not a directory"]);
    // A table without entries is no failure.
    let table = states.path().join("table");
    fs::write(&table, "# none\n").unwrap();
    let done = trimmed(states.path(), &["--listed-in", &table.to_string_lossy()]);
    let said = &done.succeeds().stderr;
    assert!(
        said.contains("no file system that is listed can be trimmed"),
        "{said}"
    );
}
