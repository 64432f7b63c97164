//! A log purge.

use super::*;

fn purge(paths: Vec<PathBuf>, at_once: u32, every: Duration) -> DeletionSpec {
    of(Purge { at_once, every }, paths)
}

const EVERY: Duration = Duration::from_millis(100);

#[test]
fn the_oldest_go_first_a_few_at_once() {
    assert!((0..3).any(|_| waits_are_seen()), "never looked often");
}

/// Not by whoever has no turn for as long as one is.
fn waits_are_seen() -> bool {
    let directory = tempfile::tempdir().expect("directory");
    let mut paths = files(directory.path(), 7, 8192);
    // The order is that of the list, not that of the names.
    paths.reverse();
    let spec = purge(paths.clone(), 3, EVERY);
    let deletion = Deletion::start(spec, Clock::start()).expect("starts");
    let mut seen = vec![false; 8];
    let mut in_order = true;
    let (mut looked, mut longest) = (Instant::now(), Duration::ZERO);
    wait_until(|| {
        longest = longest.max(looked.elapsed());
        looked = Instant::now();
        let there: Vec<bool> = paths.iter().map(|path| path.exists()).collect();
        // Looked at from the oldest on: one seen may only be older than those gone.
        let gone = there.iter().take_while(|there| !**there).count();
        seen[gone] = true;
        in_order &= there[gone..].iter().all(|there| *there);
        deletion.is_done()
    });
    let outcome = deletion.finish(LONG);
    assert_all_freed(outcome.progress, &paths, 7 * 8192);
    assert!(in_order, "a newer one went before an older one");
    let waited = seen[3] && seen[6];
    let why = format!("no wait between purges in {longest:?}: {seen:?}");
    assert!(waited || longest >= EVERY, "{why}");
    let progress = outcome.progress;
    let took = progress.returned_at.zip(progress.began_at);
    let took = took.map(|(end, begin)| end.since(begin).as_secs_f64());
    assert!(took.expect("done") >= 0.2, "two waits: {took:?}");
    waited
}

#[test]
fn a_stop_between_purges_leaves_the_rest_at_once() {
    let directory = tempfile::tempdir().expect("directory");
    let paths = files(directory.path(), 4, 8192);
    let spec = purge(paths.clone(), 1, Duration::from_secs(3600));
    let deletion = Deletion::start(spec, Clock::start()).expect("starts");
    wait_until(|| deletion.progress().files_done == 1);
    deletion.stop();
    let outcome = deletion.finish(LONG);
    assert!(!outcome.abandoned);
    assert_eq!(
        names(directory.path()),
        ["victim-1", "victim-2", "victim-3"]
    );
}

#[test]
fn one_that_vanished_is_counted_and_the_others_go() {
    let directory = tempfile::tempdir().expect("directory");
    let paths = files(directory.path(), 3, 8192);
    let spec = purge(paths.clone(), 1, Duration::from_secs(1));
    let deletion = Deletion::start(spec, Clock::start()).expect("starts");
    wait_until(|| deletion.progress().files_done >= 1);
    std::fs::remove_file(&paths[2]).expect("unlink");
    let outcome = deletion.finish(LONG);
    assert_eq!(
        (outcome.progress.errors, outcome.progress.files_done),
        (1, 2)
    );
    assert!(outcome.first_error.expect("told").contains("victim-2"));
}
