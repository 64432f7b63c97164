//! Made-up windows, and the waits that come of them.

use std::collections::HashMap;

use linux::mounts::DeviceNumber;
use linux::tasks::{Call, Thread};
use load::workers::Began;
use record::waits::{Cause, PhaseWaits};
use record::{
    ActorInfo, ActorInterval, DeviceInfo, Head, Host, Interval, Line, LoopKind, Part, PhaseName,
    RUN_SCHEMA, RunRecord, Target, Waits,
};

use super::super::Found;
use super::super::ledger::{Ledger, Sent, Window};
use super::waits;
use crate::why::frames::{Place, Reason};
use crate::why::sampler::{Sample, Sampled, SampledThread};
use crate::why::spans::Spans;

const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 0 };
/// The record's zero, on the monotonic clock.
const ZERO_S: f64 = 100.0;

fn record(read_ms_beside: u64, ops_beside: u64) -> RunRecord {
    let disk = DeviceInfo {
        size_bytes: 1 << 30,
        ..DeviceInfo::disk("sda")
    };
    let actor = ActorInfo {
        name: "reader".into(),
        op: "read".into(),
        loop_kind: LoopKind::Closed { depth: 1 },
        block_bytes: 4096,
        pattern: None,
        direct: Some(true),
        engine: "sync".into(),
    };
    let mut record = RunRecord::new(Head {
        schema: RUN_SCHEMA.into(),
        run: None,
        version: "0".into(),
        started_unix_s: 1.0,
        host: Host::default(),
        target: Target::default(),
        scenario: serde_json::Value::Null,
        interval_ms: 100.0,
        actors: vec![actor],
        devices: vec![disk],
    })
    .unwrap();
    // A discard is in flight from 1 s to 2 s.
    for i in 0..30_u32 {
        let beside = (10..20).contains(&i);
        let mut device = record::DeviceInterval {
            reads: 100,
            read_ms: 10,
            in_flight: 1,
            ..Default::default()
        };
        if beside {
            (device.reads, device.read_ms) = (50, read_ms_beside);
            (device.discards, device.discard_ms) = (2, 100);
        }
        let interval = Interval {
            at_s: f64::from(i) / 10.0,
            seconds: 0.1,
            actors: vec![Some(ActorInterval {
                ops: if beside { ops_beside } else { 100 },
                ..ActorInterval::default()
            })],
            devices: vec![device],
            ..Interval::default()
        };
        record.push(&Line::Interval(interval)).unwrap();
    }
    record
}

fn spans(all: &[(f64, f64)]) -> Spans {
    let mut spans = Spans::default();
    all.iter()
        .for_each(|(from, to)| spans.add(ZERO_S + from, ZERO_S + to));
    spans.join();
    spans
}

/// Looks at a thread, ten milliseconds apart, in each stretch at its place.
fn looks(tid: u32, stretches: &[(f64, f64, Place)]) -> Sampled {
    let call = |place| {
        (place != Place::Running).then_some(Call {
            number: libc_unlinkat(),
            first: 3,
            second: 0,
        })
    };
    let mut samples = Vec::new();
    for &(from, to, place) in stretches {
        let count = ((to - from) / 0.01_f64).round() as u32;
        samples.extend((1..=count).map(|i| Sample {
            at_s: ZERO_S + from + f64::from(i) / 100.0,
            stands_for_s: 0.01,
            thread: 0,
            place,
            stack: 0,
            call: call(place),
            below: None,
            nowhere: false,
        }));
    }
    Sampled {
        samples,
        threads: vec![SampledThread {
            thread: Thread { pid: 7, tid },
            comm: "io:reader".to_owned(),
            kernel: false,
        }],
        stacks: vec![Vec::new()],
        ..Sampled::default()
    }
}

/// `unlinkat` on this architecture, by its name.
fn libc_unlinkat() -> i64 {
    (0..500)
        .find(|&number| {
            Call {
                number,
                first: 0,
                second: 0,
            }
            .name()
                == Some("unlinkat")
        })
        .unwrap()
}

fn ledger() -> Ledger {
    let mut ledger = Ledger::new(ZERO_S);
    let began = |at_s, name| Began {
        monotonic_s: ZERO_S + at_s,
        name,
        part: Part::Main,
    };
    ledger.begin(vec![
        began(0.0, PhaseName::Baseline),
        began(1.0, PhaseName::Delete),
        began(2.0, PhaseName::Recovery),
    ]);
    ledger
}

