//! Every kind on a real directory.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;
use crate::actor::{Actor, ActorSpec, Unfinished, Work};
use crate::clock::Clock;

const BLOCK: u32 = 4096;
const SIZE: u64 = 3 * BLOCK as u64;
const DEPTH: u32 = 2;

fn spec(kind: &'static Kind, dir: &Path, arrival: LoopKind) -> ActorSpec {
    let only_if_used = |default: u64, value: u64| if default == 0 { 0 } else { value };
    ActorSpec {
        name: "task".into(),
        work: Work::Task(TaskSpec {
            kind,
            dir: dir.to_owned(),
            block_bytes: only_if_used(kind.default_block_bytes.into(), BLOCK.into()) as u32,
            size_bytes: only_if_used(kind.default_size_bytes, SIZE),
        }),
        arrival,
        seed: 1,
    }
}

/// The content of a directory: name and length of each file.
fn files(dir: &Path) -> BTreeMap<String, u64> {
    let entries = std::fs::read_dir(dir).expect("readable");
    let file = |entry: io::Result<std::fs::DirEntry>| {
        let entry = entry.expect("an entry");
        let metadata = entry.metadata().expect("metadata");
        assert!(metadata.is_file(), "{entry:?}");
        let name = entry.file_name().into_string().expect("plain name");
        (name, metadata.len())
    };
    entries.map(file).collect()
}

/// Runs a task until each series has `least` operations; how many each had.
fn run(kind: &'static Kind, dir: &Path, arrival: LoopKind, least: u64) -> Vec<u64> {
    let clock = Clock::start();
    let actor = Actor::start(spec(kind, dir, arrival), clock).expect("starts");
    let mut samplers: Vec<_> = actor.series().iter().map(|one| one.sampler()).collect();
    let mut ops = vec![0; samplers.len()];
    let mut count = |ops: &mut [u64]| {
        for (sampler, ops) in samplers.iter_mut().zip(ops) {
            let interval = sampler.sample(clock.now()).interval;
            assert_eq!(interval.errors, 0, "{}", kind.name);
            let bytes = if kind.default_block_bytes == 0 {
                0
            } else {
                BLOCK
            };
            assert_eq!(interval.bytes, interval.ops * u64::from(bytes));
            *ops += interval.ops;
        }
    };
    let begin = Instant::now();
    while ops.iter().any(|&ops| ops < least) {
        // A sync waits for whatever else this machine is writing.
        assert!(begin.elapsed() < Duration::from_secs(120), "{ops:?}");
        std::thread::sleep(Duration::from_millis(2));
        count(&mut ops);
    }
    let unfinished = actor.finish(Duration::from_secs(60));
    assert_eq!(unfinished.len(), ops.len());
    // In an open loop, more may have been due than this machine can do.
    let all_ended = unfinished.iter().all(|left| *left == Unfinished::default());
    assert!(arrival.is_open() || all_ended, "{unfinished:?}");
    count(&mut ops);
    ops
}

