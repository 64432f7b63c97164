//! Ways of deleting on file systems of their own: what reaches the device,
//! what outlasts a crash, and what happens when there is no room.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use load::deleter::{Event, Files, Fstrim, Lsm, Method, Spill, Swap};
use load::{Clock, Deletion, DeletionOutcome, DeletionSpec};

mod support;

const MIB: u64 = 1 << 20;
const LONG: Duration = Duration::from_secs(60);

/// One test at a time: another's child process has our files open between its
/// fork and its exec, and what is unlinked then keeps its space.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A file system in memory with room for so many bytes; unmounted when dropped.
struct TinyFs(tempfile::TempDir);

impl TinyFs {
    /// `None` where this user can't; then the test is skipped.
    fn new(bytes: u64) -> Option<TinyFs> {
        let directory = tempfile::tempdir().expect("directory");
        let options = format!("size={bytes}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "trimbench-test"])
            .arg(directory.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(TinyFs(directory));
        }
        testkit::gate::skip("need root");
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for TinyFs {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0.path()).status();
        if !std::thread::panicking() {
            assert!(unmounted.expect("umount").success());
        }
    }
}

/// The state of a file system after a crash: a copy of its device's content now, mounted; unmounted
/// when dropped.
struct Crashed(tempfile::TempDir);

impl Crashed {
    fn of(fs: &support::LoopFs, kind: &str) -> Crashed {
        let directory = tempfile::tempdir_in("/dev/shm").expect("directory");
        let (image, mount) = (
            directory.path().join("image"),
            directory.path().join("root"),
        );
        std::fs::create_dir(&mount).expect("directory");
        let run = |command: &mut Command| {
            let status = command.status().expect("starts");
            assert!(status.success(), "{command:?}");
        };
        run(Command::new("cp")
            .arg("--sparse=always")
            .args([image_of(fs), image.clone()]));
        // XFS wants to be told that the original, of the same identity, may be there.
        let options = if kind == "xfs" { "loop,nouuid" } else { "loop" };
        run(Command::new("mount")
            .args(["-o", options])
            .args([image, mount]));
        Crashed(directory)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("root")
    }
}

impl Drop for Crashed {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.path()).status();
        if !std::thread::panicking() {
            assert!(unmounted.expect("umount").success());
        }
    }
}

fn start(spec: DeletionSpec) -> Deletion {
    Deletion::start(spec, Clock::start()).expect("starts")
}

fn end(deletion: Deletion) -> DeletionOutcome {
    let outcome = deletion.finish(LONG);
    assert!(!outcome.abandoned);
    outcome
}

fn wait_until(mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < LONG, "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn write(path: &Path, len: u64) {
    let data: Vec<u8> = (0..len / 4)
        .flat_map(|i| (i as u32).to_le_bytes())
        .collect();
    std::fs::write(path, data).expect("write");
    File::open(path)
        .and_then(|file| file.sync_all())
        .expect("sync");
}

fn commit(directory: &Path) {
    rustix::fs::syncfs(File::open(directory).expect("open")).expect("syncfs");
}

fn files_in(directory: &Path) -> usize {
    std::fs::read_dir(directory).expect("directory").count()
}

/// The file below the loop device.
fn image_of(fs: &support::LoopFs) -> PathBuf {
    fs.device().image().to_owned()
}

/// A deletion that names its files itself, in a directory.
fn within(dir: &Path, method: impl Into<Method>, files: Files) -> DeletionSpec {
    DeletionSpec {
        method: method.into(),
        files: Files {
            folder: dir.to_owned(),
            dir: dir.to_owned(),
            seed: 1,
            ..files
        },
    }
}

fn lsm(dir: &Path, size_bytes: u64, run_for: Duration) -> DeletionSpec {
    let lsm = Lsm {
        levels: 4,
        file_bytes: 256 << 10,
        rate_bytes_per_s: 1 << 30,
        run_for,
    };
    let files = Files {
        size_bytes,
        ..Files::default()
    };
    within(dir, lsm, files)
}

fn spill(dir: &Path, file_bytes: u64, parallel: u32) -> DeletionSpec {
    let spill = Spill {
        parallel,
        pause: Duration::ZERO,
        run_for: Duration::MAX,
    };
    let files = Files {
        file_bytes,
        ..Files::default()
    };
    within(dir, spill, files)
}