fn concluded(ledger: Ledger, read_ms_beside: u64) -> Waits {
    concluded_with(ledger, &record(read_ms_beside, 100))
}

fn concluded_with(mut ledger: Ledger, record: &RunRecord) -> Waits {
    ledger.end();
    let found = Found {
        ledger,
        devices: vec![(DISK, "sda".to_owned())],
        missing: Vec::new(),
        lost: 0,
        cpu_share: 0.01,
    };
    waits(found, record, ZERO_S)
}

fn phase<'a>(waits: &'a Waits, actor: &str, name: PhaseName) -> &'a PhaseWaits {
    let mut actors = waits.actors.iter();
    actors
        .find(|one| one.actor == actor)
        .and_then(|one| one.phase(name))
        .unwrap_or_else(|| panic!("{actor} in {name:?}: {waits:?}"))
}

/// A reader that waits for its reads all the time; discards are in flight for a second.
fn reader() -> Ledger {
    let mut ledger = ledger();
    let reader = ledger.actor("reader");
    ledger.assign(11, reader);
    ledger.fold(Window {
        sampled: looks(11, &[(0.0, 3.0, Place::Io)]),
        discards: vec![(DISK, spans(&[(1.0, 2.0)]))],
        to_s: ZERO_S + 3.0,
        ..Window::default()
    });
    ledger
}

#[test]
fn a_reader_waits_behind_discards_while_they_are_in_flight() {
    let waits = concluded(reader(), 1500);
    let before = phase(&waits, "reader", PhaseName::Baseline);
    assert!(before.sum_s(Cause::is_discards).abs() < 1e-9, "{before:?}");
    assert!((before.sum_s(|cause| cause == Cause::Io) - 1.0).abs() < 0.02);
    let during = phase(&waits, "reader", PhaseName::Delete);
    let behind = during.sum_s(|cause| cause == Cause::BehindDiscards);
    assert!((behind - 1.0).abs() < 0.02, "{during:?}");
    assert_eq!(during.waits[0].call.as_deref(), Some("unlinkat"));
    assert!(during.waits[0].looks >= 98, "{during:?}");
    // The chart tells the same.
    let shares = &waits.actors[0].shares;
    assert_eq!(shares.behind.len(), waits.timeline.discarding.len());
    assert!(
        shares.behind[12] > 0.9 && shares.behind[5] == 0.0,
        "{shares:?}"
    );
    assert!(waits.timeline.discarding[12] > 0.9, "{waits:?}");
}

#[test]
fn discards_that_slow_nothing_down_are_acquitted() {
    // Reads take as long beside them as without.
    let waits = concluded(reader(), 5);
    let during = phase(&waits, "reader", PhaseName::Delete);
    assert_eq!(during.sum_s(Cause::is_discards), 0.0, "{during:?}");
    assert!((during.sum_s(|cause| cause == Cause::Io) - 1.0).abs() < 0.02);
    assert!(waits.actors[0].shares.behind.is_empty());
}

#[test]
fn discards_between_which_a_closed_loop_reads_fast_are_not_acquitted() {
    // Few of the reads meet a discard, so their mean wait is short; but there are far fewer.
    let waits = concluded_with(reader(), &record(5, 20));
    let during = phase(&waits, "reader", PhaseName::Delete);
    let behind = during.sum_s(|cause| cause == Cause::BehindDiscards);
    assert!((behind - 1.0).abs() < 0.02, "{during:?}");
}

/// The discards that a deleter sends within its call.
fn sent(tid: u32, own: &[(f64, f64)]) -> (HashMap<u32, Spans>, Vec<Sent>) {
    let one = Sent {
        thread: tid,
        reason: Reason::ExtCall,
        discards: own.len() as u64,
        at_s: ZERO_S + own[0].0,
    };
    (HashMap::from([(tid, spans(own))]), vec![one])
}

