//! The engine mmap against real files, and against one that is cut.

use std::os::unix::fs::FileExt as _;

use super::*;

const BLOCKS: u64 = 16;
const LEN: u64 = BLOCKS * BLOCK as u64;

fn writer(engine: Engine, arrival: LoopKind, file: Arc<File>) -> ActorSpec {
    but(spec(engine, arrival, file, LEN), |blocks| {
        blocks.op = Op::Write
    })
}

#[test]
fn mapped_writes_reach_the_file_in_both_loops_and_orders() {
    let clock = Clock::start();
    let open = LoopKind::Open {
        rate_per_s: 2_000.0,
        poisson: true,
        depth: 2,
    };
    for engine in [Engine::Mmap, Engine::MmapSync] {
        for (arrival, pattern) in [
            (CLOSED, PatternKind::Sequential),
            (open, PatternKind::Random),
        ] {
            let file = file_of(LEN as usize);
            let spec = but(writer(engine, arrival, file.clone()), |blocks| {
                blocks.pattern = pattern;
            });
            let actor = Actor::start(spec, clock).expect("starts");
            let mut sampler = only(&actor).sampler();
            let mut ops = 0;
            assert!(soon(|| {
                let sample = sampler.sample(clock.now());
                assert_eq!(sample.interval.errors, 0);
                ops += sample.interval.ops;
                ops > 400
            }));
            assert_ended(actor);
            let mut bytes = vec![0; LEN as usize];
            file.read_exact_at(&mut bytes, 0).expect("read");
            let untouched = bytes
                .chunks(BLOCK as usize)
                .filter(|b| b.iter().all(|&b| b == 7));
            assert_eq!(untouched.count(), 0);
            let mut blocks: Vec<&[u8]> = bytes.chunks(BLOCK as usize).collect();
            blocks.sort_unstable();
            blocks.dedup();
            assert_eq!(blocks.len() as u64, BLOCKS, "two blocks are alike");
        }
    }
}

#[test]
fn a_mapped_file_that_is_cut_gives_errors_and_the_process_lives() {
    let clock = Clock::start();
    let file = file_of(LEN as usize);
    let actor = Actor::start(writer(Engine::Mmap, CLOSED, file.clone()), clock);
    let actor = actor.expect("starts");
    let mut sampler = only(&actor).sampler();
    assert!(soon(|| sampler.sample(clock.now()).interval.ops > 0));
    file.set_len(0).expect("truncate");
    assert!(soon(|| only(&actor).meter.errors() > 100));
    let (failure, _) = only(&actor).meter.first_error().expect("failed");
    assert_eq!(failure, IoFailure::Os(libc::EIO));
    assert_ended(actor);
}

#[test]
fn the_engine_mmap_refuses_what_it_cannot_do() {
    let file = file_of(LEN as usize);
    let reader = spec(Engine::Mmap, CLOSED, file.clone(), LEN);
    let direct = but(writer(Engine::Mmap, CLOSED, file.clone()), |blocks| {
        blocks.direct = true;
    });
    let odd = but(writer(Engine::Mmap, CLOSED, file), |blocks| {
        let region = blocks.target.as_mut().expect("a region");
        (region.start, region.len) = (512, 8192);
        blocks.block_bytes = 512;
    });
    for (bad, word) in [
        (reader, "only overwrites"),
        (direct, "page cache"),
        (odd, "page size"),
    ] {
        let error = Actor::start(bad, Clock::start()).expect_err(word);
        assert!(error.to_string().contains(word), "{error}");
    }
}
