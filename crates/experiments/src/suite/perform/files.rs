//! Creating the files of a cell.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use linux::files::Caching;
use load::fill::{Fill, FillSpec};

use super::Turn;
use crate::Error;
use crate::suite::log::Figures;

/// How long a writer is waited for before the next one is looked at.
const LOOK: Duration = Duration::from_millis(2);

impl Turn<'_> {
    /// The step that creates the files.
    pub(super) fn create(&mut self) -> Result<Figures, Error> {
        let before = self.stage.counters()?;
        let began = Instant::now();
        self.write_files()?;
        self.figures(began.elapsed().as_secs_f64(), &before)
    }

    /// Sees to it that the files are there and on the device, and the device is quiet.
    pub(super) fn with_files(&mut self) -> Result<(), Error> {
        if !self.files {
            self.write_files()?;
        }
        self.sync()?;
        self.settle()
    }

    /// The paths of the files.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let path = |i| self.stage.mount_point().join(format!("file{i}"));
        (0..self.plan.files).map(path).collect()
    }

    /// Writes the files, of random data and past the page cache where that is possible, with several
    /// writers at once. It removes first what a step that failed has left.
    fn write_files(&mut self) -> Result<(), Error> {
        self.files = false;
        let (paths, len) = (self.paths(), self.plan.file_bytes);
        let seed = u64::from(self.now.round) * 1_000_003;
        for path in &paths {
            let _ = std::fs::remove_file(path);
        }
        let mut waiting = paths.into_iter().zip(seed..);
        let mut writing: Vec<Fill> = Vec::new();
        loop {
            while writing.len() < self.plan.writers as usize
                && let Some((path, seed)) = waiting.next()
            {
                writing.push(fill(path, len, seed, Caching::Direct)?);
            }
            if writing.is_empty() {
                self.files = true;
                return Ok(());
            }
            let ended = writing
                .iter()
                .position(|one| one.wait_timeout(Duration::ZERO));
            match ended {
                Some(i) => drop(writing.swap_remove(i).wait().map_err(Error::failed)?),
                None => std::thread::sleep(LOOK),
            }
            if self.stop.load(Ordering::Relaxed) {
                writing.iter().for_each(Fill::stop);
                writing.into_iter().for_each(|one| drop(one.wait()));
                return Err(Error::Stopped);
            }
            self.tick();
        }
    }
}

fn fill(path: PathBuf, len: u64, seed: u64, caching: Caching) -> Result<Fill, Error> {
    let direct = matches!(caching, Caching::Direct);
    let file = match linux::files::create(&path, caching) {
        // Not every file system takes direct writes.
        Err(_) if direct => return fill(path, len, seed, Caching::Buffered),
        made => made.map_err(Error::failed)?,
    };
    Fill::start(FillSpec {
        file: Arc::new(file),
        path,
        len,
        direct,
        extent_bytes: None,
        seed,
    })
    .map_err(Error::failed)
}
