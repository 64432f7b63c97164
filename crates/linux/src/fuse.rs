//! `/dev/fuse` for a server: connections. From `include/uapi/linux/fuse.h`, Linux 6.14.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, mount};

/// `FUSE_DEV_IOC_CLONE`
const DEV_IOC_CLONE: libc::Ioctl = libc::_IOR::<u32>(229, 0);

/// Opens `/dev/fuse`: a connection that is not mounted yet.
///
/// # Errors
/// If the machine has no FUSE, or this process may not use it.
pub fn open() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/fuse", flags, Mode::empty())?)
}

/// Mounts a connection on a directory, as a file system called `name`. The kernel's first message
/// waits in the connection then.
///
/// # Errors
/// The error of `mount`.
pub fn mount_on(connection: &OwnedFd, name: &str, on: &Path) -> io::Result<()> {
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={}",
        connection.as_raw_fd(),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    let options = std::ffi::CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount(name, on, "fuse", flags, options.as_c_str())?)
}

/// Another file of the same connection, from which another thread reads without waiting for the
/// first one's lock.
///
/// # Errors
/// The error of `FUSE_DEV_IOC_CLONE`.
pub fn clone_of(connection: &OwnedFd) -> io::Result<OwnedFd> {
    let clone = open()?;
    let source = connection.as_raw_fd();
    // SAFETY: the request reads one u32 through the pointer, and the variable outlives the call.
    let done = unsafe { libc::ioctl(clone.as_raw_fd(), DEV_IOC_CLONE, &raw const source) };
    match done {
        0 => Ok(clone),
        _ => Err(io::Error::last_os_error()),
    }
}
