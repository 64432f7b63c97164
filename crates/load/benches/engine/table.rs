//! Medians and ranges, for people and for programs.
//!
//! The kernel splits a short run's time into user and system by a few hundred
//! ticks, so that split is taken over all runs together; the total is exact.

use std::io;
use std::path::Path;

use serde_json::json;

use crate::case::Measured;

/// A median, with the least and the most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        Spread {
            median: (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
            min: sorted[0],
            max: sorted[n - 1],
        }
    }
}

/// One tool in one case.
#[derive(Debug)]
pub(crate) struct Row {
    case: &'static str,
    tool: &'static str,
    user_us: f64,
    system_us: f64,
    total_us: Spread,
    iops: Spread,
}

impl Row {
    /// From at least one run.
    pub(crate) fn new(case: &'static str, tool: &'static str, runs: &[Measured]) -> Row {
        let spread = |of: fn(&Measured) -> f64| Spread::of(runs.iter().map(of));
        let total_us = spread(Measured::total_us);
        let sum = |of: fn(&Measured) -> f64| runs.iter().map(of).sum::<f64>();
        let user_share = sum(|m| m.user_us) / sum(Measured::total_us);
        Row {
            case,
            tool,
            user_us: total_us.median * user_share,
            system_us: total_us.median * (1.0 - user_share),
            total_us,
            iops: spread(|m| m.iops),
        }
    }
}

/// The rows of one case.
pub(crate) fn print(rows: &[Row]) {
    println!(
        "\n{:<10} {:<11} {:>24} {:>10} {:>10} {:>12}",
        "case", "tool", "cpu µs/io (range)", "user µs", "system µs", "io/s"
    );
    for row in rows {
        let range = format!("({:.3}–{:.3})", row.total_us.min, row.total_us.max);
        println!(
            "{:<10} {:<11} {:>8.3} {:>15} {:>10.3} {:>10.3} {:>12.0}",
            row.case,
            row.tool,
            row.total_us.median,
            range,
            row.user_us,
            row.system_us,
            row.iops.median,
        );
    }
}

/// All rows, medians only.
pub(crate) fn write_json(rows: &[Row], path: &Path) -> io::Result<()> {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({
                "case": row.case,
                "tool": row.tool,
                "user_us": row.user_us,
                "system_us": row.system_us,
                "total_us": row.total_us.median,
                "iops": row.iops.median,
            })
        })
        .collect();
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(path, serde_json::to_string_pretty(&rows)? + "\n")
}
