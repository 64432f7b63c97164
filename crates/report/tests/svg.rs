//! The SVGs are well-formed XML, whatever a record holds, and show what they are to show.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;
#[path = "common/xml.rs"]
mod xml;

use judge::Verdict;
use judge::verdict::{Gain, GainFinding};
use record::*;
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
    record.histograms.push(PhaseHistogram {
        actor: 0,
        latency: Latency::Response,
        phase: PhaseName::Baseline,
        part: Part::Main,
        histogram,
    });
    let pictures = svg::pictures(&record, &verdict);
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
            "curves-0"
        ]
    );
    pictures.iter().for_each(assert_well_formed);
    let rate = &pictures[0].svg;
    assert!(rate.contains("fill=\"#d55e00\""), "the stall is shaded");
    assert!(rate.contains(">baseline<") && rate.contains("a&lt;b&gt;&amp;"));
}

#[test]
fn records_without_anything_have_pictures_too() {
    let mut record = common::empty(common::head(true, 0.1));
    let verdict = judge::judge(&record, &judge::JudgeOptions::default());
    let pictures = svg::pictures(&record, &verdict);
    assert_eq!(pictures.len(), 3);
    pictures.iter().for_each(assert_well_formed);
    record.intervals.push(&Interval {
        seconds: 0.1,
        actors: vec![None, Some(ActorInterval::default())],
        devices: vec![DeviceInterval::default(); 2],
        ..Interval::default()
    });
    let pictures = svg::pictures(&record, &verdict);
    pictures.iter().for_each(assert_well_formed);
}

#[test]
fn the_picture_of_a_gain_has_the_bytes_written() {
    let (record, mut verdict) = (common::READER.record(), common::READER.verdict());
    verdict.gain = Some(Gain {
        finding: GainFinding::Nothing,
        why: None,
        sentence: String::new(),
        trimmed_bytes: Some(1),
        written_bytes: 31 << 30,
        cache_bytes: None,
        rate: None,
        p99_us: None,
        trend: None,
    });
    let title = |verdict: &Verdict| {
        let picture = &svg::pictures(&record, verdict)[0].svg;
        let title = picture.split("<title>").nth(1).unwrap();
        title.split("</title>").next().unwrap().to_owned()
    };
    assert_eq!(title(&verdict), "Rate of reader (31.0 GiB written)");
    verdict.origin = record::Origin::of(&record.head);
    verdict.origin.drives[0].written = Some(record::Written {
        host_written_bytes: Some(8 << 30),
        flash_written_bytes: Some(12 << 30),
    });
    let all = "Rate of reader (31.0 GiB written, write amplification 1.50)";
    assert_eq!(title(&verdict), all);
    verdict.gain = None;
    assert_eq!(title(&verdict), "Rate of reader");
}
