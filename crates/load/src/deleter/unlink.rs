//! `unlink` of each file, several at a time: what `rm` does.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::progress::Progress;
use super::victim::{Victim, total_bytes};
use super::{Method, spawn};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static METHOD: Method = Method {
    name: "unlink",
    about: "unlink the files, one or several at a time, as rm and DROP TABLE do",
    continuous: false,
};

pub(super) fn start(
    victims: Vec<Victim>,
    parallel: NonZeroU32,
    clock: Clock,
) -> Result<Arc<Progress>, LoadError> {
    let threads = (parallel.get() as usize).min(victims.len());
    let total = total_bytes(&victims);
    let progress = Progress::new(clock, threads, total, victims.len() as u64);
    let work = Arc::new((victims, AtomicUsize::new(0)));
    // Held until all are started, so that the first doesn't end the deletion alone.
    let _all_started = progress.hold();
    for _ in 0..threads {
        let work = work.clone();
        let started = spawn(&progress, move |progress, call| {
            let (victims, next) = &*work;
            while !progress.stopping() {
                let Some(victim) = victims.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                match call.make(victim.bytes, || std::fs::remove_file(&victim.path)) {
                    Ok(()) => progress.file_done(),
                    Err(error) => progress.fail(&victim.path, "unlink it", &error),
                }
            }
        });
        if let Err(error) = started {
            // Those that were started have nobody else to tell them.
            progress.stop();
            return Err(error);
        }
    }
    Ok(progress)
}
