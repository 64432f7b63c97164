//! The verdict depends neither on when the record began, nor on idle time before it. Nor does it
//! depend on the length of the intervals, the order of devices and actors, or names.

use proptest::prelude::*;

use super::build::{Actor, Build, Device, drive, level, reader};
use crate::verdict::Verdict;
use record::units::{GIB, MIB};

/// A drive that stalls reads from 19.3 s on, for so long, to this share.
fn build(interval_s: f64, delay_s: f64, stall_s: f64, share: f64) -> Build {
    let begin = delay_s + 19.3;
    let end = begin + stall_s;
    let rate = vec![
        level(delay_s..delay_s + 50.0, 60_000.0),
        level(begin..end, share * 60_000.0),
    ];
    let device = drive(vec![level(begin..end, 500.0)], 128.0 * MIB as f64, 2.0);
    Build::new(interval_s, delay_s + 50.0, reader(rate), device)
}

/// The figures that must stay: stall seconds, depth, lost, base, TRIM rate, bytes.
fn figures(verdict: &Verdict) -> Vec<f64> {
    let foreground = verdict.foreground.iter().find(|f| f.op == "read").unwrap();
    let stall = foreground.stall.unwrap();
    vec![
        stall.seconds,
        stall.depth,
        stall.lost_s,
        foreground.baseline.ops_per_s.unwrap() / 60_000.0,
        verdict.discard.bytes_per_s.unwrap() / (500.0 * 128.0 * MIB as f64),
        verdict.discard.bytes.unwrap() as f64 / GIB as f64 / 1000.0,
    ]
}

fn near(a: &Verdict, b: &Verdict, tolerance: f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.verdict, b.verdict);
    prop_assert_eq!(&a.reasons, &b.reasons);
    for (a, b) in figures(a).iter().zip(figures(b)) {
        prop_assert!((a - b).abs() <= tolerance, "{a} {b}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn time_offset_and_idle_prefix(
        shift in 0.0_f64..1e5, idle in 0_u32..40, stall_s in 1.0_f64..15.0, share in 0.0_f64..0.4,
        phases: bool,
    ) {
        let plain = build(0.1, 0.0, stall_s, share);
        let mut moved = build(0.1, f64::from(idle) * 0.1, stall_s, share);
        moved.shift_s = shift;
        let (plain, moved) = if phases {
            let at = f64::from(idle) * 0.1;
            let mut moved = moved.phases(at + 18.0, at + 40.0, 8 * GIB);
            moved.phases[0].2 = at;
            (plain.phases(18.0, 40.0, 8 * GIB), moved)
        } else {
            (plain, moved)
        };
        near(&plain.verdict(), &moved.verdict(), 2e-3)?;
    }

    #[test]
    fn interval_length(stall_s in 3.0_f64..15.0, share in 0.0_f64..0.4) {
        let fine = build(0.1, 0.0, stall_s, share).verdict();
        let coarse = build(1.0, 0.0, stall_s, share).verdict();
        let (fine, coarse) = (figures(&fine), figures(&coarse));
        prop_assert!((fine[0] - stall_s).abs() <= 0.1, "{:?}", fine);
        prop_assert!((coarse[0] - stall_s).abs() <= 1.0, "{:?}", coarse);
        prop_assert!((fine[1] - share).abs() <= 0.01 && (coarse[1] - share).abs() <= 0.01);
    }

    #[test]
    fn order_and_names(
        devices in Just(vec![0, 1, 2]).prop_shuffle(), first: bool, name in "[a-z]{1,8}",
        stall_s in 1.0_f64..15.0, share in 0.0_f64..0.4,
    ) {
        let mut plain = build(0.1, 0.0, stall_s, share);
        let idle = Device { name: "idle".into(), ..drive(vec![], 0.0, 0.0) };
        let upper = Device { leaf: false, ..plain.devices[0].clone() };
        plain.devices.extend([idle, upper]);
        let writer = Actor { name: "writer".into(), op: "write", ..reader(vec![level(0.0..50.0, 9e4)]) };
        plain.actors.push(writer);
        let mut other = plain.clone();
        other.devices = devices.iter().map(|&i| plain.devices[i].clone()).collect();
        for (i, device) in other.devices.iter_mut().enumerate() {
            device.name = format!("{name}{i}");
        }
        if first {
            other.actors.swap(0, 1);
        }
        other.actors[0].name = name;
        near(&plain.verdict(), &other.verdict(), 0.0)?;
    }
}
