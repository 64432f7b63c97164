//! Whatever a record or verdict holds, its text stays within the terminal,
//! has no escape codes without colour, and is ASCII where that is asked for.

mod common;
#[path = "common/xml.rs"]
mod xml;

use judge::Verdict;
use judge::verdict::*;
use proptest::prelude::*;
use record::RunRecord;
use record::*;
use report::terminal::{self, LiveLine, Style};
use unicode_width::UnicodeWidthChar;

/// Any number that a hostile or broken file can hold.
fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..1e7_f64,
        1 => any::<f64>(),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(0.0), Just(-1.0), Just(1e300)],
    ]
}

fn maybe() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(figure())
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("reader".to_owned()),
        Just("canary".to_owned()),
        Just("\x1b[31m日本語".to_owned()),
        any::<String>(),
    ]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..100_000_u64, any::<u64>()]
}

prop_compose! {
    fn interval(actors: usize, devices: usize)(
        at_s in prop_oneof![5 => 0.0..100.0_f64, 1 => figure()],
        seconds in prop_oneof![5 => 0.01..2.0_f64, 1 => figure()],
        actors in prop::collection::vec(prop::option::of((count(), maybe(), maybe())), actors),
        devices in prop::collection::vec((count(), count()), devices),
        freed_bytes in count(),
    ) -> Interval {
        Interval {
            at_s,
            seconds,
            actors: actors
                .into_iter()
                .map(|actor| actor.map(|(ops, p99_us, oldest_us)| ActorInterval {
                    ops,
                    p99_us,
                    oldest_us,
                    ..ActorInterval::default()
                }))
                .collect(),
            devices: devices
                .into_iter()
                .map(|(discards, discard_bytes)| DeviceInterval {
                    discards,
                    discard_bytes,
                    ..DeviceInterval::default()
                })
                .collect(),
            freed_bytes, ..Interval::default() }
    }
}

fn phase() -> impl Strategy<Value = Phase> {
    let name = prop::sample::select(vec![
        PhaseName::Prepare,
        PhaseName::Settle,
        PhaseName::Baseline,
        PhaseName::Delete,
        PhaseName::Recovery,
    ]);
    let part = prop::sample::select(vec![Part::Main, Part::Control]);
    let at_s = prop_oneof![9 => 0.0..100.0_f64, 1 => figure()];
    (name, part, at_s).prop_map(|(name, part, at_s)| Phase { name, part, at_s })
}

fn event() -> impl Strategy<Value = Event> {
    let kind = prop::sample::select(vec![
        EventKind::DeletionBegan,
        EventKind::DeletionReturned,
        EventKind::CommitForced,
        EventKind::DebtPaid,
        EventKind::Warning,
    ]);
    (kind, 0.0..100.0_f64).prop_map(|(kind, at_s)| Event {
        at_s,
        kind,
        detail: None,
    })
}

fn any_device() -> impl Strategy<Value = DeviceInfo> {
    (
        name(),
        prop::sample::select(vec![
            DeviceKind::Disk,
            DeviceKind::Partition,
            DeviceKind::Md,
        ]),
        0..4_u32,
        prop::collection::vec(name(), 0..3),
        count(),
    )
        .prop_map(|(name, kind, level, below, bytes)| {
            let mut device = common::device(&name, kind, level, &[]);
            device.leaf = below.is_empty();
            device.model = Some(name);
            device.below = below;
            device.size_bytes = bytes;
            device.discard.max_bytes = bytes;
            device
        })
}

fn record() -> impl Strategy<Value = RunRecord> {
    (
        prop::collection::vec((name(), any::<bool>(), figure()), 0..4),
        prop::collection::vec(any_device(), 0..4),
        name(),
    )
        .prop_flat_map(|(actors, devices, path)| {
            let mut head = common::head(false, 0.1);
            head.actors = actors
                .into_iter()
                .map(|(name, open, rate_per_s)| ActorInfo {
                    name,
                    loop_kind: if open {
                        LoopKind::Open {
                            rate_per_s,
                            poisson: true,
                            depth: 1,
                        }
                    } else {
                        LoopKind::Closed { depth: 8 }
                    },
                    ..common::actors(false)[0].clone()
                })
                .collect();
            head.target.path = path.clone();
            head.target.options = vec![path];
            head.devices = devices;
            let interval = interval(head.actors.len(), head.devices.len());
            (
                Just(head),
                prop::collection::vec(interval, 0..60),
                prop::collection::vec(phase(), 0..6),
                prop::collection::vec(event(), 0..50),
            )
        })
        .prop_map(|(head, intervals, phases, events)| {
            let mut record = common::empty(head);
            for interval in &intervals {
                record.intervals.push(interval);
            }
            record.phases = phases;
            record.events = events;
            record
        })
}

