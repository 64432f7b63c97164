//! A forced commit, in a thread of its own: it can take as long as the stall.

use std::io;
use std::path::PathBuf;
use std::thread::JoinHandle;

use linux::files::FileError;
use load::Workers;

/// A `syncfs` under way.
#[derive(Debug)]
pub(crate) struct Commit {
    thread: JoinHandle<Result<(), FileError>>,
    workers: Workers,
}

impl Commit {
    /// Begins to commit the file system that holds a path.
    pub(crate) fn begin(path: PathBuf) -> io::Result<Commit> {
        let workers = Workers::default();
        let own = workers.clone();
        let thread = std::thread::Builder::new()
            .name("commit".into())
            .spawn(move || {
                own.join();
                linux::files::syncfs(&path)
            })?;
        Ok(Commit { thread, workers })
    }

    /// Its thread.
    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Whether it has returned.
    pub(crate) fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end, and returns its result.
    pub(crate) fn result(self) -> Result<(), String> {
        match self.thread.join() {
            Ok(result) => result.map_err(|e| e.to_string()),
            Err(_) => Err("the committing thread panicked".to_owned()),
        }
    }
}
