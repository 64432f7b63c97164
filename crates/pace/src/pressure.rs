//! The share of the time that the tasks of a protected control group wait for I/O.

use std::time::Duration;

use serde::Serialize;
use ssd::Time;

use crate::feedback::Feedback;
use crate::quantity::Seconds;

/// A share is taken over this time.
const STRETCH: Seconds = Seconds(0.5);

/// The least that is left of the goal.
const LEAST: f64 = 0.02;

/// By how much the limit is lowered at once, at most, and by how much it rises after a stretch in
/// which the group hardly waited longer than before.
const LOWER: f64 = 0.5;
const RAISE: f64 = 1.15;

/// Up to this share of the limit, the limit rises.
const ROOM: f64 = 0.8;

/// The shares of the time that a group waited.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GroupWait {
    /// Before anything was freed.
    pub before: f64,
    /// From the first byte freed to the last look.
    pub beside: f64,
}

/// A time, and how much of it a group waited.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    length: Seconds,
    waited: Seconds,
}

impl Span {
    fn add(&mut self, more: Span) {
        self.length += more.length;
        self.waited += more.waited;
    }

    fn share(&self) -> Option<f64> {
        (self.length > Seconds::ZERO).then(|| self.waited / self.length)
    }
}

/// How a group waits, and how much of the goal that leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pressure {
    /// The most by which its share may rise.
    limit: Option<f64>,
    last: Option<(Time, Duration)>,
    now: Span,
    before: Span,
    beside: Span,
    factor: f64,
}

impl Pressure {
    pub(crate) fn new(limit: Option<f64>) -> Pressure {
        Pressure {
            limit,
            last: None,
            now: Span::default(),
            before: Span::default(),
            beside: Span::default(),
            factor: 1.0,
        }
    }

    /// Takes in a look at this moment.
    pub(crate) fn observe(&mut self, now: Time, seen: &Feedback<'_>) {
        let (Some(waited), Some(limit)) = (seen.pressure, self.limit) else {
            return;
        };
        let (then, before) = *self.last.get_or_insert((now, waited));
        // It is read now and then: until then nothing has changed.
        if waited == before && Seconds::from(now.since(then)) < STRETCH {
            return;
        }
        self.last = Some((now, waited));
        let span = Span {
            length: now.since(then).into(),
            waited: waited.saturating_sub(before).into(),
        };
        if seen.absent {
            return;
        }
        self.now.add(span);
        if seen.freed > 0 {
            self.beside.add(span);
        } else {
            self.before.add(span);
        }
        if self.now.length < STRETCH {
            return;
        }
        let stretch = std::mem::take(&mut self.now);
        let excess = stretch.share().unwrap_or(0.0) - self.before.share().unwrap_or(0.0);
        if excess > limit {
            self.factor = (self.factor * (limit / excess).max(LOWER)).max(LEAST);
        } else if excess < ROOM * limit {
            self.factor = (self.factor * RAISE).min(1.0);
        }
    }

    /// Returns the share of the goal that may be used now.
    pub(crate) fn factor(&self) -> f64 {
        self.factor
    }

    /// Returns how the group waited; `None` if nobody looked, or nothing was freed.
    pub(crate) fn waits(&self) -> Option<GroupWait> {
        Some(GroupWait {
            before: self.before.share()?,
            beside: self.beside.share()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second in which the group waits for this share of the time.
    fn second(
        pressure: &mut Pressure,
        at: &mut u64,
        waited: &mut Duration,
        share: f64,
        freed: u64,
    ) {
        for _ in 0..20 {
            *at += 50;
            *waited += Duration::from_millis(50).mul_f64(share);
            let seen = Feedback {
                freed,
                pressure: Some(*waited),
                ..Feedback::default()
            };
            pressure.observe(Time::from_nanos(*at * 1_000_000), &seen);
        }
    }

    #[test]
    fn a_group_that_waits_longer_gets_more_room_and_gives_it_back() {
        let mut pressure = Pressure::new(Some(0.05));
        let (mut at, mut waited) = (0, Duration::ZERO);
        for _ in 0..2 {
            second(&mut pressure, &mut at, &mut waited, 0.10, 0);
        }
        // 3 points more than before are within the 5.
        second(&mut pressure, &mut at, &mut waited, 0.13, 1);
        assert_eq!(pressure.factor(), 1.0);
        for _ in 0..3 {
            second(&mut pressure, &mut at, &mut waited, 0.50, 1);
        }
        let low = pressure.factor();
        assert!(low < 0.1, "{low}");
        let waits = pressure.waits().unwrap();
        assert!((waits.before - 0.10).abs() < 0.01, "{waits:?}");
        assert!(waits.beside > 0.3, "{waits:?}");
        for _ in 0..20 {
            second(&mut pressure, &mut at, &mut waited, 0.10, 1);
        }
        assert_eq!(pressure.factor(), 1.0);
    }

    #[test]
    fn without_a_group_nothing_changes() {
        let mut pressure = Pressure::new(None);
        let (mut at, mut waited) = (0, Duration::ZERO);
        second(&mut pressure, &mut at, &mut waited, 1.0, 1);
        assert_eq!((pressure.factor(), pressure.waits()), (1.0, None));
    }
}