#[test]
fn an_lsm_tree_lives_in_exactly_its_space() {
    let _alone = alone();
    let space = 5 * MIB;
    let Some(fs) = TinyFs::new(space) else {
        return;
    };
    let outcome = end(start(lsm(fs.path(), space, Duration::from_secs(2))));
    assert_eq!(outcome.first_error, None);
    assert!(outcome.progress.freed_bytes > 2 * space, "{outcome:?}");
    // With less it wouldn't have.
    let Some(fs) = TinyFs::new(space / 2) else {
        return;
    };
    let outcome = end(start(lsm(fs.path(), space, Duration::from_millis(800))));
    let text = outcome.first_error.expect("no room");
    assert!(text.contains("No space left"), "{text}");
}

#[test]
fn a_full_disk_is_counted_and_the_others_go_on() {
    let _alone = alone();
    let Some(fs) = TinyFs::new(10 * MIB) else {
        return;
    };
    // Two of them fit now and then, all four never do.
    let deletion = start(spill(fs.path(), 4 * MIB, 4));
    wait_until(|| deletion.progress().errors > 0);
    let done = deletion.progress().files_done;
    wait_until(|| deletion.progress().files_done > done + 20);
    deletion.stop();
    let outcome = end(deletion);
    let progress = outcome.progress;
    let text = outcome.first_error.expect("no room");
    assert!(text.contains("No space left"), "{text}");
    // It waits before it tries again, so most of the files were whole.
    assert!(progress.errors < progress.files_done, "{progress:?}");
    assert_eq!(files_in(fs.path()), 0);
}

fn what_is_dropped_is_discarded(spec: impl Fn(&Path) -> DeletionSpec) {
    for (kind, options) in [
        ("ext4", "discard"),
        ("xfs", "discard"),
        ("btrfs", "discard=sync"),
    ] {
        let Some(fs) = support::LoopFs::new(kind, options) else {
            continue;
        };
        commit(&fs.path());
        let (_, before) = fs.device().discards();
        let deletion = start(spec(&fs.path()));
        wait_until(|| deletion.progress().files_done >= 12);
        let seen = deletion.progress();
        deletion.stop();
        let progress = end(deletion).progress;
        assert_eq!(progress.errors, 0);
        assert!(seen.freed_bytes > 0 && progress.freed_bytes >= seen.freed_bytes);
        // Counted is what had blocks on the device, and so is discarded.
        // Of what was being written when it stopped only a part had got there.
        let in_the_middle = 2 * 8 * MIB;
        wait_until(|| {
            commit(&fs.path());
            let discarded = fs.device().discards().1 - before;
            discarded + in_the_middle >= progress.freed_bytes * 9 / 10
        });
        let used = |stat: rustix::fs::StatVfs| (stat.f_blocks - stat.f_bfree) * stat.f_frsize;
        let left = used(rustix::fs::statvfs(fs.path()).expect("statvfs"));
        assert!(left < 200 * MIB, "{left} bytes are in use on {kind}");
    }
}

#[test]
fn what_spills_reaches_the_device_and_is_discarded() {
    let _alone = alone();
    what_is_dropped_is_discarded(|dir| spill(dir, 8 * MIB, 2));
}

#[test]
fn what_is_compacted_away_is_discarded() {
    let _alone = alone();
    what_is_dropped_is_discarded(|dir| lsm(dir, 64 * MIB, Duration::MAX));
}

#[test]
fn the_swap_outlasts_a_crash_right_after_it() {
    let _alone = alone();
    // btrfs won't have two devices of one identity.
    for kind in ["ext4", "xfs"] {
        let Some(fs) = support::LoopFs::new(kind, "defaults") else {
            continue;
        };
        let (table, new) = (fs.path().join("table"), fs.path().join("new"));
        write(&table, 4 * MIB);
        write(&new, MIB);
        commit(&fs.path());
        let files = Files {
            paths: vec![table],
            replacements: vec![new],
            ..Files::default()
        };
        let progress = end(start(within(&fs.path(), Swap, files))).progress;
        assert_eq!((progress.errors, progress.files_done), (0, 1));
        assert!(progress.freed_bytes >= 4 * MIB);

        let crashed = Crashed::of(&fs, kind);
        let root = crashed.path();
        let table = root.join("table").metadata().expect("there is a table");
        assert_eq!(table.len(), MIB, "the new one, on {kind}");
        assert!(!root.join("new").exists());
        let data = std::fs::read(root.join("table")).expect("read");
        assert_eq!(data[4..8], 1u32.to_le_bytes());
    }
}

