//! Another program deletes; the growth of the file system's free space is the amount that it frees.

use std::path::PathBuf;
use std::sync::Arc;

use super::command::{self, LOOK};
use super::progress::Progress;
use super::space::FreeSpace;
use super::{Method, Occasion, spawn_beside};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static METHOD: Method = Method {
    name: "event",
    about: "watch what an outside program or a person frees",
    continuous: false,
};

pub(super) fn start(
    occasion: Occasion,
    dir: PathBuf,
    clock: Clock,
) -> Result<Arc<Progress>, LoadError> {
    let space = FreeSpace::of(&dir)?;
    let look = move |progress: &Progress| progress.set_freed(space.freed_bytes());
    let progress = Progress::new(clock, 2, 0, 0);
    if let Occasion::Program(argv) = occasion {
        return command::start_watched(vec![argv], progress, look);
    }
    spawn_beside(&progress, move |progress, call| {
        call.make(0, || {
            while !progress.stopping() {
                look(progress);
                std::thread::sleep(LOOK);
            }
            look(progress);
        });
    })?;
    Ok(progress)
}
