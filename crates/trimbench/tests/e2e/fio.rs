//! A fio job as the foreground.

use std::path::Path;

use tempfile::TempDir;

use crate::common::gate::{LOOP_EXT4, Need, Turn, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::quick::{Files, begin, measure, number};

const FIO: &[Need] = &[Need::Tool("fio")];

const JOB: &str = "\
[global]
ioengine=psync
bs=4k
size=8m

[random-reads]
rw=randread

[log]
rw=write
fdatasync=1
rate_iops=50
";

fn job(directory: &Path, text: &str) -> String {
    let path = directory.join("job.fio");
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

/// Where fio works, and where its job is written down.
struct Place {
    fs: LoopFs,
    directory: TempDir,
    _turn: Turn,
}

fn place() -> Option<Place> {
    let turn = beside();
    (!lacks(LOOP_EXT4) && !lacks(FIO)).then(|| Place {
        fs: LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs),
        directory: tempfile::tempdir().unwrap(),
        _turn: turn,
    })
}

/// The setting for a job.
fn fio(job: &str) -> String {
    format!("fio={job}")
}

#[test]
fn its_series_join_the_record() {
    let Some(place) = place() else { return };
    let fs = &place.fs;
    let job = job(place.directory.path(), JOB);
    let arguments = ["--set", &fio(&job), "--baseline", "2s", "--settle", "1s"];
    let measured = measure(fs.path(), &arguments).succeeds();
    assert_eq!(fs.names(), [""; 0], "it left something behind");
    let actors = measured.head()["actors"].as_array().unwrap();
    let names: Vec<_> = actors.iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert!(!names.contains(&"reader"), "{names:?}");
    for wanted in ["random-reads", "log"] {
        let index = names.iter().position(|name| name.contains(wanted));
        let index = index.unwrap_or_else(|| panic!("{wanted} missing in {names:?}"));
        let series = measured.lines("series").find(|line| line["actor"] == index);
        let series = series.unwrap_or_else(|| panic!("no series of {wanted}"));
        let ops: f64 = series["intervals"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|interval| interval["ops"].as_f64())
            .sum();
        assert!(ops > 0.0, "{wanted} did nothing");
    }
    assert!(number(&measured.verdict["deletion"]["bytes"]) > 0.0);
    // The job is told in full, so that somebody else can repeat it.
    let plan = measured.head()["scenario"].to_string();
    assert!(plan.contains("random-reads"), "{plan}");
}

#[test]
fn a_job_that_cannot_be_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let missing = ["--set", "fio=/no/such/job.fio", "--dry-run"];
    measure(place.path(), &missing)
        .done
        .fails_with(2, &["/no/such/job.fio"]);
}

#[test]
fn what_fio_does_not_take_is_refused_in_its_words() {
    if lacks(FIO) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let wrong = job(place.path(), "[a]\nrw=read\nsize=1m\nbogus=3\n");
    measure(place.path(), &["--set", &fio(&wrong), "--dry-run"])
        .done
        .fails_with(2, &["job.fio", "bogus"]);
}

#[test]
fn a_job_does_not_touch_what_is_not_the_runs_own() {
    let place = tempfile::tempdir().unwrap();
    let kept = place.path().join("kept");
    std::fs::write(&kept, "mine").unwrap();
    let text = format!("[a]\nrw=write\nsize=1m\nfilename={}\n", kept.display());
    let away = job(place.path(), &text);
    measure(place.path(), &["--set", &fio(&away)])
        .done
        .fails_with(2, &["job.fio", "kept", "a directory of its own"]);
    assert_eq!(std::fs::read(&kept).unwrap(), b"mine");
}

#[test]
fn fios_files_and_the_deletion_have_to_fit_together() {
    let Some(place) = place() else { return };
    let fs = &place.fs;
    let free = rustix::fs::statvfs(fs.path()).unwrap();
    // Either alone fits: half of it stays free.
    let third = (free.f_bavail * free.f_frsize / 3).to_string();
    let text = format!("[a]\nrw=randread\nsize={third}\n");
    let job = job(place.directory.path(), &text);
    measure(fs.path(), &["--set", &fio(&job), "--size", &third])
        .done
        .fails_with(2, &["too little space", "fio"]);
    assert_eq!(fs.names(), [""; 0], "it wrote something");
    for alone in [&["--set", &fio(&job)][..], &["--size", &third]] {
        measure(fs.path(), &[alone, &["--dry-run"]].concat())
            .done
            .succeeds();
    }
}

#[test]
fn a_fio_that_fails_is_a_failed_run_in_its_words() {
    let Some(place) = place() else { return };
    let fs = &place.fs;
    // It finds out only when it runs which engines there are.
    let job = job(
        place.directory.path(),
        "[a]\nrw=read\nioengine=nosuch\nsize=1m\n",
    );
    measure(fs.path(), &["--set", &fio(&job)])
        .done
        .fails_with(1, &["job.fio", "fio exited with", "nosuch"]);
    assert_eq!(fs.names(), [""; 0], "it left something behind");
}

#[test]
fn ctrl_c_ends_fio_too() {
    let Some(place) = place() else { return };
    let fs = &place.fs;
    let job = job(place.directory.path(), JOB);
    let files = Files::new();
    let arguments = ["--set", &fio(&job), "--baseline", "1h"];
    let mut running = begin(fs.path(), &files, &arguments);
    running.until("the baseline", || files.in_phase("baseline"));
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.wait().code(), Some(130));
    // A fio that went on would keep files open, and the directory would stay.
    assert_eq!(fs.names(), [""; 0], "it left something behind");
}
