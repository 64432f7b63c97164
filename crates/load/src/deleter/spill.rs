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
use std::num::NonZeroU32;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::progress::Progress;
use super::workshop::Workshop;
use super::{Method, spawn};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static METHOD: Method = Method {
    name: "spill",
    about: "create, write and unlink temporary files again and again, as sorts and joins do",
    continuous: true,
};

/// How it is done.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) dir: PathBuf,
    pub(super) file_bytes: u64,
    pub(super) parallel: NonZeroU32,
    pub(super) pause: Duration,
    pub(super) run_for: Duration,
    pub(super) seed: u64,
}

/// Bytes whose writeback goes on while the next are written.
const PART: u64 = 8 << 20;

pub(super) fn start(way: Way, clock: Clock) -> Result<Arc<Progress>, LoadError> {
    let threads = way.parallel.get();
    let progress = Progress::new(clock, threads as usize, 0, 0);
    // Held until all are started, so that the first doesn't end the deletion alone.
    let _all_started = progress.hold();
    for lane in 0..threads {
        let way = way.clone();
        let started = spawn(&progress, move |progress, call| {
            let seed = way.seed.wrapping_add(u64::from(lane));
            spill(&way, lane, Workshop::new(progress, call, way.run_for, seed));
        });
        if let Err(error) = started {
            // Those that were started have nobody else to tell them.
            progress.stop();
            return Err(error);
        }
    }
    Ok(progress)
}

fn spill(way: &Way, lane: u32, mut shop: Workshop<'_>) {
    let mut number = 0u64;
    while shop.is_open() {
        let path = way.dir.join(format!("spill-{lane}-{number}"));
        number += 1;
        if let Some(bytes) = make(way.file_bytes, &path, &mut shop) {
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
