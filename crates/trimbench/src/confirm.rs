//! A question to whoever is at the terminal.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::console::Stream;

/// Whether the answer begins with y. No answer is a no, and so is Ctrl-C.
pub(crate) fn yes(question: &str, stop: &AtomicBool) -> bool {
    Stream::Err.print(question);
    let mut first = None;
    loop {
        match next(stop) {
            Some(b'\n') => return matches!(first, Some(b'y' | b'Y')),
            Some(byte) => first = first.or(Some(byte)),
            None => break,
        }
    }
    if stop.load(Ordering::Relaxed) {
        // What is said next isn't said behind the question.
        Stream::Err.print("\n");
        return false;
    }
    matches!(first, Some(b'y' | b'Y'))
}

/// The time between two looks at whether the deletion is to end.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Returns the next byte of the input, or `None` at its end or that of the deletion. It polls
/// first, because a read would continue after a signal's handler.
fn next(stop: &AtomicBool) -> Option<u8> {
    let input = std::io::stdin();
    while !stop.load(Ordering::Relaxed) {
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return None,
        }
        let mut byte = [0];
        match rustix::io::read(&input, &mut byte) {
            Ok(0) => return None,
            Ok(_) => return Some(byte[0]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return None,
        }
    }
    None
}
