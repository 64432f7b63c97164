use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use pace::Policy;

use super::*;
use crate::event::{Event, Reply, silent};
use crate::throttle::CanaryFile;

/// A listener that stops at the report with this number.
fn until(mut left: u32) -> impl FnMut(Event<'_>) -> Reply {
    move |_| {
        left = left.saturating_sub(1);
        match left {
            0 => Reply::Stop,
            _ => Reply::Yes,
        }
    }
}

fn directory() -> (tempfile::TempDir, OwnedFd) {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let on = File::open(directory.path()).unwrap();
    (directory, on.into())
}

fn written(directory: &tempfile::TempDir, parts: &[(u64, usize)]) -> File {
    let path = directory.path().join("victim");
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .unwrap();
    for &(at, length) in parts {
        file.write_all_at(&vec![7; length], at).unwrap();
    }
    file.sync_all().unwrap();
    file
}

const MIB: usize = 1 << 20;

#[test]
fn a_sparse_file_is_emptied_and_its_debt_is_paid() {
    let (directory, on) = directory();
    let file = written(&directory, &[(0, 3 * MIB), (1 << 40, 5 * MIB)]);
    let allocated = file.metadata().unwrap().blocks() * 512;
    let work = Work::new(allocated, 2);
    let pacing = Pacing::new(Policy::Adaptive(pace::Goal::default()));
    let mut volume = Volume::start(on.as_fd(), &pacing, &work, &mut silent).unwrap();
    let mut reports = 0;
    let mut listener = |_: Event<'_>| {
        reports += 1;
        Reply::Yes
    };
    let emptied = volume.empty(&file, &mut listener).unwrap();
    assert_eq!(emptied.bytes, allocated);
    assert_eq!(file.metadata().unwrap().blocks(), 0);
    assert_eq!(file.metadata().unwrap().len(), 0);
    let paced = volume.is_paced();
    let summary = volume.finish(&mut listener).unwrap();
    assert_eq!(summary.freed, allocated);
    assert!(reports > 0, "it reports progress");
    if paced {
        assert!(emptied.calls > 1, "{emptied:?}");
    }
}

#[test]
fn small_files_are_freed_by_the_caller() {
    let (directory, on) = directory();
    let file = written(&directory, &[(0, 2 * MIB)]);
    let work = Work::new(2 * MIB as u64, 1);
    let pacing = Pacing {
        canary: CanaryFile::Without,
        ..Pacing::new(Policy::Adaptive(pace::Goal::default()))
    };
    let mut volume = Volume::start(on.as_fd(), &pacing, &work, &mut silent).unwrap();
    volume.allow(2 * MIB as u64, &mut silent).unwrap();
    file.set_len(0).unwrap();
    volume.freed(2 * MIB as u64, 0);
    let summary = volume.finish(&mut silent).unwrap();
    let canary = summary.observed.and_then(|observed| observed.canary);
    assert_eq!((summary.freed, canary), (2 * MIB as u64, None));
}

#[test]
fn it_stops_at_once() {
    let (directory, on) = directory();
    let file = written(&directory, &[(0, 8 * MIB)]);
    let work = Work::new(8 * MIB as u64, 1);
    // A byte for each second: it would take months.
    let pacing = Pacing::new(Policy::Rate {
        bytes_per_s: 1.0,
        piece: 4096,
    });
    let mut volume = Volume::start(on.as_fd(), &pacing, &work, &mut silent).unwrap();
    if !volume.is_paced() {
        println!("skipped: no discards are sent here");
        return;
    }
    let stopped = volume.empty(&file, &mut until(4)).unwrap_err();
    assert!(matches!(stopped, ReclaimError::Interrupted), "{stopped}");
    assert!(file.metadata().unwrap().len() > 0);
}

#[test]
fn what_the_caller_freed_is_committed_before_more_is_granted() {
    let (_directory, on) = directory();
    let work = Work::new(8 * MIB as u64, 1);
    let pacing = Pacing::new(Policy::Adaptive(pace::Goal::slowdown(1.0)));
    let mut volume = Volume::start(on.as_fd(), &pacing, &work, &mut silent).unwrap();
    volume.freed(4096, 0);
    assert!(volume.throttle.is_uncommitted());
    // As for a large file among small ones.
    volume.grant(4096, &mut silent).unwrap();
    assert!(!volume.throttle.is_uncommitted());
}

#[test]
fn small_files_share_a_piece_and_its_commit() {
    let (_directory, on) = directory();
    let work = Work::new(8 * MIB as u64, 1);
    let pacing = Pacing::new(Policy::Fixed {
        chunk: MIB as u64,
        sleep: Duration::ZERO,
    });
    let mut volume = Volume::start(on.as_fd(), &pacing, &work, &mut silent).unwrap();
    if !volume.is_paced() {
        println!("skipped: no discards are sent here");
        return;
    }
    for number in 1..=100 {
        volume.allow(4096, &mut silent).unwrap();
        volume.freed(4096, 0);
        assert_eq!(volume.piece.left, MIB as u64 - 4096 * number, "{number}");
    }
    // A file that fits into the rest goes whole; one that is larger than any piece doesn't.
    assert!(volume.fits(64 << 10, &mut silent).unwrap());
    assert!(!volume.fits(2 * MIB as u64, &mut silent).unwrap());
}
