//! Freeing on file systems of its own: what each does about discards, and that
//! the debt is known to be paid.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;

use pace::{Goal, Policy, Work};
use reclaim::throttle::{Pacing, Summary};
use reclaim::{Emptied, Event, Reply, Volume, silent};
use testkit::gate::{self, lacks};
use testkit::loop_fs::{Fs, LoopFs, On, SMALL};

const MIB: u64 = 1 << 20;
const BYTES: u64 = 48 * MIB;

/// A file system in memory.
fn made(kind: Fs, options: &str) -> LoopFs {
    LoopFs::new(kind, options, SMALL, On::Tmpfs)
}

/// A file with a hole in it, on disk.
fn victim(fs: &LoopFs) -> File {
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(fs.path().join("victim"))
        .unwrap();
    // XFS reserves space for files that grow.
    file.set_len((1 << 30) + BYTES).unwrap();
    let mut block = vec![0; MIB as usize];
    for i in 0..BYTES / MIB {
        block.fill(i as u8 + 1);
        let hole = if i < 16 { 0 } else { 1 << 30 };
        file.write_all_at(&block, hole + i * MIB).unwrap();
    }
    file.sync_all().unwrap();
    rustix::fs::syncfs(File::open(fs.path()).unwrap()).unwrap();
    file
}

/// Empties it at half of the throughput, so that tests don't take long.
fn empty(fs: &LoopFs, file: &File) -> (Emptied, Summary, Vec<String>) {
    let allocated = file.metadata().unwrap().blocks() * 512;
    let on = File::open(fs.path()).unwrap();
    let pacing = Pacing::new(Policy::Adaptive(Goal::slowdown(0.5)));
    let work = Work::new(allocated, 2);
    let mut notes = Vec::new();
    let mut listener = |event: Event<'_>| {
        if let Event::Note(sentence) = event {
            notes.push(sentence.to_string());
        }
        Reply::Yes
    };
    let mut volume = Volume::start(on.as_fd(), &pacing, &work, &mut listener).unwrap();
    let emptied = volume.empty(file, &mut silent).unwrap();
    assert_eq!(file.metadata().unwrap().blocks(), 0);
    let summary = volume.finish(&mut silent).unwrap();
    assert_eq!((emptied.bytes, summary.freed), (allocated, allocated));
    (emptied, summary, notes)
}

/// All that was freed was discarded before the volume finished.
fn is_paid(what: &str, emptied: &Emptied, summary: &Summary) {
    assert!(
        summary.answered && summary.written_off == 0,
        "{what}: {summary:?}"
    );
    assert!(summary.discarded >= BYTES / 100 * 98, "{what}: {summary:?}");
    assert!(
        emptied.calls > 1 && emptied.exempt == 0,
        "{what}: {emptied:?}"
    );
}

#[test]
fn ext4_with_a_journal_and_without() {
    if lacks(Fs::Ext4.needs()) {
        return;
    }
    let _turn = gate::beside();
    let fs = made(Fs::Ext4, "discard");
    let (emptied, summary, _) = empty(&fs, &victim(&fs));
    is_paid("with a journal", &emptied, &summary);
    drop(fs);
    let fs = made(Fs::Ext4NoJournal, "discard");
    let (emptied, summary, _) = empty(&fs, &victim(&fs));
    is_paid("without a journal", &emptied, &summary);
}

#[test]
fn xfs_and_what_it_shares() {
    if lacks(Fs::Xfs.needs()) {
        return;
    }
    let _turn = gate::beside();
    let fs = made(Fs::Xfs, "discard");
    let (emptied, summary, _) = empty(&fs, &victim(&fs));
    is_paid("XFS", &emptied, &summary);
    std::fs::remove_file(fs.path().join("victim")).unwrap();
    let file = victim(&fs);
    let copied = Command::new("cp")
        .arg("--reflink=always")
        .args([fs.path().join("victim"), fs.path().join("copy")])
        .status()
        .unwrap();
    if !copied.success() {
        return gate::skip("need an XFS that shares extents");
    }
    let (emptied, summary, _) = empty(&fs, &file);
    assert_eq!(emptied.exempt, emptied.bytes, "{emptied:?}");
    assert_eq!(
        (summary.written_off, summary.discarded / BYTES),
        (0, 0),
        "{summary:?}"
    );
}

