//! A file system frozen for a second: every operation that was due meanwhile
//! is slow, not only those that were in flight.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use load::actor::{ActorSpec, Blocks, Engine, Op, Region, Work};
use load::{Actor, Clock, Fill, FillSpec, LoopKind, Sampler};

mod support;

const RATE: f64 = 1000.0;
const FREEZE: Duration = Duration::from_secs(1);
const LEN: u64 = 16 << 20;
/// Slow, in nanoseconds.
const SLOW: u64 = 20_000_000;

/// `FIFREEZE` and `FITHAW` of `include/uapi/linux/fs.h`.
const FIFREEZE: libc::Ioctl = 0xC004_5877;
const FITHAW: libc::Ioctl = 0xC004_5878;

/// Thawed when dropped, also by a panic.
struct Frozen(File);

impl Frozen {
    fn new(directory: &std::path::Path) -> Frozen {
        let root = File::open(directory).expect("open the mount point");
        let mut zero = 0i32;
        // SAFETY: the ioctl takes a number it doesn't use.
        let result = unsafe { libc::ioctl(root.as_raw_fd(), FIFREEZE, &raw mut zero) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        Frozen(root)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let mut zero = 0i32;
        // SAFETY: as above.
        unsafe { libc::ioctl(self.0.as_raw_fd(), FITHAW, &raw mut zero) };
    }
}

fn slower_than(histogram: &Histogram<u64>, ns: u64) -> u64 {
    histogram.len() - histogram.count_between(0, ns)
}

fn a_freeze_is_seen_by(engine: Engine) {
    let Some(fs) = support::LoopFs::new("ext4", "discard") else {
        return;
    };
    let path = fs.path().join("file");
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .expect("create");
    let fill = Fill::start(FillSpec {
        file: Arc::new(file),
        path: path.clone(),
        len: LEN,
        direct: true,
        extent_bytes: None,
        seed: 1,
    });
    fill.expect("starts").wait().expect("fills");
    let clock = Clock::start();
    let file = load::target::open(&path, Op::Write, true).expect("open");
    let actor = Actor::start(
        ActorSpec {
            name: "writer".into(),
            work: Work::Blocks(Blocks {
                op: Op::Write,
                engine,
                target: Some(Region {
                    file: Arc::new(file),
                    start: 0,
                    len: LEN,
                }),
                ..Blocks::READS
            }),
            arrival: LoopKind::Open {
                rate_per_s: RATE,
                poisson: false,
                depth: 16,
            },
            seed: 1,
        },
        clock,
    )
    .expect("starts");
    let mut sampler = actor.series()[0].sampler();
    let meter = actor.series()[0].meter.clone();
    let (mut response, mut service) = (Sampler::histogram(), Sampler::histogram());
    std::thread::sleep(Duration::from_millis(1000));
    let frozen = Frozen::new(&fs.path());
    let begin = Instant::now();
    let mut ages = Vec::new();
    while begin.elapsed() < FREEZE {
        let at = begin.elapsed();
        let sample = sampler.sample(clock.now());
        sample.add_response_to(&mut response);
        sample.add_service_to(&mut service);
        ages.push((sample.interval.ops, sample.interval.oldest_us, at));
        std::thread::sleep(Duration::from_millis(50));
    }
    let freeze = begin.elapsed();
    drop(frozen);
    std::thread::sleep(Duration::from_millis(2000));
    let unfinished = actor.finish(Duration::from_secs(10));
    let sample = sampler.sample(clock.now());
    sample.add_response_to(&mut response);
    sample.add_service_to(&mut service);

    // One that was due in the last instant may not have been issued any more.
    assert_eq!(meter.in_flight(), (0, None));
    assert!(unfinished[0].operations < 100, "{unfinished:?}");
    let slow = slower_than(&response, SLOW);
    let due = RATE * freeze.as_secs_f64();
    assert!(
        slow as f64 >= 0.9 * due,
        "{slow} slow operations of {due:.0} due while frozen"
    );
    let p99 = response.value_at_quantile(0.99);
    let least = freeze.as_nanos() as f64 * 0.85;
    assert!(
        p99 as f64 >= least,
        "p99 {p99} ns of a freeze of {freeze:?}"
    );
    // Only what was in flight had a long service: the pair is the diagnosis.
    let slow_service = slower_than(&service, SLOW);
    assert!(
        (1..slow / 4).contains(&slow_service),
        "{slow_service} of {slow}"
    );
    // While frozen, nothing completes, and it shows.
    let stuck = ages[ages.len() / 2..]
        .iter()
        .all(|(ops, age, _)| *ops == 0 && age.is_some());
    assert!(stuck, "{ages:?}");
    let (_, oldest, at) = *ages.last().expect("looked at");
    let oldest = oldest.expect("in flight");
    assert!(oldest >= at.as_micros() as f64 * 0.8, "{ages:?}");
}

#[test]
fn io_uring_sees_a_freeze_from_the_intended_start() {
    a_freeze_is_seen_by(Engine::Auto);
}

#[test]
fn libaio_sees_a_freeze_from_the_intended_start_though_its_submission_is_blocked() {
    a_freeze_is_seen_by(Engine::Libaio);
}

#[test]
fn threads_see_a_freeze_from_the_intended_start() {
    a_freeze_is_seen_by(Engine::Sync);
}
