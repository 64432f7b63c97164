//! Whatever a record says, fitting it neither panics nor makes up figures.

use std::time::Duration;

use proptest::prelude::*;
use record::{ActorInterval, DeviceInterval, Interval, Intervals};
use ssd::fit::{FitError, Made, fit};
use ssd::profiles;
use testkit::harness::Readers;

use crate::ladders::run;
use crate::record::head;

const READERS: Readers = Readers::Closed {
    depth: 8,
    per_io: Duration::from_micros(10),
};

#[test]
fn without_discards_there_is_nothing_to_fit() {
    let card = profiles::by_name("crucial-t500-2tb").unwrap();
    let mut record = run(card, 128, 10, Duration::from_micros(50), READERS);
    for device in &mut record.intervals.devices {
        device.discards.fill(0);
        device.discard_bytes.fill(0);
    }
    assert_eq!(fit(&[&record]), Err(FitError::NoDiscards));
    assert_eq!(fit(&[]), Err(FitError::NoDiscards));
}

prop_compose! {
    fn row()(at_s in prop_oneof![0.0..100.0_f64, Just(f64::MAX)], seconds in prop_oneof![0.0..2.0_f64, Just(0.0), Just(1e30)],
             discards in prop_oneof![0..100_u64, Just(u64::MAX)], bytes in prop_oneof![0..1_u64 << 40, Just(u64::MAX)],
             ms in prop_oneof![0..1000_u64, Just(u64::MAX)], reads in 0..100_000_u64) -> Interval {
        Interval {
            at_s,
            seconds,
            actors: vec![Some(ActorInterval { ops: reads, ..ActorInterval::default() })],
            devices: vec![DeviceInterval {
                reads,
                read_ms: ms,
                discards,
                discard_bytes: bytes,
                discard_ms: ms,
                ..DeviceInterval::default()
            }],
            freed_bytes: bytes, ..Interval::default() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn absurd_records_are_survived(rows in prop::collection::vec(row(), 0..30), fs in "ext4|xfs") {
        let card = profiles::by_name("crucial-t500-2tb").unwrap();
        let mut record = run(card, 128, 2, Duration::from_micros(50), READERS);
        record.head = head(&fs, READERS, 1);
        record.phases.clear();
        record.intervals = Intervals::new(1, 1);
        rows.iter().for_each(|row| record.intervals.push(row));
        let Ok(fit) = fit(&[&record, &record]) else { return Ok(()) };
        let told = fit.of_verdict();
        for figure in [told.a_us, told.b_us_per_mib, told.phi, told.service_us, told.at_mib] {
            prop_assert!(figure.is_none_or(|f| f.is_finite() && f >= 0.0), "{told:?}");
        }
        let made = Made { name: "x".into(), drive: "x".into(), when: "x".into() };
        if let Ok(card) = fit.card(&made) {
            prop_assert!(card.to_string().parse::<ssd::Card>().is_ok());
        }
    }
}
