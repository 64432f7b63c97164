//! Medians and ranges, for people and for programs.

use std::io;
use std::path::Path;

use serde_json::json;

use crate::case::Case;

/// One drive in one case.
#[derive(Debug)]
pub(crate) struct Row {
    case: &'static str,
    drive: &'static str,
    block: u64,
    /// Per second, sorted.
    rates: Vec<f64>,
}

impl Row {
    /// From at least one run.
    pub(crate) fn new(case: &Case, drive: &'static str, rates: &[f64]) -> Row {
        let mut rates = rates.to_vec();
        rates.sort_by(f64::total_cmp);
        Row {
            case: case.name,
            drive,
            block: case.block,
            rates,
        }
    }

    fn median(&self) -> f64 {
        let n = self.rates.len();
        (self.rates[(n - 1) / 2] + self.rates[n / 2]) / 2.0
    }

    fn range(&self) -> [f64; 2] {
        [self.rates[0], self.rates[self.rates.len() - 1]]
    }

    fn gb_per_s(&self) -> f64 {
        self.median() * self.block as f64 / 1e9
    }
}

pub(crate) fn print_head() {
    println!(
        "\n{:<13} {:<14} {:>10} {:>19} {:>8} {:>8}",
        "case", "drive", "per second", "range", "GB/s", "lab/it"
    );
}

/// The rows of one case; beside another's, how many times as much ours does.
pub(crate) fn print(rows: &[Row]) {
    for (i, row) in rows.iter().enumerate() {
        let [least, most] = row.range();
        let ratio = match (i, rows[0].drive) {
            (1.., "lab ideal") => format!("{:.2}", rows[0].median() / row.median()),
            _ => String::new(),
        };
        println!(
            "{:<13} {:<14} {:>10.0} {:>19} {:>8.2} {:>8}",
            row.case,
            row.drive,
            row.median(),
            format!("({least:.0}–{most:.0})"),
            row.gb_per_s(),
            ratio,
        );
    }
}

pub(crate) fn write_json(rows: &[Row], path: &Path) -> io::Result<()> {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let [min, max] = row.range();
            json!({
                "case": row.case,
                "drive": row.drive,
                "runs": row.rates.len(),
                "per_s": row.median(),
                "min_per_s": min,
                "max_per_s": max,
                "bytes_per_s": row.median() * row.block as f64,
            })
        })
        .collect();
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(path, serde_json::to_string_pretty(&rows)? + "\n")
}
