//! Cutting files from their tails in chunks, then unlinking them: what slowrm does.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use super::progress::{Call, Progress};
use super::victim::{Failed, Victim, total_bytes};
use super::{Method, spawn};
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
    let progress = Progress::new(clock, 1, total_bytes(&victims), victims.len() as u64);
    spawn(&progress, move |progress, call| {
        for victim in &victims {
            if progress.stopping() {
                return;
            }
            if let Err((what, error)) = cut(victim, way, progress, call) {
                progress.fail(&victim.path, what, &error);
            }
        }
    })?;
    Ok(progress)
}

fn cut(victim: &Victim, way: Way, progress: &Progress, call: Call<'_>) -> Result<(), Failed> {
    let mut left_bytes = victim.bytes;
    // A name beside which others stay: the file must keep its content.
    if victim.bytes > 0 {
        let (file, full_len) = victim.open()?;
        let mut len = full_len;
        while len > 0 {
            if progress.stopping() {
                return Ok(());
            }
            len = len.saturating_sub(way.chunk_bytes.get());
            let keep = victim.allocated_in(len, full_len);
            let frees = left_bytes.saturating_sub(keep);
            left_bytes -= frees;
            let done = call.make(frees, || {
                file.set_len(len).map_err(|error| ("truncate it", error))?;
                if way.fsync {
                    file.sync_all().map_err(|error| ("sync it", error))?;
                }
                Ok(())
            });
            done?;
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
