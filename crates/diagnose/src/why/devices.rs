//! What the devices' statistics say: does a device's discarding keep others waiting, and does it
//! complete anything at all?

use linux::mounts::DeviceNumber;

use super::observe::{Did, Observation};
use super::report::DeviceWork;
use super::spans::Spans;

/// A device that completes nothing for so long hangs, in seconds, unless it is in a discard.
const HANGS_S: f64 = 1.0;

/// In a discard it hangs after so long, and after so many times the mean of the others.
const HANGS_IN_DISCARD: (f64, f64) = (3.0, 10.0);

/// A stretch counts as one of discards if they were in flight for this share of it, and as one
/// without below the other.
const WITH: f64 = 0.5;
const WITHOUT: f64 = 0.05;

/// Reads and writes wait for discards if their wait is so many times that without them,
const TIMES: f64 = 1.5;
/// and such a share of a discard's own: one that comes at a random moment waits for half of it. Or
/// so many of them at least wait at each moment of the discards, on average.
const SHARE: f64 = 0.25;

/// In stretches that discards cover to this share, no fast reads between discards hide others.
const WHOLE: f64 = 0.9;

/// Fewer reads and writes than this tell little.
const FEW: u64 = 20;

/// A stretch without discards is a comparison if at most so many times as many requests were in
/// flight: those of a bulk of writeback wait for each other.
const DEEPER: f64 = 2.0;

/// Waits of reads and writes in some stretches.
#[derive(Debug, Default, Clone, Copy)]
struct Waits {
    operations: u64,
    ms: u64,
    seconds: f64,
}

impl Waits {
    fn of<'a>(all: impl IntoIterator<Item = &'a Did>) -> Waits {
        let mut waits = Waits::default();
        for did in all {
            waits.operations += did.work.reads + did.work.writes;
            waits.ms += did.work.read_ms + did.work.write_ms;
            waits.seconds += did.seconds;
        }
        waits
    }

    /// The mean number of requests in flight.
    fn depth(self) -> f64 {
        self.ms as f64 / 1e3 / self.seconds.max(1e-9)
    }

    fn mean_ms(self) -> Option<f64> {
        mean(self.ms, self.operations)
    }

    /// Whether some of these waited for discards, though the mean doesn't show it: a closed loop
    /// completes thousands between two discards, and one behind each.
    ///
    /// The sum of their waits shows it. It exceeds `usual_ms` for each by the time for which
    /// discards kept some of them in flight (Little's law). A burst of requests that wait for each
    /// other exceeds it, too, but completes more than without discards.
    fn hides(self, without: &Waits, usual_ms: f64, discarding_s: f64) -> bool {
        let excess_ms = self.ms as f64 - self.operations as f64 * usual_ms;
        excess_ms >= SHARE * discarding_s * 1e3 && self.per_s() <= without.per_s()
    }

    fn per_s(self) -> f64 {
        self.operations as f64 / self.seconds.max(1e-9)
    }
}

fn mean(ms: u64, operations: u64) -> Option<f64> {
    (operations > 0).then(|| ms as f64 / operations as f64)
}

/// Whether reads and writes of a device wait for its discards. `None`: there were none beside
/// discards, or too few to tell, or nothing to compare fast ones with.
pub(super) fn slows_others(all: &[Did], discards: &Spans) -> Option<bool> {
    let covered_s = |did: &Did| discards.covered(did.at_s - did.seconds, did.at_s);
    let share = |did: &Did| covered_s(did) / did.seconds.max(1e-9);
    let beside: Vec<&Did> = all.iter().filter(|did| share(did) >= WITH).collect();
    let with = Waits::of(beside.iter().copied());
    let discarding_s: f64 = beside.iter().map(|did| covered_s(did)).sum();
    let deepest = DEEPER * with.depth().max(1.0);
    let alike = |did: &&Did| {
        let one = Waits::of([*did]);
        share(did) <= WITHOUT && one.operations > 0 && one.depth() <= deepest
    };
    let without = Waits::of(all.iter().filter(alike));
    let count = all.iter().map(|did| did.work.discards).sum::<u64>();
    let ms = all.iter().map(|did| did.work.discard_ms).sum();
    let mean_ms = with.mean_ms()?;
    // Discards that are queued wait for each other: each takes its share of the time alone.
    let alone = discards.length_s() * 1e3 / count.max(1) as f64;
    let own = mean(ms, count)?.min(alone);
    let long = mean_ms >= SHARE * own;
    // Few tell little.
    let usual_ms = without.mean_ms().filter(|_| without.operations >= FEW);
    let slows = match usual_ms {
        Some(usual_ms) => {
            let slower = mean_ms >= TIMES * usual_ms.max(0.01);
            slower && (long || with.hides(&without, usual_ms, discarding_s))
        }
        // Between discards there was time for fast ones, behind which others may hide.
        None if !long && discarding_s < WHOLE * with.seconds => return None,
        None => long,
    };
    // A few beside discards don't acquit them.
    (slows || with.operations >= FEW).then_some(slows)
}

