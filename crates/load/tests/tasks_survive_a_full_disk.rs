//! A file system that runs full under a task: the operations fail and are
//! counted, and go on once there is space again.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use load::{Actor, ActorSpec, Clock, IoFailure, LoopKind, TaskSpec, Work};

/// A tiny file system in memory; unmounted when dropped.
struct Tiny(tempfile::TempDir);

impl Tiny {
    /// `None` where this user can't mount; then the test is skipped.
    fn new() -> Option<Tiny> {
        let dir = tempfile::tempdir().expect("directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "tiny"]);
        let output = mount.arg(dir.path()).output().expect("mount starts");
        if output.status.success() {
            return Some(Tiny(dir));
        }
        testkit::gate::skip("need root");
        None
    }

    fn task_dir(&self) -> PathBuf {
        let dir = self.0.path().join("task");
        std::fs::create_dir(&dir).expect("directory");
        dir
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0.path()).status();
        if !std::thread::panicking() {
            assert!(unmounted.expect("umount starts").success(), "still in use");
        }
    }
}

/// Takes all space that is left.
fn fill(path: &Path) {
    let mut file = File::create(path).expect("creates");
    while file.write_all(&[1; 4096]).is_ok() {}
}

fn soon(mut condition: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20) {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

fn goes_on_after_a_full_disk(kind: &str) {
    let Some(tiny) = Tiny::new() else { return };
    let (dir, ballast) = (tiny.task_dir(), tiny.0.path().join("ballast"));
    let kind = load::task::kind(kind).expect("a kind");
    let spec = ActorSpec {
        name: "task".into(),
        work: Work::Task(TaskSpec {
            kind,
            dir: dir.clone(),
            block_bytes: 16 << 10,
            // More than there is; a save has no size.
            size_bytes: kind.default_size_bytes.min(1 << 20),
        }),
        arrival: LoopKind::Closed { depth: 1 },
        seed: 1,
    };
    let clock = Clock::start();
    let actor = Actor::start(spec, clock).expect("starts");
    let series = &actor.series()[0];
    let mut sampler = series.sampler();
    let mut ops_of = || sampler.sample(clock.now()).interval.ops;

    fill(&ballast);
    assert!(soon(|| series.meter.errors() > 20), "nothing failed");
    let (failure, _) = series.meter.first_error().expect("failed");
    assert_eq!(failure, IoFailure::Os(libc::ENOSPC));
    ops_of();

    std::fs::remove_file(&ballast).expect("removes");
    if kind.name != "save" {
        // A log that may grow beyond the disk needs more than the ballast's end.
        assert!(soon(|| ops_of() > 0), "it never went on");
    } else {
        let mut ops = 0;
        assert!(
            soon(|| {
                ops += ops_of();
                ops > 50
            }),
            "it never went on"
        );
        let errors = series.meter.errors();
        assert!(
            soon(|| {
                ops += ops_of();
                ops > 100
            }),
            "it doesn't go on"
        );
        assert_eq!(series.meter.errors(), errors, "errors with space left");
    }
    actor.finish(Duration::from_secs(10));
    for entry in std::fs::read_dir(&dir).expect("readable") {
        let entry = entry.expect("an entry");
        assert!(entry.metadata().expect("metadata").is_file(), "{entry:?}");
    }
}

/// One test, for a program that another one starts meanwhile would hold this
/// one's files open for a moment, and the file system couldn't be unmounted.
#[test]
fn saves_and_logs_go_on_after_a_full_disk() {
    goes_on_after_a_full_disk("save");
    goes_on_after_a_full_disk("append-fsync");
}
