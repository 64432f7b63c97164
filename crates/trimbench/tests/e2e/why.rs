//! `trimbench why`: who waits, for whom, and what TRIM has to do with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::gate::{Need, alone, beside, few, lacks, times};
use crate::common::run::{Done, as_plain_user, copied_to, run, start, trimbench};
use crate::common::schema::Schema;
use crate::lab_drive::{NEEDS, OwnLab};

/// Asserts that a report has the form that its schema promises.
#[track_caller]
pub fn conforms(text: &str) -> Value {
    static SCHEMA: Schema = Schema::new(include_str!("../../../diagnose/schema/why-1.json"));
    SCHEMA.parse(text)
}

/// `trimbench why … --json -`.
#[track_caller]
pub fn why(arguments: &[&str]) -> Value {
    let mut command = trimbench();
    command.args(["why", "--json", "-"]).args(arguments);
    conforms(&run(command).succeeds().stdout)
}

/// Tracefs instances that were left; there is none where nobody runs `why`.
fn instances() -> Vec<PathBuf> {
    let at = std::env::temp_dir().join(format!("tb-e2e-tracefs-{}", std::process::id()));
    std::fs::create_dir_all(&at).unwrap();
    let shell = |script: &str| {
        let done = Command::new("sh")
            .arg("-c")
            .arg(script)
            .arg("sh")
            .arg(&at)
            .output();
        String::from_utf8(done.unwrap().stdout).unwrap()
    };
    let found = shell(
        "mount -t tracefs none \"$1\" && ls -d \"$1\"/instances/trimbench-* 2>/dev/null; umount \"$1\"",
    );
    let _ = std::fs::remove_dir(&at);
    found.lines().map(PathBuf::from).collect()
}

/// A shell script in a directory, as a command's last arguments.
pub fn script(at: &Path, text: &str) -> Vec<String> {
    let text = format!("cd '{}' && {text}", at.display());
    ["sh", "-c", &text].map(str::to_owned).to_vec()
}

/// A cell of the matrix: a file system on a drive, a cause, a victim and the answer.
struct Cell {
    profile: &'static str,
    fs: &'static str,
    options: &'static str,
    /// Makes the files; runs before.
    prepare: &'static str,
    /// Runs under `why`. `$DEVICE` is the drive.
    victim: &'static str,
    verdict: &'static str,
    cause: &'static str,
    /// Whose discards they are: reason and program; empty where there need not be any.
    sender: (&'static str, &'static str),
    /// The program that freed the space.
    deleter: &'static str,
}

pub const FILES: &str = "for i in $(seq 1 240); do dd if=/dev/urandom of=f$i bs=64k count=4 status=none; done; sync -f .";

/// Writes that wait for the drive, for some seconds.
macro_rules! writes {
    () => {
        "dd if=/dev/zero of=w bs=4k count=60 oflag=dsync status=none"
    };
}

const SECOND_SYNC: Cell = Cell {
    profile: "ocz-agility-2",
    fs: "btrfs",
    options: "discard=sync",
    prepare: "for i in $(seq 1 240); do dd if=/dev/urandom of=f$i bs=64k count=4 status=none; done; sync; rm -f f*[02468]",
    victim: "exec sync",
    verdict: "trim",
    cause: "in-discards",
    sender: ("btrfs-commit", "sync"),
    deleter: "",
};