/// Every kind in both loops, two operations in flight.
fn each_run(mut check: impl FnMut(&'static Kind, &Path, &[u64])) {
    let open = LoopKind::Open {
        rate_per_s: 500.0,
        poisson: true,
        depth: DEPTH,
    };
    let closed = LoopKind::Closed { depth: DEPTH };
    for kind in KINDS {
        for arrival in [closed, open] {
            let dir = tempfile::tempdir().expect("directory");
            let least = if kind.name == "sync" { 2 } else { 12 };
            let ops = run(kind, dir.path(), arrival, least);
            check(kind, dir.path(), &ops);
        }
    }
}

#[test]
fn every_kind_counts_its_operations_in_both_loops_and_keeps_to_its_files() {
    each_run(|kind, dir, ops| {
        assert_eq!(ops.len(), kind.series.len(), "{}", kind.name);
        // All parts of an operation are done the same number of times.
        assert!(ops.iter().all(|&n| n == ops[0]), "{}: {ops:?}", kind.name);
        let files = files(dir);
        for (name, &len) in &files {
            let agreed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
            assert!(name.chars().all(agreed), "{}: {name}", kind.name);
            let most = kind
                .default_size_bytes
                .min(SIZE)
                .max(kind.default_block_bytes.into());
            assert!(len <= most, "{}: {name} has {len} bytes", kind.name);
        }
        let most = match kind.name {
            "metadata" => 1001 * DEPTH as usize,
            "sync" | "syncfs" => 0,
            _ => DEPTH as usize,
        };
        assert!(files.len() <= most, "{}: {files:?}", kind.name);
    });
}

#[test]
fn a_log_goes_around_and_is_never_cut() {
    let dir = tempfile::tempdir().expect("directory");
    let alone = LoopKind::Closed { depth: 1 };
    let kind = kind("append-fdatasync").expect("a kind");
    assert!(run(kind, dir.path(), alone, 10)[0] >= 10);
    assert_eq!(
        files(dir.path()),
        BTreeMap::from([("log-0".to_owned(), SIZE)])
    );
}

#[test]
fn what_is_overwritten_was_there_in_full_and_changes() {
    let dir = tempfile::tempdir().expect("directory");
    let kind = kind("overwrite-fdatasync").expect("a kind");
    let Work::Task(spec) = spec(kind, dir.path(), kind.default_arrival).work else {
        unreachable!("made as a task")
    };
    let path = dir.path().join("table-0");
    let _task = (kind.start)(&spec, 0, 1, &AtomicBool::new(false)).expect("starts");
    let before = std::fs::read(&path).expect("readable");
    assert_eq!(before.len() as u64, SIZE);
    assert!(before.chunks(16).all(|stretch| stretch != [0; 16]));
    std::fs::remove_file(&path).expect("removes");
    let alone = LoopKind::Closed { depth: 1 };
    run(kind, dir.path(), alone, 30);
    let after = std::fs::read(&path).expect("readable");
    // The seed is the same, so what differs was overwritten.
    let blocks = before
        .chunks(BLOCK as usize)
        .zip(after.chunks(BLOCK as usize));
    assert!(blocks.filter(|(before, after)| before != after).count() >= 2);
    assert_eq!(after.len() as u64, SIZE);
}

#[test]
fn small_files_are_made_anew_when_somebody_removes_them() {
    let dir = tempfile::tempdir().expect("directory");
    let kind = kind("metadata").expect("a kind");
    let alone = LoopKind::Closed { depth: 1 };
    let clock = Clock::start();
    let actor = Actor::start(spec(kind, dir.path(), alone), clock).expect("starts");
    let one = &actor.series()[0];
    for entry in std::fs::read_dir(dir.path()).expect("readable") {
        // Some are gone, or have another name, already.
        let _ = std::fs::remove_file(entry.expect("an entry").path());
    }
    let mut sampler = one.sampler();
    let begin = Instant::now();
    // Two whole rounds of calls, and none of them fails.
    let (mut good, mut errors) = (0, 0);
    while good < 2 * 4 * 1001 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{errors} errors");
        let interval = sampler.sample(clock.now()).interval;
        errors += interval.errors;
        good = if interval.errors > 0 {
            0
        } else {
            good + interval.ops
        };
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(errors > 0, "nothing was missing");
    let (failure, _) = one.meter.first_error().expect("failed");
    assert_eq!(failure, crate::IoFailure::Os(libc::ENOENT));
    actor.finish(Duration::from_secs(10));
    assert!((1000..=1001).contains(&files(dir.path()).len()));
}

#[test]
fn a_directory_in_use_is_refused() {
    for kind in KINDS.iter().filter(|kind| kind.default_block_bytes > 0) {
        let dir = tempfile::tempdir().expect("directory");
        let spec = || spec(kind, dir.path(), kind.default_arrival);
        let first = Actor::start(spec(), Clock::start()).expect("starts");
        let second = Actor::start(spec(), Clock::start());
        if kind.name != "save" {
            let error = second.expect_err("its files are there").to_string();
            assert!(error.contains("exists"), "{error}");
        }
        first.finish(Duration::from_secs(10));
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let append = kind("append-fsync").expect("a kind");
    let sync = kind("sync").expect("a kind");
    let of = |kind, block_bytes, size_bytes| TaskSpec {
        kind,
        dir: "/nonexistent".into(),
        block_bytes,
        size_bytes,
    };
    assert_eq!(of(append, BLOCK, SIZE).check(1), Ok(()));
    assert_eq!(of(sync, 0, 0).check(1), Ok(()));
    for (bad, depth, word) in [
        (of(append, 0, SIZE), 1, "block size 0"),
        (of(append, 17 << 20, SIZE), 1, "16 MiB"),
        (of(append, BLOCK, 4095), 1, "hold no block"),
        (of(append, 16 << 20, 1 << 30), 100, "1 GiB"),
        (of(sync, BLOCK, 0), 1, "no block size"),
        (of(sync, 0, SIZE), 1, "no size"),
    ] {
        let why = bad.check(depth).expect_err(word);
        assert!(why.contains(word), "{why}");
    }
    let missing = Actor::start(
        spec(append, Path::new("/nonexistent"), append.default_arrival),
        Clock::start(),
    );
    let error = missing.expect_err("no directory").to_string();
    assert!(error.starts_with("/nonexistent: "), "{error}");
}

#[test]
fn kinds_have_names_and_series_of_their_own() {
    for (n, one) in KINDS.iter().enumerate() {
        assert_eq!(kind(one.name).map(|kind| kind.about), Some(one.about));
        assert!(KINDS[..n].iter().all(|other| other.name != one.name));
        assert!(!one.series.is_empty());
        let least = u64::from(one.default_block_bytes);
        assert!(one.default_size_bytes == 0 || one.default_size_bytes >= least);
    }
    assert!(kind("append").is_none());
}

#[test]
fn space_is_told_for_all_lanes() {
    let space = |name: &str, block_bytes, size_bytes| {
        let kind = kind(name).expect("a kind");
        let dir = "/nonexistent".into();
        TaskSpec {
            kind,
            dir,
            block_bytes,
            size_bytes,
        }
        .space_bytes(3)
    };
    assert_eq!(space("append-fsync", BLOCK, SIZE), 3 * SIZE);
    // The old document and the new one, each in whole blocks of the file system.
    assert_eq!(space("save", 5000, 0), 3 * 2 * 8192);
    assert_eq!(space("syncfs", 0, 0), 0);
}
