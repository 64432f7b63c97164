//! In a container that forbids io_uring an actor runs on threads and says so.

use std::sync::Arc;
use std::time::Duration;

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
            std::thread::sleep(Duration::from_millis(50));
            assert!(actor.sampler().sample(clock.now()).interval.ops > 0);
            assert_eq!(actor.finish(Duration::from_secs(10)).operations, 0);

            let error = Actor::start(spec(EngineChoice::IoUring), clock).expect_err("by name");
            assert!(matches!(error, LoadError::NoIoUring { .. }), "{error:?}");
        });
        forbidden.join().expect("as described");
    }
}
