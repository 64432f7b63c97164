//! A goal that can't be met.

use std::time::Duration;

/// The reason why a goal is refused, and a goal that can be met instead.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The smallest discard keeps other I/O waiting for longer.
    #[error(
        "a latency of {} can't be held: the smallest discards make a read wait up to {} longer; \
         --max-latency {} can be met",
        show(*.asked), show(*.smallest), record::units::duration_exact(*.least)
    )]
    Latency {
        /// The latency that was asked for.
        asked: Duration,
        /// How long the smallest discards make a read wait.
        smallest: Duration,
        /// The least that can be met, with a margin, rounded up.
        least: Duration,
    },
    /// It can't be done by the deadline at that slowdown.
    #[error(
        "{} is too soon at a slowdown of {}: --deadline {} can be met{}",
        record::units::duration_exact(*.asked), record::units::percent(*.slowdown),
        record::units::duration_exact(*.least), or_slowdown(*.needed)
    )]
    Deadline {
        /// The deadline that was asked for.
        asked: Duration,
        /// The slowdown that was asked.
        slowdown: f64,
        /// How long it takes at that slowdown, rounded up to a second.
        least: Duration,
        /// The slowdown at which the deadline can be met, rounded up; above 1 if
        /// not even plain deletion is fast enough.
        needed: f64,
    },
}

/// The latency that is offered, as a multiple of the wait that a try found. Ten deletions on
/// simulated drives had waits of up to 2.2 times the longest of the try before. An offer of 2.5
/// times was once refused by the next try.
const MARGIN: f64 = 3.5;

/// A try passes if the latency is this many times the wait that it found. The offer of one try must pass
/// the next: it does unless that one waits 3.1 times as long.
const TRY_MARGIN: f64 = 1.1;

impl Refusal {
    /// Returns the refusal of a latency. `smallest` is how long the smallest discards make
    /// a read wait. The latency that can be met is that with a margin, in two digits, rounded up.
    pub fn latency(asked: Duration, smallest: Duration) -> Refusal {
        Refusal::Latency {
            asked,
            smallest,
            least: two_digits(smallest.as_secs_f64() * MARGIN),
        }
    }

    /// Returns the same after a try that found a wait of `smallest`. `None` if the latency is at
    /// least 1.1 times as long.
    pub fn of_latency(asked: Duration, smallest: Duration) -> Option<Refusal> {
        (asked < smallest.mul_f64(TRY_MARGIN)).then(|| Refusal::latency(asked, smallest))
    }
}

/// Returns so many seconds in two digits, rounded up; whole microseconds at least.
fn two_digits(seconds: f64) -> Duration {
    let us = (seconds * 1e6).max(1.0);
    let step = 10_f64.powf((us.log10().floor() - 1.0).max(0.0));
    Duration::from_micros(((us / step - 1e-9).ceil() * step) as u64)
}

/// Returns the other way out, if there is one.
fn or_slowdown(needed: f64) -> String {
    if needed > 1.0 {
        return String::new();
    }
    format!(", or --slowdown {:.0}%", needed * 100.0)
}

fn show(span: Duration) -> String {
    record::units::latency_us(span.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_refused_in_units_that_fit_and_with_a_margin() {
        let ms = Duration::from_millis;
        let refusal = Refusal::of_latency(ms(6), Duration::from_micros(8067)).unwrap();
        assert_eq!(
            refusal.to_string(),
            "a latency of 6.0 ms can't be held: the smallest discards make a read wait up to \
             8.1 ms longer; --max-latency 29ms can be met"
        );
        // What it says is accepted, even if the next try waits longer.
        assert_eq!(Refusal::of_latency(ms(29), ms(26)), None);
        assert!(Refusal::of_latency(ms(29), ms(27)).is_some());
        assert_eq!(two_digits(0.00121), Duration::from_micros(1300));
        assert_eq!(two_digits(0.012), ms(12));
    }
}
