//! A look at everything, at a boundary of the grid.

use std::sync::atomic::Ordering;
use std::time::Duration;

use load::{Actor, Nanos};
use record::absence::Absent;
use record::{ActorInterval, Interval, Line};

use super::Session;
use super::presence::join;
use crate::watched::WatchedDevice;

/// Longest sleep without a look at the stop flag.
const NAP: Duration = Duration::from_millis(100);

/// The run must stop: the user asked for it, or something that it needs has failed
/// (`Session::failure`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

/// The findings of one look, as the script needs them.
#[derive(Debug, Clone)]
pub(crate) struct Tick {
    /// The interval's end, since the record's zero.
    pub(crate) now: Duration,
    /// Operations per second of each running actor in the interval; `None` if this process
    /// was away, so that nobody knows.
    pub(crate) ops_per_s: Option<Vec<f64>>,
    /// Bytes that actors wrote in it.
    pub(crate) written_bytes: u64,
    /// Bytes handed over to be freed in the interval.
    pub(crate) freed_bytes: u64,
    /// Bytes discarded in it.
    pub(crate) discarded_bytes: u64,
}

impl Session<'_> {
    /// Sleeps to the next boundary and writes down what happened since the last.
    pub(crate) fn tick(&mut self) -> Result<Tick, Stopped> {
        let stopped = self.sleep_to_boundary();
        let tick = self.sample();
        if stopped { Err(Stopped) } else { Ok(tick) }
    }

    /// The same without sleeping: does nothing when no boundary has passed.
    pub(crate) fn tick_if_due(&mut self) -> Result<(), Stopped> {
        let boundary = self.grid.next_after(Duration::from_nanos(self.last.0));
        if Duration::from_nanos(self.clock.now().0) >= boundary {
            self.sample();
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        Ok(())
    }

    /// Writes down what happened since the last look.
    fn sample(&mut self) -> Tick {
        let (now, absent, mut actors) = self.sample_actors();
        let seconds = now.since(self.last).as_secs_f64();

        let freed = self
            .deletion
            .as_ref()
            .map_or(0, |d| d.progress().freed_bytes);
        let freed_bytes = freed.saturating_sub(self.freed_bytes);
        self.freed_bytes = self.freed_bytes.max(freed);
        let counts = per_actor(&self.actors, &actors);
        let written = actors.iter().zip(&self.series);
        let written = written.filter(|(_, series)| series.writes());
        let written_bytes = written
            .filter_map(|(row, _)| Some(row.as_ref()?.bytes))
            .sum();
        actors.resize(self.record.head.actors.len(), None);
        let mut cpu_wait: Vec<_> = Vec::with_capacity(actors.len());
        let waits = self.presence.cpu_waits(&self.actors, seconds);
        for (actor, wait) in self.actors.iter().zip(waits) {
            let wait = wait.filter(|_| absent.is_none());
            cpu_wait.extend(actor.series().iter().map(|_| wait));
        }
        if cpu_wait.iter().any(Option::is_some) {
            cpu_wait.resize(actors.len(), None);
        } else {
            cpu_wait.clear();
        }
        let interval = Interval {
            at_s: self.last.as_secs_f64(),
            seconds,
            actors,
            devices: self
                .devices
                .iter_mut()
                .map(WatchedDevice::interval)
                .collect(),
            freed_bytes,
            absent,
            cpu_wait,
        };
        let foreground = counts.first().copied().unwrap_or_default();
        let discarded_bytes = self.discarded.add(&interval.devices);
        self.most_discarded_bytes = self.most_discarded_bytes.max(discarded_bytes);
        self.second.ops += foreground.ops;
        self.second.discarded_bytes += discarded_bytes;
        self.second.oldest_us = foreground.oldest_us;
        if absent.is_some() {
            self.second.away_s += seconds;
        }
        self.last = now;
        self.line(Line::Interval(interval));
        self.end_second_if_due();

        Tick {
            now: Duration::from_nanos(now.0),
            ops_per_s: absent
                .is_none()
                .then(|| counts.iter().map(|c| c.ops as f64 / seconds).collect()),
            written_bytes,
            freed_bytes,
            discarded_bytes,
        }
    }

    /// Reads the actors' meters; of an interval with an absence nothing counts. Whether there was
    /// one is asked before and after, for the process can be stopped while it reads.
    fn sample_actors(&mut self) -> (Nanos, Option<Absent>, Vec<Option<ActorInterval>>) {
        let mut absent = self.presence.absent(&self.actors, self.clock);
        loop {
            let now = self.clock.now();
            // Writers that wait for an allowance aren't slow.
            let waiting = self.allowance.as_ref().is_some_and(|a| a.is_spent());
            let series = self.series.iter_mut();
            let actors = series.map(|series| match absent {
                None if !(waiting && series.writes()) => Some(series.sample(now)),
                _ => series.leave_out(now),
            });
            let actors = actors.collect();
            match self.presence.absent(&self.actors, self.clock) {
                None => return (now, absent, actors),
                Some(more) => absent = Some(absent.map_or(more, |before| join(before, more))),
            }
        }
    }

    /// Ticks until so much time has passed in which this process was there.
    pub(crate) fn tick_for(&mut self, time: Duration) -> Result<(), Stopped> {
        let mut end = self.last.plus(time);
        while self.last < end {
            let before = self.last;
            if self.tick()?.ops_per_s.is_none() {
                end = end.plus(Duration::from_nanos(self.last.since(before).0));
            }
        }
        Ok(())
    }

    /// Whether the stop flag was seen.
    fn sleep_to_boundary(&self) -> bool {
        let now = Duration::from_nanos(self.clock.now().0);
        let boundary = self.grid.next_after(now);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return true;
            }
            let now = Duration::from_nanos(self.clock.now().0);
            let left = boundary.saturating_sub(now);
            if left.is_zero() {
                return false;
            }
            let nap = left.min(NAP);
            self.clock.sleep_until(self.clock.now().plus(nap));
        }
    }
}

