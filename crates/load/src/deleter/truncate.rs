//! Cutting files from their tails in chunks, then unlinking them: what slowrm does.

use std::fs::OpenOptions;
use std::num::NonZeroU64;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::Duration;

use super::progress::{Call, Progress};
use super::{Victim, spawn};
use crate::clock::Clock;
use crate::error::LoadError;

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
    let total = victims.iter().map(|victim| victim.bytes).sum();
    let progress = Progress::new(clock, 1, total, victims.len() as u64);
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

fn cut(
    victim: &Victim,
    way: Way,
    progress: &Progress,
    call: Call<'_>,
) -> Result<(), (&'static str, std::io::Error)> {
    let mut left_bytes = victim.bytes;
    // A name beside which others stay: the file must keep its content.
    if victim.bytes > 0 {
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&victim.path)
            .map_err(|error| ("open it", error))?;
        let full_len = file
            .metadata()
            .map_err(|error| ("look at it", error))?
            .len();
        let mut len = full_len;
        while len > 0 {
            if progress.stopping() {
                return Ok(());
            }
            len = len.saturating_sub(way.chunk_bytes.get());
            // Blocks are taken as spread evenly over the file.
            let keep = u128::from(victim.bytes) * u128::from(len) / u128::from(full_len);
            let frees = left_bytes - (keep as u64).min(left_bytes);
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
