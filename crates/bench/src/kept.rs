//! The foreground's file that a run may leave behind for the next.
//!
//! It ends in a page of ours that the foreground never touches, so that
//! `foreground.reuse` can't overwrite another program's file of that name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const NAME: &str = ".trimbench-foreground";
const PAGE: usize = 4096;
const MARK: &[u8] = b"trimbench foreground file, version 1\n";

/// Where it lies.
pub(crate) fn path(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

/// Bytes the foreground may use of the one in `directory`; `None` when there is
/// none, or it isn't ours.
pub(crate) fn size(directory: &Path) -> Option<u64> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc_nofollow())
        .open(path(directory))
        .ok()?;
    let metadata = file.metadata().ok()?;
    let usable = metadata.len().checked_sub(PAGE as u64)?;
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let mut mark = [0; MARK.len()];
    file.read_exact_at(&mut mark, usable).ok()?;
    (mark == MARK).then_some(usable)
}

/// Marks a file of which the foreground uses the first `usable` bytes as ours.
pub(crate) fn mark(file: &File, usable: u64) -> io::Result<()> {
    let mut page = [0; PAGE];
    page[..MARK.len()].copy_from_slice(MARK);
    file.write_all_at(&page, usable)?;
    file.sync_all()
}

fn libc_nofollow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits() as i32
}