const CELLS: &[Cell] = &[
    SECOND_SYNC,
    Cell {
        profile: "ocz-agility-2",
        fs: "ext4",
        options: "discard",
        prepare: FILES,
        victim: concat!("rm -f f*[02468]; sync -f .; ", writes!()),
        verdict: "trim",
        cause: "behind-discards",
        sender: ("ext-commit", "kworker"),
        deleter: "rm",
    },
    Cell {
        profile: "ocz-agility-2",
        fs: "xfs",
        options: "discard",
        prepare: FILES,
        victim: concat!("rm -f f*[02468]; sync -f .; ", writes!()),
        verdict: "trim",
        cause: "behind-discards",
        sender: ("xfs-log", ""),
        deleter: "rm",
    },
    Cell {
        profile: "ocz-agility-2",
        fs: "ext4",
        options: "nodiscard",
        prepare: "for i in $(seq 1 240); do dd if=/dev/urandom of=f$i bs=64k count=4 status=none; done; sync; rm -f f*[02468]; sync",
        victim: "exec fstrim .",
        verdict: "trim",
        cause: "in-discards",
        sender: ("trim", "fstrim"),
        deleter: "",
    },
    Cell {
        profile: "ocz-agility-2",
        fs: "ext4",
        options: "nodiscard",
        prepare: "for i in $(seq 1 240); do dd if=/dev/urandom of=f$i bs=64k count=4 status=none; done; sync; rm -f f*[02468]; sync",
        victim: concat!("fstrim . & ", writes!(), "; wait"),
        verdict: "trim",
        cause: "in-discards",
        sender: ("trim", "fstrim"),
        deleter: "",
    },
];

/// Runs a cell once; the sentence.
#[track_caller]
fn answered(cell: &Cell) -> String {
    let lab = OwnLab::new();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let mount = lab.mount();
    let at = mount.to_str().unwrap();
    let up = [
        "--profile",
        cell.profile,
        "--size",
        "8G",
        "--fs",
        cell.fs,
        "--mount",
        at,
    ];
    lab.up(&name, &[&up[..], &["-o", cell.options]].concat());
    let prepared = Command::new("sh")
        .arg("-c")
        .arg(cell.prepare)
        .current_dir(&mount)
        .status();
    assert!(prepared.unwrap().success());
    let before = lab.stats(&name);
    let victim = script(&mount, cell.victim);
    let mut arguments = vec!["--"];
    arguments.extend(victim.iter().map(String::as_str));
    let began = Instant::now();
    let found = why(&arguments);
    let took_s = began.elapsed().as_secs_f64();
    let sentence = found["sentence"].as_str().unwrap().to_owned();
    eprintln!("{} {} {}: {sentence}", cell.profile, cell.fs, cell.options);
    assert_eq!(found["verdict"], cell.verdict, "{found:#}");
    assert_eq!(found["main_cause"], cell.cause, "{found:#}");
    let victim = &found["victims"][0];
    // The actor's own clock has the start of trimbench and of the command, too.
    let seconds = victim["seconds"].as_f64().unwrap();
    assert!(
        seconds > 0.8 * (took_s - 0.7) && seconds < took_s,
        "{seconds} of {took_s}"
    );
    // Tests beside it have slow drives, too.
    let device = lab.list()[0]["device"].as_str().unwrap().to_owned();
    let mut senders = found["senders"].as_array().unwrap().iter();
    let own = senders.find(|one| device.ends_with(one["device"].as_str().unwrap()));
    if !cell.sender.0.is_empty() {
        let sender = own.unwrap();
        assert_eq!(sender["reason"], cell.sender.0, "{sentence}\n{found:#}");
        let program = sender["program"].as_str().unwrap();
        assert!(program.starts_with(cell.sender.1), "{program}: {sentence}");
        // An Agility 2 takes 42.6 ms for a discard, however small.
        let mean = sender["mean_ms"].as_f64().unwrap();
        assert!(
            (0.85..1.15).contains(&(mean / 42.6)),
            "{mean} ms: {sentence}"
        );
        let discards = |stats: &Value| -> u64 {
            let kinds = stats["kinds"].as_array().unwrap().iter();
            let of = kinds.filter(|kind| kind["kind"] == "discard");
            of.map(|kind| kind["commands"].as_u64().unwrap()).sum()
        };
        let drive = discards(&lab.stats(&name)) - discards(&before);
        let traced: u64 = found["senders"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["device"] == sender["device"])
            .map(|one| one["discards"].as_u64().unwrap())
            .sum();
        assert!(traced <= drive + 2, "{traced} traced, {drive} in the drive");
        assert!(
            traced as f64 >= 0.85 * drive as f64,
            "{traced} traced, {drive} in the drive"
        );
    }
    if !cell.deleter.is_empty() {
        let deletion = &own.unwrap()["deletion"];
        assert_eq!(deletion["program"], cell.deleter, "{sentence}");
        // No event of XFS tells the size of what is unlinked.
        assert_eq!(deletion["bytes"].is_null(), cell.fs == "xfs", "{deletion}");
    }
    sentence
}

