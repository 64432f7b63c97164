//! Latency heat maps: how many operations took how long, second by second.

use serde::Serialize;
use timeline::RunRecord;
use timeline::record::{Latency, decode_histogram};

use super::{moment, short};
use crate::seconds::Seconds;

/// Most columns (time) of a heat map.
const COLUMNS: usize = 600;

/// Most rows (latency).
const ROWS: usize = 100;

/// Most columns of all heat maps of a report together.
const ALL_COLUMNS: usize = 9600;

/// Each of the rows that counts are first put into is so much above the one below.
const FINE: f64 = 1.05;

/// Fine rows: from 1 ns to an hour.
const FINE_ROWS: usize = 600;

/// One actor's heat map.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Heat {
    pub(crate) actor: usize,
    pub(crate) name: String,
    /// Where the first column begins, in seconds since the record's zero.
    pub(crate) from: f64,
    /// Seconds of a column.
    pub(crate) column_s: f64,
    pub(crate) columns: usize,
    /// Where the lowest row begins, in microseconds.
    pub(crate) lowest_us: f64,
    /// The upper end of a row divided by its lower.
    pub(crate) ratio: f64,
    pub(crate) rows: usize,
    /// Of each column: a row, its count of operations, a row, its count, …
    pub(crate) cells: Vec<Vec<u64>>,
}

/// The heat maps of all actors, of response times.
pub(crate) fn heat(record: &RunRecord, seconds: &Seconds) -> Vec<Heat> {
    let actors = record.head.actors.len().max(1);
    let most = COLUMNS.min(ALL_COLUMNS / actors).max(30);
    (0..record.head.actors.len())
        .filter_map(|actor| of_actor(record, seconds, actor, most))
        .collect()
}

fn of_actor(record: &RunRecord, seconds: &Seconds, actor: usize, most: usize) -> Option<Heat> {
    let those = || seconds.of(actor, Latency::Response);
    let from = those().map(|second| second.at_s).reduce(f64::min)?;
    let last = those().map(|second| second.at_s).reduce(f64::max)?;
    let wide = ((last - from + 1.0) / most as f64).ceil().max(1.0);
    let columns = ((last - from) / wide) as usize + 1;
    let mut fine = vec![[0_u64; FINE_ROWS]; columns];
    for second in those() {
        let Ok(histogram) = decode_histogram(&second.v2) else {
            continue;
        };
        let column = ((second.at_s - from) / wide) as usize;
        for bucket in histogram.iter_recorded() {
            let ns = bucket.value_iterated_to().max(1) as f64;
            let row = (ns.ln() / FINE.ln()) as usize;
            fine[column.min(columns - 1)][row.min(FINE_ROWS - 1)] +=
                bucket.count_since_last_iteration();
        }
    }
    let used = |row: &usize| fine.iter().any(|column| column[*row] > 0);
    let lowest = (0..FINE_ROWS).find(used)?;
    let highest = (0..FINE_ROWS).rev().find(used)?;
    let joined = (highest - lowest + 1).div_ceil(ROWS);
    let rows = (highest - lowest + 1).div_ceil(joined);
    let cells = fine
        .iter()
        .map(|column| {
            let rows = column[lowest..=highest].chunks(joined).enumerate();
            rows.map(|(row, counts)| (row as u64, counts.iter().sum::<u64>()))
                .filter(|&(_, count)| count > 0)
                .flat_map(|(row, count)| [row, count])
                .collect()
        })
        .collect();
    Some(Heat {
        actor,
        name: record.head.actors[actor].name.clone(),
        from: moment(from),
        column_s: wide,
        columns,
        lowest_us: short(FINE.powi(lowest as i32) / 1e3),
        ratio: FINE.powi(joined as i32),
        rows,
        cells,
    })
}

#[cfg(test)]
mod tests {
    use timeline::record::{Grain, HistogramLine, Line, Part, encode_histogram, second_histogram};

    use super::*;
    use crate::common::SHORT;

    fn seconds(n: u32, ns: impl Fn(u32) -> u64) -> Seconds {
        (0..n)
            .map(|i| {
                let mut histogram = second_histogram();
                histogram.record_n(ns(i), 5).unwrap();
                Line::Histogram(HistogramLine {
                    actor: 0,
                    latency: Latency::Response,
                    over: Grain::SecondAt(40.0 + f64::from(i)),
                    part: Part::Main,
                    v2: encode_histogram(&histogram),
                })
            })
            .collect()
    }

    #[test]
    fn it_stays_within_its_size_and_loses_no_operation() {
        let seconds = seconds(1500, |i| if i == 700 { 3_000_000_000 } else { 80_000 });
        let heat = heat(&SHORT.record(), &seconds).remove(0);
        assert!(heat.columns <= COLUMNS && heat.rows <= ROWS, "{heat:?}");
        assert_eq!((heat.column_s, heat.columns), (3.0, 500));
        let counts: u64 = heat
            .cells
            .iter()
            .flat_map(|c| c.chunks(2))
            .map(|c| c[1])
            .sum();
        assert_eq!(counts, 1500 * 5);
        // The slow second is in its column and at its height.
        let slow = &heat.cells[700 / 3];
        assert_eq!(slow.len(), 4);
        let lower = heat.lowest_us * heat.ratio.powi(slow[2] as i32);
        assert!(lower <= 3.01e6 && 2.9e6 <= lower * heat.ratio, "{lower}");
    }

    #[test]
    fn without_seconds_there_is_none() {
        assert!(heat(&SHORT.record(), &Seconds::new()).is_empty());
    }
}
