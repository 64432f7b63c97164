//! Detects whether another process has a file open.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Linux, include/uapi/asm-generic/fcntl.h; the same on every architecture but PA-RISC.
const F_SETSIG: libc::c_int = 10;

/// Whether another process has this file open (or mapped, or executes it). Then its space stays in
/// use when its last name is removed, and emptying it would destroy data that the process uses.
/// `file` must be open nowhere else in this process.
///
/// Asked by way of a write lease, which the kernel grants only for a file that
/// nobody else has open (Linux, fs/locks.c, `check_conflicting_open`). It is
/// given back at once.
///
/// # Errors
/// Where it is unknown: the file is another user's and the caller lacks `CAP_LEASE`, or the file
/// system knows no leases.
pub fn open_elsewhere(file: &File) -> io::Result<bool> {
    match take(file) {
        Ok(()) => ask(file, libc::F_SETLEASE, libc::F_UNLCK).map(|()| false),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Takes the lease.
fn take(file: &File) -> io::Result<()> {
    // Whoever opens it while we have the lease has us told by a signal: by SIGIO, which
    // kills, unless another is chosen. This one is ignored by default.
    ask(file, F_SETSIG, libc::SIGURG)?;
    ask(file, libc::F_SETLEASE, libc::F_WRLCK)
}

fn ask(file: &File, what: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `file` is borrowed, and both
    // F_SETSIG and F_SETLEASE take an int.
    match unsafe { libc::fcntl(file.as_raw_fd(), what, value) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_seen_and_we_are_not() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let (_, path) = named.into_parts();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        drop(file);
        for writes in [true, false] {
            let file = File::options()
                .read(true)
                .write(writes)
                .open(&path)
                .unwrap();
            assert!(!open_elsewhere(&file).unwrap());
            let other = File::open(&path).unwrap();
            assert!(open_elsewhere(&file).unwrap());
            drop(other);
            assert!(!open_elsewhere(&file).unwrap());
        }
    }
    #[test]
    fn whoever_opens_it_meanwhile_kills_nobody() {
        use std::os::unix::fs::OpenOptionsExt;
        let named = tempfile::NamedTempFile::new().unwrap();
        let (_, path) = named.into_parts();
        let file = File::open(&path).unwrap();
        take(&file).unwrap();
        let mut options = File::options();
        let opened = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path);
        // The kernel has sent its signal, and we are still here.
        assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(!open_elsewhere(&file).unwrap());
    }
}