#[test]
fn the_second_sync_of_2013_waits_in_its_own_discards() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = alone();
    let sentence = answered(&SECOND_SYNC);
    for part in [
        "sync",
        "its btrfs commit sent",
        "(discard=sync)",
        "Without TRIM:",
    ] {
        assert!(sentence.contains(part), "{part:?} missing in {sentence}");
    }
}

#[test]
fn culprit_and_victim_are_right_on_every_file_system() {
    if lacks(NEEDS) || lacks(&[Need::Tool("fstrim")]) {
        return;
    }
    let _turn = few();
    for cell in &CELLS[1..times(3, CELLS.len())] {
        for _ in 0..times(1, 10) {
            answered(cell);
        }
    }
}

#[test]
fn a_processor_a_frozen_file_system_and_a_hung_drive_are_not_trim() {
    if lacks(NEEDS) || lacks(&[Need::Tool("fsfreeze")]) {
        return;
    }
    let _turn = alone();
    let lab = OwnLab::new();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let mount = lab.mount();
    let at = mount.to_str().unwrap();
    let up = [
        "--profile",
        "ideal",
        "--size",
        "4G",
        "--fs",
        "ext4",
        "--mount",
        at,
    ];
    lab.up(&name, &[&up[..], &["-o", "discard"]].concat());
    let frozen = "fsfreeze -f .; (sleep 2; fsfreeze -u .) & touch new; wait";
    let written = "dd if=/dev/zero of=w bs=1M count=400 conv=fsync status=none";
    let hung = format!(
        "'{}' lab fault {name} hang 4s && dd if=/dev/zero of=w bs=4k count=4 oflag=direct status=none",
        env!("CARGO_BIN_EXE_trimbench")
    );
    let cases = [
        (
            "exec timeout 2 sh -c 'while :; do :; done'".to_owned(),
            "cpu",
            124,
        ),
        (frozen.to_owned(), "frozen", 0),
        (hung, "hung", 0),
        (format!("{written}; rm w; sync -f .; {written}"), "", 0),
    ];
    for (text, cause, code) in cases {
        let victim = script(&mount, &text);
        let mut command = trimbench();
        command
            .args(["why", "--json", "-", "--set", "rate=100", "--"])
            .args(&victim);
        let done = run(lab.in_here(command));
        assert_eq!(done.code(), Some(code), "{}", done.text());
        let found = conforms(&done.stdout);
        eprintln!("{}", found["sentence"]);
        assert_ne!(found["verdict"], "trim", "{found:#}");
        if !cause.is_empty() {
            assert_eq!(found["verdict"], "not-trim", "{found:#}");
            assert_eq!(found["main_cause"], cause, "{found:#}");
        }
    }
}

