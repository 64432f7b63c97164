//! Punching holes into files until they are empty, then unlinking them.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use serde::Serialize;

use super::emptied::{self, Emptied};
use super::progress::Progress;
use super::refuse;
use super::spec::{Files, How, Way, at_least_one, seconds};
use super::victim::Failed;
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static HOW: How = How {
    name: "punch",
    about: "punch holes from the head or the tail in steps, then unlink (a journal that frees its head)",
    keys: &["chunk", "sleep", "from"],
    of: |asked, _| {
        Ok(Punch {
            from: asked.from(),
            chunk_bytes: asked.chunk_bytes(),
            sleep: asked.sleep(),
        }
        .into())
    },
    ..How::FILES
};

record::kinds! {
    /// One end of a file: a log or a queue forgets its beginning, and a table shrinks at its end.
    pub enum End["end"] {
        /// from the first byte on
        Head = "head",
        /// from the last byte back
        Tail = "tail",
    }
}

/// Holes in each file, piece by piece, then `unlink`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Punch {
    /// Where it begins.
    pub from: End,
    /// Bytes per piece: a multiple of 4096, since a part of a block can't be freed.
    pub chunk_bytes: u64,
    /// Pause after each piece.
    #[serde(serialize_with = "seconds", rename = "sleep_s")]
    pub sleep: Duration,
}

/// The usual block: a hole that ends inside of one frees nothing of it.
const BLOCK: u64 = 4096;

/// No file system's block is larger.
const LAST: u64 = 1 << 20;

impl Way for Punch {
    fn check(&self, _: &Files) -> Result<(), LoadError> {
        let chunk_bytes = self.chunk_bytes;
        at_least_one(chunk_bytes)?;
        if !chunk_bytes.is_multiple_of(BLOCK) || i64::try_from(chunk_bytes).is_err() {
            return Err(refuse(format!(
                "can't punch holes of {chunk_bytes} bytes: give a multiple of {BLOCK}"
            )));
        }
        Ok(())
    }

    fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        let sleep = self.sleep;
        emptied::start(files.victims()?, sleep, clock, move |file| {
            empty(file, &self)
        })
    }
}

fn empty(emptied: &mut Emptied<'_>, way: &Punch) -> Result<(), Failed> {
    let (len, chunk) = (emptied.len, way.chunk_bytes);
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
