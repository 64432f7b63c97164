//! Actors against real files, and against targets that break.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Instant;

use super::*;
use crate::meter::IoFailure;
use crate::pattern::PatternKind;

mod blocked;
mod mapped;
mod ops;
mod task;

const BLOCK: u32 = 4096;

fn file_of(len: usize) -> Arc<File> {
    let mut file = tempfile::tempfile().expect("temporary file");
    file.write_all(&vec![7; len]).expect("write");
    Arc::new(file)
}

fn spec(engine: Engine, arrival: LoopKind, file: Arc<File>, len: u64) -> ActorSpec {
    ActorSpec {
        name: "reader".into(),
        work: Work::Blocks(Blocks {
            engine,
            target: Some(Region {
                file,
                start: 0,
                len,
            }),
            direct: false,
            ..Blocks::READS
        }),
        arrival,
        seed: 1,
    }
}

/// The same, with something changed.
fn but(mut spec: ActorSpec, change: impl FnOnce(&mut Blocks)) -> ActorSpec {
    let Work::Blocks(blocks) = &mut spec.work else {
        panic!("not blocks")
    };
    change(blocks);
    spec
}

fn nop(arrival: LoopKind, engine: Engine) -> ActorSpec {
    but(spec(engine, arrival, file_of(1), 1), |blocks| {
        blocks.op = Op::Nop;
        blocks.target = None;
    })
}

/// The only series of an actor.
fn only(actor: &Actor) -> &Series {
    let [series] = actor.series() else {
        panic!("{:?}", actor.series())
    };
    series
}

const CLOSED: LoopKind = LoopKind::Closed { depth: 8 };

fn has_io_uring() -> bool {
    let spec = nop(CLOSED, Engine::Null);
    match Actor::start(spec, Clock::start()) {
        Ok(_) => true,
        Err(_) => {
            testkit::gate::skip("need io_uring");
            false
        }
    }
}