#[test]
fn a_deletion_that_no_look_has_seen_waits_as_long_as_its_discards() {
    let mut ledger = ledger();
    let deleter = ledger.actor("deleter");
    ledger.assign(12, deleter);
    // Two discards of a thread that lived for six milliseconds.
    let (own, sent) = sent(12, &[(1.301, 1.303), (1.304, 1.306)]);
    ledger.fold(Window {
        own,
        sent,
        discards: vec![(DISK, spans(&[(1.301, 1.306)]))],
        to_s: ZERO_S + 1.5,
        ..Window::default()
    });
    let waits = concluded(ledger, 1500);
    let during = phase(&waits, "deleter", PhaseName::Delete);
    assert!((during.seconds - 0.004).abs() < 1e-6, "{during:?}");
    let wait = &during.waits[0];
    assert_eq!((wait.cause, wait.discards), (Cause::InDiscards, 2));
    assert_eq!((wait.looks, during.threads), (0, 1));
}

#[test]
fn looks_and_events_of_the_same_discards_count_once() {
    let mut ledger = ledger();
    let deleter = ledger.actor("deleter");
    ledger.assign(12, deleter);
    // One discard over two windows, taken out while it is in flight.
    let places = [(1.1, 1.4, Place::OwnDiscard), (1.4, 1.5, Place::Running)];
    let (own, one) = sent(12, &[(1.095, 1.2)]);
    ledger.fold(Window {
        sampled: looks(12, &[(1.1, 1.2, Place::OwnDiscard)]),
        own,
        sent: one,
        discards: vec![(DISK, spans(&[(1.095, 1.2)]))],
        to_s: ZERO_S + 1.2,
    });
    let (own, _) = sent(12, &[(1.095, 1.402)]);
    ledger.fold(Window {
        sampled: looks(12, &[(1.2, 1.4, Place::OwnDiscard), places[1]]),
        own,
        discards: vec![(DISK, spans(&[(1.095, 1.402)]))],
        to_s: ZERO_S + 1.5,
        ..Window::default()
    });
    let waits = concluded(ledger, 1500);
    let during = phase(&waits, "deleter", PhaseName::Delete);
    let own = during.sum_s(|cause| cause == Cause::InDiscards);
    assert!((own - 0.307).abs() < 0.002, "{during:?}");
    assert!((during.seconds - 0.405).abs() < 0.002, "{during:?}");
    let wait = &during.waits[0];
    assert_eq!(wait.call.as_deref(), Some("unlinkat"));
    assert_eq!((wait.discards, wait.looks), (1, 30), "{during:?}");
}

#[test]
fn a_thread_does_not_wait_for_discards_that_it_only_hands_on() {
    let mut ledger = ledger();
    let commit = ledger.actor("commit");
    ledger.assign(13, commit);
    let (own, mut sent) = sent(13, &[(1.1, 1.4)]);
    sent[0].reason = Reason::XfsLog;
    ledger.fold(Window {
        sampled: looks(13, &[(1.0, 1.5, Place::LogForce)]),
        own,
        sent,
        discards: vec![(DISK, spans(&[(1.1, 1.4)]))],
        to_s: ZERO_S + 1.5,
    });
    let waits = concluded(ledger, 1500);
    let during = phase(&waits, "commit", PhaseName::Delete);
    assert_eq!(during.sum_s(|cause| cause == Cause::InDiscards), 0.0);
    let behind = during.sum_s(|cause| cause == Cause::BehindDiscards);
    assert!((behind - 0.3).abs() < 0.02, "{during:?}");
    let commit = during.sum_s(|cause| cause == Cause::Commit);
    assert!((commit - 0.2).abs() < 0.02, "{during:?}");
}

#[test]
fn a_long_run_has_longer_stretches() {
    let mut ledger = ledger();
    let reader = ledger.actor("reader");
    ledger.assign(11, reader);
    for hour in 0..8 {
        let from = f64::from(hour) * 3600.0;
        ledger.fold(Window {
            sampled: looks(11, &[(from, from + 1.0, Place::Io)]),
            to_s: ZERO_S + from + 3600.0,
            ..Window::default()
        });
    }
    let waits = concluded(ledger, 1500);
    assert!(waits.timeline.discarding.len() <= 1024);
    assert!((waits.timeline.stretch_s - 51.2).abs() < 1e-9, "{waits:?}");
    let after = phase(&waits, "reader", PhaseName::Recovery);
    assert!((after.seconds - 8.0).abs() < 2.1, "{after:?}");
}
