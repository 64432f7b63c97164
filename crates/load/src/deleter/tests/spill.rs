//! Temporary files.

use super::*;

fn spill(dir: &Path, file_bytes: u64, parallel: u32, run_for: Duration) -> DeletionSpec {
    let pause = Duration::from_millis(1);
    DeletionSpec {
        method: Method::Spill(Spill {
            parallel,
            pause,
            run_for,
        }),
        files: Files {
            folder: dir.to_owned(),
            file_bytes,
            seed: 1,
            ..Files::default()
        },
    }
}

#[test]
fn it_makes_and_drops_until_its_time_is_over() {
    let directory = tempfile::tempdir_in("/dev/shm").expect("directory");
    let file_bytes = (9 << 20) + 1;
    let spec = spill(directory.path(), file_bytes, 2, Duration::from_millis(400));
    assert!(spec.method.is_continuous());
    let outcome = run(spec);
    let progress = outcome.progress;
    assert_eq!(outcome.first_error, None);
    assert_eq!((progress.total_bytes, progress.files_total), (0, 0));
    assert!(progress.files_done >= 2, "{progress:?}");
    assert!(progress.written_bytes >= file_bytes);
    // What had reached the disk was freed; of the last two some hadn't.
    let whole = (progress.files_done - 2) * file_bytes;
    assert!(progress.freed_bytes >= whole, "{progress:?}");
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn a_stop_in_the_middle_of_a_file_leaves_nothing() {
    let directory = tempfile::tempdir_in("/dev/shm").expect("directory");
    // Longer than anybody waits.
    let spec = spill(directory.path(), 1 << 40, 2, Duration::MAX);
    let deletion = Deletion::start(spec, Clock::start()).expect("starts");
    let both = ["spill-0-0", "spill-1-0"];
    wait_until(|| deletion.progress().written_bytes > 3 << 20 && names(directory.path()) == both);
    deletion.stop();
    let outcome = deletion.finish(LONG);
    assert!(!outcome.abandoned);
    assert_eq!(outcome.progress.errors, 0);
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn a_file_that_vanished_is_counted_and_it_goes_on() {
    let directory = tempfile::tempdir_in("/dev/shm").expect("directory");
    let spec = spill(directory.path(), 4 << 20, 1, Duration::MAX);
    let deletion = Deletion::start(spec, Clock::start()).expect("starts");
    wait_until(|| {
        for name in names(directory.path()) {
            let _ = std::fs::remove_file(directory.path().join(name));
        }
        deletion.progress().errors > 0
    });
    let done = deletion.progress().files_done;
    wait_until(|| deletion.progress().files_done > done + 1);
    deletion.stop();
    assert!(
        deletion
            .finish(LONG)
            .first_error
            .expect("told")
            .contains("spill-0-")
    );
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn a_directory_that_is_not_there_is_counted_without_haste() {
    let missing = Path::new("/nonexistent");
    let outcome = run(spill(missing, 4096, 1, Duration::from_millis(500)));
    assert!(outcome.first_error.expect("told").contains("/nonexistent"));
    // At 0, 100 and 300 ms.
    assert!((1..=3).contains(&outcome.progress.errors));
}

#[test]
fn files_of_nothing_and_no_time_are_refused() {
    let directory = tempfile::tempdir_in("/dev/shm").expect("directory");
    for (bytes, time) in [(0, LONG), (4096, Duration::ZERO)] {
        let spec = spill(directory.path(), bytes, 1, time);
        Deletion::start(spec, Clock::start()).expect_err("refused");
    }
}
