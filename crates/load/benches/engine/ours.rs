//! Our own engine, and the bare loop it is held against.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use load::LoopKind;
use load::actor::{ActorSpec, Blocks, Engine, Op, Region, Work};
use load::pattern::{Pattern, PatternKind};
use load::ring::{Area, Ring, Sqe};
use load::{Actor, Clock};

use crate::case::{BLOCK, Case, Cpu, Measured, Where};
use crate::place::Place;

/// Left out of the figures at the start of a run.
const WARM_UP: Duration = Duration::from_millis(200);

/// The actor with all its recording, sampled every 100 ms.
pub(crate) fn full(
    case: &Case,
    place: &Place,
    seconds: f64,
    engine: Engine,
) -> Result<Measured, String> {
    let nop = case.place == Where::Nowhere;
    let spec = ActorSpec {
        name: "reader".into(),
        work: Work::Blocks(Blocks {
            op: if nop { Op::Nop } else { Op::Read },
            block_bytes: BLOCK,
            batch: case.batch,
            engine,
            target: place.file.as_ref().map(|file| Region {
                file: file.clone(),
                start: 0,
                len: place.len,
            }),
            ..Blocks::READS
        }),
        arrival: LoopKind::Closed { depth: case.depth },
        seed: 1,
    };
    let clock = Clock::start();
    let actor = Actor::start(spec, clock).map_err(|error| error.to_string())?;
    let mut sampler = actor.series()[0].sampler();
    let mut histogram = load::Sampler::histogram();
    std::thread::sleep(WARM_UP);
    sampler.sample(clock.now());
    let (cpu, begin) = (Cpu::own(), Instant::now());
    let (mut ops, mut errors) = (0, 0);
    while begin.elapsed().as_secs_f64() < seconds {
        std::thread::sleep(Duration::from_millis(100));
        let sample = sampler.sample(clock.now());
        sample.add_response_to(&mut histogram);
        ops += sample.interval.ops;
        errors += sample.interval.errors;
    }
    let measured = Measured::new(Cpu::own().since(cpu), ops as f64, begin.elapsed());
    actor.finish(Duration::from_secs(5));
    if errors > 0 || histogram.len() != ops {
        return Err(format!(
            "{errors} reads failed, {} of {ops} were recorded",
            histogram.len()
        ));
    }
    Ok(measured)
}

/// The same ring, registered alike, with neither clock nor record.
pub(crate) fn bare(case: &Case, place: &Place, seconds: f64) -> Result<Measured, String> {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let looping = scope.spawn(|| bare_loop(case, place, &done, &stop));
        std::thread::sleep(WARM_UP);
        let (cpu, begin, before) = (Cpu::own(), Instant::now(), done.load(Ordering::Relaxed));
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let ios = done.load(Ordering::Relaxed) - before;
        let measured = Measured::new(Cpu::own().since(cpu), ios as f64, begin.elapsed());
        stop.store(true, Ordering::Relaxed);
        let ended = looping.join().map_err(|_| "the bare loop panicked")?;
        ended.map_err(|error| error.to_string())?;
        Ok(measured)
    })
}

fn bare_loop(
    case: &Case,
    place: &Place,
    done: &AtomicU64,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    let mut ring = Ring::new(case.depth)?;
    let area = Area::new((case.depth * BLOCK) as usize)?;
    let mut pattern = None;
    if let Some(file) = &place.file {
        ring.register_file(file.as_raw_fd())?;
        ring.register_area(&area)?;
        pattern = Pattern::new(PatternKind::Random, 0, place.len, u64::from(BLOCK), 1);
    }
    let mut free: Vec<u32> = (0..case.depth).collect();
    let mut ios = 0;
    while !stop.load(Ordering::Relaxed) {
        for slot in free.drain(..) {
            let name = u64::from(slot);
            let sqe = match &mut pattern {
                None => Sqe::nop(name),
                Some(pattern) => {
                    let address = area.at((slot * BLOCK) as usize);
                    let read = Sqe::read(0, address, BLOCK, pattern.next_offset(), name);
                    read.fixed_file().fixed_buffer()
                }
            };
            // SAFETY: the area outlives the loop, which reaps all before it returns.
            unsafe { ring.push(sqe) };
        }
        ring.enter(case.batch, None)?;
        ios += u64::from(ring.reap(|cqe| free.push(cqe.user_data as u32)));
        done.store(ios, Ordering::Relaxed);
    }
    while free.len() < case.depth as usize {
        ring.enter(1, None)?;
        ring.reap(|cqe| free.push(cqe.user_data as u32));
    }
    Ok(())
}
