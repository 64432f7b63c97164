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
use record::RunRecord;

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
    for chart in charts::over_time(record) {
        add(chart.id.clone(), over_time(&chart, &spans, medium));
    }
    for of in charts::curves(record) {
        add(format!("curves-{}", of.actor), curves(&of, medium));
    }
    all
}
