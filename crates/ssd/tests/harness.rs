//! The harness itself: what a source of discards sees, and what is made of the
//! samples.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use ssd::drive::Refused;
use ssd::{Drive, Time, profiles};
use testkit::harness::{
    DiscardSource, Harness, Next, Outcome, Pace, Pieces, READ_BYTES, Readers, Sample, Seen,
};

const CLOSED: Readers = Readers::Closed {
    depth: 4,
    per_io: Duration::from_micros(5),
};

fn drive(name: &str) -> Drive {
    let card = profiles::by_name(name).unwrap();
    Drive::new(card.figures().clone(), 1 << 40, 1)
}

/// Backs off for 5 ms whenever it sees a read that waited for 1 ms.
struct Considerate {
    issued: u64,
    reads_seen: usize,
    slow_seen: usize,
    cleared: Option<Time>,
}

impl DiscardSource for &mut Considerate {
    fn next(&mut self, now: Time, seen: &Seen<'_>) -> Next {
        assert_eq!(seen.last_discard.is_some(), self.issued > 0);
        self.reads_seen += seen.reads.len();
        let slow = |r: &&Sample| r.latency() > Duration::from_millis(1);
        let slow = seen.reads.iter().filter(slow).count();
        self.slow_seen += slow;
        if slow > 0 {
            self.cleared = Some(now + Duration::from_millis(5));
        }
        match self.cleared {
            Some(cleared) if cleared > now => Next::At(cleared),
            _ => {
                self.issued += 1;
                let piece = 0..64 << 20;
                Next::Discard(vec![piece])
            }
        }
    }
}

#[test]
fn a_source_sees_every_read_once_and_can_react() {
    let run = |source: &mut Considerate| {
        let mut drive = drive("crucial-t500-2tb");
        drive.premap(0..1 << 40);
        Harness::new(CLOSED, 9)
            .drive(drive, source)
            .run(Duration::from_secs(1))
            .unwrap()
    };
    let fresh = || Considerate {
        issued: 0,
        reads_seen: 0,
        slow_seen: 0,
        cleared: None,
    };
    let mut source = fresh();
    let outcome = run(&mut source);
    let all_slow = outcome
        .reads
        .iter()
        .filter(|r| r.latency() > Duration::from_millis(1));
    // The last few may have completed after it was asked for the last time.
    let unseen = outcome.reads.len() - source.reads_seen;
    assert!(unseen < outcome.reads.len() / 50, "{unseen} reads unseen");
    assert!(source.slow_seen > 0 && source.slow_seen <= all_slow.count());
    // A discard and the pause after it take a little more than 5 ms.
    assert!(
        (100..250).contains(&source.issued),
        "{} discards",
        source.issued
    );

    let again = run(&mut fresh());
    assert_eq!(
        (again.reads, again.discards),
        (outcome.reads, outcome.discards)
    );
}

#[test]
fn an_open_loop_goes_on_whatever_the_drive_does() {
    let mut slow = drive("ocz-vertex-2");
    slow.premap(0..1 << 40);
    let discards = Pieces::new(
        0..100 << 20,
        1 << 20,
        Pace::Period(Duration::from_millis(100)),
    );
    let outcome = Harness::new(Readers::Open { per_s: 2_000.0 }, 4)
        .drive(slow, discards)
        .run(Duration::from_secs(10))
        .unwrap();
    // 20,000 ± 4 standard deviations; discards take half of the time.
    assert!(
        (19_430..20_570).contains(&outcome.reads.len()),
        "{}",
        outcome.reads.len()
    );
    assert_eq!(outcome.discards.len(), 100);
    let half = outcome.share_above(Duration::from_millis(1));
    assert!(
        (0.45..0.55).contains(&half),
        "{half} of the reads were slow"
    );
    let p99 = outcome.quantile(0.99).unwrap();
    assert!(
        p99 > Duration::from_millis(45) && p99 < Duration::from_millis(52),
        "{p99:?}"
    );
}

#[test]
fn a_refused_discard_ends_the_experiment() {
    let pieces = || Pieces::new(0..1 << 30, 1 << 30, Pace::Gap(Duration::ZERO));
    let run = |drive| {
        Harness::new(CLOSED, 1)
            .drive(drive, pieces())
            .run(Duration::from_secs(1))
    };
    assert_eq!(run(drive("no-trim")).unwrap_err(), Refused::NoDiscards);
    assert!(run(drive("ideal").clone()).is_ok());
}

#[test]
fn time_passes_even_where_nothing_takes_any() {
    struct Restless;
    impl DiscardSource for Restless {
        fn next(&mut self, now: Time, _: &Seen<'_>) -> Next {
            match now.as_nanos() % 3 {
                0 => Next::At(now),
                _ => Next::Discard(Vec::new()),
            }
        }
    }
    let readers = Readers::Closed {
        depth: 2,
        per_io: Duration::ZERO,
    };
    let outcome = Harness::new(readers, 1)
        .drive(drive("ideal"), Restless)
        .run(Duration::from_micros(3))
        .unwrap();
    assert!(outcome.reads.len() >= 5_000 && outcome.discards.len() >= 1_500);
    // An impossible rate is none.
    for per_s in [0.0, -1.0, f64::NAN] {
        let outcome = Harness::new(Readers::Open { per_s }, 1)
            .drive(
                drive("ideal"),
                Pieces::new(0..0, 1, Pace::Gap(Duration::ZERO)),
            )
            .run(Duration::from_secs(1))
            .unwrap();
        assert!(outcome.reads.is_empty());
    }
}

