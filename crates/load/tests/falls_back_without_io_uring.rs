//! In a container that forbids io_uring an actor falls back on libaio or threads, and says so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use load::actor::{ActorSpec, Blocks, Op, Region, Work};
use load::{Actor, Clock, Engine, LoadError, LoopKind};

/// From here on this thread, and those it starts, get `errno` from these system calls.
fn forbid(calls: &[libc::c_long], errno: i32) {
    const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // The number of the system call comes first in struct seccomp_data.
    let mut filter = vec![step(LOAD_WORD, 0, 0, 0)];
    for call in calls {
        filter.push(step(JUMP_IF_EQUAL, 0, 1, *call as u32));
        filter.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
    }
    filter.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program is valid and copied by the kernel.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) == 0
    };
    assert!(installed, "{}", std::io::Error::last_os_error());
}

const LEN: u64 = 1 << 20;

fn spec(engine: Engine, direct: bool) -> ActorSpec {
    let named = tempfile::NamedTempFile::new().expect("temporary file");
    named.as_file().set_len(LEN).expect("truncate");
    let file = load::target::open(named.path(), Op::Read, direct).expect("open");
    ActorSpec {
        name: "reader".into(),
        work: Work::Blocks(Blocks {
            engine,
            target: Some(Region {
                file: Arc::new(file),
                start: 0,
                len: LEN,
            }),
            direct,
            ..Blocks::READS
        }),
        arrival: LoopKind::Closed { depth: 4 },
        seed: 1,
    }
}

fn blocks_of(spec: &ActorSpec) -> &Blocks {
    match &spec.work {
        Work::Blocks(blocks) => blocks,
        Work::Task(_) => panic!("not blocks"),
    }
}

/// It reads, without errors; a busy machine may take some time over it.
fn assert_reads(actor: &Actor, clock: Clock) {
    let mut sampler = actor.series()[0].sampler();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        let interval = sampler.sample(clock.now()).interval;
        assert_eq!(
            interval.errors,
            0,
            "{:?}",
            actor.series()[0].meter.first_error()
        );
        if interval.ops > 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nothing was read in ten seconds");
}

/// Starts a reader with the engine `auto`, which must fall back on this one,
/// say so in advance and at the start alike, and read. Returns the note.
fn falls_back_on(engine: Engine, direct: bool) -> String {
    let clock = Clock::start();
    let spec = spec(Engine::Auto, direct);
    let (before, notes) = blocks_of(&spec).engine_now().expect("falls back");
    assert_eq!(before, engine, "{notes:?}");
    let actor = Actor::start(spec, clock).expect("falls back");
    assert_eq!(actor.engine(), engine);
    assert_eq!(actor.series()[0].info.engine, engine.name());
    let [note] = actor.notes() else {
        panic!("{:?}", actor.notes())
    };
    let note = note.clone();
    assert_eq!(notes, [note.strip_prefix("reader: ").expect("its name")]);
    let ending = format!("the engine is {}", engine.name());
    assert!(note.contains(&ending), "{note}");
    assert_reads(&actor, clock);
    assert_eq!(actor.finish(Duration::from_secs(10))[0].operations, 0);
    note
}

fn refused(engine: Engine) -> LoadError {
    let spec = spec(engine, true);
    blocks_of(&spec).engine_now().expect_err("by name");
    Actor::start(spec, Clock::start()).expect_err("by name")
}

/// Does it in a thread of its own, for a filter can't be taken off again.
fn apart(work: impl FnOnce() + Send + 'static) {
    std::thread::spawn(work).join().expect("as described");
}

fn says_why(note: &str) {
    let why = ["seccomp", "sysctl"].iter().any(|word| note.contains(word));
    assert!(why, "{note}");
}

#[test]
fn without_io_uring_direct_io_goes_on_by_libaio_and_buffered_io_on_threads() {
    for errno in [libc::EPERM, libc::ENOSYS] {
        apart(move || {
            forbid(&[libc::SYS_io_uring_setup], errno);
            let note = falls_back_on(Engine::Libaio, true);
            assert!(note.contains("io_uring can't be used"), "{note}");
            says_why(&note);

            let note = falls_back_on(Engine::Sync, false);
            assert!(note.contains("io_uring can't be used"), "{note}");
            assert!(note.contains("libaio would wait"), "{note}");
            assert!(note.contains("a thread for each operation"), "{note}");

            let error = refused(Engine::IoUring);
            assert!(matches!(error, LoadError::NoIoUring { .. }), "{error:?}");
        });
    }
}

#[test]
fn without_io_uring_and_libaio_it_runs_on_threads() {
    for errno in [libc::EPERM, libc::ENOSYS] {
        apart(move || {
            forbid(&[libc::SYS_io_uring_setup, libc::SYS_io_setup], errno);
            let note = falls_back_on(Engine::Sync, true);
            assert!(note.contains("io_uring can't be used"), "{note}");
            assert!(note.contains("libaio can't be used"), "{note}");
            says_why(&note);

            let error = refused(Engine::Libaio);
            assert!(matches!(error, LoadError::NoLibaio { .. }), "{error:?}");
            assert!(error.to_string().contains("`sync`"), "{error}");
        });
    }
}

#[test]
fn without_libaio_nobody_misses_it_who_has_io_uring() {
    apart(|| {
        forbid(&[libc::SYS_io_setup], libc::EPERM);
        let spec = spec(Engine::Auto, true);
        let (engine, notes) = blocks_of(&spec).engine_now().expect("an engine");
        if engine == Engine::Sync {
            return testkit::gate::skip("need io_uring");
        }
        assert_eq!((engine, notes), (Engine::IoUring, vec![]));
    });
}

/// Takes from this thread, and those it starts, the right to lock memory, and
/// leaves room for a ring and no more.
fn limit_locked_memory() {
    const ROOM: u64 = 256 << 10;
    const VERSION_3: u32 = 0x2008_0522;
    const CAP_IPC_LOCK: u32 = 14;
    let room = libc::rlimit {
        rlim_cur: ROOM,
        rlim_max: ROOM,
    };
    let header = [VERSION_3, 0];
    // Effective, permitted and inheritable, for the lower and the upper 32 capabilities.
    let mut sets = [0u32; 6];
    // SAFETY: both structures are as capget(2) and setrlimit(2) describe them.
    let done = unsafe {
        libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) == 0
            && {
                sets[0] &= !(1 << CAP_IPC_LOCK);
                libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) == 0
            }
            && libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const room) == 0
    };
    assert!(done, "{}", std::io::Error::last_os_error());
}

#[test]
fn buffers_that_cannot_be_locked_are_used_all_the_same_and_it_is_said() {
    let limited = std::thread::spawn(|| {
        limit_locked_memory();
        let clock = Clock::start();
        let mut large = spec(Engine::Auto, false);
        if let Work::Blocks(blocks) = &mut large.work {
            blocks.block_bytes = 1 << 20;
        }
        let actor = Actor::start(large, clock).expect("starts");
        if actor.engine() == Engine::Sync {
            return testkit::gate::skip("need io_uring or libaio");
        }
        let note = actor.notes().join("; ");
        assert!(note.contains("ulimit -l"), "{note}");
        assert_reads(&actor, clock);
        assert_eq!(actor.finish(Duration::from_secs(10))[0].operations, 0);
    });
    limited.join().expect("as described");
}
