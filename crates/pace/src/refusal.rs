//! A goal that can't be met.

use std::time::Duration;

use timeline::units;

/// Why a goal is refused, and what can be had instead.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The smallest discard holds the others up for longer.
    #[error(
        "a latency of {} can't be held: the smallest discard holds this drive up for {}; \
         --max-latency {} can be met",
        show(*.asked), show(*.smallest), units::duration_exact(*.least)
    )]
    Latency {
        /// What was asked.
        asked: Duration,
        /// How long the smallest discard holds the others up.
        smallest: Duration,
        /// The least that is accepted, rounded up.
        least: Duration,
    },
    /// It can't be done by the deadline at that slowdown.
    #[error(
        "{} is too soon at a slowdown of {}: --deadline {} can be met{}",
        units::duration_exact(*.asked), units::percent(*.slowdown),
        units::duration_exact(*.least), or_slowdown(*.needed)
    )]
    Deadline {
        /// What was asked.
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

/// The other way out, if there is one.
fn or_slowdown(needed: f64) -> String {
    if needed > 1.0 {
        return String::new();
    }
    format!(", or --slowdown {:.0}%", needed * 100.0)
}

fn show(span: Duration) -> String {
    units::latency_us(span.as_secs_f64() * 1e6)
}
