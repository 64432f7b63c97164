//! Each way of deleting, on real files.

use std::ffi::OsString;
use std::fs::File;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::*;

mod fstrim;
mod lsm;
mod punch;
mod purge;
mod spill;
mod swap;

const LONG: Duration = Duration::from_secs(20);

fn files(directory: &Path, n: usize, len: usize) -> Vec<PathBuf> {
    (0..n)
        .map(|i| {
            let path = directory.join(format!("victim-{i}"));
            std::fs::write(&path, vec![1; len]).expect("write");
            // Delayed allocation would let st_blocks be 0 still.
            File::open(&path)
                .and_then(|file| file.sync_all())
                .expect("sync");
            path
        })
        .collect()
}

fn command(argv: &[&str], paths: Vec<PathBuf>) -> DeletionSpec {
    DeletionSpec::Command {
        argv: argv.iter().map(OsString::from).collect(),
        paths,
    }
}

fn run(spec: DeletionSpec) -> DeletionOutcome {
    let outcome = Deletion::start(spec, Clock::start())
        .expect("starts")
        .finish(LONG);
    assert!(!outcome.abandoned);
    let progress = outcome.progress;
    assert!(progress.began_at <= progress.returned_at);
    assert_eq!(progress.in_call_since, None);
    outcome
}

fn assert_all_freed(progress: DeletionProgress, paths: &[PathBuf], at_least: u64) {
    assert_eq!(progress.freed_bytes, progress.total_bytes);
    assert!(progress.total_bytes >= at_least, "{progress:?}");
    assert_eq!(progress.files_done, paths.len() as u64);
    assert_eq!(progress.errors, 0);
    assert!(paths.iter().all(|path| !path.exists()));
}

#[test]
fn unlink_takes_several_at_a_time() {
    let directory = tempfile::tempdir().expect("directory");
    let paths = files(directory.path(), 20, 8192);
    let outcome = run(DeletionSpec::Unlink {
        paths: paths.clone(),
        parallel: NonZeroU32::new(4).expect("four"),
    });
    assert_all_freed(outcome.progress, &paths, 20 * 8192);
    assert_eq!(outcome.first_error, None);
}

#[test]
fn a_second_name_frees_nothing() {
    let directory = tempfile::tempdir().expect("directory");
    let first = files(directory.path(), 1, 8192).remove(0);
    let second = directory.path().join("second");
    std::fs::hard_link(&first, &second).expect("link");
    let unlink = |paths| DeletionSpec::Unlink {
        paths,
        parallel: NonZeroU32::MIN,
    };
    let outcome = run(unlink(vec![second.clone()]));
    assert_eq!(outcome.progress.total_bytes, 0);
    assert!(first.exists() && !second.exists());
    // Both names at once: the space is counted once.
    std::fs::hard_link(&first, &second).expect("link");
    let outcome = run(unlink(vec![first.clone(), second]));
    assert!((8192..16384).contains(&outcome.progress.freed_bytes));
}

#[test]
fn truncate_cuts_from_the_tail_and_unlinks() {
    let directory = tempfile::tempdir().expect("directory");
    let paths = files(directory.path(), 2, 100_000);
    let outcome = run(DeletionSpec::Truncate {
        paths: paths.clone(),
        chunk_bytes: NonZeroU64::new(30_000).expect("chunk"),
        sleep: Duration::from_millis(1),
        fsync: true,
    });
    assert_all_freed(outcome.progress, &paths, 200_000);
}

#[test]
fn truncate_spares_a_file_that_has_another_name() {
    let directory = tempfile::tempdir().expect("directory");
    let first = files(directory.path(), 1, 8192).remove(0);
    let second = directory.path().join("second");
    std::fs::hard_link(&first, &second).expect("link");
    run(DeletionSpec::Truncate {
        paths: vec![second.clone()],
        chunk_bytes: NonZeroU64::MIN,
        sleep: Duration::ZERO,
        fsync: false,
    });
    assert!(!second.exists());
    assert_eq!(first.metadata().expect("still there").len(), 8192);
}

#[test]
fn a_stop_leaves_the_rest() {
    let directory = tempfile::tempdir().expect("directory");
    let paths = files(directory.path(), 1, 1 << 20);
    let spec = DeletionSpec::Truncate {
        paths: paths.clone(),
        chunk_bytes: NonZeroU64::new(4096).expect("chunk"),
        sleep: Duration::from_millis(100),
        fsync: false,
    };
    let deletion = Deletion::start(spec, Clock::start()).expect("starts");
    deletion.stop();
    let outcome = deletion.finish(LONG);
    assert!(!outcome.abandoned);
    assert!(outcome.progress.freed_bytes < outcome.progress.total_bytes);
    assert!(paths[0].exists());
}

#[test]
fn failures_are_counted_and_the_first_is_told() {
    let directory = tempfile::tempdir().expect("directory");
    let mut paths = files(directory.path(), 1, 4096);
    let sub = directory.path().join("sub");
    std::fs::create_dir(&sub).expect("directory");
    paths.insert(0, sub.clone());
    let outcome = run(DeletionSpec::Unlink {
        paths,
        parallel: NonZeroU32::MIN,
    });
    assert_eq!(
        (outcome.progress.errors, outcome.progress.files_done),
        (1, 1)
    );
    let text = outcome.first_error.expect("an error");
    assert!(text.contains("sub") && text.contains("unlink"), "{text}");
}