#[test]
fn btrfs_sync_and_async() {
    if lacks(Fs::Btrfs.needs()) {
        return;
    }
    let _turn = gate::beside();
    btrfs_sync();
    // Two minutes of grace: nobody waits for that.
    let fs = made(Fs::Btrfs, "discard=async");
    let (_, summary, warnings) = empty(&fs, &victim(&fs));
    assert!(summary.discarded < BYTES / 2, "{summary:?}");
    assert!(
        warnings.iter().any(|note| note.contains("discard=async")),
        "{warnings:?}"
    );
}

/// Frees and checks on btrfs with `discard=sync`. A kernel thread removes empty block groups when
/// it gets its turn.
fn btrfs_sync() {
    let check = |so: bool, summary: &Summary| assert!(so, "{summary:?}");
    let fs = made(Fs::Btrfs, "discard=sync");
    let (emptied, summary, _) = empty(&fs, &victim(&fs));
    check(summary.answered && summary.written_off == 0, &summary);
    check(summary.discarded >= BYTES / 100 * 98, &summary);
    assert!(emptied.calls >= 1);
    // An extent that was allocated before it was written is up to 256 MiB long, and it is
    // discarded when all of it is free: nobody waits for that in between.
    let file = File::create_new(fs.path().join("allocated")).unwrap();
    let flags = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&file, flags, 0, 512 * MIB).unwrap();
    let block = vec![7; MIB as usize];
    for i in 0..32 {
        file.write_all_at(&block, (i * 16 + 3) * MIB).unwrap();
    }
    file.sync_all().unwrap();
    let (emptied, summary, _) = empty(&fs, &file);
    assert_eq!(emptied.exempt, 0, "{emptied:?}");
    check(summary.answered && summary.written_off == 0, &summary);
    check(summary.discarded >= 500 * MIB, &summary);
    // Nothing of it comes later: block groups that are empty now were discarded, too.
    check(summary.discarded_twice >= 200 * MIB, &summary);
    let discards = || fs.device().discards().1;
    let ended = discards();
    for _ in 0..3 {
        linux::btrfs::sync_and_clean(File::open(fs.path()).unwrap()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    check(discards() < ended + 16 * MIB, &summary);
}

/// A file of a tmpfs stands for one of a FAT.
#[test]
fn where_extents_cannot_be_told_it_is_freed_in_pieces_all_the_same() {
    if lacks(Fs::Ext4.needs()) {
        return;
    }
    let _turn = gate::beside();
    let fs = made(Fs::Ext4, "discard");
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    file.write_all_at(&vec![7; 16 * MIB as usize], 0).unwrap();
    let allocated = file.metadata().unwrap().blocks() * 512;
    let on = File::open(fs.path()).unwrap();
    let pacing = Pacing::new(Policy::Rate {
        bytes_per_s: 1e9,
        piece: 4 * MIB,
    });
    let work = Work::new(allocated, 1);
    let mut volume = Volume::start(on.as_fd(), &pacing, &work, &mut silent).unwrap();
    let emptied = volume.empty(&file, &mut silent).unwrap();
    assert_eq!(emptied.bytes, allocated);
    assert!(emptied.calls >= 4, "{emptied:?}");
    assert_eq!(file.metadata().unwrap().blocks(), 0);
}

#[test]
fn nothing_is_paced_where_no_discards_are_sent() {
    if lacks(Fs::Ext4.needs()) {
        return;
    }
    let _turn = gate::beside();
    let fs = made(Fs::Ext4, "nodiscard");
    let (_, summary, warnings) = empty(&fs, &victim(&fs));
    assert!(
        !summary.answered && summary.discarded == 0 && summary.observed.is_none(),
        "{summary:?}"
    );
    assert!(
        warnings.iter().any(|note| note.contains("without discard")),
        "{warnings:?}"
    );
}
