//! Temporary files of sorts and joins: create, write, unlink, again and again.
//!
//! Data that is unlinked before the kernel wrote it back never had a block on the device (delayed
//! allocation). Nothing would then be freed and discarded. A spill happens because it is larger
//! than memory, so its data does reach the device. Ours may be smaller: each part is written back
//! on purpose while the next is written, by `sync_file_range`. `fsync` would do as well, but it
//! forces a commit of the journal, which no real spill asks for and which would decide when the
//! discards come.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::progress::Progress;
use super::spawn;
use super::spec::{Files, How, Way, at_least_one, seconds, whole_blocks};
use super::workshop::{self, Workshop};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static HOW: How = How {
    name: "spill",
    about: "create, write and unlink temporary files again and again, for a time",
    keys: &["size", "parallel", "sleep", "no-sync", "for"],
    of: |asked, _| {
        Ok(Spill {
            parallel: asked.parallel(),
            pause: asked.sleep(),
            run_for: asked.run_for(),
        }
        .into())
    },
    has_folder: true,
    has_files: false,
    ..How::FILES
};

/// A sort's temporary files, named `spill-THREAD-NUMBER`: create, write, unlink, again and again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spill {
    /// Files at a time, each of a thread of its own; together they are as large as the deletion's
    /// size.
    pub parallel: u32,
    /// Pause after each.
    #[serde(serialize_with = "seconds", rename = "pause_s")]
    pub pause: Duration,
    /// For how long.
    #[serde(serialize_with = "seconds", rename = "run_for_s")]
    pub run_for: Duration,
}

/// Bytes whose writeback goes on while the next are written.
const PART: u64 = 8 << 20;

impl Way for Spill {
    fn run_for(&self) -> Option<Duration> {
        Some(self.run_for)
    }

    fn file_bytes(&self, size_bytes: u64) -> Option<u64> {
        Some(whole_blocks(size_bytes / u64::from(self.parallel.max(1))))
    }

    fn check(&self, files: &Files) -> Result<(), LoadError> {
        at_least_one(self.parallel.into())?;
        workshop::check(files.file_bytes, self.run_for)
    }

    fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        let progress = Progress::new(clock, self.parallel as usize, 0, 0);
        spawn(progress, move |progress, call| {
            let seed = files.seed.wrapping_add(call.slot as u64);
            let shop = Workshop::new(progress, call, self.run_for, seed);
            spill(&self, &files, call.slot, shop);
        })
    }
}

fn spill(way: &Spill, files: &Files, lane: usize, mut shop: Workshop<'_>) {
    let mut number = 0u64;
    while shop.is_open() {
        let path = files.folder.join(format!("spill-{lane}-{number}"));
        number += 1;
        if let Some(bytes) = make(files.file_bytes, &path, &mut shop) {
            shop.remove(&path, bytes);
            shop.pause(way.pause);
        }
    }
}

fn make(len: u64, path: &Path, shop: &mut Workshop<'_>) -> Option<u64> {
    shop.make(path, |shop, file| {
        let (mut written, mut begun, mut on_device) = (0, 0, 0);
        while written < len && shop.is_open() {
            written = shop.write(file, written, len)?;
            if written - begun >= PART || written == len {
                shop.call(|| write_back(file, begun..written, Writeback::Begin))?;
                shop.call(|| write_back(file, on_device..begun, Writeback::Finish))?;
                (on_device, begun) = (begun, written);
            }
        }
        if written < len {
            // Told to end: it goes before it gets there.
            return Ok(());
        }
        shop.call(|| write_back(file, on_device..len, Writeback::Finish))
    })
}

#[derive(Debug, Clone, Copy)]
enum Writeback {
    Begin,
    Finish,
}

fn write_back(file: &File, part: std::ops::Range<u64>, how: Writeback) -> io::Result<()> {
    if part.is_empty() {
        return Ok(());
    }
    let flags = match how {
        Writeback::Begin => libc::SYNC_FILE_RANGE_WRITE,
        Writeback::Finish => {
            libc::SYNC_FILE_RANGE_WAIT_BEFORE
                | libc::SYNC_FILE_RANGE_WRITE
                | libc::SYNC_FILE_RANGE_WAIT_AFTER
        }
    };
    let (offset, len) = (part.start as i64, (part.end - part.start) as i64);
    // SAFETY: a system call without pointers.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) };
    match io::Error::last_os_error() {
        _ if result == 0 => Ok(()),
        // Not every kernel and sandbox has it.
        error if error.raw_os_error() == Some(libc::ENOSYS) => file.sync_data(),
        error => Err(error),
    }
}