prop_compose! {
    fn figures()(
        ops_per_s in maybe(), p50_us in maybe(), p99_us in maybe(), p999_us in maybe(),
        max_us in maybe(),
    ) -> Figures {
        Figures { ops_per_s, p50_us, p99_us, p999_us, max_us }
    }
}

prop_compose! {
    fn foreground()(
        actor in name(),
        open: bool,
        [baseline, delete, recovery] in prop::array::uniform3(figures()),
        discarding in prop::option::of(figures()),
        service: bool,
        ops_ratio in maybe(),
        lost_s in maybe(),
        stall in prop::option::of((figure(), figure(), figure(), figure(), maybe())),
        dips in prop::collection::vec((figure(), figure(), figure()), 0..6),
        unfinished in prop::option::of((count(), figure())),
        undisturbed: bool,
        baseline_from in prop::sample::select(vec![
            BaselineFrom::Phase, BaselineFrom::Recovery, BaselineFrom::WithoutDiscards,
        ]),
    ) -> Foreground {
        Foreground {
            op: actor.clone(),
            actor,
            loop_kind: if open {
                LoopKind::Open { rate_per_s: 100.0, poisson: false, depth: 1 }
            } else {
                LoopKind::Closed { depth: 8 }
            },
            baseline_from: Some(baseline_from),
            baseline_drift: None,
            baseline,
            undisturbed: undisturbed.then_some(recovery),
            delete,
            discarding,
            recovery,
            service: service.then_some(ServiceFigures { baseline, delete, discarding, recovery }),
            ops_ratio,
            lost_s,
            stall: stall.map(|(seconds, longest_s, depth, lost_s, worst_latency_us)| Stall {
                seconds, longest_s, depth, lost_s, worst_latency_us,
                limit_us: worst_latency_us,
            }),
            detectable: lost_s,
            dips: dips.into_iter().map(|(at_s, seconds, depth)| Dip { at_s, seconds, depth, discards: None })
                .collect(),
            unfinished: unfinished.map(|(operations, oldest_us)| UnfinishedFigures {
                operations, oldest_us,
            }),
stall_by_others: None,
            cpu_wait: None,
}
    }
}

const REASONS: [Reason; 16] = [
    Reason::NoDiscards,
    Reason::DiscardsDidNotCome,
    Reason::NoDeletion,
    Reason::NothingDeleted,
    Reason::ForeignDiscards,
    Reason::CountersOff,
    Reason::DevicesUnknown,
    Reason::NoSteadyBaseline,
    Reason::TooFewOperations,
    Reason::TooNoisy,
    Reason::TooLittleDeleted,
    Reason::ControlDipsToo,
    Reason::DipsWithoutDiscards,
    Reason::Interrupted,
    Reason::Absent,
    Reason::ForegroundErrors,
];

prop_compose! {
    fn verdict()(
        finding in prop::sample::select(vec![
            Finding::Stall, Finding::Slowdown, Finding::None, Finding::Inconclusive,
        ]),
        reasons in prop::sample::subsequence(REASONS.to_vec(), 0..=15),
        summary: String,
        foreground in prop::collection::vec(foreground(), 0..4),
        [rate, wait, lag, drain, service] in prop::array::uniform5(maybe()),
        bytes in prop::option::of(count()),
        lower: bool,
        control: bool,
        warnings in prop::collection::vec(any::<String>(), 0..3),
    ) -> Verdict {
        Verdict {
            schema: VERDICT_SCHEMA.into(),
            verdict: finding,
            reasons,
            summary,
            discard: Discard {
                bytes,
                commands: bytes,
                active_s: lag,
                bytes_per_s: rate,
                bytes_per_s_is_lower_bound: lower,
                mean_bytes: rate,
                await_us: wait,
                debt_max_bytes: bytes,
                first_discard_lag_s: lag,
                drain_s: drain,
            },
            deletion: bytes.map(|bytes| Deletion {
                bytes,
                files: bytes,
                seconds: lag.unwrap_or(0.0),
                ..Deletion::default()
            }),
            try_bytes: bytes,
            fit: Some(Fit {
                a_us: service,
                b_us_per_mib: wait,
                phi: lag,
                service_us: service,
                at_mib: rate,
                barrier: Some(lower),
                ops_per_discard: drain,
                phi_95: lag.map(|lag| [lag, lag]),
                ops_per_discard_95: drain.map(|drain| [drain, drain]),
                depth: Some(8),
                blocked: wait,
                blocked_95: wait.map(|wait| [wait, wait]),
            }),
            control: control.then(|| Control {
                method: Some("nodiscard".into()),
                verdict: finding,
                discard_bytes: bytes,
                foreground: foreground.clone(),
            }),
            foreground,
            slower: None,
            conditions: Vec::new(),
            origin: Default::default(),
            run: Default::default(),
            target: Default::default(),
            warnings,
others: None,
            writes: None,
            gain: None,
            absences: vec![],
            waits: None,
}
    }
}