/// When a device had something in flight and completed nothing.
pub(super) fn hung(all: &[Did], discards: &Spans) -> Spans {
    let discard_ms: Vec<(u64, u64)> = all
        .iter()
        .filter(|did| did.work.discards > 0)
        .map(|did| (did.work.discard_ms, did.work.discards))
        .collect();
    let longest = discard_ms.iter().map(|one| one.0).max().unwrap_or(0);
    let sum: u64 = discard_ms.iter().map(|one| one.0).sum();
    let count: u64 = discard_ms.iter().map(|one| one.1).sum();
    let usual_s = mean(sum - longest, count.saturating_sub(1)).map(|ms| ms / 1e3);
    let mut spans = Spans::default();
    let mut quiet: Option<(f64, f64)> = None;
    let mut end = |quiet: &mut Option<(f64, f64)>| {
        let Some((from, to)) = quiet.take() else {
            return;
        };
        let length = to - from;
        let in_discard = discards.covered(from, to) >= length / 2.0;
        let hangs = match in_discard {
            false => length >= HANGS_S,
            true => usual_s.is_some_and(|usual| {
                length >= HANGS_IN_DISCARD.0 && length >= HANGS_IN_DISCARD.1 * usual
            }),
        };
        if hangs {
            spans.add(from, to);
        }
    };
    for did in all {
        let work = &did.work;
        let nothing = work.reads + work.writes + work.discards + did.flushes.0 == 0;
        if nothing && work.in_flight > 0 {
            let from = quiet.map_or(did.at_s - did.seconds, |one| one.0);
            quiet = Some((from, did.at_s));
        } else {
            end(&mut quiet);
        }
    }
    end(&mut quiet);
    spans.join();
    spans
}

