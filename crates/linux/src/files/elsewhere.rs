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
    match lease(file) {
        Ok(()) => ask(file, libc::F_SETLEASE, libc::F_UNLCK).map(|()| false),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Takes the lease.
fn lease(file: &File) -> io::Result<()> {
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
    use std::time::{Duration, Instant};

    use super::*;

    /// A child of another test has its descriptors until it is another program.
    fn is_closed_soon(file: &File) -> bool {
        let began = Instant::now();
        while open_elsewhere(file).unwrap() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        !open_elsewhere(file).unwrap()
    }

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
            assert!(is_closed_soon(&file));
            let other = File::open(&path).unwrap();
            assert!(open_elsewhere(&file).unwrap());
            drop(other);
            assert!(is_closed_soon(&file));
        }
    }
    #[test]
    fn whoever_opens_it_meanwhile_kills_nobody() {
        use std::os::unix::fs::OpenOptionsExt;
        let named = tempfile::NamedTempFile::new().unwrap();
        let (_, path) = named.into_parts();
        let file = File::open(&path).unwrap();
        lease(&file).unwrap();
        let mut options = File::options();
        let opened = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path);
        // The kernel has sent its signal, and we are still here.
        assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(!open_elsewhere(&file).unwrap());
    }

    #[test]
    fn a_descriptor_on_its_way_through_a_socket_is_seen() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let (_, path) = named.into_parts();
        let (sender, receiver) = std::os::unix::net::UnixDatagram::pair().unwrap();
        send(&sender, &File::open(&path).unwrap());
        // No process has it in its table.
        let file = File::options().write(true).open(&path).unwrap();
        assert!(open_elsewhere(&file).unwrap());
        drop(receiver);
        assert!(is_closed_soon(&file));
    }

    fn send(through: &std::os::unix::net::UnixDatagram, file: &File) {
        let mut byte = [0u8; 1];
        let mut part = libc::iovec {
            iov_base: byte.as_mut_ptr().cast(),
            iov_len: 1,
        };
        let mut control = [0u64; 8];
        // SAFETY: all parts live through the call, and the control message, one descriptor, fits
        // into its room.
        let sent = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(4) as _;
            let head = libc::CMSG_FIRSTHDR(&raw const message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(head)
                .cast::<libc::c_int>()
                .write(file.as_raw_fd());
            libc::sendmsg(through.as_raw_fd(), &raw const message, 0)
        };
        assert_eq!(sent, 1, "{}", io::Error::last_os_error());
    }
}
