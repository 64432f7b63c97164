//! Trying again while something is held for a moment.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;

const BETWEEN: Duration = Duration::from_millis(10);

/// Calls `attempt` until it says something else than `held`, for so long at most.
pub fn while_is<T>(
    held: Errno,
    at_most: Duration,
    mut attempt: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(errno) if errno == held && began.elapsed() < at_most => sleep(BETWEEN),
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_what_passes_and_for_nothing_else() {
        let mut turns = 0;
        let third = while_is(Errno::BUSY, Duration::from_secs(60), || {
            turns += 1;
            if turns < 3 {
                Err(Errno::BUSY)
            } else {
                Ok(turns)
            }
        });
        assert_eq!(third, Ok(3));
        let other = while_is(Errno::BUSY, Duration::from_secs(60), || {
            Err::<(), _>(Errno::PERM)
        });
        assert_eq!(other, Err(Errno::PERM));
        let held = while_is(Errno::BUSY, Duration::ZERO, || Err::<(), _>(Errno::BUSY));
        assert_eq!(held, Err(Errno::BUSY));
    }
}
