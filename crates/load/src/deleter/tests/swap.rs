//! The swap at the end of an online schema change. That it outlasts a crash is
//! tested on a file system of its own, in `tests/ways_of_deleting.rs`.

use super::*;

fn replacement(directory: &Path, n: usize) -> PathBuf {
    let path = directory.join(format!("new-{n}"));
    std::fs::write(&path, format!("the new table {n}")).expect("write");
    path
}

/// Each pair is a table and its replacement.
fn swap(pairs: Vec<(PathBuf, PathBuf)>) -> DeletionSpec {
    let (paths, replacements) = pairs.into_iter().unzip();
    let mut spec = of(Swap, paths);
    spec.files.replacements = replacements;
    spec
}

#[test]
fn the_replacement_has_the_tables_name() {
    let directory = tempfile::tempdir().expect("directory");
    let tables = files(directory.path(), 2, 100_000);
    let pairs = tables.iter().enumerate();
    let pairs: Vec<_> = pairs
        .map(|(i, table)| (table.clone(), replacement(directory.path(), i)))
        .collect();
    let progress = run(swap(pairs)).progress;
    assert_eq!((progress.files_done, progress.errors), (2, 0));
    assert_eq!(progress.freed_bytes, progress.total_bytes);
    assert!(progress.total_bytes >= 200_000);
    assert_eq!(names(directory.path()), ["victim-0", "victim-1"]);
    for (i, table) in tables.iter().enumerate() {
        let text = std::fs::read_to_string(table).expect("read");
        assert_eq!(text, format!("the new table {i}"));
    }
}

#[test]
fn a_replacement_that_is_not_there_is_an_error_at_once() {
    let directory = tempfile::tempdir().expect("directory");
    let table = files(directory.path(), 1, 8192).remove(0);
    let spec = swap(vec![(table, directory.path().join("new-0"))]);
    let error = Deletion::start(spec, Clock::start()).expect_err("missing");
    assert!(error.to_string().contains("new-0"), "{error}");
    assert_eq!(names(directory.path()), ["victim-0"]);
}

#[test]
fn nobody_elses_file_is_overwritten_and_the_other_tables_go() {
    let directory = tempfile::tempdir().expect("directory");
    let tables = files(directory.path(), 2, 8192);
    let new = [0, 1].map(|n| replacement(directory.path(), n));
    let theirs = directory.path().join("victim-0.old");
    std::fs::write(&theirs, "someone's").expect("write");
    let outcome = run(swap(tables.iter().cloned().zip(new).collect()));
    assert_eq!(
        (outcome.progress.errors, outcome.progress.files_done),
        (1, 1)
    );
    let text = outcome.first_error.expect("told");
    assert!(
        text.contains("victim-0") && text.contains("aside"),
        "{text}"
    );
    assert_eq!(
        names(directory.path()),
        ["new-0", "victim-0", "victim-0.old", "victim-1"]
    );
    let kept = std::fs::read_to_string(theirs).expect("read");
    assert_eq!(kept, "someone's");
    assert_eq!(std::fs::read(&tables[0]).expect("read").len(), 8192);
}

#[test]
fn what_fails_midway_is_undone() {
    let directory = tempfile::tempdir().expect("directory");
    let table = files(directory.path(), 1, 8192).remove(0);
    // No table can be replaced by a directory that holds it: that rename fails.
    let spec = swap(vec![(table.clone(), directory.path().to_owned())]);
    let outcome = run(spec);
    assert_eq!(outcome.progress.errors, 1);
    assert!(outcome.first_error.expect("told").contains("replacement"));
    assert_eq!(names(directory.path()), ["victim-0"]);
    assert_eq!(std::fs::read(&table).expect("read").len(), 8192);
}
