//! Cutting files from their tails in chunks, then unlinking them: what slowrm does.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use super::Method;
use super::emptied::{self, Emptied};
use super::progress::Progress;
use super::victim::{Failed, Victim};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static METHOD: Method = Method {
    name: "truncate",
    about: "cut each file from its tail in chunks with a pause, then unlink it, as slowrm does",
    continuous: false,
};

/// How it is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) chunk_bytes: NonZeroU64,
    pub(super) sleep: Duration,
    pub(super) fsync: bool,
}

pub(super) fn start(
    victims: Vec<Victim>,
    way: Way,
    clock: Clock,
) -> Result<Arc<Progress>, LoadError> {
    emptied::start(victims, way.sleep, clock, move |file| cut(file, way))
}

fn cut(emptied: &mut Emptied<'_>, way: Way) -> Result<(), Failed> {
    let mut len = emptied.len;
    while len > 0 && !emptied.stopping() {
        len = len.saturating_sub(way.chunk_bytes.get());
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
