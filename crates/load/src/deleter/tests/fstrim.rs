//! `FITRIM` where it can't be. Where it can is in `tests/ways_of_deleting.rs`.

use super::*;

fn fstrim(dir: PathBuf) -> DeletionSpec {
    let mut spec = of(Fstrim, Vec::new());
    spec.files.dir = dir;
    spec
}

#[test]
fn a_file_system_that_cannot_is_told_in_words() {
    // Memory has nothing to trim, and says so to root and others alike.
    let dir = PathBuf::from("/dev/shm");
    let outcome = run(fstrim(dir));
    let progress = outcome.progress;
    assert_eq!((progress.errors, progress.freed_bytes), (1, 0));
    let text = outcome.first_error.expect("told");
    assert!(text.contains("/dev/shm"), "{text}");
    assert!(text.contains("can't be trimmed; choose"), "{text}");
}

#[test]
fn a_directory_that_is_not_there_is_an_error_at_once() {
    let spec = fstrim("/nonexistent".into());
    let error = Deletion::start(spec, Clock::start()).expect_err("missing");
    assert!(error.to_string().contains("/nonexistent"), "{error}");
}
