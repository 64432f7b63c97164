//! In a container that forbids io_uring an actor runs on threads and says so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use load::actor::{ActorSpec, Arrival, EngineChoice, Op, Region};
use load::pattern::PatternKind;
use load::{Actor, Clock, Engine, LoadError};

/// From here on this thread, and those it starts, get `errno` from `io_uring_setup`.
fn forbid_io_uring(errno: i32) {
    const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        // The number of the system call comes first in struct seccomp_data.
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, 1, libc::SYS_io_uring_setup as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
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

fn spec(engine: EngineChoice) -> ActorSpec {
    let file = tempfile::tempfile().expect("temporary file");
    file.set_len(1 << 20).expect("truncate");
    ActorSpec {
        name: "reader".into(),
        op: Op::Read,
        pattern: PatternKind::Random,
        block_bytes: 4096,
        arrival: Arrival::Closed { depth: 4, batch: 1 },
        engine,
        target: Some(Region {
            file: Arc::new(file),
            start: 0,
            len: 1 << 20,
        }),
        direct: false,
        seed: 1,
    }
}

/// It reads, without errors; a busy machine may take some time over it.
fn assert_reads(actor: &Actor, clock: Clock) {
    let mut sampler = actor.sampler();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        let interval = sampler.sample(clock.now()).interval;
        assert_eq!(interval.errors, 0, "{:?}", actor.meter().first_error());
        if interval.ops > 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nothing was read in ten seconds");
}

#[test]
fn auto_runs_on_threads_and_io_uring_by_name_is_refused() {
    for errno in [libc::EPERM, libc::ENOSYS] {
        // A thread of its own: the filter can't be taken off again.
        let forbidden = std::thread::spawn(move || {
            forbid_io_uring(errno);
            let clock = Clock::start();
            let actor = Actor::start(spec(EngineChoice::Auto), clock).expect("falls back");
            assert_eq!(actor.engine(), Engine::Sync);
            assert_eq!(actor.info().engine, "sync");
            let note = actor.notes().join("; ");
            assert!(
                note.contains("io_uring") && note.contains("4 threads"),
                "{note}"
            );
            if !note.contains("sysctl") {
                assert!(note.contains("seccomp"), "{note}");
            }
            assert_reads(&actor, clock);
            assert_eq!(actor.finish(Duration::from_secs(10)).operations, 0);

            let error = Actor::start(spec(EngineChoice::IoUring), clock).expect_err("by name");
            assert!(matches!(error, LoadError::NoIoUring { .. }), "{error:?}");
        });
        forbidden.join().expect("as described");
    }
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
        let large = ActorSpec {
            block_bytes: 1 << 20,
            ..spec(EngineChoice::Auto)
        };
        let actor = Actor::start(large, clock).expect("starts");
        if actor.engine() == Engine::Sync {
            assert!(std::env::var_os("CI").is_none(), "{:?}", actor.notes());
            println!("skipped: {:?}", actor.notes());
            return;
        }
        let note = actor.notes().join("; ");
        assert!(note.contains("ulimit -l"), "{note}");
        assert_reads(&actor, clock);
        assert_eq!(actor.finish(Duration::from_secs(10)).operations, 0);
    });
    limited.join().expect("as described");
}
