//! The charts as SVG: in pages, and each as a file of its own for papers, slides and issues.
//!
//! Written by hand and not by a plotting crate: the charts are lines on two axes. Text stays text, so
//! that it can be searched and restyled.

mod axis;
mod frame;
mod picture;
mod ticks;

pub(crate) use frame::Medium;
pub(crate) use picture::{curves, over_time};

use judge::Verdict;
use judge::verdict::Gain;
use record::RunRecord;
use record::units::bytes;

use crate::charts;

/// One chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// A name for its file, without `.svg`: lower-case letters, digits and `-`,
    /// unique among a record's pictures.
    pub name: String,
    /// The SVG, with its XML declaration.
    pub svg: String,
}

/// All charts of a record: those over time from the baseline on, and percentile curves.
pub fn pictures(record: &RunRecord, verdict: &Verdict) -> Vec<Picture> {
    let medium = Medium::File;
    let spans = charts::spans(record, verdict);
    let mut all = Vec::new();
    let mut add = |name: String, frame: frame::Frame| {
        all.push(Picture {
            name,
            svg: frame.file(),
        });
    };
    let gain = verdict.gain.as_ref().map(|gain| written(gain, verdict));
    for mut chart in charts::over_time(record) {
        chart.title += gain
            .as_deref()
            .filter(|_| chart.id == "rate-0")
            .unwrap_or_default();
        add(chart.id.clone(), over_time(&chart, &spans, medium));
    }
    for of in charts::curves(record) {
        add(format!("curves-{}", of.actor), curves(&of, medium));
    }
    all
}

/// The bytes written in a run that measures a gain, for its title.
fn written(gain: &Gain, verdict: &Verdict) -> String {
    let drives = verdict.origin.drives.iter();
    let times = drives.filter_map(record::origin::Drive::write_amplification);
    let times: String = times
        .map(|times| format!(", write amplification {times:.2}"))
        .collect();
    format!(" ({} written{times})", bytes(gain.written_bytes))
}