#[test]
fn fstrim_frees_what_was_deleted_below_the_file_system() {
    let _alone = alone();
    for kind in ["ext4", "xfs", "btrfs"] {
        let options = if kind == "btrfs" {
            "nodiscard"
        } else {
            "defaults"
        };
        let Some(fs) = support::LoopFs::new(kind, options) else {
            continue;
        };
        let path = fs.path().join("deleted");
        write(&path, 64 * MIB);
        std::fs::remove_file(&path).expect("unlink");
        commit(&fs.path());
        let allocated = || image_of(&fs).metadata().expect("stat").blocks() * 512;
        let before = allocated();
        let outcome = end(start(within(&fs.path(), Fstrim, Files::default())));
        let free = rustix::fs::statvfs(fs.path()).expect("statvfs");
        let free = free.f_bfree * free.f_frsize;
        assert_eq!(outcome.first_error, None);
        let progress = outcome.progress;
        assert_eq!((progress.total_bytes, progress.files_done), (0, 0));
        assert!(
            (64 * MIB..=free).contains(&progress.freed_bytes),
            "{progress:?} of {free} free on {kind}"
        );
        let after = allocated();
        assert!(before - after >= 60 * MIB, "{before} -> {after} on {kind}");
    }
}

/// A file system that holds every writer; thawed when dropped.
struct Frozen(PathBuf);

impl Frozen {
    fn new(path: PathBuf) -> Frozen {
        let status = Command::new("fsfreeze").arg("-f").arg(&path).status();
        assert!(status.expect("fsfreeze").success());
        Frozen(path)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let status = Command::new("fsfreeze").arg("-u").arg(&self.0).status();
        if !std::thread::panicking() {
            assert!(status.expect("fsfreeze").success());
        }
    }
}

#[test]
fn what_a_file_system_holds_up_is_abandoned_and_cleans_up_when_it_can() {
    let _alone = alone();
    let Some(fs) = support::LoopFs::new("ext4", "defaults") else {
        return;
    };
    let dir = fs.path().join("ours");
    std::fs::create_dir(&dir).expect("directory");
    for spec in [spill(&dir, 2 * MIB, 2), lsm(&dir, 16 * MIB, Duration::MAX)] {
        let deletion = start(spec);
        wait_until(|| deletion.progress().files_done > 8);
        let frozen = Frozen::new(fs.path());
        std::thread::sleep(Duration::from_millis(50));
        wait_until(|| deletion.progress().in_call_since.is_some());
        deletion.stop();
        let outcome = deletion.finish(Duration::from_millis(100));
        assert!(outcome.abandoned);
        assert_eq!(outcome.progress.returned_at, None);
        drop(frozen);
        wait_until(|| files_in(&dir) == 0);
    }
}

/// A tiny file system with a file of 4 MiB that isn't the run's, in `old`.
fn with_old_file() -> Option<TinyFs> {
    let fs = TinyFs::new(16 * MIB)?;
    std::fs::write(fs.path().join("old"), vec![7; 4 * MIB as usize]).expect("write");
    Some(fs)
}

#[test]
fn an_event_frees_what_the_free_space_says() {
    let _alone = alone();
    let Some(fs) = with_old_file() else { return };
    let old = fs.path().join("old").to_string_lossy().into_owned();
    let event = Event {
        text: format!("rm {old}"),
        argv: vec!["rm".into(), old],
        quiet: Duration::ZERO,
        writes_at_most_bytes: None,
    };
    let outcome = start(within(fs.path(), event, Files::default())).finish(LONG);
    assert_eq!(outcome.progress.freed_bytes, 4 * MIB);
    assert_eq!(outcome.command.expect("a command").code, Some(0));
    assert_eq!(outcome.first_error, None);
}
