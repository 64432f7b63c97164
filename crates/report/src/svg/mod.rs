//! The charts as SVG: in pages, and each as a file of its own for papers, slides and issues.
//!
//! Written by hand and not by a plotting crate: the charts are lines on two axes. Text stays text, so
//! that it can be searched and restyled.

pub(crate) mod axis;
mod frame;
mod picture;
pub(crate) mod shapes;
mod ticks;

pub(crate) use frame::Medium;
pub(crate) use picture::{cost, curves, over_time};

use judge::Verdict;
use record::{DeviceInfo, RunRecord};

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

/// All charts of a record: those over time from the baseline on,
/// percentile curves, and the cost of discards where there were some.
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
    let of = charts::cost(record, verdict);
    if !of.is_empty() {
        add("cost".to_owned(), cost(&of, &drives(record), medium));
    }
    all
}

/// The names of the drives in a chart's title.
pub(crate) fn drives(record: &RunRecord) -> String {
    let leaves = record.head.devices.iter().filter(|device| device.leaf);
    let name = |device: &DeviceInfo| {
        let model = device.model.as_deref().map(str::trim);
        let model = model.filter(|model| !model.is_empty());
        model.unwrap_or(&device.name).to_owned()
    };
    leaves.map(name).collect::<Vec<_>>().join(", ")
}