/// The work of each device that did something.
pub(super) fn work(observation: &Observation) -> Vec<DeviceWork> {
    let mut all: Vec<(&DeviceNumber, &Vec<Did>)> = observation.devices.iter().collect();
    all.sort_by_key(|one| one.0);
    let none = Spans::default();
    let mut found = Vec::new();
    for (number, did) in all {
        let sum = |of: fn(&Did) -> u64| did.iter().map(of).sum::<u64>();
        let discards = observation.trace.discards.get(number).unwrap_or(&none);
        let in_flight = observation
            .trace
            .in_flight
            .get(number)
            .copied()
            .unwrap_or_default();
        let work = DeviceWork {
            device: observation.disks.name(*number),
            reads: sum(|did| did.work.reads),
            read_ms: mean(sum(|did| did.work.read_ms), sum(|did| did.work.reads)),
            writes: sum(|did| did.work.writes),
            write_ms: mean(sum(|did| did.work.write_ms), sum(|did| did.work.writes)),
            discards: sum(|did| did.work.discards),
            discard_bytes: sum(|did| did.work.discard_bytes),
            discard_ms: mean(sum(|did| did.work.discard_ms), sum(|did| did.work.discards)),
            flushes: sum(|did| did.flushes.0),
            flush_ms: mean(sum(|did| did.flushes.1), sum(|did| did.flushes.0)),
            discards_in_flight: in_flight.0,
            in_flight_bytes: in_flight.1,
            discarding_s: discards.length_s(),
            slows_others: slows_others(did, discards),
        };
        if work.reads + work.writes + work.discards + work.flushes > 0 || work.discarding_s > 0.0 {
            found.push(work);
        }
    }
    found.sort_by(|a, b| b.discarding_s.total_cmp(&a.discarding_s));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::DeviceInterval;

    fn did(at: u32, reads: u64, read_ms: u64, discards: u64, discard_ms: u64) -> Did {
        Did {
            at_s: f64::from(at) / 10.0,
            seconds: 0.1,
            work: DeviceInterval {
                reads,
                read_ms,
                discards,
                discard_ms,
                in_flight: 1,
                ..DeviceInterval::default()
            },
            flushes: (0, 0),
        }
    }

    fn spans(from: f64, to: f64) -> Spans {
        let mut spans = Spans::default();
        spans.add(from, to);
        spans.join();
        spans
    }

    #[test]
    fn a_drive_that_serves_reads_beside_discards_slows_nobody() {
        let slow: Vec<Did> = (1..=10).map(|i| did(i, 100, 10, 0, 0)).collect();
        let mut all = slow.clone();
        // Reads as fast as before beside discards of 25 ms.
        all.extend((11..=20).map(|i| did(i, 100, 10, 4, 100)));
        assert_eq!(slows_others(&all, &spans(1.0, 2.0)), Some(false));
        // Reads that wait as long as the discards take.
        let mut all = slow.clone();
        all.extend((11..=20).map(|i| did(i, 4, 100, 4, 100)));
        assert_eq!(slows_others(&all, &spans(1.0, 2.0)), Some(true));
        // The same, with many discards queued at once, as XFS sends them.
        let mut all = slow.clone();
        all.extend((11..=20).map(|i| did(i, 4, 100, 4, 2000)));
        assert_eq!(slows_others(&all, &spans(1.0, 2.0)), Some(true));
        // A bulk of writes before the discards, each of which waits for the others.
        let mut all: Vec<Did> = (1..=10).map(|i| did(i, 500, 50_000, 0, 0)).collect();
        all.extend((11..=20).map(|i| did(i, 4, 100, 4, 100)));
        assert_eq!(slows_others(&all, &spans(1.0, 2.0)), Some(true));
        // None were read meanwhile.
        let mut all = slow;
        all.extend((11..=20).map(|i| did(i, 0, 0, 4, 100)));
        assert_eq!(slows_others(&all, &spans(1.0, 2.0)), None);
    }

    /// Ten stretches without discards, and ten of which two discards of 30 ms each cover three
    /// fifths; reads and the sum of their waits in each.
    fn beside_short_discards(without: (u64, u64), with: (u64, u64)) -> Option<bool> {
        let mut all: Vec<Did> = (1..=10)
            .map(|i| did(i, without.0, without.1, 0, 0))
            .collect();
        all.extend((11..=20).map(|i| did(i, with.0, with.1, 2, 60)));
        let mut discards = Spans::default();
        for i in 0..20 {
            let from_s = 1.0 + f64::from(i) * 0.05;
            discards.add(from_s, from_s + 0.03);
        }
        discards.join();
        slows_others(&all, &discards)
    }

    #[test]
    fn fast_reads_between_discards_do_not_hide_the_blocked_ones() {
        // A closed loop: 400 reads of 0.1 ms between two discards, and one behind each.
        assert_eq!(beside_short_discards((1000, 100), (402, 100)), Some(true));
        // The same of a program that computes for ten times as long after each.
        assert_eq!(beside_short_discards((100, 10), (42, 64)), Some(true));
        // Nothing says how fast reads are without discards.
        assert_eq!(beside_short_discards((0, 0), (402, 100)), None);
    }

    #[test]
    fn reads_that_are_slow_by_themselves_acquit_discards() {
        // One after the other.
        assert_eq!(beside_short_discards((1000, 100), (1000, 100)), Some(false));
        assert_eq!(beside_short_discards((10, 100), (9, 100)), Some(false));
        // Many at once, by the drive's own limit.
        assert_eq!(beside_short_discards((80, 3200), (75, 3200)), Some(false));
        // A burst of writes that wait for each other.
        assert_eq!(beside_short_discards((10, 1), (200, 1000)), Some(false));
    }

    #[test]
    fn a_device_that_completes_nothing_hangs_unless_it_discards() {
        let all: Vec<Did> = (1..=30)
            .map(|i| did(i, u64::from(i <= 5), 0, 0, 0))
            .collect();
        assert!((hung(&all, &Spans::default()).length_s() - 2.5).abs() < 1e-9);
        assert_eq!(hung(&all, &spans(0.5, 3.0)).length_s(), 0.0);
        // Nothing is in flight: it is idle.
        let mut idle = all.clone();
        idle.iter_mut().for_each(|did| did.work.in_flight = 0);
        assert_eq!(hung(&idle, &Spans::default()).length_s(), 0.0);
        // A discard a hundred times as long as the others hangs, too.
        let mut long: Vec<Did> = (1..=10).map(|i| did(i, 0, 0, 4, 40)).collect();
        long.extend((11..=60).map(|i| did(i, 0, 0, 0, 0)));
        assert!(hung(&long, &spans(0.0, 6.0)).length_s() > 4.9);
    }
}
