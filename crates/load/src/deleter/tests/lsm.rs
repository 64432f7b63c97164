//! An LSM tree on a disk. How it compacts is tested beside it, and that it
//! keeps to its space in `tests/ways_of_deleting.rs`.

use super::*;

const MIB: u64 = 1 << 20;

/// Files of 256 KiB.
const FILE: u64 = 256 << 10;

struct Asked {
    rate_bytes_per_s: u64,
    space_bytes: u64,
    run_for: Duration,
}

fn lsm(dir: &Path, asked: Asked) -> DeletionSpec {
    DeletionSpec {
        method: Method::Lsm(Lsm {
            levels: 3,
            file_bytes: FILE,
            rate_bytes_per_s: asked.rate_bytes_per_s,
            run_for: asked.run_for,
        }),
        files: Files {
            folder: dir.to_owned(),
            size_bytes: asked.space_bytes,
            seed: 1,
            ..Files::default()
        },
    }
}

#[test]
fn the_rate_is_what_was_asked_for() {
    let directory = tempfile::tempdir_in("/dev/shm").expect("directory");
    let rate = 32 * MIB;
    let outcome = run(lsm(
        directory.path(),
        Asked {
            rate_bytes_per_s: rate,
            space_bytes: 8 * MIB,
            run_for: Duration::from_secs(3),
        },
    ));
    let progress = outcome.progress;
    let took = progress.returned_at.zip(progress.began_at);
    let seconds = took.map_or(0.0, |(end, begin)| end.since(begin).as_secs_f64());
    let measured = progress.written_bytes as f64 / seconds;
    let share = measured / rate as f64;
    assert!((0.5..1.2).contains(&share), "{share} of what was asked for");
}

#[test]
fn what_it_wrote_is_either_freed_or_there_and_its_tables_stay() {
    let directory = tempfile::tempdir_in("/dev/shm").expect("directory");
    let space = 8 * MIB;
    let outcome = run(lsm(
        directory.path(),
        Asked {
            rate_bytes_per_s: 400 * MIB,
            space_bytes: space,
            run_for: Duration::from_millis(700),
        },
    ));
    let progress = outcome.progress;
    assert_eq!(outcome.first_error, None);
    assert_eq!((progress.total_bytes, progress.files_total), (0, 0));
    let left = names(directory.path());
    assert!(left.iter().all(|name| name.ends_with(".sst")), "{left:?}");
    assert!(!left.is_empty() && left.len() as u64 * FILE <= space);
    let there = left.len() as u64 * FILE;
    // The last was perhaps not written whole; its space was reserved whole.
    let made = progress.freed_bytes + there;
    assert!(
        (progress.written_bytes..=progress.written_bytes + FILE).contains(&made),
        "{made}: {progress:?}"
    );
    assert!(progress.freed_bytes > space, "compaction after compaction");
}

#[test]
fn a_stop_leaves_nothing() {
    let directory = tempfile::tempdir().expect("directory");
    let spec = lsm(
        directory.path(),
        Asked {
            rate_bytes_per_s: 100 * MIB,
            space_bytes: 8 * MIB,
            run_for: Duration::MAX,
        },
    );
    assert!(spec.method.is_continuous());
    let deletion = Deletion::start(spec, Clock::start()).expect("starts");
    wait_until(|| deletion.progress().files_done > 8);
    assert!(names(directory.path()).len() > 2);
    deletion.stop();
    let outcome = deletion.finish(LONG);
    assert!(!outcome.abandoned);
    assert_eq!(outcome.first_error, None);
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn tables_that_vanished_are_counted_and_it_goes_on() {
    let directory = tempfile::tempdir_in("/dev/shm").expect("directory");
    let asked = Asked {
        rate_bytes_per_s: 100 * MIB,
        space_bytes: 8 * MIB,
        run_for: Duration::MAX,
    };
    let deletion = Deletion::start(lsm(directory.path(), asked), Clock::start()).expect("starts");
    wait_until(|| names(directory.path()).len() > 6);
    for name in names(directory.path()) {
        let _ = std::fs::remove_file(directory.path().join(name));
    }
    wait_until(|| deletion.progress().errors >= 3);
    let done = deletion.progress().files_done;
    wait_until(|| deletion.progress().files_done > done + 10);
    deletion.stop();
    assert!(
        deletion
            .finish(LONG)
            .first_error
            .expect("told")
            .contains(".sst")
    );
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let directory = tempfile::tempdir().expect("directory");
    let good = || {
        lsm(
            directory.path(),
            Asked {
                rate_bytes_per_s: MIB,
                space_bytes: 11 * FILE,
                run_for: LONG,
            },
        )
    };
    let refusal = |change: fn(&mut DeletionSpec, &mut Lsm)| {
        let mut spec = good();
        let Method::Lsm(mut lsm) = spec.method.clone() else {
            panic!("{spec:?}")
        };
        change(&mut spec, &mut lsm);
        spec.method = lsm.into();
        spec.method
            .check(&spec.files)
            .expect_err("refused without a look");
        let refused = Deletion::start(spec, Clock::start());
        refused.expect_err("refused").to_string()
    };
    good().method.check(&good().files).expect("can be");
    let told = [
        refusal(|spec, _| spec.files.size_bytes -= 1),
        refusal(|_, lsm| lsm.file_bytes = 5000),
        refusal(|_, lsm| lsm.levels = 8),
        refusal(|_, lsm| lsm.rate_bytes_per_s = 0),
    ];
    let words = ["at least 2883584", "multiple of 4096", "2 to 7", "rate"];
    for (told, word) in told.iter().zip(words) {
        assert!(told.contains(word), "{told}");
    }
}
