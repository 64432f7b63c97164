//! Actors against real files, and against targets that hang or break.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Instant;

use super::*;
use crate::meter::IoFailure;
use crate::pattern::PatternKind;

const BLOCK: u32 = 4096;

fn file_of(len: usize) -> Arc<File> {
    let mut file = tempfile::tempfile().expect("temporary file");
    file.write_all(&vec![7; len]).expect("write");
    Arc::new(file)
}

fn spec(engine: EngineChoice, arrival: Arrival, file: Arc<File>, len: u64) -> ActorSpec {
    ActorSpec {
        name: "reader".into(),
        op: Op::Read,
        pattern: PatternKind::Random,
        block_bytes: BLOCK,
        arrival,
        engine,
        target: Some(Region {
            file,
            start: 0,
            len,
        }),
        direct: false,
        seed: 1,
    }
}

fn nop(arrival: Arrival, engine: EngineChoice) -> ActorSpec {
    ActorSpec {
        op: Op::Nop,
        target: None,
        ..spec(engine, arrival, file_of(1), 1)
    }
}

const CLOSED: Arrival = Arrival::Closed { depth: 8, batch: 1 };

fn has_io_uring() -> bool {
    let spec = nop(CLOSED, EngineChoice::Null);
    match Actor::start(spec, Clock::start()) {
        Ok(_) => true,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{error}");
            println!("skipped: {error}");
            false
        }
    }
}

/// Waits until `condition` holds; false after ten seconds.
fn soon(mut condition: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

#[test]
fn every_engine_reads_in_both_loops() {
    let clock = Clock::start();
    let open = Arrival::Open {
        rate_per_s: 2_000.0,
        poisson: true,
        depth: 8,
    };
    for engine in [EngineChoice::Auto, EngineChoice::Sync] {
        for arrival in [CLOSED, open] {
            let file = file_of(64 * BLOCK as usize);
            let actor = Actor::start(spec(engine, arrival, file, 64 * u64::from(BLOCK)), clock)
                .expect("starts");
            let mut sampler = actor.sampler();
            let mut ops = 0;
            assert!(soon(|| {
                let sample = sampler.sample(clock.now());
                assert_eq!(
                    sample.interval.bytes,
                    sample.interval.ops * u64::from(BLOCK)
                );
                assert_eq!(sample.interval.errors, 0);
                ops += sample.interval.ops;
                ops > 200
            }));
            assert_eq!(actor.finish(Duration::from_secs(10)), Unfinished::default());
        }
    }
}

#[test]
fn the_record_is_told_the_engine_really_used() {
    let clock = Clock::start();
    let file = file_of(BLOCK as usize);
    let actor = Actor::start(spec(EngineChoice::Sync, CLOSED, file, 4096), clock).expect("starts");
    assert_eq!(actor.engine(), Engine::Sync);
    assert_eq!(actor.info().engine, "sync");
    assert_eq!(actor.info().op, "read");
    assert_eq!(actor.info().pattern.as_deref(), Some("random"));
    let actor = Actor::start(nop(CLOSED, EngineChoice::Sync), clock).expect("starts");
    assert_eq!(
        (actor.info().block_bytes, &actor.info().pattern),
        (0, &None)
    );
}

#[test]
fn nops_are_counted_by_the_null_engine() {
    if !has_io_uring() {
        return;
    }
    let clock = Clock::start();
    let batch = Arrival::Closed { depth: 8, batch: 8 };
    let actor = Actor::start(nop(batch, EngineChoice::Null), clock).expect("starts");
    assert_eq!(actor.engine(), Engine::Null);
    let mut sampler = actor.sampler();
    assert!(soon(|| sampler.sample(clock.now()).interval.ops > 1_000));
    assert_eq!(actor.finish(Duration::from_secs(10)), Unfinished::default());
}

#[test]
fn writes_reach_the_file_and_differ() {
    let clock = Clock::start();
    for engine in [EngineChoice::Auto, EngineChoice::Sync] {
        let file = file_of(16 * BLOCK as usize);
        let write = ActorSpec {
            op: Op::Write,
            pattern: PatternKind::Sequential,
            ..spec(engine, CLOSED, file.clone(), 16 * u64::from(BLOCK))
        };
        let actor = Actor::start(write, clock).expect("starts");
        let mut sampler = actor.sampler();
        let mut ops = 0;
        assert!(soon(|| {
            ops += sampler.sample(clock.now()).interval.ops;
            ops > 500
        }));
        assert_eq!(actor.finish(Duration::from_secs(10)).operations, 0);
        let mut bytes = vec![0; 16 * BLOCK as usize];
        std::os::unix::fs::FileExt::read_exact_at(&*file, &mut bytes, 0).expect("read");
        let mut blocks: Vec<&[u8]> = bytes.chunks(BLOCK as usize).collect();
        assert!(blocks.iter().all(|block| *block != vec![7; BLOCK as usize]));
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), 16, "no two blocks are alike");
    }
}

/// A file whose reads hang, and the end that lets them go.
fn hanging() -> (Arc<File>, File) {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, which are ours then.
    let (read, write) = unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    (Arc::new(File::from(read)), File::from(write))
}