fn check(text: &str, style: &Style) -> Result<(), TestCaseError> {
    for line in text.lines() {
        let columns: usize = line.chars().map(|c| c.width().unwrap_or(1)).sum();
        prop_assert!(
            columns <= usize::from(style.width),
            "{columns} columns: {line:?}"
        );
    }
    prop_assert!(!text.contains('\x1b'));
    prop_assert!(style.unicode || text.is_ascii(), "{text}");
    Ok(())
}

proptest! {
    #[test]
    fn whatever_a_record_holds_its_page_and_pictures_are_well_formed(
        record in record(),
        verdict in verdict(),
    ) {
        let page = report::html::report(&record, &verdict)?;
        prop_assert_eq!(page.matches("<script").count(), 1);
        prop_assert_eq!(page.matches("</script>").count(), 1);
        prop_assert!(page.ends_with("</html>\n"));
        for picture in report::svg::pictures(&record, &verdict) {
            xml::assert_well_formed(&picture);
        }
        let markdown = report::markdown::verdict(&verdict, &record);
        prop_assert!(markdown.ends_with("</details>\n"));
        let mut text = Vec::new();
        report::csv::actors(&record, report::csv::Run::Only, &mut text)?;
        report::csv::devices(&record, report::csv::Run::First("a,b"), &mut text)?;
    }

    #[test]
    fn any_record_and_verdict_fit(
        record in record(),
        verdict in verdict(),
        width in 40_u16..=200,
        unicode: bool,
    ) {
        let style = Style { colour: false, width, unicode };
        check(&terminal::set_up(&record.head, &style), &style)?;
        check(&terminal::verdict(&verdict, &record, &style), &style)?;
        check(&terminal::timeline(&record, &verdict, &style), &style)?;
    }

    #[test]
    fn any_live_line_fits(
        elapsed_s in figure(), rate in maybe(), worst_us in maybe(), stalls: bool,
        discard_bytes_per_s in figure(), debt_bytes in count(), phase in phase(),
        width in 40_u16..=200, unicode: bool,
    ) {
        let style = Style { colour: false, width, unicode };
        let line = LiveLine {
            elapsed_s,
            phase: phase.name,
            part: phase.part,
            ops_per_s: rate,
            worst_us,
            stalls,
            discard_bytes_per_s,
            debt_bytes,
        };
        let text = terminal::live(&line, &style);
        check(&text, &Style { width: width.min(80), ..style })?;
        prop_assert!(!text.contains('\n'));
    }

    /// Colour adds codes and changes nothing else.
    #[test]
    fn colour_only_adds_codes(record in record(), verdict in verdict(), width in 40_u16..=120) {
        let plain = Style { colour: false, width, unicode: true };
        let colour = Style { colour: true, ..plain };
        for (with, without) in [
            (terminal::timeline(&record, &verdict, &colour),
             terminal::timeline(&record, &verdict, &plain)),
            (terminal::verdict(&verdict, &record, &colour),
             terminal::verdict(&verdict, &record, &plain)),
        ] {
            prop_assert_eq!(strip(&with), strip(&without));
        }
    }
}

/// Without escape codes, and without the blanks at line ends that codes can hide.
fn strip(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        out.push_str(&rest[..at]);
        let end = rest[at..].find('m').expect("a code ends in m");
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    out.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}
