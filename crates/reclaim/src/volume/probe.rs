//! Tries a latency on files of trimbench's own, before any name is removed.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use linux::files::Aligned;
use pace::{Goal, Policy, Refusal, Work};

use super::{Volume, free_failed};
use crate::event::Listener;
use crate::throttle::{Pacing, Stack, nameless};
use crate::{ReclaimError, Result};

/// The number of files and the bytes of each: each file becomes a small discard.
const FILES: usize = 16;
const BYTES: usize = 64 << 10;

/// Reads of the canary each second: its slowest must have met a discard.
const READS_PER_S: f64 = 500.0;

/// The foreground gets half of the time.
const SLOWDOWN: f64 = 0.5;

/// Frees small files of its own, one after the other, and measures the reads beside their discards.
/// It refuses a latency that these don't keep with a margin. Where no such file can be made, it
/// tries nothing.
///
/// # Errors
/// [`ReclaimError::Refused`] with a latency that can be met, or the error that stopped it.
pub(crate) fn try_latency(
    on: BorrowedFd<'_>,
    stack: Stack,
    asked: Duration,
    pacing: &Pacing,
    listener: &mut Listener<'_>,
) -> Result<()> {
    let Ok(files) = files(on) else { return Ok(()) };
    let goal = Goal {
        // Whatever they take: only then is it known.
        max_latency: Some(Duration::from_secs(3600)),
        ..Goal::slowdown(SLOWDOWN)
    };
    let pacing = Pacing {
        policy: Policy::Adaptive(goal),
        reads_per_s: Some(READS_PER_S),
        ..pacing.clone()
    };
    let work = Work::new((FILES * BYTES) as u64, FILES as u64);
    let mut volume = Volume::of(on, stack, None, &pacing, &work, listener)?;
    for file in &files {
        volume.empty(file, listener)?;
    }
    let summary = volume.finish(listener)?;
    let Some(observed) = summary.observed.filter(|_| summary.discards > 0) else {
        return Ok(());
    };
    let one = Duration::from_secs_f64(observed.own.seconds / summary.discards as f64);
    let waited = observed
        .canary
        .map_or(Duration::ZERO, |canary| canary.max_own);
    // A commit of small files may send two discards for one. A deletion's seldom does.
    match Refusal::of_latency(asked, one.max(waited / 2)) {
        Some(refusal) => Err(ReclaimError::Refused(refusal)),
        None => Ok(()),
    }
}

/// Files without names that lie on the disk.
fn files(on: BorrowedFd<'_>) -> Result<Vec<File>> {
    let mut buffer = Aligned::new(BYTES);
    let bytes = buffer.get(BYTES);
    fastrand::Rng::new().fill(bytes);
    let mut all = Vec::with_capacity(FILES);
    for _ in 0..FILES {
        let file = nameless(on).map_err(|source| failed(on, source))?;
        let written = file.write_all_at(bytes, 0);
        let written = written.and_then(|()| file.sync_all());
        written.map_err(|source| free_failed(&file, source))?;
        all.push(file);
    }
    Ok(all)
}

fn failed(on: BorrowedFd<'_>, source: io::Error) -> ReclaimError {
    ReclaimError::io("make a file in", crate::throttle::shown(on))(source)
}