/// It ends at once, with nothing in flight. In an open loop, what was due in
/// the last instant may not have been issued any more.
fn assert_ended(actor: Actor) {
    let meters: Vec<_> = actor.series().iter().map(|s| s.meter.clone()).collect();
    let open = actor.arrival.is_open();
    let unfinished = actor.finish(Duration::from_secs(10));
    assert_eq!(unfinished.len(), meters.len());
    for (unfinished, meter) in unfinished.iter().zip(meters) {
        assert_eq!(meter.in_flight(), (0, None));
        assert!(
            open || *unfinished == Unfinished::default(),
            "{unfinished:?}"
        );
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
    let open = LoopKind::Open {
        rate_per_s: 2_000.0,
        poisson: true,
        depth: 8,
    };
    for engine in [Engine::Auto, Engine::Libaio, Engine::Sync] {
        for arrival in [CLOSED, open] {
            let file = file_of(64 * BLOCK as usize);
            let actor = Actor::start(spec(engine, arrival, file, 64 * u64::from(BLOCK)), clock)
                .expect("starts");
            let mut sampler = only(&actor).sampler();
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
            assert_ended(actor);
        }
    }
}

#[test]
fn the_record_is_told_the_engine_really_used() {
    let clock = Clock::start();
    let file = file_of(BLOCK as usize);
    let actor = Actor::start(spec(Engine::Sync, CLOSED, file, 4096), clock).expect("starts");
    assert_eq!(actor.engine(), Engine::Sync);
    assert_eq!(only(&actor).info.engine, "sync");
    assert_eq!(only(&actor).info.op, "read");
    assert_eq!(only(&actor).info.pattern.as_deref(), Some("random"));
    let actor = Actor::start(nop(CLOSED, Engine::Sync), clock).expect("starts");
    assert_eq!(
        (
            only(&actor).info.block_bytes,
            only(&actor).info.pattern.clone()
        ),
        (0, None)
    );
}

#[test]
fn nops_are_counted_by_the_null_engine() {
    if !has_io_uring() {
        return;
    }
    let clock = Clock::start();
    let batch = but(nop(CLOSED, Engine::Null), |blocks| blocks.batch = 8);
    let actor = Actor::start(batch, clock).expect("starts");
    assert_eq!(actor.engine(), Engine::Null);
    let mut sampler = only(&actor).sampler();
    assert!(soon(|| sampler.sample(clock.now()).interval.ops > 1_000));
    assert_eq!(
        actor.finish(Duration::from_secs(10)),
        [Unfinished::default()]
    );
}

#[test]
fn polling_engines_read_or_name_what_the_device_lacks() {
    if !has_io_uring() {
        return;
    }
    let clock = Clock::start();
    let file = || file_of(64 * BLOCK as usize);
    let len = 64 * u64::from(BLOCK);
    let actor = Actor::start(spec(Engine::SqPoll, CLOSED, file(), len), clock);
    let actor = actor.expect("starts");
    assert_eq!(only(&actor).info.engine, "io_uring-sqpoll");
    let mut sampler = only(&actor).sampler();
    let mut ops = 0;
    assert!(soon(|| {
        ops += sampler.sample(clock.now()).interval.ops;
        ops > 1_000
    }));
    assert_eq!(only(&actor).meter.errors(), 0);
    assert_ended(actor);
    let buffered = spec(Engine::IoPoll, CLOSED, file(), len);
    let refused = Actor::start(buffered, clock).expect_err("buffered");
    assert!(refused.to_string().contains("direct"), "{refused}");
    // A file that was opened otherwise can't be polled.
    let polled = but(spec(Engine::IoPoll, CLOSED, file(), len), |blocks| {
        blocks.direct = true;
    });
    let actor = Actor::start(polled, clock).expect("starts");
    assert!(soon(|| only(&actor).meter.errors() > 0));
    let failed = only(&actor).meter.first_error().map(|(failure, _)| failure);
    assert_eq!(failed, Some(IoFailure::Os(libc::EOPNOTSUPP)));
    actor.finish(Duration::from_secs(10));
}

#[test]
fn a_file_cut_by_somebody_else_gives_errors_and_no_spin() {
    let clock = Clock::start();
    for engine in [Engine::Auto, Engine::Libaio, Engine::Sync] {
        let file = file_of(8 * BLOCK as usize);
        file.set_len(100).expect("truncate");
        let len = 8 * u64::from(BLOCK);
        let actor = Actor::start(spec(engine, CLOSED, file, len), clock).expect("starts");
        assert!(soon(|| only(&actor).meter.errors() > 1_000));
        let (failure, _) = only(&actor).meter.first_error().expect("failed");
        assert_eq!(failure, IoFailure::Short);
        std::thread::sleep(Duration::from_millis(30));
        let (began, before) = (std::time::Instant::now(), only(&actor).meter.errors());
        std::thread::sleep(Duration::from_millis(200));
        let failures = (only(&actor).meter.errors() - before) as f64;
        let per_s = failures / began.elapsed().as_secs_f64();
        // Eight at a time (or eight threads), a hundred times a second at most.
        assert!(per_s < 20_000.0, "{per_s} failures per second");
        assert_eq!(actor.finish(Duration::from_secs(10))[0].operations, 0);
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
    for engine in [Engine::Auto, Engine::Libaio, Engine::Sync] {
        let read = spec(engine, CLOSED, file.clone(), 8192);
        let write = but(read, |blocks| blocks.op = Op::Write);
        let actor = Actor::start(write, clock).expect("starts");
        assert!(soon(|| only(&actor).meter.first_error().is_some()));
        let (failure, _) = only(&actor).meter.first_error().expect("failed");
        assert_eq!(failure, IoFailure::Os(libc::EBADF));
    }
}

#[test]
fn nonsense_is_refused_in_words() {
    let good = || spec(Engine::Sync, CLOSED, file_of(8192), 8192);
    let zero_depth = ActorSpec {
        arrival: LoopKind::Closed { depth: 0 },
        ..good()
    };
    let big_batch = but(good(), |blocks| blocks.batch = 9);
    let no_rate = ActorSpec {
        arrival: LoopKind::Open {
            rate_per_s: f64::NAN,
            poisson: false,
            depth: 1,
        },
        ..good()
    };
    let odd_block = but(good(), |blocks| {
        blocks.block_bytes = 1000;
        blocks.direct = true;
    });
    let null_read = but(good(), |blocks| blocks.engine = Engine::Null);
    let no_file = but(good(), |blocks| blocks.target = None);
    let too_small = but(good(), |blocks| blocks.block_bytes = 16384);
    for (bad, word) in [
        (zero_depth, "depth 0"),
        (big_batch, "batch 9"),
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
