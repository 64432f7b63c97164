//! A forced commit, in a thread of its own: it can take as long as the stall.

use std::io;
use std::path::PathBuf;
use std::thread::JoinHandle;

use linux::files::FileError;

/// A `syncfs` under way.
#[derive(Debug)]
pub(crate) struct Commit(JoinHandle<Result<(), FileError>>);

impl Commit {
    /// Begins to commit the file system that holds a path.
    pub(crate) fn begin(path: PathBuf) -> io::Result<Commit> {
        std::thread::Builder::new()
            .name("commit".into())
            .spawn(move || linux::files::syncfs(&path))
            .map(Commit)
    }

    /// Whether it has returned.
    pub(crate) fn is_done(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for its end, and returns its result.
    pub(crate) fn result(self) -> Result<(), String> {
        match self.0.join() {
            Ok(result) => result.map_err(|e| e.to_string()),
            Err(_) => Err("the committing thread panicked".to_owned()),
        }
    }
}
