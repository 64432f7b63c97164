//! Runs one kind of task by itself and tells its rate and latencies, so that
//! it can be compared with another program that does the same:
//!
//! ```sh
//! cargo run --release -p trimbench-load --example task -- append-fsync /tmp 5
//! fio --name=a --directory=/tmp --rw=write --bs=4k --fsync=1 --size=1g \
//!     --fallocate=none --ioengine=psync --runtime=5 --time_based
//! ```
//!
//! fio tells write and sync apart, under `clat` and `sync`; here an operation is both. It removes
//! its files afterwards.

use std::path::PathBuf;
use std::time::Duration;

use load::{Actor, ActorSpec, Clock, LoopKind, Sampler, TaskSpec, Work};

fn main() {
    if let Err(why) = run() {
        eprintln!("{why}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let usage = || {
        let names: Vec<_> = load::task::KINDS.iter().map(|kind| kind.name).collect();
        format!("usage: task {} DIRECTORY SECONDS [DEPTH]", names.join("|"))
    };
    let kind = words.next().and_then(|name| load::task::kind(&name));
    let parent = words.next().map(PathBuf::from);
    let seconds = words.next().and_then(|word| word.parse::<f64>().ok());
    let (Some(kind), Some(parent), Some(seconds)) = (kind, parent, seconds) else {
        return Err(usage());
    };
    let depth = words.next().map_or(Ok(1), |word| word.parse());
    let depth = depth.map_err(|error| format!("depth: {error}"))?;
    let dir = parent.join(format!("task-{}", std::process::id()));
    std::fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let spec = ActorSpec {
        name: kind.name.to_owned(),
        work: Work::Task(TaskSpec {
            dir: dir.clone(),
            ..TaskSpec::of(kind)
        }),
        arrival: LoopKind::Closed { depth },
        seed: u64::from(std::process::id()),
    };
    let result = measure(spec, Duration::from_secs_f64(seconds));
    let removed = std::fs::remove_dir_all(&dir);
    result?;
    removed.map_err(|error| format!("{}: can't remove it: {error}", dir.display()))
}

fn measure(spec: ActorSpec, time: Duration) -> Result<(), String> {
    let clock = Clock::start();
    let actor = Actor::start(spec, clock).map_err(|error| error.to_string())?;
    let begin = clock.now();
    std::thread::sleep(time);
    let seconds = clock.now().since(begin).as_secs_f64();
    for series in actor.series() {
        let mut sampler = series.sampler();
        let sample = sampler.sample(clock.now());
        let mut histogram = Sampler::histogram();
        sample.add_response_to(&mut histogram);
        let us = |share| histogram.value_at_quantile(share) as f64 / 1e3;
        println!(
            "{}: {:.0} per second, {} failed, p50 {:.1} us, p99 {:.1} us, max {:.1} us",
            series.info.name,
            sample.interval.ops as f64 / seconds,
            sample.interval.errors,
            us(0.5),
            us(0.99),
            us(1.0),
        );
    }
    let unfinished = actor.finish(Duration::from_secs(60));
    match unfinished.iter().map(|left| left.operations).sum::<u64>() {
        0 => Ok(()),
        n => Err(format!("{n} operations never finished")),
    }
}