/// An outcome of one drive with these reads in each 100 ms.
fn outcome(reads: &[u64]) -> Outcome {
    let tenth = 100_000_000;
    let sample = |i: usize| Sample {
        drive: 0,
        intended: Time::from_nanos(i as u64 * tenth),
        completed: Time::from_nanos(i as u64 * tenth + 1000),
        bytes: READ_BYTES,
    };
    Outcome {
        length: Duration::from_nanos(reads.len() as u64 * tenth),
        reads: (0..reads.len())
            .flat_map(|i| (0..reads[i]).map(move |_| sample(i)))
            .collect(),
        ..Outcome::default()
    }
}

#[test]
fn the_longest_stall_is_told_with_its_edges() {
    let tenth = Duration::from_millis(100);
    let two = outcome(&[100, 10, 10, 10, 10, 60, 100, 20, 100, 100]);
    let stall = two.stall(tenth, 1000.0).unwrap();
    assert!((stall.depth - 0.1).abs() < 1e-9);
    assert!(
        (stall.lost_s - (4.0 * 0.09 + 0.04)).abs() < 1e-9,
        "{stall:?}"
    );
    assert!(
        (stall.seconds - (0.4 + 0.1 * 0.4 / 0.9)).abs() < 1e-9,
        "{stall:?}"
    );
    assert_eq!(outcome(&[100, 60, 100]).stall(tenth, 1000.0), None);
    assert_eq!(outcome(&[]).stall(tenth, 1000.0), None);

    // At the ends of the record, and without any read.
    let dead = outcome(&[0, 0]).stall(tenth, 1000.0).unwrap();
    assert_eq!((dead.seconds, dead.depth, dead.lost_s), (0.2, 0.0, 0.2));
    assert!(outcome(&[1]).intervals(Duration::from_secs(1)).is_empty());
}

/// Counts what it is shown of the drive, and discards a little now and then.
#[derive(Default)]
struct Onlooker {
    seen: Vec<(Time, testkit::harness::Counters, usize)>,
    ours: usize,
    waits: bool,
}

impl DiscardSource for &mut Onlooker {
    fn next(&mut self, now: Time, seen: &Seen<'_>) -> Next {
        self.seen.push((now, seen.counters, seen.canary.len()));
        self.waits = !self.waits;
        if self.waits {
            return Next::At(now + Duration::from_millis(20));
        }
        self.ours += 1;
        let start = self.ours as u64 * (64 << 20);
        Next::Discard(std::iter::once(start..start + (64 << 20)).collect())
    }
}

#[test]
fn two_discard_on_one_drive_and_each_sees_what_it_did() {
    let (mut one, mut other) = (Onlooker::default(), Onlooker::default());
    let outcome = Harness::new(CLOSED, 9)
        .canary(Duration::from_millis(1))
        .drive(drive("crucial-t500-2tb"), &mut one)
        .beside(&mut other)
        .run(Duration::from_secs(1))
        .unwrap();
    let last = one.seen.last().unwrap().1;
    // The other's last may have completed after it was asked for the last time.
    assert!(
        outcome.discards.len() as u64 - last.commands <= 2,
        "{last:?}"
    );
    assert!(
        one.ours > 30 && other.ours > 30,
        "{} and {}",
        one.ours,
        other.ours
    );
    assert_eq!(last.bytes, last.commands * (64 << 20));
    let busy: Duration = outcome.discards.iter().map(Sample::latency).sum();
    assert!(last.busy <= busy && last.busy > busy.mul_f64(0.9));
    // Every read of the canary is seen once, and none of them is the foreground's.
    assert_eq!(outcome.canary.len(), 1000);
    let shown: usize = one.seen.iter().map(|s| s.2).sum();
    assert!(shown > 950 && shown <= 1000, "{shown}");
    let on_time = |r: &Sample| r.intended.as_nanos().is_multiple_of(1_000_000);
    assert!(outcome.canary.iter().all(on_time) && !outcome.reads.iter().all(on_time));
}

#[test]
fn readers_come_and_go_and_a_drive_changes() {
    let at = Time::from_secs_f64;
    let fast = drive("crucial-t500-2tb");
    let mut slow = fast.figures().clone();
    slow.read.latency *= 10;
    let nobody = || Pieces::new(0..0, 1, Pace::Gap(Duration::ZERO));
    let outcome = Harness::new(CLOSED, 9)
        .reading(vec![at(0.1)..at(0.2), at(0.5)..at(0.8)])
        .drive(fast, nobody())
        .change(at(0.7), slow)
        .run(Duration::from_secs(1))
        .unwrap();
    let reads: Vec<u64> = outcome
        .intervals(Duration::from_millis(100))
        .iter()
        .map(|i| i.reads)
        .collect();
    let [before, there, gone, .., usual, slower, after, _] = reads[..] else {
        panic!("{reads:?}")
    };
    // Four were under way when they left.
    assert!(before == 0 && gone <= 4 && after <= 4, "{reads:?}");
    assert!(
        there > 1000 && usual > 1000 && slower * 5 < usual,
        "{reads:?}"
    );
}
