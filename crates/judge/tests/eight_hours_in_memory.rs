//! Eight hours at 100 ms take less than 100 MB of memory, judging them included.
//!
//! A file of its own, since the peak that the kernel tells is the whole process's.

#![allow(clippy::unwrap_used)]

use judge::{JudgeOptions, judge};
use record::{
    ActorInfo, ActorInterval, DeviceInfo, DeviceInterval, Head, Host, Interval, Line, LoopKind,
    Part, Phase, PhaseName, RUN_SCHEMA, RunRecord, Target,
};

const INTERVALS: u32 = 8 * 36_000;

fn head() -> Head {
    let actor = |i| ActorInfo {
        name: format!("actor{i}"),
        op: "read".into(),
        loop_kind: LoopKind::Closed { depth: 8 },
        block_bytes: 4096,
        pattern: Some("random".into()),
        direct: Some(true),
        engine: "null".into(),
    };
    let device = |i| DeviceInfo {
        size_bytes: 1 << 40,
        rotational: Some(false),
        ..DeviceInfo::disk(format!("sd{i}"))
    };
    Head {
        schema: RUN_SCHEMA.into(),
        run: None,
        version: "0".into(),
        started_unix_s: 1.7e9,
        host: Host::default(),
        target: Target::default(),
        scenario: serde_json::Value::Null,
        interval_ms: 100.0,
        actors: (0..4).map(actor).collect(),
        devices: (0..2).map(device).collect(),
    }
}

/// The most memory this process ever had, in bytes; `None` where the kernel doesn't tell.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[test]
fn eight_hours_take_less_than_100_mb() {
    let Some(before) = peak() else {
        return testkit::gate::skip("need VmHWM in /proc/self/status");
    };
    let mut record = RunRecord::new(head()).unwrap();
    for (name, at_s) in [
        (PhaseName::Baseline, 0.0),
        (PhaseName::Delete, 14_400.0),
        (PhaseName::Recovery, 14_500.0),
    ] {
        let part = Part::Main;
        record
            .push(&Line::Phase(Phase { name, part, at_s }))
            .unwrap();
    }
    for i in 0..INTERVALS {
        let actor = ActorInterval {
            ops: 1000 + u64::from(i % 7),
            bytes: 4096,
            p50_us: Some(73.25),
            p99_us: Some(160.5),
            max_us: Some(2000.0),
            ..ActorInterval::default()
        };
        let discards = u64::from((144_000..145_000).contains(&i));
        let device = DeviceInterval {
            discards,
            discard_bytes: discards << 27,
            ..DeviceInterval::default()
        };
        let interval = Interval {
            at_s: f64::from(i) * 0.1,
            seconds: 0.1,
            actors: vec![Some(actor); 4],
            devices: vec![device; 2],
            freed_bytes: discards << 28,
            ..Interval::default()
        };
        record.push(&Line::Interval(interval)).unwrap();
    }
    let recorded = peak().unwrap() - before;
    let verdict = judge(&record, &JudgeOptions::default());
    let judged = peak().unwrap() - before;
    assert_eq!(verdict.foreground.len(), 4);
    eprintln!("recorded {recorded} B, judged {judged} B");
    // 260 B per interval: less can't be, so that this measures what it says.
    assert!(recorded > 60_000_000, "{recorded}");
    assert!(recorded < 100_000_000, "{recorded}");
    assert!(judged < 100_000_000, "{judged}");
}