#[test]
fn a_process_a_service_and_all_are_watched() {
    if lacks(&[Need::Root]) {
        return;
    }
    let _turn = beside();
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let pid = busy.id().to_string();
    let found = why(&["--pid", &pid, "--for", "1s"]);
    assert_eq!(found["main_cause"], "cpu", "{found:#}");
    assert_eq!(
        found["victims"][0]["pid"].as_u64(),
        Some(u64::from(busy.id()))
    );
    let found = why(&["--all", "--for", "500ms"]);
    assert!(
        found["sampling"]["samples"].as_u64().unwrap() > 0,
        "{found:#}"
    );
    // Looking is bounded, however many threads there are.
    assert!(
        found["sampling"]["cpu_share"].as_f64().unwrap() < 0.5,
        "{found:#}"
    );
    // The root group is one, too.
    let folder = tempfile::tempdir().unwrap();
    let stacks = folder.path().join("stacks");
    let mut command = trimbench();
    command
        .args([
            "why",
            "--service",
            "/sys/fs/cgroup/",
            "--for",
            "200ms",
            "--output",
        ])
        .arg(&stacks);
    let done = run(command);
    assert!(matches!(done.code(), Some(0 | 2)), "{}", done.text());
    busy.kill().unwrap();
    busy.wait().unwrap();
    let refused = |arguments: &[&str], code, word: &str| {
        let mut command = trimbench();
        command.arg("why").args(arguments);
        run(command).fails_with(code, &[word]);
    };
    refused(&["--pid", "4194304"], 2, "there is no process");
    refused(&["--service", "no-such-unit"], 2, "no control group");
    refused(&["--", "/no/such/program"], 2, "cannot start");
    refused(&[], 2, "COMMAND");
    refused(&["--all", "--set", "rate=0"], 2, "1 to 1000");
}

#[test]
fn a_commands_exit_code_and_output_stay_its_own() {
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let (json, stacks) = (folder.path().join("why.json"), folder.path().join("stacks"));
    let mut command = trimbench();
    command
        .arg("why")
        .arg("--json")
        .arg(&json)
        .arg("--output")
        .arg(&stacks);
    command.args([
        "--for",
        "60s",
        "--",
        "sh",
        "-c",
        "echo out; sleep 0.3; exit 7",
    ]);
    let done: Done = run(command);
    assert_eq!(done.code(), Some(7), "{}", done.text());
    assert_eq!(done.stdout, "out\n");
    // A busy machine may have kept it waiting for its own pages.
    assert!(done.stderr.contains(" wait"), "{}", done.text());
    let found = conforms(&std::fs::read_to_string(json).unwrap());
    assert!(found["verdict"] != "trim", "{found:#}");
    assert!(stacks.exists());
    let mut command = trimbench();
    command.args(["why", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(run(command).code(), Some(137));
}

#[test]
fn without_root_it_shows_what_is_left_and_lists_what_is_missing() {
    let _turn = beside();
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let mut command = as_plain_user(&copied_to(folder.path()));
    command.args([
        "why",
        "--json",
        "-",
        "--",
        "sh",
        "-c",
        "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done",
    ]);
    let found = conforms(&run(command).succeeds().stdout);
    assert_eq!(found["main_cause"], "cpu", "{found:#}");
    let missing = found["missing"].to_string();
    assert!(
        missing.contains("who sends discards") && missing.contains("root"),
        "{missing}"
    );
}

#[test]
fn no_tracefs_instance_is_left_even_after_a_kill() {
    if lacks(&[Need::Root]) {
        return;
    }
    let _turn = alone();
    for arguments in [&["why", "--all", "--for", "60s"][..], &["watch", "--quiet"]] {
        let mut command = trimbench();
        command.args(arguments);
        let running = start(command);
        // Other tests have instances of their own.
        let own = format!("trimbench-{}-", running.pid().as_raw_nonzero());
        let left = || {
            let found = instances().into_iter();
            let is_own = |path: &PathBuf| {
                path.file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .starts_with(&own)
            };
            found.filter(is_own).count()
        };
        let until = Instant::now() + Duration::from_secs(20);
        while left() == 0 {
            assert!(Instant::now() < until, "no instance was made");
            std::thread::sleep(Duration::from_millis(100));
        }
        running.signal(rustix::process::Signal::KILL);
        running.wait();
        assert_eq!(left(), 1, "a killed one leaves its instance");
        why(&["--", "true"]);
        assert_eq!(left(), 0);
    }
}
