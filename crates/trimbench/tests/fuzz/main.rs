//! Parsers meet samples of real text with seeded random changes. They must not panic, hang, or take
//! much memory.
//!
//! With `TRIMBENCH_SOAK` it runs for an hour, or for the seconds in `TRIMBENCH_FUZZ_SECONDS`, over all
//! parsers or those that `TRIMBENCH_FUZZ` names (`fio,card`). Its seed is the time, and it prints that.

#![allow(clippy::unwrap_used, missing_docs)]

mod mutation;
mod targets;

use std::alloc::System;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use mutation::Mutations;
use targets::Target;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Inputs for the fastest parsers in an ordinary test.
const INPUTS: u32 = 20_000;
/// All memory that an input of 64 KiB at most may take, added up, in bytes.
const MOST_MEMORY: usize = 512 << 20;
/// The processor's time that it may take. A parser whose time grows with the square of the input
/// takes more.
const MOST_TIME: Duration = Duration::from_secs(20);
/// An input that isn't parsed after this time is named, and the test is aborted.
const HANGS: Duration = Duration::from_secs(300);

#[test]
fn parsers_neither_panic_nor_hang_nor_take_much_memory() {
    let watched = Watched::start();
    if std::env::var_os("TRIMBENCH_SOAK").is_some() {
        return soak(&watched);
    }
    for target in targets::all() {
        let mut mutations = Mutations::new(0x7269_6d62);
        for number in 0..INPUTS / target.cost {
            check(
                &watched,
                target,
                &mutations.next(target.samples),
                u64::from(number),
            );
        }
    }
}

/// The samples are what each parser takes: a sample that is refused at once tests nothing.
#[test]
fn samples_are_parsed() {
    let watched = Watched::start();
    for target in targets::all() {
        for sample in target.samples {
            assert!(sample.len() < 64 << 10, "{}: a change cuts it", target.name);
            check(&watched, target, sample, 0);
        }
    }
}

/// cargo-fuzz has a target for each parser.
#[test]
fn each_parser_has_a_target_of_cargo_fuzz() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder).unwrap();
    let name = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.unwrap().path();
        path.file_stem().unwrap().to_str().unwrap().to_owned()
    };
    let mut there: Vec<String> = files.map(name).collect();
    let mut wanted: Vec<&str> = targets::all().map(|target| target.name).collect();
    there.sort();
    wanted.sort_unstable();
    assert_eq!(there, wanted);
    let manifest = std::fs::read_to_string(format!("{folder}/../Cargo.toml")).unwrap();
    for name in wanted {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}

/// An hour, shared by all parsers in rounds.
fn soak(watched: &Watched) {
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    println!("seed {seed}");
    let names = std::env::var("TRIMBENCH_FUZZ").unwrap_or_default();
    let wanted = |target: &&Target| names.is_empty() || names.split(',').any(|n| n == target.name);
    let seconds = std::env::var("TRIMBENCH_FUZZ_SECONDS");
    let seconds = seconds.map_or(3600, |seconds| seconds.parse().unwrap());
    let mut mutations = Mutations::new(seed);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        for target in targets::all().filter(wanted) {
            for _ in 0..2000 / target.cost {
                check(watched, target, &mutations.next(target.samples), seed);
            }
            *counts.entry(target.name).or_default() += u64::from(2000 / target.cost);
        }
    }
    assert!(!counts.is_empty(), "no parser is named {names}");
    println!("inputs without a panic: {counts:?}");
}

/// Parses one input. A panic names it, so that it can become a test.
fn check(watched: &Watched, target: &Target, input: &[u8], number: u64) {
    watched.set(Some((target.name, input.to_vec(), Instant::now())));
    let before = Region::new(ALLOCATOR);
    let began = processor_time();
    let parsed = std::panic::catch_unwind(|| (target.parse)(input));
    let took = processor_time() - began;
    let memory = before.change().bytes_allocated;
    watched.set(None);
    let fault = match parsed {
        Err(_) => "panics".to_owned(),
        Ok(()) if took > MOST_TIME => format!("takes {took:?}"),
        Ok(()) if memory > MOST_MEMORY => format!("takes {memory} bytes of memory"),
        Ok(()) => return,
    };
    panic!(
        "{} {fault} on input {number}: {}",
        target.name,
        input.escape_ascii()
    );
}

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        now.tv_sec.cast_unsigned(),
        u32::try_from(now.tv_nsec).unwrap(),
    )
}

type Running = Option<(&'static str, Vec<u8>, Instant)>;

/// The input that is being parsed. A thread looks whether it hangs.
struct Watched(Arc<Mutex<Running>>);

impl Watched {
    fn start() -> Watched {
        let running: Arc<Mutex<Running>> = Arc::default();
        let seen = Arc::downgrade(&running);
        std::thread::spawn(move || {
            while let Some(running) = seen.upgrade() {
                if let Some((name, input, began)) = &*running.lock().unwrap()
                    && began.elapsed() > HANGS
                {
                    eprintln!("{name} hangs on {}", input.escape_ascii());
                    std::process::abort();
                }
                drop(running);
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        Watched(running)
    }

    fn set(&self, running: Running) {
        *self.0.lock().unwrap() = running;
    }
}
