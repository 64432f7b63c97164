//! Latency heat maps: how many operations took how long. A column is a second, and
//! while data was deleted as short as the record has it.

use record::RunRecord;
use record::decode_histogram;

use crate::seconds::{Second, Seconds};

/// Most columns of whole seconds of a heat map, and most of shorter stretches.
const COLUMNS: usize = 600;

/// Most rows (latency).
const ROWS: usize = 100;

/// Most columns of all heat maps of a report together, of either kind.
const ALL_COLUMNS: usize = 9600;

/// Each of the rows that counts are first put into is so much above the one below.
const FINE: f64 = 1.05;

/// Fine rows: from 1 ns to an hour.
const FINE_ROWS: usize = 600;

/// A second ends with an interval, so up to so much later than it should, in seconds.
const LATE_S: f64 = 0.15;

/// Two moments closer than this are the same, in seconds.
const SAME_S: f64 = 1e-3;

/// One actor's heat map.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Heat {
    pub(crate) actor: usize,
    pub(crate) name: String,
    /// In order of time; none reaches into the next.
    pub(crate) columns: Vec<Column>,
    /// Where the lowest row begins, in microseconds.
    pub(crate) lowest_us: f64,
    /// The upper end of a row divided by its lower.
    pub(crate) ratio: f64,
    pub(crate) rows: usize,
    /// Least and most operations per second of a cell: the ends of the colours.
    pub(crate) per_s: [f64; 2],
}

/// The latencies of one stretch of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    /// In seconds since the record's zero.
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// A row, its count of operations, a row, its count, …
    pub(crate) cells: Vec<u64>,
}

impl Heat {
    /// The shortest and the longest column, in seconds.
    pub(crate) fn widths(&self) -> [f64; 2] {
        let widths = self.columns.iter().map(|column| column.to - column.from);
        widths.fold([f64::INFINITY, 0.0], |[least, most], wide| {
            [least.min(wide), most.max(wide)]
        })
    }

    /// The colour of a cell, from 0 (fewest operations per second) to 1 (most).
    pub(crate) fn shade(&self, column: &Column, count: u64) -> f64 {
        let [least, most] = self.per_s;
        let per_s = count as f64 / (column.to - column.from);
        let shade = (per_s / least).ln() / (most / least).ln();
        if shade.is_finite() {
            shade.clamp(0.0, 1.0)
        } else {
            1.0
        }
    }
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
    let columns = columns(
        sorted(seconds.of(actor)),
        &sorted(seconds.stretches(actor)),
        most,
    );
    let used = |row: &usize| columns.iter().any(|column| column.rows[*row] > 0);
    let lowest = (0..FINE_ROWS).find(used)?;
    let highest = (0..FINE_ROWS).rev().find(used)?;
    let joined = (highest - lowest + 1).div_ceil(ROWS);
    let rows = (highest - lowest + 1).div_ceil(joined);
    let joined_rows = |column: &Fine| {
        let rows = column.rows[lowest..=highest].chunks(joined);
        let rows = (0..).zip(rows.map(|counts| counts.iter().sum::<u64>()));
        let cells = rows.filter(|&(_, count)| count > 0);
        Column {
            from: column.from,
            to: column.to,
            cells: cells.flat_map(|(row, count)| [row, count]).collect(),
        }
    };
    let columns: Vec<Column> = columns.iter().map(joined_rows).collect();
    let per_s = columns.iter().flat_map(|column| {
        let wide = column.to - column.from;
        let counts = column.cells.chunks_exact(2);
        counts.map(move |cell| cell[1] as f64 / wide)
    });
    let per_s = per_s.fold([f64::INFINITY, 0.0], |[least, most], v| {
        [v.min(least), v.max(most)]
    });
    Some(Heat {
        actor,
        name: record.head.actors[actor].name.clone(),
        columns,
        lowest_us: FINE.powi(lowest as i32) / 1e3,
        ratio: FINE.powi(joined as i32),
        rows,
        per_s,
    })
}

/// A column before its rows are joined.
struct Fine {
    from: f64,
    to: f64,
    rows: Vec<u64>,
}

impl Fine {
    fn new(from: f64, to: f64) -> Fine {
        Fine {
            from,
            to,
            rows: vec![0; FINE_ROWS],
        }
    }

    /// Adds a second. Unreadable histograms are left out.
    fn add(&mut self, second: &Second) {
        let Ok(histogram) = decode_histogram(&second.v2) else {
            return;
        };
        for bucket in histogram.iter_recorded() {
            let ns = bucket.value_iterated_to().max(1) as f64;
            let row = ((ns.ln() / FINE.ln()) as usize).min(FINE_ROWS - 1);
            self.rows[row] = self.rows[row].saturating_add(bucket.count_since_last_iteration());
        }
        self.to = self.to.max(end(second));
    }
}

fn end(second: &Second) -> f64 {
    second.at_s + second.seconds
}

fn sorted<'a>(seconds: impl Iterator<Item = &'a Second>) -> Vec<&'a Second> {
    let mut all: Vec<&Second> = seconds.collect();
    all.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    all
}

