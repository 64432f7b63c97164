//! The way of data into a drive, or out of it: all commands of one direction share it.

use std::time::Duration;

use crate::Time;

/// A command's `latency` includes the transfer of so many bytes.
pub(super) const INCLUDED: u64 = 4096;

/// One direction of the interface. Without it, commands that run at once would each have the
/// drive's whole bandwidth.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Link {
    free_from: Time,
}

impl Link {
    /// Lets a command that starts at `now` transfer its data for `span`, after the data of every
    /// command before it. Returns how long after `now` they have been transferred.
    pub(super) fn transfer(&mut self, now: Time, span: Duration) -> Duration {
        self.free_from = self.free_from.max(now) + span;
        self.free_from.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_follow_each_other_and_idle_time_is_lost() {
        let (us, at) = (Duration::from_micros, |us: u64| Time::from_nanos(us * 1000));
        let mut link = Link::default();
        assert_eq!(link.transfer(at(10), us(5)), us(5));
        assert_eq!(link.transfer(at(10), us(5)), us(10));
        assert_eq!(link.transfer(at(12), us(5)), us(13));
        assert_eq!(link.transfer(at(40), us(5)), us(5));
    }
}
