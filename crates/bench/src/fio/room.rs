//! Keeps fio from filling the disk.
//!
//! Asking a file system for its free space can take as long as the stall that is
//! measured, so a thread of its own asks.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linux::space::Space;

/// How often it asks.
const EVERY: Duration = Duration::from_millis(200);

/// Watches until it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    too_little: AtomicBool,
}

impl Room {
    /// Watches the file system of `path`, of which `reserve_bytes` are to stay free.
    pub(super) fn watch(path: PathBuf, reserve_bytes: u64) -> io::Result<Room> {
        let shared = Arc::new(Shared::default());
        let ours = shared.clone();
        std::thread::Builder::new()
            .name("room".into())
            .spawn(move || {
                while !ours.over.load(Ordering::Relaxed) {
                    let too_little =
                        Space::of(&path).is_ok_and(|space| space.available_bytes < reserve_bytes);
                    if too_little {
                        ours.too_little.store(true, Ordering::Relaxed);
                        return;
                    }
                    std::thread::sleep(EVERY);
                }
            })?;
        Ok(Room { shared })
    }

    /// Whether there was too little of it.
    pub(super) fn is_too_little(&self) -> bool {
        self.shared.too_little.load(Ordering::Relaxed)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_is_seen_and_enough_is_not() {
        let here = std::env::temp_dir();
        let never = Room::watch(here.clone(), u64::MAX).unwrap();
        let enough = Room::watch(here, 0).unwrap();
        while !never.is_too_little() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!enough.is_too_little());
    }
}
