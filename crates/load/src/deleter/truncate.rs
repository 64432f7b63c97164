//! Cutting files from their tails in chunks, then unlinking them: what slowrm does.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::emptied::{self, Emptied};
use super::progress::Progress;
use super::spec::{Files, How, Way, at_least_one, seconds};
use super::victim::Failed;
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static HOW: How = How {
    name: "truncate",
    about: "truncate them from the tail in steps, then unlink (what slowrm does)",
    keys: &["chunk", "sleep", "fsync"],
    of: |asked, _| {
        Ok(Truncate {
            chunk_bytes: asked.chunk_bytes(),
            sleep: asked.sleep(),
            fsync: asked.fsync(),
        }
        .into())
    },
    ..How::FILES
};

/// `ftruncate` of each file from its tail in pieces, then `unlink`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Truncate {
    /// Bytes per piece.
    pub chunk_bytes: u64,
    /// Pause after each piece, in seconds in the record.
    #[serde(serialize_with = "seconds", rename = "sleep_s")]
    pub sleep: Duration,
    /// Whether each piece is followed by `fsync`.
    pub fsync: bool,
}

impl Way for Truncate {
    fn check(&self, _: &Files) -> Result<(), LoadError> {
        at_least_one(self.chunk_bytes)
    }

    fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        let sleep = self.sleep;
        emptied::start(files.victims()?, sleep, clock, move |file| cut(file, &self))
    }
}

fn cut(emptied: &mut Emptied<'_>, way: &Truncate) -> Result<(), Failed> {
    let mut len = emptied.len;
    while len > 0 && !emptied.stopping() {
        len = len.saturating_sub(way.chunk_bytes);
        emptied.chunk(len, |file| {
            file.set_len(len).map_err(|error| ("truncate it", error))?;
            if way.fsync {
                file.sync_all().map_err(|error| ("sync it", error))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}
