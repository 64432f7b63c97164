//! Punching holes into files until they are empty, then unlinking them.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::emptied::{self, Emptied};
use super::progress::Progress;
use super::victim::{Failed, Victim};
use super::{End, Method, refuse};
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
    emptied::start(victims, way.sleep, clock, move |file| empty(file, way))
}

fn empty(emptied: &mut Emptied<'_>, way: Way) -> Result<(), Failed> {
    let (len, chunk) = (emptied.len, way.chunk_bytes.get());
    let chunks = len.div_ceil(chunk);
    for n in 1..=chunks {
        if emptied.stopping() {
            break;
        }
        // On the same grid from either end, so that no block is in two holes.
        let (index, still_there) = match way.from {
            End::Head => (n - 1, len.saturating_sub(n * chunk)),
            End::Tail => (chunks - n, (chunks - n) * chunk),
        };
        // Beyond the end, so that the file's last block goes with it.
        let offset = index * chunk;
        let hole = chunk.min((len - offset).next_multiple_of(LAST));
        emptied.chunk(still_there, |file| {
            punch(file, offset, hole).map_err(|error| ("punch a hole into it", error))
        })?;
    }
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
