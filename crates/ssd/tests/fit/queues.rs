//! Several discards in flight: what one waits isn't what one takes.

use std::ops::Range;
use std::time::Duration;

use record::{DeviceKind, RunRecord};
use ssd::fit::fit;
use ssd::{Command, Drive, Time, profiles};
use testkit::harness::{Harness, Outcome, Pace, Pieces, Readers, Sample};

use crate::record::{put_on_a_loop, record};

const MIB: u64 = 1 << 20;

/// So many discards of a size, `depth` in flight (from `after` on one), as XFS
/// with blk-wbt sends them.
fn queued(profile: &str, mib: u64, discards: u64, depth: usize, after: u64) -> RunRecord {
    let card = profiles::by_name(profile).unwrap();
    let mut drive = Drive::new(card.figures().clone(), 1 << 42, 3);
    drive.premap(0..discards * mib * MIB);
    let start = Time::from_secs_f64(1.0);
    let piece = |i: u64| -> Vec<Range<u64>> {
        std::iter::once(i * mib * MIB..(i + 1) * mib * MIB).collect()
    };
    let (mut issued, mut flying) = (0, 0);
    let (mut now, mut done) = (start, Vec::new());
    let mut samples = Vec::new();
    while (samples.len() as u64) < discards {
        let wanted = if issued < after { depth } else { 1 };
        while issued < discards && flying < wanted {
            drive.submit(now, Command::Discard(piece(issued))).unwrap();
            (issued, flying) = (issued + 1, flying + 1);
        }
        now = drive.next_event().unwrap();
        drive.advance(now, &mut done);
        for completion in done.drain(..) {
            flying -= 1;
            samples.push(Sample {
                drive: 0,
                intended: completion.submitted,
                completed: completion.completed,
                bytes: mib * MIB,
            });
        }
    }
    let outcome = Outcome {
        length: now.since(Time::ZERO) + Duration::from_secs(1),
        reads: vec![],
        discards: samples,
        drives: vec![drive],
        ..Outcome::default()
    };
    record(&outcome, "xfs", Readers::None, start)
}

#[test]
fn what_waits_for_others_is_not_what_it_takes() {
    let truth = 0.976 + 0.00817 * 2048.0;
    for (depth, after) in [(4, 100), (4, 1000), (32, 1000), (1, 0)] {
        let record = queued("crucial-t500-2tb", 2048, 200, depth, after);
        let fit = fit(&[&record]).unwrap();
        let got = fit.service_us.value().unwrap() / 1e3;
        println!(
            "{depth} in flight: {got:.2} ms, not {truth:.2}; {:?}",
            fit.notes
        );
        assert!((got / truth - 1.0).abs() < 0.05, "{got}");
        let said = fit.notes.iter().any(|n| n.contains("in flight at once"));
        assert_eq!(said, after == 1000, "{:?}", fit.notes);
    }
}

#[test]
fn a_burst_that_is_over_at_once_is_only_bounded() {
    // 12 discards of 17.7 ms, 4 in flight: a fifth of a second.
    let record = queued("crucial-t500-2tb", 2048, 6, 4, 1000);
    let fit = fit(&[&record]).unwrap();
    assert_eq!(fit.of_verdict().service_us, None);
    let bound = fit.service_us.at_most().unwrap() / 1e3;
    assert!((17.0..80.0).contains(&bound), "{bound}");
    assert!(fit.service_us.why().unwrap().contains("only a bound"));
}

#[test]
fn paced_discards_of_xfs_may_have_been_queued() {
    // Alone in flight, but nobody knows: 20 ms between two of them.
    let card = profiles::by_name("crucial-t500-2tb").unwrap();
    let mut drive = Drive::new(card.figures().clone(), 1 << 40, 3);
    drive.premap(0..64 << 30);
    let start = Time::from_secs_f64(1.0);
    let pieces = Pieces::new(0..8 << 30, 128 << 20, Pace::Gap(Duration::from_millis(20)));
    let outcome = Harness::new(Readers::None, 1)
        .drive(drive, pieces.from(start))
        .run(Duration::from_secs(4))
        .unwrap();
    let mut record = record(&outcome, "xfs", Readers::None, start);
    assert_eq!(fit(&[&record]).unwrap().service_us.value(), None);
    // Whoever commits after each piece has one in flight, if a piece makes one.
    let mut committed = |chunk_bytes: u64| {
        let method = serde_json::json!({"truncate": {"fsync": true, "chunk_bytes": chunk_bytes}});
        record.head.scenario = serde_json::json!({"deletion": {"method": method}});
        fit(&[&record]).unwrap().service_us.value()
    };
    assert_eq!(committed(256 << 20), None);
    let got = committed(128 << 20).unwrap();
    assert!((got / 2022.0 - 1.0).abs() < 0.1, "{got}");
    // A loop device's file is in shorter extents, so each of its discards makes two below.
    put_on_a_loop(&mut record);
    let (mut seen, own) = (0, &mut record.intervals.devices[1]);
    for count in &mut own.discards {
        let before = seen / 2;
        seen += *count;
        *count = seen / 2 - before;
    }
    let mut committed = |kind| {
        record.head.devices[1].kind = kind;
        let method = serde_json::json!({"truncate": {"fsync": true, "chunk_bytes": 256 << 20}});
        record.head.scenario = serde_json::json!({"deletion": {"method": method}});
        fit(&[&record]).unwrap().service_us.value()
    };
    assert_eq!(committed(DeviceKind::Loop), Some(got));
    // Device mapper sends the parts of one at once.
    assert_eq!(committed(DeviceKind::Dm), None);
}
