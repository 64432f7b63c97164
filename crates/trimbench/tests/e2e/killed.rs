//! kill -9: the record is readable, the next start removes what was left, and nothing else.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::common::gate::{LOOP_EXT4, beside, lacks, times};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::quick::{Files, begin, measure};

fn quiet_fs() -> Option<LoopFs> {
    (!lacks(LOOP_EXT4)).then(|| LoopFs::new(Fs::Ext4, "nodiscard", 2 * SMALL, On::Tmpfs))
}

/// A run that deletes nothing of its own, and clears away what was left.
const CLEARS: [&str; 2] = ["--delete", "none"];

/// Kills a run once it is in a phase, and reads what it recorded.
fn kill_in(fs: &LoopFs, phase: &str, arguments: &[&str]) -> record::RunRecord {
    let files = Files::new();
    let mut running = begin(fs.path(), &files, arguments);
    running.until(phase, || files.in_phase(phase));
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code(), None, "{phase}");
    record::RecordReader::read(fs::File::open(files.record()).unwrap()).unwrap()
}

#[test]
fn the_record_is_readable_and_the_next_start_clears_away() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let phases: [(&str, &[&str]); 4] = [
        ("prepare", &["--size", "2G"]),
        ("baseline", &["--baseline", "1h"]),
        (
            "delete",
            &[
                "--delete",
                "truncate",
                "--set",
                "deletion.chunk=1M",
                "--set",
                "deletion.sleep=1s",
            ],
        ),
        ("recovery", &["--recovery", "1h"]),
    ];
    for _ in 0..times(1, 25) {
        for (phase, arguments) in phases {
            let record = kill_in(&fs, phase, arguments);
            assert!(
                record.end.is_none(),
                "a killed run can't have ended its record"
            );
            assert_eq!(fs.names().len(), 1, "{phase}: {:?}", fs.names());
            let next = measure(fs.path(), &CLEARS).succeeds();
            assert_eq!(fs.names(), [""; 0], "{phase}");
            // It doesn't remove files without a word.
            assert!(
                next.done.text().contains(".trimbench-"),
                "{}",
                next.done.text()
            );
        }
    }
}

#[test]
fn what_deleters_and_tasks_made_for_themselves_is_cleared_away_too() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let lsm = [
        "--delete",
        "lsm",
        "--set",
        "deletion.file-size=1M",
        "--set",
        "deletion.for=1h",
    ];
    let spill = [
        "--delete",
        "spill",
        "--set",
        "deletion.sleep=10ms",
        "--set",
        "deletion.for=1h",
    ];
    let save = ["--actor", "save", "--actor", "metadata"];
    let swap = ["--delete", "swap", "--baseline", "1h"];
    for (arguments, phase) in [
        (&lsm[..], "delete"),
        (&spill, "delete"),
        (&[&save[..], &["--baseline", "1h"]].concat(), "baseline"),
        (&swap, "baseline"),
    ] {
        let files = Files::new();
        let mut running = begin(fs.path(), &files, arguments);
        running.until(phase, || files.in_phase(phase));
        // In the middle of it, and not at its very beginning.
        let seen = crate::common::run::record(&files.record()).len();
        running.until("ten intervals", || {
            crate::common::run::record(&files.record()).len() > seen + 10
        });
        running.signal(Signal::KILL);
        assert_eq!(running.wait().code(), None, "{arguments:?}");
        assert_eq!(fs.names().len(), 1, "{arguments:?}: {:?}", fs.names());
        let next = measure(fs.path(), &CLEARS).succeeds();
        assert_eq!(fs.names(), [""; 0], "{arguments:?}: {}", next.done.text());
    }
}

#[test]
fn a_compressed_record_of_a_killed_run_is_readable_too() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("killed.jsonl.zst");
    let mut command = crate::common::run::trimbench();
    command.args([
        "run",
        "--size",
        "16M",
        "--set",
        "foreground.size=16M",
        "--settle",
        "0s",
    ]);
    command
        .args(["--baseline", "1h", "--output"])
        .arg(&path)
        .arg(fs.path());
    let mut running = crate::common::run::start(command);
    let read = |path: &Path| {
        let file = fs::File::open(path).ok()?;
        record::RecordReader::read(file).ok()
    };
    running.until("some seconds of record", || {
        read(&path).is_some_and(|record| record.intervals.end_s() > 2.0)
    });
    running.signal(Signal::KILL);
    running.wait();
    let record = read(&path).unwrap();
    assert!(record.end.is_none() && record.intervals.end_s() > 2.0);
    let verdict = judge::judge(&record, &judge::JudgeOptions::default());
    assert!(
        verdict
            .reasons
            .contains(&judge::verdict::Reason::Interrupted)
    );
}

#[test]
fn an_outside_program_ends_with_the_run() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let (files, directory) = (Files::new(), tempfile::tempdir().unwrap());
    let seen = directory.path().join("pid");
    let program = format!("sh -c 'echo $$ > {}; exec sleep 600'", seen.display());
    let mut running = begin(fs.path(), &files, &["--delete", &program]);
    let read = || fs::read_to_string(&seen).unwrap_or_default();
    running.until("the program", || read().ends_with('\n'));
    let process = Path::new("/proc").join(read().trim());
    assert!(process.exists());
    running.signal(Signal::KILL);
    running.wait();
    // It may lie there dead until somebody asks for it.
    let lives = || {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        stat.contains("(sleep)") && !stat.contains(") Z ")
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while lives() {
        assert!(std::time::Instant::now() < deadline, "it goes on");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn what_is_not_surely_ours_stays() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let root = fs.path();
    // Names like ours, of all kinds: an empty directory, one with somebody's file, a file, a link.
    fs::create_dir(root.join(".trimbench-abcdefgh")).unwrap();
    fs::write(root.join(".trimbench-abcdefgh/thesis.tex"), "years of work").unwrap();
    fs::write(root.join(".trimbench-notes"), "mine").unwrap();
    fs::write(root.join(".trimbench-bcdefghi"), "mine").unwrap();
    fs::create_dir(root.join("precious")).unwrap();
    for name in ["owner", "victim-000001"] {
        fs::write(root.join("precious").join(name), "mine").unwrap();
    }
    std::os::unix::fs::symlink("precious", root.join(".trimbench-cdefghij")).unwrap();
    fs::create_dir(root.join(".trimbench-not-of-that-length")).unwrap();
    let before = fs.names();

    measure(root, &CLEARS).succeeds();
    assert_eq!(fs.names(), before);
    for path in [
        ".trimbench-abcdefgh/thesis.tex",
        ".trimbench-notes",
        "precious/victim-000001",
    ] {
        assert!(root.join(path).exists(), "{path}");
    }
}

#[test]
fn of_a_killed_runs_directory_somebody_elses_file_stays() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    kill_in(&fs, "baseline", &["--baseline", "1h"]);
    let own = fs.path().join(&fs.names()[0]);
    fs::write(own.join("thesis.tex"), "years of work").unwrap();
    let next = measure(fs.path(), &CLEARS).succeeds();
    assert_eq!(
        fs::read_to_string(own.join("thesis.tex")).unwrap(),
        "years of work"
    );
    let named = own.file_name().unwrap().to_string_lossy().into_owned();
    assert!(next.done.text().contains(&named), "{}", next.done.text());
}

#[test]
fn a_dry_run_removes_nothing() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    kill_in(&fs, "baseline", &["--baseline", "1h"]);
    let before = fs.names();
    let files = Files::new();
    let done = crate::common::run::run(crate::quick::command_on(fs.path(), &files, &["--dry-run"]));
    done.succeeds();
    assert_eq!(fs.names(), before);
}