/// At most about `most` columns of whole seconds, and as many of stretches.
fn columns(seconds: Vec<&Second>, stretches: &[&Second], most: usize) -> Vec<Fine> {
    let (Some(first), Some(last)) = (seconds.first(), seconds.last()) else {
        return Vec::new();
    };
    let wide = ((end(last) - first.at_s) / most as f64).ceil().max(1.0);
    let together = stretches.len().div_ceil(most).max(1);
    let mut columns: Vec<Fine> = Vec::new();
    let mut room_until = f64::NEG_INFINITY;
    for second in seconds {
        let begin = stretches.partition_point(|s| s.at_s < second.at_s - SAME_S);
        let within = stretches.partition_point(|s| s.at_s < end(second) - SAME_S);
        let own = stretches.get(begin..within).unwrap_or_default();
        if !own.is_empty() {
            divided(&mut columns, second, own, together);
            room_until = f64::NEG_INFINITY;
            continue;
        }
        if second.at_s >= room_until - SAME_S {
            columns.push(Fine::new(second.at_s, end(second)));
            room_until = second.at_s + wide;
        }
        if let Some(column) = columns.last_mut() {
            column.add(second);
        }
    }
    // A second ends when the clock says so, somewhat late.
    for i in 1..columns.len() {
        let next = columns[i].from;
        let column = &mut columns[i - 1];
        if column.to > next - LATE_S {
            column.to = next;
        }
    }
    columns.retain(|column| column.from < column.to);
    columns
}

/// A second in its stretches; what none of them has is before the first or after the last.
fn divided(columns: &mut Vec<Fine>, second: &Second, own: &[&Second], together: usize) {
    let (first, last) = (own[0].at_s, end(own[own.len() - 1]));
    let mut rest = Fine::new(second.at_s, end(second));
    rest.add(second);
    let mut fine = Vec::new();
    for group in own.chunks(together) {
        let mut column = Fine::new(group[0].at_s, group[0].at_s);
        for stretch in group {
            column.add(stretch);
        }
        for (rest, own) in rest.rows.iter_mut().zip(&column.rows) {
            *rest = rest.saturating_sub(*own);
        }
        fine.push(column);
    }
    let before = first - second.at_s >= end(second) - last;
    (rest.from, rest.to) = match before {
        true => (second.at_s, first),
        false => (last, end(second)),
    };
    let counts = rest.to - rest.from > SAME_S && rest.rows.iter().any(|&n| n > 0);
    let rest = counts.then_some(rest);
    let (earlier, later) = if before { (rest, None) } else { (None, rest) };
    columns.extend(earlier.into_iter().chain(fine).chain(later));
}

#[cfg(test)]
mod tests {
    use record::{Grain, HistogramLine, Latency, Line, Part, encode_histogram, second_histogram};

    use super::*;
    use crate::common::SHORT;

    fn line(over: Grain, ns: u64, n: u64) -> Line {
        let mut histogram = second_histogram();
        histogram.record_n(ns, n).unwrap();
        Line::Histogram(HistogramLine {
            actor: 0,
            latency: Latency::Response,
            over,
            part: Part::Main,
            v2: encode_histogram(&histogram),
        })
    }

    fn seconds(n: u32, ns: impl Fn(u32) -> u64) -> Seconds {
        (0..n)
            .map(|i| line(Grain::SecondAt(40.0 + f64::from(i)), ns(i), 5))
            .collect()
    }

    fn operations(heat: &Heat) -> u64 {
        let cells = heat.columns.iter().flat_map(|c| c.cells.chunks(2));
        cells.map(|cell| cell[1]).sum()
    }

    #[test]
    fn it_stays_within_its_size_and_loses_no_operation() {
        let seconds = seconds(1500, |i| if i == 700 { 3_000_000_000 } else { 80_000 });
        let heat = heat(&SHORT.record(), &seconds).remove(0);
        assert!(heat.columns.len() <= COLUMNS && heat.rows <= ROWS);
        assert_eq!((heat.widths(), heat.columns.len()), ([3.0, 3.0], 500));
        assert_eq!(operations(&heat), 1500 * 5);
        // The slow second is in its column and at its height.
        let slow = &heat.columns[700 / 3].cells;
        assert_eq!(slow.len(), 4);
        let lower = heat.lowest_us * heat.ratio.powi(slow[2] as i32);
        assert!(lower <= 3.01e6 && 2.9e6 <= lower * heat.ratio, "{lower}");
    }

    #[test]
    fn a_stall_of_three_quarters_of_a_second_is_as_wide_as_it_was() {
        let mut all = Seconds::new();
        for second in 40..50 {
            all.push(line(Grain::SecondAt(f64::from(second)), 80_000, 1000));
        }
        // The deletion began at 44.5 s and stalled from 45.0 to 45.75 s.
        for tenth in 445..480 {
            let n = if (450..=457).contains(&tenth) { 1 } else { 100 };
            let at_s = f64::from(tenth) / 10.0;
            let over = Grain::Stretch { at_s, seconds: 0.1 };
            all.push(line(over, 80_000, n));
        }
        let heat = heat(&SHORT.record(), &all).remove(0);
        let [least, most] = heat.widths();
        assert!((least - 0.1).abs() < 1e-6 && most == 1.0, "{least} {most}");
        let low = heat.columns.iter().filter(|c| c.cells[1] == 1);
        let (from, to) = low.fold((f64::MAX, 0.0), |(from, to): (f64, f64), c| {
            (from.min(c.from), to.max(c.to))
        });
        assert!((from - 45.0).abs() < 1e-6 && (to - 45.8).abs() < 1e-6);
        // The half of the second before the deletion is a column, too.
        let half = heat.columns.iter().find(|c| c.from == 44.0).unwrap();
        assert_eq!((half.to, half.cells[1]), (44.5, 500));
        let apart = heat
            .columns
            .windows(2)
            .all(|pair| pair[0].to <= pair[1].from);
        assert!(apart, "{:?}", heat.columns);
    }

    #[test]
    fn without_seconds_there_is_none() {
        assert!(heat(&SHORT.record(), &Seconds::new()).is_empty());
    }
}
