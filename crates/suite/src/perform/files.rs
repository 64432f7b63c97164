//! Creating the files of a cell.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use linux::files::Caching;
use load::fill::{Fill, FillSpec};

use super::Turn;
use crate::log::Figures;
use crate::programs::Trouble;

/// How long a writer is waited for before the next one is looked at.
const LOOK: Duration = Duration::from_millis(2);

impl Turn<'_> {
    /// The step that creates the files.
    pub(super) fn create(&mut self) -> Result<Figures, Trouble> {
        let before = self.stage.counters()?;
        let began = Instant::now();
        self.write_files()?;
        self.figures(began.elapsed().as_secs_f64(), &before)
    }

    /// Sees to it that the files are there and on the device, and the device is quiet.
    pub(super) fn with_files(&mut self) -> Result<(), Trouble> {
        if !self.files {
            self.write_files()?;
        }
        self.sync()?;
        self.settle()
    }

    /// The paths of the files.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let directory = self.stage.mount_point();
        let numbers = 0..self.plan.files;
        numbers
            .map(|i| directory.join(format!("file{i}")))
            .collect()
    }

    /// Writes the files with so many writers at once. It removes first what a step that
    /// failed has left.
    fn write_files(&mut self) -> Result<(), Trouble> {
        self.files = false;
        let paths = self.paths();
        for path in &paths {
            let _ = std::fs::remove_file(path);
        }
        let mut waiting = paths.into_iter().enumerate();
        let mut writing: Vec<Fill> = Vec::new();
        loop {
            while writing.len() < self.plan.writers as usize
                && let Some((i, path)) = waiting.next()
            {
                writing.push(self.fill(i, path)?);
            }
            if writing.is_empty() {
                break;
            }
            let ended = writing
                .iter()
                .position(|one| one.wait_timeout(Duration::ZERO));
            match ended {
                Some(i) => {
                    let wrote = writing.swap_remove(i).wait();
                    wrote.map_err(|error| Trouble::Failed(error.to_string()))?;
                }
                None => std::thread::sleep(LOOK),
            }
            if self.stop.load(Ordering::Relaxed) {
                writing.iter().for_each(Fill::stop);
                for one in writing {
                    let _ = one.wait();
                }
                return Err(Trouble::Stopped);
            }
            self.tick();
        }
        self.files = true;
        Ok(())
    }

    fn fill(&self, i: usize, path: PathBuf) -> Result<Fill, Trouble> {
        let failed = |error: String| Trouble::Failed(error);
        let made = linux::files::create(&path, Caching::Direct);
        let (made, direct) = match made {
            Ok(file) => (Ok(file), true),
            Err(_) => (linux::files::create(&path, Caching::Buffered), false),
        };
        let file = made.map_err(|error| failed(error.to_string()))?;
        Fill::start(FillSpec {
            file: Arc::new(file),
            path,
            len: self.plan.file_bytes,
            direct,
            extent_bytes: None,
            seed: i as u64 + u64::from(self.now.round) * 1_000_003,
        })
        .map_err(|error| failed(error.to_string()))
    }
}
