//! A little more priority for the thread that samples.

use std::io;

/// The niceness that [`raise_thread`] asks for.
pub const NICENESS: i32 = -10;

/// Asks for more priority for the calling thread alone, so that a sampler
/// isn't late because the machine is busy. Needs root or `CAP_SYS_NICE`; to go
/// on without is fine, since intervals carry their measured length.
///
/// # Errors
/// What the kernel says; mostly `EACCES` for lack of privilege.
pub fn raise_thread() -> io::Result<()> {
    // On Linux the "process" of setpriority is a thread.
    let thread = rustix::thread::gettid();
    Ok(rustix::process::setpriority_process(
        Some(thread),
        NICENESS,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raises_this_thread_alone_or_says_why_not() {
        let niceness =
            || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
        let before = niceness();
        std::thread::spawn(move || match raise_thread() {
            Ok(()) => assert_eq!(niceness(), NICENESS),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        })
        .join()
        .unwrap();
        assert_eq!(niceness(), before);
    }
}
