//! Each operation on each engine, against real files.

use std::os::unix::fs::{FileExt, MetadataExt};

use super::*;

const ENGINES: [Engine; 3] = [Engine::IoUring, Engine::Libaio, Engine::Sync];

const OPEN: LoopKind = LoopKind::Open {
    rate_per_s: 4_000.0,
    poisson: false,
    depth: 8,
};

/// A loop, and how many of its operations are submitted at once.
type Way = (LoopKind, u32);

fn specified(engine: Engine, (arrival, batch): Way, file: Arc<File>, len: u64) -> ActorSpec {
    but(spec(engine, arrival, file, len), |b| b.batch = batch)
}

const BLOCKS: u64 = 64;
const LEN: u64 = BLOCKS * BLOCK as u64;

/// A named file, opened for that operation as a run does it; `None`, saying
/// so, where its file system has no direct I/O.
fn opened(op: Op, direct: bool, content: &[u8]) -> Option<(tempfile::NamedTempFile, Arc<File>)> {
    let mut named = tempfile::NamedTempFile::new().expect("temporary file");
    named.write_all(content).expect("write");
    match crate::target::open(named.path(), op, direct) {
        Ok(file) => Some((named, Arc::new(file))),
        Err(LoadError::NoDirect { .. }) => {
            testkit::gate::skip("need direct I/O on the file system of temporary files");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Does so many operations of a kind, and tells how many each series had.
fn work(spec: ActorSpec, at_least: u64) -> Option<Vec<u64>> {
    let clock = Clock::start();
    let actor = match Actor::start(spec, clock) {
        Ok(actor) => actor,
        Err(LoadError::NoIoUring { .. } | LoadError::NoLibaio { .. }) => {
            testkit::gate::skip("need io_uring and libaio");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let meters: Vec<_> = actor.series().iter().map(|s| s.meter.clone()).collect();
    let mut samplers: Vec<_> = actor.series().iter().map(Series::sampler).collect();
    let mut ops = vec![0; samplers.len()];
    let mut look = || {
        for (sampler, ops) in samplers.iter_mut().zip(&mut ops) {
            let interval = sampler.sample(clock.now()).interval;
            assert_eq!(interval.bytes, interval.ops * u64::from(BLOCK));
            *ops += interval.ops;
        }
        ops.iter().sum::<u64>()
    };
    assert!(soon(|| look() >= at_least));
    assert_ended(actor);
    look();
    for meter in &meters {
        assert_eq!(meter.first_error(), None);
    }
    Some(ops)
}

/// The file's blocks.
fn blocks_of(file: &File) -> Vec<Vec<u8>> {
    let mut bytes = vec![0; file.metadata().expect("stat").size() as usize];
    file.read_exact_at(&mut bytes, 0).expect("read");
    bytes.chunks(BLOCK as usize).map(<[u8]>::to_vec).collect()
}

fn each_way(mut each: impl FnMut(Engine, Way, bool)) {
    for engine in ENGINES {
        for arrival in [(CLOSED, 1), (CLOSED, 4), (OPEN, 1)] {
            for direct in [false, true] {
                each(engine, arrival, direct);
            }
        }
    }
}

#[test]
fn reads_leave_the_file_alone() {
    let content = vec![7; LEN as usize];
    each_way(|engine, arrival, direct| {
        let Some((named, file)) = opened(Op::Read, direct, &content) else {
            return;
        };
        let spec = but(specified(engine, arrival, file, LEN), |b| b.direct = direct);
        if let Some(ops) = work(spec, 300) {
            assert_eq!(ops.len(), 1);
        }
        assert!(std::fs::read(named.path()).expect("read") == content);
    });
}

#[test]
fn writes_leave_no_two_blocks_alike_and_the_length_alone() {
    each_way(|engine, arrival, direct| {
        let Some((named, file)) = opened(Op::Write, direct, &vec![7; LEN as usize]) else {
            return;
        };
        let spec = but(specified(engine, arrival, file, LEN), |b| {
            b.op = Op::Write;
            b.pattern = PatternKind::Sequential;
            b.direct = direct;
        });
        if work(spec, 16 * BLOCKS).is_none() {
            return;
        }
        let mut blocks = blocks_of(named.as_file());
        assert_eq!(blocks.len() as u64, BLOCKS);
        assert!(!blocks.contains(&vec![7; BLOCK as usize]));
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len() as u64, BLOCKS, "no two blocks are alike");
    });
}

#[test]
fn appends_fill_an_empty_file_from_its_start_and_never_beyond_the_length() {
    each_way(|engine, arrival, direct| {
        // Half a round, and several.
        for (len, ops) in [(1 << 30, 200), (LEN, 4 * BLOCKS)] {
            let Some((named, file)) = opened(Op::Append, direct, &[]) else {
                return;
            };
            let spec = but(specified(engine, arrival, file, len), |b| {
                b.op = Op::Append;
                // It makes no difference.
                b.pattern = PatternKind::Random;
                b.direct = direct;
            });
            let Some(done) = work(spec, ops) else { return };
            let blocks = blocks_of(named.as_file());
            assert_eq!(blocks.len() as u64, done[0].min(len / u64::from(BLOCK)));
            // No holes: every block was written.
            let hole = vec![0; BLOCK as usize];
            assert!(blocks.iter().all(|block| *block != hole), "{engine:?}");
        }
    });
}

#[test]
fn a_mix_has_a_series_each_for_reads_and_writes_in_its_ratio() {
    each_way(|engine, arrival, direct| {
        let op = Op::Mixed { read_percent: 70 };
        let content = vec![7; LEN as usize];
        let Some((named, file)) = opened(op, direct, &content) else {
            return;
        };
        let spec = but(specified(engine, arrival, file, LEN), |b| {
            b.op = op;
            b.direct = direct;
        });
        let Some(ops) = work(spec, 1_000) else { return };
        assert_eq!(ops.len(), 2);
        let n = (ops[0] + ops[1]) as f64;
        // Six standard deviations: one in a thousand million.
        let noise = 6.0 * (n * 0.7 * 0.3).sqrt();
        let off = (ops[0] as f64 - n * 0.7).abs();
        assert!(off <= noise, "{ops:?}, {engine:?}");
        let blocks = blocks_of(named.as_file());
        let unwritten = blocks.iter().filter(|b| **b == vec![7; BLOCK as usize]);
        // Of 64 blocks, some 300 random writes miss 1 in 100.
        assert!(unwritten.count() < BLOCKS as usize / 2);
    });
}

#[test]
fn series_are_told_before_and_after_the_start_alike() {
    let file = file_of(LEN as usize);
    let mixed = but(spec(Engine::Sync, OPEN, file, LEN), |b| {
        b.op = Op::Mixed { read_percent: 75 };
    });
    let told = mixed.series();
    let names: Vec<_> = told
        .iter()
        .map(|i| (i.name.as_str(), i.op.as_str()))
        .collect();
    assert_eq!(names, [("reader-read", "read"), ("reader-write", "write")]);
    let loops: Vec<_> = told.iter().map(|info| info.loop_kind).collect();
    // Which of the evenly spaced operations are reads is drawn.
    let open = |rate_per_s| LoopKind::Open {
        rate_per_s,
        poisson: true,
        depth: 8,
    };
    assert_eq!(loops, [open(3_000.0), open(1_000.0)]);
    let actor = Actor::start(mixed, Clock::start()).expect("starts");
    let started: Vec<_> = actor.series().iter().map(|s| s.info.clone()).collect();
    assert_eq!(started, told);

    let append = but(spec(Engine::Libaio, CLOSED, file_of(1), LEN), |b| {
        b.op = Op::Append;
    });
    let [told] = &append.series()[..] else {
        panic!("one series")
    };
    let words = (&told.name[..], &told.op[..], &told.engine[..]);
    assert_eq!(words, ("reader", "append", "libaio"));
    assert_eq!(told.pattern.as_deref(), Some("sequential"));
}

#[test]
fn libaio_by_name_on_a_buffered_file_says_what_that_means() {
    let buffered = spec(Engine::Libaio, CLOSED, file_of(LEN as usize), LEN);
    let Work::Blocks(blocks) = &buffered.work else {
        panic!("not blocks")
    };
    let (engine, before) = blocks.engine_now().expect("libaio");
    assert_eq!(engine, Engine::Libaio);
    assert!(before[0].contains("while it submits"), "{before:?}");
    let actor = Actor::start(buffered, Clock::start()).expect("starts");
    assert_eq!(actor.notes(), [format!("reader: {}", before[0])]);
}

#[test]
fn mixes_and_engines_that_make_no_sense_are_refused_in_words() {
    let good = || spec(Engine::Sync, CLOSED, file_of(8192), 8192);
    let mixed = |read_percent| but(good(), |b| b.op = Op::Mixed { read_percent });
    let nop = |engine| {
        but(good(), |b| {
            b.op = Op::Nop;
            b.engine = engine;
        })
    };
    for (bad, word) in [
        (mixed(0), "choose the operation write"),
        (mixed(100), "choose the operation read"),
        (mixed(101), "1 to 99 %"),
        (nop(Engine::Libaio), "null or sync"),
        (but(good(), |b| b.target = None), "no file"),
    ] {
        let error = Actor::start(bad, Clock::start()).expect_err(word);
        assert!(matches!(error, LoadError::Spec { .. }));
        let text = error.to_string();
        assert!(text.contains(word), "{text}");
    }
    assert!(mixed(1).check().is_ok() && mixed(99).check().is_ok());
    assert!(nop(Engine::Sync).check().is_ok());
}
