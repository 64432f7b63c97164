//! A lock on a file.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use record::units::names::shown;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::lease::LeaseError;

/// How often a lock that another has is asked for. A network file system tells nobody when it is
/// free.
const EVERY: Duration = Duration::from_millis(500);

/// Waits for the lock, which ends with the returned file; `None` if `stop` came first.
pub(crate) fn take(
    path: &Path,
    stop: &AtomicBool,
    note: &mut dyn FnMut(&str),
) -> Result<Option<File>, LeaseError> {
    let failed = |source: std::io::Error| LeaseError::File {
        path: path.to_owned(),
        source,
    };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(failed)?;
    let mut told = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if !told {
            note(&format!("waits for {}, which another holds", shown(path)));
            told = true;
        }
        sleep(EVERY);
    }
}
