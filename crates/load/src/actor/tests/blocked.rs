//! Targets that hang: what is seen meanwhile, and that nobody else waits.

use super::*;
use crate::Sampler;

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

const OPEN: LoopKind = LoopKind::Open {
    rate_per_s: 1_000.0,
    poisson: false,
    depth: 8,
};

/// A pipe's read blocks libaio inside of `io_submit`, and a thread in `pread`;
/// io_uring takes it and goes on.
const ENGINES: [Engine; 2] = [Engine::IoUring, Engine::Libaio];

fn can(engine: Engine) -> bool {
    engine == Engine::Libaio || has_io_uring()
}

#[test]
fn a_hung_device_is_seen_while_it_hangs_and_given_up_at_the_end() {
    for (engine, arrival) in ENGINES.into_iter().flat_map(|e| [(e, CLOSED), (e, OPEN)]) {
        if !can(engine) {
            return;
        }
        let clock = Clock::start();
        let (read, _write) = hanging();
        let begin = clock.now();
        let actor = Actor::start(spec(engine, arrival, read, 4096), clock).expect("starts");
        let mut sampler = only(&actor).sampler();
        // A loop that is blocked in submission can't take what falls due.
        let taken = match (engine, arrival.is_open()) {
            (Engine::Libaio, true) => 1,
            _ => 8,
        };
        assert!(soon(|| only(&actor).meter.in_flight().0 >= taken));
        let mut last_age = 0.0;
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(10));
            let interval = sampler.sample(clock.now()).interval;
            assert_eq!(interval.ops, 0);
            let age = interval.oldest_us.expect("something is in flight");
            assert!(age > last_age, "{age} µs after {last_age} µs");
            last_age = age;
        }
        let unfinished = actor.finish(Duration::from_millis(20))[0];
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
    for engine in ENGINES {
        if !can(engine) {
            return;
        }
        let clock = Clock::start();
        let (read, mut write) = hanging();
        let one = LoopKind::Closed { depth: 1 };
        let actor = Actor::start(spec(engine, one, read, 4096), clock).expect("starts");
        let mut sampler = only(&actor).sampler();
        assert!(soon(|| only(&actor).meter.in_flight().0 == 1));
        std::thread::sleep(Duration::from_millis(50));
        write.write_all(&[1; BLOCK as usize]).expect("write");
        let mut worst = None;
        assert!(soon(|| {
            worst = sampler.sample(clock.now()).interval.max_us;
            worst.is_some()
        }));
        assert!(worst >= Some(50_000.0), "{worst:?}");
    }
}

#[test]
fn a_blocked_submission_counts_from_the_intended_start() {
    let clock = Clock::start();
    let (read, mut write) = hanging();
    let actor = Actor::start(spec(Engine::Libaio, OPEN, read, 4096), clock).expect("starts");
    let mut sampler = only(&actor).sampler();
    let begin = clock.now();
    assert!(soon(
        || clock.now().since(begin) >= crate::Nanos(200_000_000)
    ));
    actor.stop();
    // Whatever was due until then is done now, as fast as it can.
    let blocks = vec![1; 4096 * BLOCK as usize];
    let feeding = std::thread::spawn(move || {
        // Fails once nobody reads any more.
        let _ = write.write_all(&blocks);
    });
    let mut histogram = Sampler::histogram();
    let took = |sampler: &mut Sampler, histogram: &mut _| {
        let sample = sampler.sample(clock.now());
        sample.add_response_to(histogram);
        sample.interval.ops
    };
    assert!(soon(|| took(&mut sampler, &mut histogram) > 0));
    let unfinished = actor.finish(Duration::from_secs(10))[0];
    took(&mut sampler, &mut histogram);
    feeding.join().expect("fed");
    // The one that blocked is old; those due behind it were never issued, and are counted.
    assert!(histogram.max() >= 190_000_000, "{} ns", histogram.max());
    let all = histogram.len() + unfinished.operations;
    assert!(all >= 190, "{all} of 200 due operations were accounted for");
}

#[test]
fn a_blocked_submission_delays_no_other_actor() {
    let clock = Clock::start();
    let (read, _write) = hanging();
    let hung = Actor::start(spec(Engine::Libaio, CLOSED, read, 4096), clock).expect("starts");
    assert!(soon(|| only(&hung).meter.in_flight().0 == 8));
    let len = 64 * u64::from(BLOCK);
    for engine in [Engine::Auto, Engine::Libaio, Engine::Sync] {
        let file = file_of(len as usize);
        let going = Actor::start(spec(engine, CLOSED, file, len), clock).expect("starts");
        let mut sampler = only(&going).sampler();
        let mut ops = 0;
        assert!(soon(|| {
            ops += sampler.sample(clock.now()).interval.ops;
            ops > 2_000
        }));
        let unfinished = going.finish(Duration::from_secs(10));
        assert_eq!(unfinished, [Unfinished::default()]);
    }
    assert_eq!(only(&hung).meter.in_flight().0, 8, "it still hangs");
    assert_eq!(hung.finish(Duration::ZERO)[0].operations, 8);
}

#[test]
fn what_a_mix_never_issued_is_shared_out_to_its_series() {
    let clock = Clock::start();
    let (read, _write) = hanging();
    // Writes fail at once, at the pipe's reading end; the first read hangs for good.
    let spec = but(spec(Engine::Libaio, OPEN, read, 4096), |b| {
        b.op = Op::Mixed { read_percent: 75 };
    });
    let actor = Actor::start(spec, clock).expect("starts");
    assert!(soon(|| actor.series()[0].meter.in_flight().0 > 0));
    std::thread::sleep(Duration::from_millis(400));
    let unfinished = actor.finish(Duration::from_millis(20));
    let [reads, writes] = unfinished[..] else {
        panic!("{unfinished:?}")
    };
    let all = reads.operations + writes.operations;
    assert!(all >= 380, "{unfinished:?}");
    let share = reads.operations as f64 / all as f64;
    assert!((0.73..0.77).contains(&share), "{unfinished:?}");
    assert!(writes.oldest_ns > 300_000_000, "{unfinished:?}");
}
