//! Each way of deleting, on real files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use record::units::settings::Section;

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

/// The deletion of files.
fn of(method: impl Into<Method>, paths: Vec<PathBuf>) -> DeletionSpec {
    DeletionSpec {
        method: method.into(),
        files: Files {
            paths,
            ..Files::default()
        },
    }
}

fn command(argv: &[&str], paths: Vec<PathBuf>) -> DeletionSpec {
    let argv = argv.iter().map(ToString::to_string).collect();
    of(Program { argv }, paths)
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
    let outcome = run(of(Unlink { parallel: 4 }, paths.clone()));
    assert_all_freed(outcome.progress, &paths, 20 * 8192);
    assert_eq!(outcome.first_error, None);
}

#[test]
fn a_second_name_frees_nothing() {
    let directory = tempfile::tempdir().expect("directory");
    let first = files(directory.path(), 1, 8192).remove(0);
    let second = directory.path().join("second");
    std::fs::hard_link(&first, &second).expect("link");
    let unlink = |paths| of(Unlink { parallel: 1 }, paths);
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
    let outcome = run(of(
        Truncate {
            chunk_bytes: 30_000,
            sleep: Duration::from_millis(1),
            fsync: true,
        },
        paths.clone(),
    ));
    assert_all_freed(outcome.progress, &paths, 200_000);
}

#[test]
fn truncate_spares_a_file_that_has_another_name() {
    let directory = tempfile::tempdir().expect("directory");
    let first = files(directory.path(), 1, 8192).remove(0);
    let second = directory.path().join("second");
    std::fs::hard_link(&first, &second).expect("link");
    run(of(
        Truncate {
            chunk_bytes: 1,
            sleep: Duration::ZERO,
            fsync: false,
        },
        vec![second.clone()],
    ));
    assert!(!second.exists());
    assert_eq!(first.metadata().expect("still there").len(), 8192);
}

#[test]
fn a_stop_leaves_the_rest() {
    let directory = tempfile::tempdir().expect("directory");
    let paths = files(directory.path(), 1, 1 << 20);
    let spec = of(
        Truncate {
            chunk_bytes: 4096,
            sleep: Duration::from_millis(100),
            fsync: false,
        },
        paths.clone(),
    );
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
    let outcome = run(of(Unlink { parallel: 1 }, paths));
    assert_eq!(
        (outcome.progress.errors, outcome.progress.files_done),
        (1, 1)
    );
    let text = outcome.first_error.expect("an error");
    assert!(text.contains("sub") && text.contains("unlink"), "{text}");
}

#[test]
fn a_missing_file_or_none_is_refused() {
    let unlink = |paths| of(Unlink { parallel: 1 }, paths);
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
    let mut spec = of(Discard { step_bytes: 4096 }, Vec::new());
    spec.files.size_bytes = 1 << 20;
    spec.files.device = Some(Device {
        file: Arc::new(file),
        path: "no-device".into(),
        start: 0,
    });
    let outcome = run(spec);
    assert_eq!(outcome.progress.errors, 1);
    assert!(outcome.first_error.expect("an error").contains("no-device"));
}

#[test]
fn every_way_is_listed_once_in_a_line() {
    for (i, how) in HOWS.iter().enumerate() {
        assert!(
            how.name.bytes().all(|byte| byte.is_ascii_lowercase()),
            "{how:?}"
        );
        assert!(how.about.len() > 10 && !how.about.contains('\n'));
        assert!(HOWS[i + 1..].iter().all(|other| other.name != how.name));
        for key in how.keys {
            assert!(
                AskedDeletion::KEYS.iter().any(|known| known.name == *key),
                "{key}"
            );
        }
    }
    let error = AskedDeletion::default().set("how", "rm").unwrap_err();
    assert!(
        error.to_string().contains("unlink, truncate, punch"),
        "{error}"
    );
}

#[test]
fn a_method_is_written_as_records_have_had_it() {
    let sleep = Duration::from_millis(100);
    let cut = Truncate {
        chunk_bytes: 4096,
        sleep,
        fsync: false,
    };
    for (method, json) in [
        (
            Method::from(Unlink { parallel: 2 }),
            r#"{"unlink":{"parallel":2}}"#,
        ),
        (
            cut.into(),
            r#"{"truncate":{"chunk_bytes":4096,"fsync":false,"sleep_s":0.1}}"#,
        ),
        (Fstrim.into(), r#""fstrim""#),
        (Swap.into(), r#""swap""#),
        (
            Program {
                argv: vec!["rm".into()],
            }
            .into(),
            r#"{"command":{"argv":["rm"]}}"#,
        ),
    ] {
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_value(&method).unwrap(), json);
    }
}

/// The method of some keys, for so many bytes.
fn asked(settings: &[&str], on_device: bool, size_bytes: u64) -> Option<Method> {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let asked = AskedDeletion::of(&settings).expect("settings");
    asked.method(on_device, size_bytes).expect("a method")
}

#[test]
fn a_raw_device_is_discarded_in_larger_steps() {
    let discard = Discard {
        step_bytes: 1 << 30,
    };
    assert_eq!(asked(&[], true, 1 << 30), Some(discard.into()));
    assert_eq!(asked(&["how=none"], true, 1 << 30), None);
}

#[test]
fn an_lsm_trees_files_fit_into_its_space() {
    for (size_bytes, levels) in [(1 << 30, 3), (4 << 30, 3), (100 << 20, 7), (64 << 30, 2)] {
        let levels_set = format!("levels={levels}");
        let method = asked(
            &["how=lsm", &levels_set, "write-rate=1M/s"],
            false,
            size_bytes,
        );
        let file_bytes = method
            .and_then(|method| method.file_bytes(size_bytes))
            .expect("files");
        assert!(
            file_bytes * (8 + levels) <= size_bytes,
            "{size_bytes} {levels}"
        );
        assert!(file_bytes.is_multiple_of(4096));
    }
}

#[test]
fn a_key_is_idle_where_its_way_does_nothing_with_it() {
    let idle = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        AskedDeletion::of(&settings).expect("settings").idle()
    };
    let need = "how = truncate or punch (--delete)".to_owned();
    assert_eq!(
        idle(&["chunk=1M", "size=1G", "parallel=2"]),
        [("chunk", need)]
    );
    let keys = |settings| -> Vec<_> { idle(settings).into_iter().map(|(key, _)| key).collect() };
    assert_eq!(
        keys(&["command=rm {}", "files=2", "parallel=2"]),
        ["parallel"]
    );
    assert_eq!(keys(&["how=none", "size=1G", "files=2"]), ["size", "files"]);
    assert_eq!(keys(&["how=lsm", "files=2", "levels=3"]), ["files"]);
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
