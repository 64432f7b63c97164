//! The engine mmap: `depth` threads that overwrite blocks of a file mapped shared.
//!
//! An operation is a copy into the page cache, without a system call. The kernel writes the dirty
//! pages to the drive when it likes, or a thread makes it do so: with [`Engine::MmapSync`] by
//! `msync` after each [`SYNC_EVERY`] of its blocks. An operation's time contains its page faults,
//! the wait that the kernel imposes on who dirties too fast, and the `msync`, if it makes one.

use std::io;
use std::sync::Arc;

use super::blocks::{Blocks, Engine};
use super::lanes::{self, Stopwatch};
use super::shared::Shared;
use super::spec::ActorSpec;
use crate::error::LoadError;
use crate::mapped::{Mapped, faults_of_this_thread, page_bytes};
use crate::pattern::{Pattern, Stamp, scramble};
use crate::task::Task;

/// Blocks that a thread overwrites between two calls of `msync`: the batch of the writeback job of
/// 2008 (`iodepth_batch=32`).
const SYNC_EVERY: u32 = 32;

/// Maps the file and starts the threads.
pub(super) fn start(
    spec: &ActorSpec,
    blocks: &Blocks,
    shared: &Arc<Shared>,
) -> Result<Vec<String>, LoadError> {
    let region = blocks.target.as_ref();
    let region = region.ok_or_else(|| spec.wrong("there is no file to map"))?;
    if !region.start.is_multiple_of(page_bytes() as u64) {
        let page = page_bytes();
        let what = format!("the region begins at no multiple of the page size, {page} bytes");
        return Err(spec.wrong(what));
    }
    let mapped = Mapped::new(region.file.clone(), region.start, region.len);
    let what = "map the file that the engine mmap writes";
    let mapped = Arc::new(mapped.map_err(LoadError::system(what))?);
    let sync_every = match blocks.engine {
        Engine::MmapSync => Some(SYNC_EVERY),
        _ => None,
    };
    let worker = |lane: u32| {
        let seed = scramble(spec.seed).wrapping_add(u64::from(lane));
        let pattern = spec.offsets(blocks, seed)?;
        let mut data = vec![0; blocks.bytes_per_op() as usize];
        fastrand::Rng::with_seed(seed).fill(&mut data);
        let share = f64::from(lane) / f64::from(spec.arrival.depth());
        Ok(Worker {
            mapped: mapped.clone(),
            begin: region.start,
            data,
            pattern: pattern.starting_at(share),
            stamp: Stamp::new(seed),
            sync_every,
            unsynced: 0,
        })
    };
    let workers = (0..spec.arrival.depth()).map(worker);
    let workers = workers.collect::<Result<Vec<_>, LoadError>>()?;
    lanes::start(spec, shared, workers)?;
    Ok(Vec::new())
}

struct Worker {
    mapped: Arc<Mapped>,
    /// Where the mapping begins in the file, in bytes.
    begin: u64,
    data: Vec<u8>,
    pattern: Pattern,
    /// Written into each page, so that no two written are alike.
    stamp: Stamp,
    sync_every: Option<u32>,
    unsynced: u32,
}

impl Worker {
    /// Overwrites the next block.
    fn overwrite(&mut self) -> io::Result<()> {
        for page in self.data.chunks_mut(page_bytes()) {
            self.stamp.put(page);
        }
        // The mapping holds the region whole, so the difference fits.
        let at = (self.pattern.next_offset() - self.begin) as usize;
        let faults = faults_of_this_thread();
        self.mapped.store(at, &self.data);
        if faults_of_this_thread() != faults {
            self.mapped.repair(at, self.data.len())?;
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        self.unsynced += 1;
        if self.sync_every.is_some_and(|every| self.unsynced >= every) {
            self.unsynced = 0;
            self.mapped.sync()?;
        }
        Ok(())
    }
}

impl Task for Worker {
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()> {
        watch.time(0, || self.overwrite())
    }
}
