//! Logs that fio 3.33 wrote itself, on a disk that cached the file it read.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;

use formats::fio::{FioSeries, Grid, Input, Output, series};
use record::{ActorInterval, LoopKind};

fn folder(name: &str) -> PathBuf {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fio");
    PathBuf::from(data).join(name)
}

fn output(name: &str) -> Output {
    let text = fs::read_to_string(folder(name).join("fio.json")).unwrap();
    Output::parse(&text).unwrap()
}

/// All logs of a folder but those whose names hold one of `without`.
fn logs(name: &str, without: &[&str]) -> Vec<Input<BufReader<File>>> {
    let files = fs::read_dir(folder(name)).unwrap();
    let mut names: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    names.retain(|path| {
        let path = path.display().to_string();
        path.ends_with(".log") && !without.iter().any(|part| path.contains(part))
    });
    names.sort();
    let inputs = names.into_iter().map(|path| Input {
        name: path.display().to_string(),
        text: BufReader::new(File::open(&path).unwrap()),
    });
    inputs.collect()
}

fn read(name: &str) -> (Vec<FioSeries>, Output) {
    let output = output(name);
    (series(logs(name, &[]), Some(&output)).unwrap(), output)
}

/// A column on a grid that begins `before_s` before the series and goes on after it.
fn column(series: &FioSeries, before_s: f64, seconds: f32) -> Vec<Option<ActorInterval>> {
    let (begin_s, end_s) = series.ran().unwrap();
    let n = ((end_s - begin_s + before_s + 1.0) / f64::from(seconds)) as usize;
    let at_s: Vec<f64> = (0..n).map(|i| i as f64 * f64::from(seconds)).collect();
    let lengths = vec![seconds; n];
    let grid = Grid {
        started_unix_s: begin_s - before_s,
        at_s: &at_s,
        seconds: &lengths,
    };
    series.intervals(&grid)
}

fn near(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() <= share
}

#[test]
fn random_reads() {
    let (all, output) = read("randread");
    assert_eq!(all.len(), 1);
    let reads = &all[0];
    assert_eq!(reads.info.name, "fio-randread-read");
    assert_eq!(reads.info.loop_kind, LoopKind::Closed { depth: 8 });
    assert_eq!(
        (reads.info.block_bytes, reads.info.direct),
        (4096, Some(true))
    );
    assert_eq!(reads.info.engine, "io_uring");
    assert_eq!(reads.started_unix_s, Some(0.0), "log_unix_epoch=1");
    let counted = output.jobs[0].directions[0].operations as f64;
    assert!(
        near(reads.operations(), counted, 0.06),
        "{}",
        reads.operations()
    );

    let column = column(reads, 0.53, 0.25);
    assert_eq!(column[0], None, "before it began");
    assert_eq!(column.last(), Some(&None), "after it ended");
    let ran: Vec<ActorInterval> = column.iter().flatten().copied().collect();
    let ops: u64 = ran.iter().map(|i| i.ops).sum();
    assert!(near(ops as f64, reads.operations(), 0.1), "{ops}");
    let bytes: u64 = ran.iter().map(|i| i.bytes).sum();
    assert!(near(bytes as f64, ops as f64 * 4096.0, 0.01), "{bytes}");

    // What the windows say together is what fio says of the whole.
    let whole = output.jobs[0].directions[0].completion.as_ref().unwrap();
    let (begin_s, end_s) = reads.ran().unwrap();
    let grid = Grid {
        started_unix_s: begin_s,
        at_s: &[0.0],
        seconds: &[(end_s - begin_s) as f32],
    };
    let all = reads.intervals(&grid)[0].unwrap();
    for (percent, us, share) in [(50.0, all.p50_us, 0.02), (99.0, all.p99_us, 0.1)] {
        let ours = 1e3 * us.unwrap();
        let theirs = whole.percentile(percent).unwrap() as f64;
        assert!(near(ours, theirs, share), "p{percent}: {ours} {theirs}");
    }
    // fio logs no histogram of its last, unfinished window.
    let (_, whole_ones) = ran.split_last().unwrap();
    for interval in whole_ones {
        assert!(interval.p50_us.is_some_and(|us| us > 50.0 && us < 300.0));
    }
    let longest = ran.iter().filter_map(|i| i.max_us).fold(0.0, f64::max);
    assert_eq!(longest, 8224.768, "bucket 1149, the highest in the log");
    assert!(
        reads.warnings.iter().any(|w| w.contains("blocked")),
        "{:?}",
        reads.warnings
    );
}

#[test]
fn reads_and_writes_of_a_job_are_two_actors() {
    let (all, output) = read("mixed");
    let names: Vec<&str> = all.iter().map(|s| s.info.name.as_str()).collect();
    assert_eq!(names, ["fio-mixed-read", "fio-mixed-write"]);
    assert_eq!(all[1].info.block_bytes, 16384);
    for (series, printed) in all.iter().zip(&output.jobs[0].directions) {
        let share = series.operations() / printed.operations as f64;
        assert!((0.85..1.05).contains(&share), "{share}");
        let column = column(series, 0.0, 0.1);
        assert!(column.iter().flatten().any(|i| i.p99_us.is_some()));
        assert!(
            series.warnings.iter().any(|w| w.contains("fsync")),
            "{:?}",
            series.warnings
        );
    }
}

