//! Punching holes from either end.

use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{SeekFrom, seek};

use super::*;

const CHUNK: u64 = 64 << 10;

fn punch(paths: Vec<PathBuf>, from: End, sleep: Duration) -> DeletionSpec {
    let chunk_bytes = CHUNK;
    of(
        Punch {
            from,
            chunk_bytes,
            sleep,
        },
        paths,
    )
}

/// Where the data begins, and how far it goes without a hole.
fn data_of(path: &Path) -> (u64, u64) {
    let file = File::open(path).expect("open");
    let begin = seek(file.as_fd(), SeekFrom::Data(0)).expect("some data");
    let end = seek(file.as_fd(), SeekFrom::Hole(begin)).expect("an end");
    (begin, end)
}

#[test]
fn all_of_it_goes() {
    for from in [End::Head, End::Tail] {
        let directory = tempfile::tempdir().expect("directory");
        // Neither a multiple of the chunk nor of the block.
        let paths = files(directory.path(), 2, 300_001);
        let outcome = run(punch(paths.clone(), from, Duration::ZERO));
        assert_eq!(outcome.first_error, None);
        assert_all_freed(outcome.progress, &paths, 600_002);
    }
}

#[test]
fn a_stop_midway_leaves_exactly_the_other_end() {
    for from in [End::Head, End::Tail] {
        let directory = tempfile::tempdir().expect("directory");
        let len = 20 * CHUNK + 5000;
        let path = files(directory.path(), 1, len as usize).remove(0);
        let spec = punch(vec![path.clone()], from, Duration::from_millis(100));
        let deletion = Deletion::start(spec, Clock::start()).expect("starts");
        wait_until(|| deletion.progress().freed_bytes > 3 * CHUNK);
        deletion.stop();
        let progress = deletion.finish(LONG).progress;
        assert_eq!((progress.files_done, progress.errors), (0, 0));

        let (begin, end) = data_of(&path);
        match from {
            End::Head => assert_eq!(end, len),
            End::Tail => assert_eq!(begin, 0),
        }
        let edge = match from {
            End::Head => begin,
            End::Tail => end,
        };
        assert!(edge.is_multiple_of(CHUNK) && (CHUNK..len).contains(&edge));
        // What is told is what is gone, up to what indexes the file.
        let left = path.metadata().expect("stat").blocks() * 512;
        let gone = progress.total_bytes - left;
        assert!(
            gone.abs_diff(progress.freed_bytes) <= 16 << 10,
            "{gone} bytes are gone: {progress:?}"
        );
        assert_eq!(
            path.metadata().expect("stat").len(),
            len,
            "its length stays"
        );
    }
}

#[test]
fn the_unlink_at_the_end_has_nothing_left_to_free() {
    let directory = tempfile::tempdir().expect("directory");
    let path = files(directory.path(), 1, 4 * CHUNK as usize + 1).remove(0);
    let held = File::open(&path).expect("open");
    run(punch(vec![path], End::Tail, Duration::ZERO));
    // Without a name, and still there as long as it is open.
    let stat = held.metadata().expect("stat");
    assert_eq!((stat.nlink(), stat.len()), (0, 4 * CHUNK + 1));
    assert_eq!(stat.blocks(), 0);
}

#[test]
fn a_file_that_has_another_name_keeps_its_data() {
    let directory = tempfile::tempdir().expect("directory");
    let first = files(directory.path(), 1, 8192).remove(0);
    let second = directory.path().join("second");
    std::fs::hard_link(&first, &second).expect("link");
    let outcome = run(punch(vec![second.clone()], End::Head, Duration::ZERO));
    assert_eq!((outcome.progress.freed_bytes, second.exists()), (0, false));
    assert_eq!(data_of(&first), (0, 8192));
}

#[test]
fn a_file_that_vanished_is_counted_and_the_others_go() {
    let directory = tempfile::tempdir().expect("directory");
    let paths = files(directory.path(), 3, 2 * CHUNK as usize);
    let spec = punch(paths.clone(), End::Head, Duration::from_millis(300));
    let deletion = Deletion::start(spec, Clock::start()).expect("starts");
    std::fs::remove_file(&paths[2]).expect("unlink");
    let outcome = deletion.finish(LONG);
    assert_eq!(
        (outcome.progress.errors, outcome.progress.files_done),
        (1, 2)
    );
    assert!(outcome.first_error.expect("told").contains("victim-2"));
}

#[test]
fn half_a_block_is_refused() {
    let directory = tempfile::tempdir().expect("directory");
    let odd = Punch {
        from: End::Head,
        chunk_bytes: 6000,
        sleep: Duration::ZERO,
    };
    let spec = of(odd, files(directory.path(), 1, 8192));
    let error = Deletion::start(spec, Clock::start()).expect_err("refused");
    assert!(error.to_string().contains("multiple of 4096"), "{error}");
}