#[test]
fn a_missing_file_or_none_is_refused() {
    let unlink = |paths| DeletionSpec::Unlink {
        paths,
        parallel: NonZeroU32::MIN,
    };
    let clock = Clock::start();
    let error = Deletion::start(unlink(vec!["/nonexistent/f".into()]), clock).expect_err("missing");
    assert!(error.to_string().contains("/nonexistent/f"));
    Deletion::start(unlink(Vec::new()), clock).expect_err("nothing to do");
}

#[test]
fn an_outside_program_gets_each_path_or_all() {
    let directory = tempfile::tempdir().expect("directory");
    for argv in [&["rm", "{}"][..], &["rm", "-f"][..]] {
        let paths = files(directory.path(), 3, 8192);
        let outcome = run(command(argv, paths.clone()));
        assert_all_freed(outcome.progress, &paths, 3 * 8192);
        assert_eq!(outcome.command.expect("ran").code, Some(0));
    }
}

#[test]
fn an_outside_program_that_fails_is_told_with_what_it_said() {
    let directory = tempfile::tempdir().expect("directory");
    let paths = files(directory.path(), 1, 4096);
    let script = "echo out; echo oops >&2; exit 7";
    let outcome = run(command(&["sh", "-c", script], paths));
    let ended = outcome.command.expect("ran");
    assert_eq!((ended.code, ended.signal), (Some(7), None));
    assert!(
        ended.tail.contains("out") && ended.tail.contains("oops"),
        "{}",
        ended.tail
    );
    assert_eq!(outcome.progress.errors, 1);
    assert_eq!(outcome.progress.freed_bytes, 0);
}

#[test]
fn what_an_outside_program_frees_is_seen_while_it_runs() {
    let directory = tempfile::tempdir().expect("directory");
    let paths = files(directory.path(), 2, 1 << 20);
    let go = directory.path().join("go");
    let script = "rm \"$1\"; until [ -e \"$0\" ]; do sleep 0.02; done; rm \"$2\"";
    let argv = ["sh", "-c", script, go.to_str().expect("UTF-8")];
    let deletion = Deletion::start(command(&argv, paths), Clock::start()).expect("starts");
    wait_until(|| {
        let progress = deletion.progress();
        progress.files_done == 1
            && progress.freed_bytes == progress.total_bytes / 2
            && progress.in_call_since.is_some()
    });
    std::fs::write(&go, "").expect("write");
    let progress = deletion.finish(LONG).progress;
    assert_eq!(progress.freed_bytes, progress.total_bytes);
}

#[test]
fn a_stop_ends_an_outside_program_and_its_children() {
    let directory = tempfile::tempdir().expect("directory");
    let paths = files(directory.path(), 1, 4096);
    let argv = ["sh", "-c", "sleep 600 & wait"];
    let deletion = Deletion::start(command(&argv, paths), Clock::start()).expect("starts");
    deletion.stop();
    let outcome = deletion.finish(LONG);
    assert!(!outcome.abandoned);
    assert_eq!(outcome.command.expect("ran").signal, Some(libc::SIGTERM));
}

#[test]
fn a_program_that_is_not_there_is_an_error_at_once() {
    let directory = tempfile::tempdir().expect("directory");
    let paths = files(directory.path(), 1, 4096);
    let error = Deletion::start(command(&["no-such-program"], paths), Clock::start())
        .expect_err("not there");
    assert!(error.to_string().contains("no-such-program"), "{error}");
}

#[test]
fn a_discard_of_what_is_no_device_fails_once() {
    let file = tempfile::tempfile().expect("temporary file");
    let spec = DeletionSpec::Discard {
        device: Arc::new(file),
        path: "no-device".into(),
        start: 0,
        len: 1 << 20,
        step_bytes: NonZeroU64::new(4096).expect("step"),
    };
    let outcome = run(spec);
    assert_eq!(outcome.progress.errors, 1);
    assert!(outcome.first_error.expect("an error").contains("no-device"));
}

#[test]
fn every_way_is_listed_once_in_a_line() {
    for (i, method) in METHODS.iter().enumerate() {
        assert!(
            method.name.bytes().all(|byte| byte.is_ascii_lowercase()),
            "{method:?}"
        );
        assert!(method.about.len() > 20 && !method.about.contains('\n'));
        assert!(
            METHODS[i + 1..]
                .iter()
                .all(|other| other.name != method.name)
        );
    }
    let continuous = METHODS.iter().filter(|method| method.continuous);
    let names: Vec<_> = continuous.map(|method| method.name).collect();
    assert_eq!(names, ["lsm", "spill"]);
}

/// Waits until it is so; a test that waits for ever fails.
fn wait_until(mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < LONG, "it never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The names in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("directory");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.expect("entry").file_name();
        name.into_string().expect("a plain name")
    };
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort_unstable();
    names
}