/// The operations of an actor in an interval, over all of its series.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    ops: u64,
    oldest_us: Option<f64>,
}

fn per_actor(actors: &[Actor], intervals: &[Option<ActorInterval>]) -> Vec<Counts> {
    let mut rest = intervals.iter();
    let counts = |actor: &Actor| {
        let own = rest.by_ref().take(actor.series().len());
        own.flatten().fold(Counts::default(), |sum, one| Counts {
            ops: sum.ops + one.ops,
            oldest_us: [sum.oldest_us, one.oldest_us]
                .into_iter()
                .flatten()
                .reduce(f64::max),
        })
    };
    actors.iter().map(counts).collect()
}

/// Boundaries at whole multiples of the interval since the record's zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    interval: Duration,
}

impl Grid {
    /// A grid of this pitch, which must not be zero.
    pub(crate) fn new(interval: Duration) -> Self {
        assert!(!interval.is_zero(), "an interval has a length");
        Grid { interval }
    }

    /// Its pitch.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// The first boundary after `now`. One that was slept through is not made up
    /// for: the interval that it would have ended is recorded as longer.
    pub(crate) fn next_after(&self, now: Duration) -> Duration {
        let pitch = self.interval.as_nanos();
        let passed = now.as_nanos() / pitch;
        let nanos = (passed + 1) * pitch;
        Duration::new(
            u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX),
            (nanos % 1_000_000_000) as u32,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn boundaries_stay_on_the_grid() {
        let grid = Grid::new(100 * MS);
        assert_eq!(grid.next_after(Duration::ZERO), 100 * MS);
        assert_eq!(grid.next_after(99 * MS), 100 * MS);
        assert_eq!(grid.next_after(100 * MS), 200 * MS);
    }

    #[test]
    fn a_boundary_slept_through_is_skipped() {
        let grid = Grid::new(100 * MS);
        assert_eq!(grid.next_after(350 * MS), 400 * MS);
    }
}
