//! One file after another: emptied in chunks with a pause, then unlinked.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use super::progress::{Call, Progress};
use super::spawn;
use super::victim::{Failed, Victim};
use crate::clock::Clock;
use crate::error::LoadError;

/// A file that is being emptied.
pub(super) struct Emptied<'a> {
    pub(super) file: File,
    /// Its length when it was opened.
    pub(super) len: u64,
    victim: &'a Victim,
    left_bytes: u64,
    sleep: Duration,
    progress: &'a Progress,
    call: Call<'a>,
}

impl Emptied<'_> {
    /// Whether no further chunk may be begun.
    pub(super) fn stopping(&self) -> bool {
        self.progress.stopping()
    }

    /// Frees a chunk, after which so many bytes of its length still hold something.
    pub(super) fn chunk(
        &mut self,
        still_there: u64,
        free: impl FnOnce(&File) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        let keep = self.victim.allocated_in(still_there, self.len);
        let frees = self.left_bytes.saturating_sub(keep);
        self.left_bytes -= frees;
        self.call.make(frees, || free(&self.file))?;
        self.progress.pause(self.sleep);
        Ok(())
    }
}

/// Begins: `empty` frees each file's chunks, until all are freed or it is stopping.
pub(super) fn start(
    victims: Vec<Victim>,
    sleep: Duration,
    clock: Clock,
    empty: impl Fn(&mut Emptied<'_>) -> Result<(), Failed> + Send + Sync + 'static,
) -> Result<Arc<Progress>, LoadError> {
    let progress = Progress::of(clock, 1, &victims);
    spawn(progress, move |progress, call| {
        for victim in &victims {
            if progress.stopping() {
                return;
            }
            if let Err((what, error)) = delete(victim, sleep, progress, call, &empty) {
                progress.fail(&victim.path, what, &error);
            }
        }
    })
}

fn delete(
    victim: &Victim,
    sleep: Duration,
    progress: &Progress,
    call: Call<'_>,
    empty: impl Fn(&mut Emptied<'_>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let mut left_bytes = victim.bytes;
    // A name beside which others stay: the file must keep its content.
    if victim.bytes > 0 {
        let (file, len) = victim.open()?;
        let mut emptied = Emptied {
            file,
            len,
            victim,
            left_bytes,
            sleep,
            progress,
            call,
        };
        empty(&mut emptied)?;
        left_bytes = emptied.left_bytes;
    }
    if progress.stopping() {
        return Ok(());
    }
    call.make(left_bytes, || std::fs::remove_file(&victim.path))
        .map_err(|error| ("unlink it", error))?;
    progress.file_done();
    Ok(())
}
