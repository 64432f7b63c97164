//! The drives measured in 2024, rebuilt as records: with and without phases,
//! at one second and at a tenth of it, with edges in the middle of an interval.

use super::build::{Build, Device, drive, level, reader};
use crate::verdict::{BaselineFrom, Finding, Reason, Verdict};
use record::units::{GIB, MIB};

/// A measured drive that stalls.
struct Row {
    base: f64,
    stalled: f64,
    discards_per_s: f64,
    bytes_each: f64,
    wait_ms: f64,
    drives: usize,
    stall_s: f64,
    lost_s: f64,
    trim_gib_s: f64,
}

const EVO_870: Row = Row {
    base: 57_590.0,
    stalled: 4_832.0,
    discards_per_s: 606.0,
    bytes_each: 71.5 / 606.0 * GIB as f64,
    wait_ms: 1.58,
    drives: 1,
    stall_s: 15.0,
    lost_s: 13.7,
    trim_gib_s: 71.5,
};
const T500: Row = Row {
    base: 92_080.0,
    stalled: 3_920.0,
    discards_per_s: 490.0,
    bytes_each: 127.7 * MIB as f64,
    wait_ms: 1.99,
    drives: 1,
    stall_s: 16.9,
    lost_s: 16.2,
    trim_gib_s: 61.1,
};
const T500_RAID0: Row = Row {
    base: 151_700.0,
    stalled: 480.0,
    discards_per_s: 55.0,
    bytes_each: 2.0 * GIB as f64,
    wait_ms: 17.8,
    drives: 2,
    stall_s: 4.75,
    lost_s: 4.73,
    trim_gib_s: 220.0,
};

impl Row {
    /// Begins to discard at 19.37 s: in the middle of an interval.
    fn build(&self, interval_s: f64, phases: bool) -> Build {
        let (begin, end) = (19.37, 19.37 + self.stall_s);
        let rate = vec![level(0.0..60.0, self.base), level(begin..end, self.stalled)];
        let discards = vec![level(begin..end, self.discards_per_s)];
        let mut it = Build::new(
            interval_s,
            60.0,
            reader(rate),
            drive(discards, self.bytes_each, self.wait_ms),
        );
        let mut md = Device {
            name: "md0".into(),
            leaf: false,
            ..drive(vec![], 0.0, 0.0)
        };
        for i in 1..self.drives {
            it.devices.push(Device {
                name: format!("sd{i}"),
                ..it.devices[0].clone()
            });
        }
        md.level = 0;
        it.devices.push(md);
        if phases {
            let bytes = self.discards_per_s * self.bytes_each * self.stall_s * self.drives as f64;
            it = it.phases(17.0, end + 2.1, bytes as u64);
        }
        it
    }

    fn check(&self, verdict: &Verdict, interval_s: f64) {
        assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
        let foreground = &verdict.foreground[0];
        let stall = foreground.stall.unwrap();
        assert!(
            (stall.seconds - self.stall_s).abs() <= interval_s,
            "{stall:?}"
        );
        assert!(
            (stall.longest_s - self.stall_s).abs() <= interval_s,
            "{stall:?}"
        );
        assert!(
            (stall.depth - self.stalled / self.base).abs() <= 0.01,
            "{stall:?}"
        );
        assert!(
            (stall.lost_s - self.lost_s).abs() <= interval_s,
            "{stall:?}"
        );
        assert!((foreground.baseline.ops_per_s.unwrap() / self.base - 1.0).abs() < 0.001);
        assert!((foreground.ops_ratio.unwrap() - self.stalled / self.base).abs() <= 0.01);
        let discard = &verdict.discard;
        let rate = discard.bytes_per_s.unwrap() / GIB as f64;
        assert!((rate / self.trim_gib_s - 1.0).abs() < 0.03, "{rate}");
        assert!(!discard.bytes_per_s_is_lower_bound);
        let await_ms = discard.await_us.unwrap() / 1e3;
        // The kernel counts waits in whole milliseconds.
        assert!(
            (await_ms - self.wait_ms).abs() < 0.02 * self.wait_ms,
            "{await_ms}"
        );
        let active_s = discard.active_s.unwrap();
        assert!(
            (active_s - self.stall_s).abs() <= 2.0 * interval_s,
            "{active_s}"
        );
        assert!(foreground.dips.is_empty(), "{:?}", foreground.dips);
        assert!(verdict.reasons.is_empty(), "{:?}", verdict.reasons);
        let fit = verdict.fit.unwrap();
        assert!((fit.service_us.unwrap() / 1e3 - self.wait_ms).abs() < 0.02 * self.wait_ms);
        let per_discard = self.stalled / self.discards_per_s / self.drives as f64;
        let ops_per_discard = fit.ops_per_discard.unwrap();
        assert!(
            (ops_per_discard / per_discard - 1.0).abs() < 0.05,
            "{ops_per_discard}"
        );
        assert_eq!(fit.barrier, (self.drives == 1).then_some(true));
    }
}

