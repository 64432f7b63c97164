//! `syncfs`, `sync`: what a package manager, a backup or an impatient person does.
//!
//! Each operation makes the call twice in a row and has two series, `first` and `again`. The second
//! call should have next to nothing to wait for, since the first has just returned. "Issue with my
//! SSD + btrfs + discard" (2013) measured 7.0 s and then 9.1 s for one file system, and 19.2 s and
//! then 16.9 s for all of them.
//!
//! The actor writes nothing: it waits for data that others wrote or freed. So use it seldom; enough
//! gathers in a second.

use std::io;

use rustix::io::retry_on_intr;

use super::folder::Folder;
use super::{Kind, Stopwatch, Task};
use record::LoopKind;

const ONCE_A_SECOND: LoopKind = LoopKind::evenly(1.0);

/// `syncfs`, twice.
pub(super) static SYNCFS: Kind = Kind {
    name: "syncfs",
    about: "syncs the file system twice in a row; the second should take next to no time",
    series: &["first", "again"],
    default_block_bytes: 0,
    default_size_bytes: 0,
    default_arrival: ONCE_A_SECOND,
    start: |spec, _, _, _| {
        let folder = Folder::open(&spec.dir)?;
        Ok(Box::new(Twice(move || {
            Ok(retry_on_intr(|| rustix::fs::syncfs(&folder))?)
        })))
    },
};

/// `sync`, twice. It writes back every file system of the machine, so it slows down all its users,
/// and waits for drives that aren't tested.
pub(super) static SYNC: Kind = Kind {
    name: "sync",
    about: "syncs all file systems of the machine twice in a row; the second should take next to no time",
    series: &["first", "again"],
    default_block_bytes: 0,
    default_size_bytes: 0,
    default_arrival: ONCE_A_SECOND,
    start: |_, _, _, _| {
        Ok(Box::new(Twice(|| {
            rustix::fs::sync();
            Ok(())
        })))
    },
};

struct Twice<F>(F);

impl<F: FnMut() -> io::Result<()> + Send> Task for Twice<F> {
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()> {
        let first = watch.time(0, &mut self.0);
        let again = watch.time(1, &mut self.0);
        first.and(again)
    }
}
