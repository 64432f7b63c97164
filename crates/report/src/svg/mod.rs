//! Each chart as a stand-alone SVG: for papers, slides and issues.
//!
//! Written by hand and not by a plotting crate: the charts are lines on two
//! axes, and must show the same points, marks and colours as the HTML report.
//! Sizes are in px; text stays text, so that it can be searched and restyled.

pub(crate) mod frame;
mod labels;
mod picture;
mod ticks;
mod trade_off;

pub(crate) use frame::text;
pub use trade_off::{TradeOff, Way, trade_off};

use judge::Verdict;
use record::DeviceInfo;
use record::RunRecord;

use crate::charts;
use crate::seconds::Seconds;

/// One chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// A name for its file, without `.svg`: lower-case letters, digits and `-`,
    /// unique among a record's pictures.
    pub name: String,
    /// The SVG, with its XML declaration.
    pub svg: String,
}

/// All charts of a record: those over time from the baseline on, heat maps,
/// percentile curves, and the cost of discards where there were some.
pub fn pictures(record: &RunRecord, verdict: &Verdict, seconds: &Seconds) -> Vec<Picture> {
    let spans = charts::spans(record, verdict);
    let mut all: Vec<Picture> = charts::over_time(record)
        .iter()
        .map(|chart| Picture {
            name: chart.id.clone(),
            svg: picture::over_time(chart, &spans),
        })
        .collect();
    all.extend(charts::heat(record, seconds).iter().map(|heat| Picture {
        name: format!("heat-{}", heat.actor),
        svg: picture::heat(heat, &spans),
    }));
    all.extend(charts::curves(record).iter().map(|curves| Picture {
        name: format!("curves-{}", curves.actor),
        svg: picture::curves(curves),
    }));
    let cost = charts::cost(record, verdict);
    if !cost.is_empty() {
        let leaves = record.head.devices.iter().filter(|device| device.leaf);
        let models: Vec<String> = leaves.map(name).collect();
        all.push(Picture {
            name: "cost".to_owned(),
            svg: picture::cost(&cost, &models.join(", ")),
        });
    }
    all
}

/// The name of a drive in a picture's title.
fn name(device: &DeviceInfo) -> String {
    let model = device.model.as_deref().map(str::trim);
    model
        .filter(|m| !m.is_empty())
        .unwrap_or(&device.name)
        .to_owned()
}