#[test]
fn drives_that_stall() {
    for (name, row) in [
        ("870 EVO", EVO_870),
        ("T500", T500),
        ("2×T500 raid0", T500_RAID0),
    ] {
        for interval_s in [1.0, 0.1, 0.01] {
            for phases in [false, true] {
                println!("{name} at {interval_s} s, phases: {phases}");
                let verdict = row.build(interval_s, phases).verdict();
                println!("{}", verdict.summary);
                // The table above has three digits, so below that an interval can't be asked for.
                row.check(&verdict, interval_s.max(0.06));
                let from = verdict.foreground[0].baseline_from;
                let expected = if phases {
                    BaselineFrom::Phase
                } else {
                    BaselineFrom::BeforeFirstDiscard
                };
                assert_eq!(from, Some(expected));
            }
        }
    }
}

/// Freed at once, first discard after 2.37 s, debt paid when the stall ends.
#[test]
fn debt_is_followed() {
    let verdict = T500.build(0.1, true).verdict();
    let discard = verdict.discard;
    let bytes = verdict.deletion.unwrap().bytes;
    assert_eq!(discard.debt_max_bytes, Some(bytes));
    assert!(
        (discard.first_discard_lag_s.unwrap() - 2.3).abs() < 0.15,
        "{discard:?}"
    );
    assert!(
        (discard.drain_s.unwrap() - (2.27 + 16.9 * 0.99)).abs() < 0.2,
        "{discard:?}"
    );
}

/// Samsung 980 PRO: 512 GiB in a second, which costs reads 8.6 % of it.
#[test]
fn a_drive_that_does_not_stall() {
    for interval_s in [1.0, 0.1] {
        for phases in [false, true] {
            let (base, slower) = (102_091.0, 93_363.0);
            let rate = vec![level(0.0..40.0, base), level(18.0..19.0, slower)];
            // All of it is done in one interval of the log.
            let discards = vec![level(18.0..19.0, 131.0)];
            let device = drive(discards, 3.9 * GIB as f64, 10.1);
            let mut it = Build::new(interval_s, 40.0, reader(rate), device);
            if phases {
                it = it.phases(16.0, 21.1, (131.0 * 3.9 * GIB as f64) as u64);
            }
            let verdict = it.verdict();
            assert_eq!(verdict.verdict, Finding::None, "{}", verdict.summary);
            let foreground = &verdict.foreground[0];
            assert_eq!(foreground.stall, None);
            assert!(
                (foreground.lost_s.unwrap() - 0.086).abs() < 0.01,
                "{:?}",
                foreground.lost_s
            );
            assert!((foreground.ops_ratio.unwrap() - slower / base).abs() < 0.01);
            let rate = verdict.discard.bytes_per_s.unwrap() / GIB as f64;
            assert_eq!(
                verdict.discard.bytes_per_s_is_lower_bound,
                interval_s == 1.0
            );
            assert!((rate / 511.0 - 1.0).abs() < 0.1, "{rate}");
        }
    }
}

/// The T500 mounted nodiscard: nothing to blame TRIM for.
#[test]
fn nodiscard() {
    for interval_s in [1.0, 0.1] {
        let rate = vec![level(4.5..60.0, 151_303.0), level(7.0..15.0, 40_000.0)];
        let it = Build::new(interval_s, 60.0, reader(rate), drive(vec![], 0.0, 0.0));
        let verdict = it.verdict();
        assert_eq!(verdict.verdict, Finding::None);
        assert!(verdict.reasons.contains(&Reason::NoDiscards));
        let foreground = &verdict.foreground[0];
        assert!((foreground.baseline.ops_per_s.unwrap() / 151_303.0 - 1.0).abs() < 0.01);
        assert_eq!(foreground.stall, None);
        assert_eq!(foreground.dips.len(), 1, "{:?}", foreground.dips);
        assert!((foreground.dips[0].seconds - 8.0).abs() < 1.01);
    }
}
