//! The report as one HTML file that opens from disk, without a network.
//!
//! This module writes as HTML what must be readable everywhere: the sentence, the
//! tables and the set-up. The scripts of `assets/` draw the charts from data
//! embedded as JSON. The page forbids itself any request.

pub(crate) mod escape;
mod page;
mod set_up;
pub(crate) mod shell;
pub(crate) mod tables;

use judge::Verdict;
use record::RunRecord;
use serde::Serialize;

use crate::charts::{self, Chart, Cost, Curves, Heat, Spans};
use crate::seconds::Seconds;

/// The data of the scripts.
#[derive(Debug, Serialize)]
struct Data {
    interval_s: f64,
    spans: Spans,
    charts: Vec<Chart>,
    heat: Vec<Heat>,
    curves: Vec<Curves>,
    cost: Cost,
}

/// The report of one run. `seconds` may be empty: then there is no heat map.
///
/// # Errors
/// If the scenario in the record's head can't be written as JSON.
pub fn report(
    record: &RunRecord,
    verdict: &Verdict,
    seconds: &Seconds,
) -> serde_json::Result<String> {
    let data = Data {
        interval_s: record.head.interval_ms / 1e3,
        spans: charts::spans(record, verdict),
        charts: charts::over_time(record),
        heat: charts::heat(record, seconds),
        curves: charts::curves(record),
        cost: charts::cost(record, verdict),
    };
    page::page(record, verdict, &data)
}
