//! Is a first report one of averages since the machine started?
//!
//! Without `-y` it is, and nothing in it says so. But in a real interval of T seconds whole
//! operations complete. So no rate is below one in T, and rates times the interval's length are
//! whole numbers (iostat knows the length to 1/100 s).

use super::First;
use super::log::Log;

/// Rates above this have too few decimals to tell whole numbers from others.
const COUNTABLE: f64 = 200.0;

/// Intervals this much shorter and longer than nominal are tried, in 1/100 s.
const EARLY: i64 = 5;
const LATE: i64 = 10;

/// Whether the first report of a run, in this row of the log, is none of an interval.
pub(super) fn is_left_out(log: &Log, row: usize, interval_s: f64, first: First) -> bool {
    match first {
        First::Drop => return true,
        First::Keep => return false,
        First::Tell => {}
    }
    let rates: Vec<f64> = log
        .columns
        .iter()
        .flat_map(|column| column.at(row).count)
        .map(f64::from)
        .filter(|&rate| rate > 0.0)
        .collect();
    let longest_s = interval_s * 1.05 + LATE as f64 / 100.0;
    // Half of the last decimal that is printed.
    const ROUNDING: f64 = 0.005;
    if rates.iter().any(|rate| (rate + ROUNDING) * longest_s < 1.0) {
        return true;
    }
    let counted: Vec<f64> = rates.into_iter().filter(|&rate| rate < COUNTABLE).collect();
    // Longer intervals leave the decimals too little to say.
    if counted.len() < 2 || interval_s > 5.0 {
        return false;
    }
    let nominal = (interval_s * 100.0).round() as i64;
    let fits = |hundredths: i64| {
        let length_s = hundredths as f64 / 100.0;
        counted.iter().all(|rate| {
            let operations = rate * length_s;
            (operations - operations.round()).abs() <= ROUNDING * length_s + 1e-3
        })
    };
    !(nominal - EARLY..=nominal + LATE).any(fits)
}
