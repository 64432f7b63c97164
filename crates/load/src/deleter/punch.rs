//! Punching holes into files until they are empty, then unlinking them.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::progress::{Call, Progress};
use super::victim::{Failed, Victim, total_bytes};
use super::{End, Method, refuse, spawn};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static METHOD: Method = Method {
    name: "punch",
    about: "punch holes into each file from its head or tail in chunks with a pause, then unlink it",
    continuous: false,
};

/// How it is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) from: End,
    pub(super) chunk_bytes: NonZeroU64,
    pub(super) sleep: Duration,
}

/// The usual block: a hole that ends inside of one frees nothing of it.
const BLOCK: u64 = 4096;

/// No file system's block is larger.
const LAST: u64 = 1 << 20;

pub(super) fn check(chunk_bytes: u64) -> Result<(), LoadError> {
    if !chunk_bytes.is_multiple_of(BLOCK) || i64::try_from(chunk_bytes).is_err() {
        return Err(refuse(format!(
            "can't punch holes of {chunk_bytes} bytes: give a multiple of {BLOCK}"
        )));
    }
    Ok(())
}

pub(super) fn start(
    victims: Vec<Victim>,
    way: Way,
    clock: Clock,
) -> Result<Arc<Progress>, LoadError> {
    let progress = Progress::new(clock, 1, total_bytes(&victims), victims.len() as u64);
    spawn(&progress, move |progress, call| {
        for victim in &victims {
            if progress.stopping() {
                return;
            }
            if let Err((what, error)) = empty(victim, way, progress, call) {
                progress.fail(&victim.path, what, &error);
            }
        }
    })?;
    Ok(progress)
}

fn empty(victim: &Victim, way: Way, progress: &Progress, call: Call<'_>) -> Result<(), Failed> {
    let mut left_bytes = victim.bytes;
    // A name beside which others stay: the file must keep its content.
    if victim.bytes > 0 {
        let (file, len) = victim.open()?;
        let chunk = way.chunk_bytes.get();
        let chunks = len.div_ceil(chunk);
        for n in 1..=chunks {
            if progress.stopping() {
                return Ok(());
            }
            // On the same grid from either end, so that no block is in two holes.
            let (index, still_there) = match way.from {
                End::Head => (n - 1, len.saturating_sub(n * chunk)),
                End::Tail => (chunks - n, (chunks - n) * chunk),
            };
            let keep = victim.allocated_in(still_there, len);
            let frees = left_bytes.saturating_sub(keep);
            left_bytes -= frees;
            // Beyond the end, so that the file's last block goes with it.
            let offset = index * chunk;
            let hole = chunk.min((len - offset).next_multiple_of(LAST));
            call.make(frees, || punch(&file, offset, hole))
                .map_err(|error| ("punch a hole into it", error))?;
            progress.pause(way.sleep);
        }
    }
    if progress.stopping() {
        return Ok(());
    }
    call.make(left_bytes, || std::fs::remove_file(&victim.path))
        .map_err(|error| ("unlink it", error))?;
    progress.file_done();
    Ok(())
}

fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, how, offset, len).map_err(|errno| match errno {
        Errno::OPNOTSUPP | Errno::NOSYS => io::Error::new(
            io::ErrorKind::Unsupported,
            "this file system has no holes; truncate or unlink instead",
        ),
        other => other.into(),
    })
}
