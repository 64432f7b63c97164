//! `--lease FILE`: machines that share storage trim one after the other.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use units::names;

use crate::exit::Error;

/// How often a lease that another has is asked for. A network file system tells nobody when it is
/// free.
const EVERY: Duration = Duration::from_millis(500);

/// A lock on a file. It ends with this value, or with the process.
pub(super) struct Lease {
    _file: File,
}

impl Lease {
    /// Waits until nobody else has it; `None` if `stop` came first. `waits` is called once, if
    /// another has it.
    pub(super) fn taken(
        path: &Path,
        stop: &AtomicBool,
        waits: impl FnOnce(),
    ) -> Result<Option<Lease>, Error> {
        let failed =
            |why: std::io::Error| Error::Usage(format!("--lease {}: {why}", names::shown(path)));
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(failed)?;
        let mut waits = Some(waits);
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Lease { _file: file })),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if let Some(waits) = waits.take() {
                waits();
            }
            sleep(EVERY);
        }
    }
}
