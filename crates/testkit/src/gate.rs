//! Which tests can run here, and which must run alone.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// Something a test can't do without.
#[derive(Debug)]
pub enum Need {
    /// Effective user 0: mounting, loop devices, freezing.
    Root,
    /// A program in PATH.
    Tool(&'static str),
    /// A file of /proc or /sys, or a device node.
    File(&'static str),
}

/// ext4 on a loop device.
pub const LOOP_EXT4: &[Need] = &[
    Need::Root,
    Need::File("/dev/loop-control"),
    Need::Tool("mkfs.ext4"),
];

/// XFS on a loop device.
pub const LOOP_XFS: &[Need] = &[
    Need::Root,
    Need::File("/dev/loop-control"),
    Need::Tool("mkfs.xfs"),
];

/// btrfs on loop devices.
pub const LOOP_BTRFS: &[Need] = &[
    Need::Root,
    Need::File("/dev/loop-control"),
    Need::Tool("mkfs.btrfs"),
    Need::Tool("btrfs"),
];

/// Whether the machine lacks something, for which the test is then [skipped](skip).
#[must_use]
pub fn lacks(needs: &[Need]) -> bool {
    let missing = needs.iter().find_map(missing);
    if let Some(missing) = &missing {
        skip(&format!("need {missing}"));
    }
    missing.is_some()
}

/// Whether a program is missing that no distribution has. Then the test is skipped, also where CI is
/// set.
pub fn lacks_rare(program: &str) -> bool {
    let is_missing = !in_path(program);
    if is_missing {
        note_skip(&format!("need the program {program}"));
    }
    is_missing
}

/// Notes why this test does not run here: the last words of "3 tests need root". Where CI is set
/// the test fails instead, so that no test is skipped there unseen.
#[track_caller]
pub fn skip(why: &str) {
    assert!(
        std::env::var_os("CI").is_none(),
        "{why}, and CI is set: this test may not be skipped"
    );
    note_skip(why);
}

/// Notes the same, also where CI is set.
pub fn note_skip(why: &str) {
    eprintln!("skipped: {why}");
    let test = format!("{} {}", std::process::id(), test_name());
    note("skips", &format!("{why}\t{test}"));
}

fn missing(need: &Need) -> Option<String> {
    match need {
        Need::Root => (!rustix::process::geteuid().is_root()).then(|| "root".to_owned()),
        Need::Tool(name) => (!in_path(name)).then(|| format!("the program {name}")),
        Need::File(path) => (!Path::new(path).exists()).then(|| (*path).to_owned()),
    }
}

fn in_path(name: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin"])
        .any(|directory| Path::new(directory).join(name).exists())
}

/// How many of each kind run at once. Those [`beside`] each other mostly wait, so more of them than
/// the machine has processors are over sooner. Too many would keep each other from ending in time.
const AT_ONCE: [usize; 3] = [6, 3, 1];

/// Held by a test while it runs. Figures want the machine alone.
#[derive(Debug)]
pub struct Turn {
    kind: Kind,
    /// Dropped before the next of this process is let in.
    lock: Option<Arc<File>>,
    began: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Beside,
    Few,
    Alone,
}

/// The turns of this process.
struct Turns {
    /// Tests of a kind that run, or want to.
    wanted: [usize; 3],
    running: [usize; 3],
}

static TURNS: Mutex<Turns> = Mutex::new(Turns {
    wanted: [0; 3],
    running: [0; 3],
});
static CHANGED: Condvar = Condvar::new();
/// The lock that the few share: no other process has a turn meanwhile.
static SHARED: Mutex<Weak<File>> = Mutex::new(Weak::new());

/// Waits until no other test runs, and keeps them out: for tests that look at figures. All that
/// may run beside each other go first: to clear the machine again and again would cost their time.
pub fn alone() -> Turn {
    Kind::Alone.turn()
}

/// Waits for a turn [`alone`], and until other programs leave most of the processors' time, for
/// figures that are compared to 15 %. `None`: they don't within a minute, and the test is skipped,
/// also where CI is set.
pub fn undisturbed() -> Option<Turn> {
    let turn = alone();
    for _ in 0..120 {
        let before = processors();
        std::thread::sleep(Duration::from_millis(500));
        let after = processors();
        if (after.0 - before.0) * 10 > (after.1 - before.1) * 7 {
            return Some(turn);
        }
    }
    note_skip("need a machine that is less busy");
    None
}

/// The processors' idle time and all their time so far, in the kernel's ticks.
fn processors() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let fields = text.lines().next().unwrap().split_whitespace().skip(1);
    let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap()).collect();
    // Idle, and idle while an I/O is in flight.
    (ticks[3] + ticks[4], ticks[..8].iter().sum())
}