#[test]
fn a_hung_device_is_seen_while_it_hangs_and_given_up_at_the_end() {
    if !has_io_uring() {
        return;
    }
    let clock = Clock::start();
    for arrival in [
        CLOSED,
        Arrival::Open {
            rate_per_s: 1_000.0,
            poisson: false,
            depth: 8,
        },
    ] {
        let (read, _write) = hanging();
        let begin = clock.now();
        let actor =
            Actor::start(spec(EngineChoice::IoUring, arrival, read, 4096), clock).expect("starts");
        let mut sampler = actor.sampler();
        assert!(soon(|| actor.meter().in_flight().0 == 8));
        let mut last_age = 0.0;
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(10));
            let interval = sampler.sample(clock.now()).interval;
            assert_eq!(interval.ops, 0);
            let age = interval.oldest_us.expect("something is in flight");
            assert!(age > last_age, "{age} µs after {last_age} µs");
            last_age = age;
        }
        let unfinished = actor.finish(Duration::from_millis(20));
        let age_ns = clock.now().since(begin).0;
        assert!(unfinished.oldest_ns > 50_000_000 && unfinished.oldest_ns <= age_ns);
        if arrival.is_open() {
            // One is due each millisecond, whether or not there is a slot for it.
            let due = unfinished.operations;
            assert!((50..=age_ns / 1_000_000 + 1).contains(&due), "{due}");
        } else {
            assert_eq!(unfinished.operations, 8);
        }
    }
}

#[test]
fn what_hung_is_counted_once_it_comes_back() {
    if !has_io_uring() {
        return;
    }
    let clock = Clock::start();
    let (read, mut write) = hanging();
    let one = Arrival::Closed { depth: 1, batch: 1 };
    let actor = Actor::start(spec(EngineChoice::IoUring, one, read, 4096), clock).expect("starts");
    let mut sampler = actor.sampler();
    assert!(soon(|| actor.meter().in_flight().0 == 1));
    std::thread::sleep(Duration::from_millis(50));
    write.write_all(&[1; BLOCK as usize]).expect("write");
    let mut worst = None;
    assert!(soon(|| {
        worst = sampler.sample(clock.now()).interval.max_us;
        worst.is_some()
    }));
    assert!(worst >= Some(50_000.0), "{worst:?}");
}

#[test]
fn a_file_cut_by_somebody_else_gives_errors_and_no_spin() {
    let clock = Clock::start();
    for engine in [EngineChoice::Auto, EngineChoice::Sync] {
        let file = file_of(8 * BLOCK as usize);
        file.set_len(100).expect("truncate");
        let len = 8 * u64::from(BLOCK);
        let actor = Actor::start(spec(engine, CLOSED, file, len), clock).expect("starts");
        assert!(soon(|| actor.meter().errors() > 1_000));
        let (failure, _) = actor.meter().first_error().expect("failed");
        assert_eq!(failure, IoFailure::Short);
        std::thread::sleep(Duration::from_millis(30));
        let before = actor.meter().errors();
        std::thread::sleep(Duration::from_millis(200));
        let per_s = (actor.meter().errors() - before) * 5;
        // Eight at a time (or eight threads), a hundred times a second at most.
        assert!(per_s < 20_000, "{per_s} failures per second");
        assert_eq!(actor.finish(Duration::from_secs(10)).operations, 0);
    }
}

#[test]
fn a_closed_descriptor_is_an_os_error() {
    let clock = Clock::start();
    // Opened for reading only: every write fails.
    let path = tempfile::NamedTempFile::new().expect("temporary file");
    path.as_file().set_len(8192).expect("truncate");
    let file = Arc::new(File::open(path.path()).expect("open"));
    assert!(file.as_raw_fd() >= 0);
    for engine in [EngineChoice::Auto, EngineChoice::Sync] {
        let write = ActorSpec {
            op: Op::Write,
            ..spec(engine, CLOSED, file.clone(), 8192)
        };
        let actor = Actor::start(write, clock).expect("starts");
        assert!(soon(|| actor.meter().first_error().is_some()));
        let (failure, _) = actor.meter().first_error().expect("failed");
        assert_eq!(failure, IoFailure::Os(libc::EBADF));
    }
}

#[test]
fn nonsense_is_refused_in_words() {
    let good = || spec(EngineChoice::Sync, CLOSED, file_of(8192), 8192);
    let zero_depth = ActorSpec {
        arrival: Arrival::Closed { depth: 0, batch: 1 },
        ..good()
    };
    let big_batch = ActorSpec {
        arrival: Arrival::Closed { depth: 2, batch: 3 },
        ..good()
    };
    let no_rate = ActorSpec {
        arrival: Arrival::Open {
            rate_per_s: f64::NAN,
            poisson: false,
            depth: 1,
        },
        ..good()
    };
    let odd_block = ActorSpec {
        block_bytes: 1000,
        direct: true,
        ..good()
    };
    let null_read = ActorSpec {
        engine: EngineChoice::Null,
        ..good()
    };
    let no_file = ActorSpec {
        target: None,
        ..good()
    };
    let too_small = ActorSpec {
        block_bytes: 16384,
        ..good()
    };
    for (bad, word) in [
        (zero_depth, "depth 0"),
        (big_batch, "batch 3"),
        (no_rate, "rate NaN"),
        (odd_block, "multiple of 512"),
        (null_read, "nop"),
        (no_file, "no file"),
        (too_small, "hold no block"),
    ] {
        let error = Actor::start(bad, Clock::start()).expect_err(word);
        let text = error.to_string();
        assert!(
            text.starts_with("reader: ") && text.contains(word),
            "{text}"
        );
    }
}
