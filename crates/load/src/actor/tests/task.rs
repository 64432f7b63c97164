//! The loop of tasks and its stopwatch, with tasks of our own.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::task::{Kind, Prepared, Task, TaskSpec};

/// Two parts, the second of which takes its time.
struct TwoParts;

impl Task for TwoParts {
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()> {
        watch.time(0, || Ok(()))?;
        watch.time(1, || {
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        })
    }
}

/// Fails in its second part.
struct Failing;

impl Task for Failing {
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()> {
        watch.time(0, || Ok(()))?;
        watch.time(1, || Err(io::Error::from_raw_os_error(libc::ENOSPC)))
    }
}

/// Fails before a part has begun.
struct Unprepared;

impl Task for Unprepared {
    fn operate(&mut self, _: &mut Stopwatch<'_>) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::EROFS))
    }
}

/// Hangs in its first part until it is released.
struct Hanging;

static LET_GO: AtomicBool = AtomicBool::new(false);

impl Task for Hanging {
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()> {
        watch.time(0, || {
            while !LET_GO.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(())
        })
    }
}

const fn kind(
    series: &'static [&'static str],
    start: fn(&TaskSpec, lane: u32, seed: u64, stop: &AtomicBool) -> Prepared,
) -> Kind {
    Kind {
        name: "of-this-test",
        about: "tests the loop of tasks",
        series,
        default_block_bytes: 4096,
        default_size_bytes: 4096,
        default_arrival: ONE,
        start,
    }
}

const PARTS: &[&str] = &["first", "again"];
static TWO_PARTS: Kind = kind(PARTS, |_, _, _, _| Ok(Box::new(TwoParts)));
static FAILING: Kind = kind(PARTS, |_, _, _, _| Ok(Box::new(Failing)));
static UNPREPARED: Kind = kind(PARTS, |_, _, _, _| Ok(Box::new(Unprepared)));
static HANGING: Kind = kind(&["hang"], |_, _, _, _| Ok(Box::new(Hanging)));
static REFUSED: Kind = kind(&["refused"], |spec, lane, _, _| {
    Err(LoadError::File {
        path: spec.dir.join(lane.to_string()),
        what: "create it",
        source: io::Error::from_raw_os_error(libc::EACCES),
    })
});

fn task(kind: &'static Kind, arrival: LoopKind) -> ActorSpec {
    ActorSpec {
        name: "syncer".into(),
        work: Work::Task(TaskSpec {
            kind,
            dir: "/".into(),
            block_bytes: 4096,
            size_bytes: 4096,
        }),
        arrival,
        seed: 1,
    }
}

const ONE: LoopKind = LoopKind::Closed { depth: 1 };

#[test]
fn each_part_is_a_series_with_its_own_latencies() {
    let clock = Clock::start();
    let actor = Actor::start(task(&TWO_PARTS, CLOSED), clock).expect("starts");
    assert_eq!(actor.engine(), Engine::Sync);
    let infos: Vec<_> = actor.series().iter().map(|s| s.info.clone()).collect();
    let names: Vec<_> = infos.iter().map(|info| &info.name[..]).collect();
    assert_eq!(names, ["syncer-first", "syncer-again"]);
    assert_eq!(infos[1].op, "again");
    assert_eq!((&infos[1].engine[..], infos[1].block_bytes), ("sync", 4096));
    assert_eq!(task(&TWO_PARTS, CLOSED).series(), infos);
    let mut samplers: Vec<_> = actor.series().iter().map(Series::sampler).collect();
    let (mut ops, mut slowest, mut fastest) = ([0; 2], 0.0f64, f64::MAX);
    assert!(soon(|| {
        let [first, again] = [0, 1].map(|i| samplers[i].sample(clock.now()).interval);
        ops = [ops[0] + first.ops, ops[1] + again.ops];
        fastest = fastest.min(first.p50_us.unwrap_or(f64::MAX));
        slowest = slowest.max(again.p50_us.unwrap_or(0.0));
        ops[1] > 50
    }));
    assert!(
        slowest >= 5_000.0 && fastest < slowest,
        "{fastest} {slowest}"
    );
    // As many of each, but for the eight chains under way.
    assert!(ops[0].abs_diff(ops[1]) <= 16, "{ops:?}");
    let unfinished = actor.finish(Duration::from_secs(10));
    assert_eq!(unfinished, [Unfinished::default(); 2]);
}

#[test]
fn in_an_open_loop_the_first_part_counts_from_when_it_was_due() {
    let clock = Clock::start();
    // Each takes 5 ms, and one is due every millisecond.
    let arrival = LoopKind::Open {
        rate_per_s: 1_000.0,
        poisson: false,
        depth: 1,
    };
    let actor = Actor::start(task(&TWO_PARTS, arrival), clock).expect("starts");
    let mut samplers: Vec<_> = actor.series().iter().map(Series::sampler).collect();
    let mut worst = [0.0f64; 2];
    assert!(soon(|| {
        for (sampler, worst) in samplers.iter_mut().zip(&mut worst) {
            let interval = sampler.sample(clock.now()).interval;
            *worst = worst.max(interval.p50_us.unwrap_or(0.0));
        }
        // What is due waits longer and longer, whatever else the machine does.
        worst[0] > worst[1].max(100_000.0)
    }));
    assert!(worst[1] >= 5_000.0, "{worst:?}");
}

#[test]
fn failures_are_counted_once_and_in_their_series() {
    let clock = Clock::start();
    for (kind, series, errno) in [(&FAILING, 1, libc::ENOSPC), (&UNPREPARED, 0, libc::EROFS)] {
        let actor = Actor::start(task(kind, ONE), clock).expect("starts");
        let meters: Vec<_> = actor.series().iter().map(|s| s.meter.clone()).collect();
        assert!(soon(|| meters[series].errors() > 100));
        let (failure, _) = meters[series].first_error().expect("failed");
        assert_eq!(failure, IoFailure::Os(errno));
        assert_eq!(meters[1 - series].errors(), 0);
        // It is called again and again, but once it is hopeless, no faster than 100 times a second.
        assert!(soon(|| meters[series].errors() >= 1_000));
        let (begin, before) = (Instant::now(), meters[series].errors());
        std::thread::sleep(Duration::from_millis(200));
        let more = meters[series].errors() - before;
        assert!((more as f64) < 500.0 * begin.elapsed().as_secs_f64());
        actor.finish(Duration::from_secs(10));
    }
}

#[test]
fn a_part_that_hangs_is_seen_and_given_up() {
    let clock = Clock::start();
    let actor = Actor::start(task(&HANGING, ONE), clock).expect("starts");
    let mut sampler = only(&actor).sampler();
    assert!(soon(|| {
        let interval = sampler.sample(clock.now()).interval;
        assert_eq!(interval.ops, 0);
        interval.oldest_us > Some(20_000.0)
    }));
    let unfinished = actor.finish(Duration::from_millis(10));
    LET_GO.store(true, Ordering::Relaxed);
    assert_eq!(unfinished[0].operations, 1);
    assert!(unfinished[0].oldest_ns > 20_000_000);
}

#[test]
fn what_its_preparation_meets_is_told() {
    let error = Actor::start(task(&REFUSED, CLOSED), Clock::start()).expect_err("refused");
    assert!(
        error.to_string().starts_with("/0: can't create it"),
        "{error}"
    );
}
