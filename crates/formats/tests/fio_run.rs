//! fio itself, run with the logs that a job file is given.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::fs;
use std::io::BufReader;
use std::process::Command;

use formats::fio::{About, Grid, Input, JobFile, Logging, Output, series};

const JOBS: &str = "\
[global]
size=1m
bs=4k
time_based
runtime=1
group_reporting
thread

[mixed]
rw=randrw
iodepth=2
numjobs=2
[paced writer]
rw=write
bssplit=4k/50:8k/50
rate_iops=300
";

#[test]
fn a_job_file_with_logs_gives_its_actors_back() {
    if testkit::gate::lacks(&[testkit::gate::Need::Tool("fio")]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let text = format!("[global]\ndirectory={}\n{JOBS}", dir.path().display());
    let file = JobFile::parse(&text).unwrap();
    let logging = Logging {
        dir: dir.path().display().to_string(),
        window_ms: 100,
        histogram_ms: 100,
    };
    let job = dir.path().join("job.fio");
    fs::write(&job, file.with_logs(&logging)).unwrap();
    let ran = Command::new("fio")
        .args(["--output-format=json"])
        .arg(&job)
        .current_dir(dir.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let output = Output::parse(&printed).unwrap();

    let logs = fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().path());
    let inputs = logs
        .filter(|p| p.extension().is_some_and(|e| e == "log"))
        .map(|p| Input {
            name: p.display().to_string(),
            text: BufReader::new(fs::File::open(&p).unwrap()),
        });
    let about = About {
        jobs: Some(&file),
        output: Some(&output),
    };
    let all = series(inputs, &about).unwrap();
    let infos: Vec<_> = all.iter().map(|s| s.info.clone()).collect();
    assert_eq!(infos, file.actors());
    for one in &all {
        let (begin_s, end_s) = one.ran().unwrap();
        assert!(begin_s > 1.7e9 && end_s > begin_s, "since 1970");
        let grid = Grid {
            started_unix_s: begin_s - 1.0,
            at_s: &[0.0, 1.0, 1.5],
            seconds: &[1.0, 0.5, 0.5],
        };
        let column = one.intervals(&grid);
        assert_eq!(column[0], None);
        let ran = column[1].unwrap();
        assert!(
            ran.ops > 0 && ran.bytes >= 4096 * ran.ops,
            "{}: {ran:?}",
            one.info.name
        );
        assert!(ran.p99_us >= ran.p50_us && ran.p50_us.is_some(), "{ran:?}");
    }
}
