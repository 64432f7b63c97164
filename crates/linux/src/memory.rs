//! A process that a block device needs in order to write memory back.
//!
//! When memory is short the kernel writes dirty pages out, also those of a file
//! system on a device that a process serves. If that process then waits for
//! memory itself, both wait for ever.

use std::io;

/// Keeps this process from waiting for itself. Its memory is locked as it is touched (`mlockall`),
/// and its threads' allocations in the kernel don't write anything back (`PR_SET_IO_FLUSHER`, Linux
/// ≥ 5.6). Threads that are started later inherit it, so call this first.
///
/// # Errors
/// The kernel's error of either call, with the call's name. The process can go on; only under
/// memory pressure is it at risk.
pub fn never_wait_for_writeback() -> Result<(), (&'static str, io::Error)> {
    let flags = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
    // SAFETY: takes no pointer; pages stay where they are, they only aren't
    // swapped out any more.
    let locked = unsafe { libc::mlockall(flags) };
    if locked != 0 {
        return Err(("mlockall", io::Error::last_os_error()));
    }
    rustix::process::configure_io_flusher_behavior(true)
        .map_err(|errno| ("PR_SET_IO_FLUSHER", errno.into()))
}
