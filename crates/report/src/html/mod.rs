//! The report as one HTML file that opens from disk, without a network.
//!
//! All of it is readable without its script: the sentence, the tables, the charts and the set-up. The
//! script adds a cursor with values, and zoom. The page forbids itself any request.

pub(crate) mod escape;
mod page;
mod set_up;
pub(crate) mod shell;
pub(crate) mod tables;

use judge::Verdict;
use record::RunRecord;

/// The report of one run.
///
/// # Errors
/// If the scenario in the record's head can't be written as JSON.
pub fn report(record: &RunRecord, verdict: &Verdict) -> serde_json::Result<String> {
    page::page(record, verdict)
}