#[test]
fn threads_of_a_job_are_one_actor() {
    let (all, output) = read("jobs");
    let names: Vec<&str> = all.iter().map(|s| s.info.name.as_str()).collect();
    assert_eq!(names, ["fio-readers-read", "fio-log-writer-write"]);
    assert_eq!(all[0].info.loop_kind, LoopKind::Closed { depth: 8 });
    assert_eq!(all[1].info.loop_kind, LoopKind::Closed { depth: 1 });
    for (series, printed) in all.iter().zip(&output.jobs) {
        let share = series.operations() / printed.directions[0].operations as f64;
        assert!(
            (0.85..1.05).contains(&share),
            "{}: {share}",
            series.info.name
        );
        assert!(series.warnings.iter().any(|w| w.contains("no histograms")));
    }
}

#[test]
fn a_paced_job_logged_io_by_io() {
    let (all, _) = read("rate");
    let paced = &all[0];
    assert_eq!(
        paced.info.loop_kind,
        LoopKind::Open {
            rate_per_s: 400.0,
            poisson: false,
            depth: 8
        }
    );
    assert_eq!(paced.operations(), 400.0, "every I/O is a line");
    let column = column(paced, 0.0, 0.1);
    let ran: Vec<ActorInterval> = column.into_iter().flatten().collect();
    let ops: u64 = ran.iter().map(|i| i.ops).sum();
    assert!(ops >= 390, "{ops}");
    assert_eq!(ran.iter().map(|i| i.bytes).sum::<u64>(), ops * 4096);
    assert!(ran.iter().all(|i| i.p50_us.is_some()));
    let said = paced.warnings.join(" ");
    assert!(
        said.contains("intended start") && said.contains("log_unix_epoch"),
        "{said}"
    );
}

#[test]
fn nothing_logged_is_a_stall() {
    for without in [&[][..], &["lat"][..]] {
        // 2 × 0.7 s in which the job sleeps, and fio writes nothing; it ended with another.
        let output = output("gap");
        let all = series(logs("gap", without), Some(&output)).unwrap();
        let column = column(&all[0], 0.0, 0.1);
        let stalled = column.iter().flatten().filter(|i| i.ops < 200).count();
        assert!((18..=24).contains(&stalled), "{stalled}: {column:?}");
        let counted = output.jobs[0].directions[0].operations as f64;
        assert!(
            near(all[0].operations(), counted, 0.05),
            "{}",
            all[0].operations()
        );
        let idle = column.iter().flatten().filter(|i| i.ops == 0);
        assert!(idle.clone().count() >= 12);
        assert!(idle.clone().all(|i| i.max_us.is_none()));
    }
}

#[test]
fn without_anything_but_logs() {
    let all = series(logs("jobs", &[]), None).unwrap();
    assert_eq!(all.len(), 2, "one prefix, two directions");
    assert_eq!(all[0].info.name, "fio-j-read");
    assert_eq!(all[0].info.loop_kind.depth(), 3, "one for each thread");
}

#[test]
fn a_cut_log_is_kept_as_far_as_it_goes() {
    let text = fs::read_to_string(folder("gap").join("g_iops.1.log")).unwrap();
    let cut = &text[..text.len() - 9];
    let input = Input {
        name: "g_iops.1.log".to_owned(),
        text: cut.as_bytes(),
    };
    let all = series([input], None).unwrap();
    let said = all[0].warnings.join(" ");
    assert!(said.contains("g_iops.1.log: line 15 is cut off"), "{said}");
    let other = Input {
        name: "x_iops.1.log".to_owned(),
        text: &b"Linux 6.5\n\nDevice r/s\n"[..],
    };
    let error = series([other], None).unwrap_err().to_string();
    assert!(
        error.contains("x_iops.1.log") && error.contains("line 1"),
        "{error}"
    );
    let name = Input {
        name: "fio.txt".to_owned(),
        text: &b""[..],
    };
    assert!(series([name], None).is_err());
}

/// Each name was compared with all others, with a new text for each comparison: ten minutes for
/// these.
#[test]
fn more_jobs_than_a_record_has_actors_are_refused_before_they_get_names() {
    let job = r#"{"jobname": "a", "read": {"total_ios": 5, "runtime": 9, "clat_ns": {"max": 7}}}"#;
    let of = |jobs: usize| {
        let jobs = vec![job; jobs].join(",");
        Output::parse(&format!(
            "{{\"fio version\": \"fio-3.33\", \"jobs\": [{jobs}]}}"
        ))
        .unwrap()
    };
    let (send, done) = std::sync::mpsc::channel();
    let output = of(30_000);
    std::thread::spawn(move || send.send(Box::new(formats::fio::totals(&output))));
    let refused = done.recv_timeout(std::time::Duration::from_secs(60));
    let error = refused.expect("it is not refused at once").unwrap_err();
    assert!(error.to_string().contains("256"), "{error}");
    let most = formats::fio::totals(&of(record::MAX_ACTORS)).unwrap();
    assert_eq!(most.head.actors[255].name, "fio-a-read-256");
}

/// Found by the fuzz test: a gigabyte of memory for a log of 20 kB.
#[test]
fn a_wrong_time_in_a_short_log_does_not_make_millions_of_intervals() {
    let text = "1795208154422, 9326, 0, 0, 0\n1795208154522, 9390, 0, 0, 0\n".repeat(40);
    let log = |text: String| Input {
        name: "m_iops.1.log".to_owned(),
        text: std::io::Cursor::new(text),
    };
    let read = |text: String| {
        let all = series([log(text)], None).unwrap();
        formats::fio::record(&all, &formats::Options::default())
    };
    assert!(read(text.clone()).is_ok());
    let refused = read("1795008154422, 4074, 0, 0, 0\n".to_owned() + &text).unwrap_err();
    assert!(refused.to_string().contains("intervals"), "{refused}");
}