/// Runs beside at most two others of this kind, when all that run [`beside`] each other are over.
/// This is for tests that look at figures of a slow drive, for which they mostly wait. The figure
/// must be so large that three such tests at once don't show in it.
pub fn few() -> Turn {
    Kind::Few.turn()
}

/// Runs beside others, but not beside one that is [`alone`], nor beside a [`few`].
pub fn beside() -> Turn {
    Kind::Beside.turn()
}

impl Kind {
    /// Waits until none of a kind before this is left, none of a later runs, and there is room; then
    /// for the tests of other processes.
    fn turn(self) -> Turn {
        let own = self as usize;
        let mut turns = TURNS.lock().unwrap();
        turns.wanted[own] += 1;
        let must_wait = |turns: &mut Turns| {
            turns.wanted[..own].iter().any(|&tests| tests > 0)
                || turns.running[own + 1..].iter().any(|&tests| tests > 0)
                || turns.running[own] == AT_ONCE[own]
        };
        CHANGED.wait_while(turns, must_wait).unwrap().running[own] += 1;
        let lock = match self {
            Kind::Beside => Arc::new(entered(FlockOperation::LockShared)),
            Kind::Alone => Arc::new(entered(FlockOperation::LockExclusive)),
            Kind::Few => {
                let mut shared = SHARED.lock().unwrap();
                let first = || Arc::new(entered(FlockOperation::LockExclusive));
                let lock = shared.upgrade().unwrap_or_else(first);
                *shared = Arc::downgrade(&lock);
                lock
            }
        };
        Turn {
            kind: self,
            lock: Some(lock),
            began: Instant::now(),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let seconds = self.began.elapsed().as_secs_f64();
        note("turns", &format!("{seconds:.1}\t{}", test_name()));
        self.lock = None;
        let mut turns = TURNS.lock().unwrap();
        turns.running[self.kind as usize] -= 1;
        turns.wanted[self.kind as usize] -= 1;
        CHANGED.notify_all();
    }
}

/// The lock, when this process's turn has come. The first at the door goes in first, so that none
/// waits for ever.
fn entered(operation: FlockOperation) -> File {
    let _door = locked("door", FlockOperation::LockExclusive);
    locked("lock", operation)
}

/// One of the files by which test processes know of each other.
fn locked(kind: &str, operation: FlockOperation) -> File {
    let path = std::env::temp_dir().join(format!("trimbench-tests.{kind}"));
    // Another user's can be read, and neither written nor created anew.
    let file = File::open(&path)
        .or_else(|_| File::create(&path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    flock(&file, operation).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file
}

/// The test in whose thread this is.
fn test_name() -> String {
    let thread = std::thread::current();
    thread.name().unwrap_or("a thread").to_owned()
}

/// Adds a line to a file of the build directory, which `scripts/test-notes` reads. This program
/// is `target/PROFILE/deps/NAME`.
fn note(file: &str, line: &str) {
    let program = std::env::current_exe().unwrap_or_default();
    if let Some(build) = program.ancestors().nth(3) {
        let path = build.join(file);
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        // Only a note: a test doesn't fail for it.
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}

/// Whether the long counts are asked for (`make soak`).
pub fn soak() -> bool {
    std::env::var_os("TRIMBENCH_SOAK").is_some()
}

/// The same, and a test that is left out of `make test` is counted as skipped.
pub fn only_in_soak() -> bool {
    if !soak() {
        note_skip("for make soak");
    }
    soak()
}

/// `few` in `make test`, `many` in `make soak`.
pub fn times(few: usize, many: usize) -> usize {
    if soak() { many } else { few }
}
