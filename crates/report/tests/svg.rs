//! The SVGs are well-formed XML, whatever a record holds, and show what they are to show.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;
#[path = "common/xml.rs"]
mod xml;

use record::*;
use report::seconds::Seconds;
use report::svg;
use xml::assert_well_formed;

#[test]
fn each_chart_has_its_picture() {
    let (mut record, mut verdict) = (common::T500.record(), common::T500.verdict());
    record.head.actors[0].name = "a<b>&\"\u{1b}\u{0}".into();
    verdict.foreground[0].actor = record.head.actors[0].name.clone();
    let mut histogram = latency_histogram();
    for i in 1..1000_u64 {
        histogram.record(70_000 + 90 * i).unwrap();
    }
    let mut lines = Vec::new();
    for second in 60..120_u32 {
        lines.push(Line::Histogram(HistogramLine {
            actor: 0,
            latency: Latency::Response,
            over: Grain::SecondAt(f64::from(second)),
            part: Part::Main,
            v2: encode_histogram(&histogram),
        }));
    }
    record.histograms.push(PhaseHistogram {
        actor: 0,
        latency: Latency::Response,
        phase: PhaseName::Baseline,
        part: Part::Main,
        histogram,
    });
    let pictures = svg::pictures(&record, &verdict, &lines.into_iter().collect());
    let names: Vec<&str> = pictures.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "rate-0",
            "rate-1",
            "latency-0",
            "latency-1",
            "trim",
            "debt",
            "heat-0",
            "curves-0",
            "cost"
        ]
    );
    pictures.iter().for_each(assert_well_formed);
    let rate = &pictures[0].svg;
    assert!(rate.contains("fill=\"#d55e00\""), "the stall is shaded");
    assert!(rate.contains(">baseline<") && rate.contains("a&lt;b&gt;&amp;"));
    assert!(
        pictures[6].svg.contains("#fee838"),
        "the brightest shade is used"
    );
}

#[test]
fn records_without_anything_have_pictures_too() {
    let mut record = common::empty(common::head(true, 0.1));
    let verdict = judge::judge(&record, &judge::JudgeOptions::default());
    let pictures = svg::pictures(&record, &verdict, &Seconds::new());
    assert_eq!(pictures.len(), 3);
    pictures.iter().for_each(assert_well_formed);
    record.intervals.push(&Interval {
        seconds: 0.1,
        actors: vec![None, Some(ActorInterval::default())],
        devices: vec![DeviceInterval::default(); 2],
        ..Interval::default()
    });
    let pictures = svg::pictures(&record, &verdict, &Seconds::new());
    pictures.iter().for_each(assert_well_formed);
}

#[test]
fn a_trade_off_shows_each_way_and_the_goal() {
    let way = |name: &str, seconds: f64, lost: f64| svg::Way {
        name: name.into(),
        kind: 0,
        seconds: [seconds * 0.9, seconds, seconds * 1.1],
        lost: [lost, lost, lost],
        worst: 2.0 * lost,
        beaten: lost > 0.5,
    };
    let mut picture = svg::TradeOff {
        title: "Freeing 4 GiB <b>".into(),
        goal: 0.1,
        lost_s: 0.9,
        ways: vec![way("online & off", 1.0, 0.9), way("paced", 9.0, 0.1)],
    };
    let text = svg::trade_off(&picture);
    for part in [
        "goal: 10 %",
        "online &amp; off",
        ">paced<",
        "10 s",
        "100 %",
        "worst 100 ms",
    ] {
        assert!(text.contains(part), "{part} missing in {text}");
    }
    assert!(text.contains("Freeing 4 GiB &lt;b&gt;"));
    assert_eq!(text.matches("<circle").count(), 2);
    // What is broken is drawn somewhere, and no number is none.
    picture.ways = vec![way("", f64::NAN, f64::INFINITY), way("", -1.0, -1.0)];
    picture.lost_s = f64::NAN;
    assert!(!svg::trade_off(&picture).contains("NaN"));
    picture.ways.clear();
    assert!(svg::trade_off(&picture).ends_with("</svg>\n"));
}
