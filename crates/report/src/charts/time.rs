//! Charts over time: rates, latencies, discards, debt, queue.

use record::RunRecord;
use record::{Part, PhaseName};

use crate::html::tables;
use crate::series::{self, Discards};
use crate::thin::{self, Series};

/// So many times what all but one in twenty values stay below is far away.
const FAR: f64 = 2.5;

/// The kind of a chart's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Operations per second.
    PerSecond,
    /// Microseconds.
    Us,
    /// Bytes per second.
    BytesPerSecond,
    Bytes,
    Count,
    /// A share, 0 to 1.
    Share,
}

impl Unit {
    /// Its name for the script of a page.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::PerSecond => "per_second",
            Unit::Us => "us",
            Unit::BytesPerSecond => "bytes_per_second",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
            Unit::Share => "share",
        }
    }
}

/// A chart over time. All its lines have a value (or none) at each of `x`.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// Unique among a record's charts; lower-case letters, digits and `-`.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) unit: Unit,
    /// Whether its axis is logarithmic.
    pub(crate) log: bool,
    /// Where the axis ends, if a few values are so far above the others that they
    /// would squash them. Values above it are cut off.
    pub(crate) top: Option<f64>,
    /// Whether its lines bound bands (percentiles of the same latency).
    pub(crate) bands: bool,
    /// The actors it shows, as indices: whose stalls are shaded.
    pub(crate) actors: Vec<usize>,
    /// Middles of intervals, in seconds since the record's zero.
    pub(crate) x: Vec<f64>,
    pub(crate) lines: Vec<Line>,
}

/// One line of a chart.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// One per `x`; not a number where nothing is known.
    pub(crate) y: Vec<f64>,
}

/// All charts over time, in the order in which they are read.
pub(crate) fn over_time(record: &RunRecord) -> Vec<Chart> {
    let discards = Discards::of(record);
    let actors = &record.head.actors;
    let known = actors.len().min(record.intervals.actors.len());
    let all: Vec<usize> = (0..known).collect();
    // With hundreds of actors each has fewer points: a report must open.
    let limit = (20 * thin::POINTS / known.max(20)).max(200);
    let mut charts = Vec::new();
    // A chart each: on one scale a canary beside a fast reader is a line at 0.
    for &actor in &all {
        let (rates, together) = series::rates(record, actor);
        let over = match together {
            1 => String::new(),
            n => {
                let seconds = n as f64 * record.head.interval_ms / 1e3;
                format!(", means over {}", record::units::seconds(seconds))
            }
        };
        let title = format!("Rate of {}{over}", actors[actor].name);
        let mut chart = Chart::new(&format!("rate-{actor}"), title, Unit::PerSecond);
        chart.top = far_below_the_most(&rates);
        let rate = move |i: usize| rates[i];
        let lines: Vec<(String, Value<'_>)> = vec![(actors[actor].name.clone(), Box::new(rate))];
        charts.push(chart.of(&[actor]).filled(record, lines, limit));
    }
    for &actor in &all {
        let columns = &record.intervals.actors[actor];
        let title = format!("Latency of {}", actors[actor].name);
        let known = move |column: &'_ [f32], i: usize| {
            let us = f64::from(column[i]);
            // A logarithm has no zero.
            let is_known = columns.running[i] && us > 0.0;
            if is_known { us } else { f64::NAN }
        };
        // The oldest in flight is a wait, too; f64::max takes the other of a NaN.
        let most = move |i| known(&columns.max_us, i).max(known(&columns.oldest_us, i));
        let lines: Vec<(String, Value<'_>)> = vec![
            ("p50".into(), Box::new(move |i| known(&columns.p50_us, i))),
            ("p99".into(), Box::new(move |i| known(&columns.p99_us, i))),
            ("max".into(), Box::new(most)),
        ];
        let mut chart = Chart::new(&format!("latency-{actor}"), title, Unit::Us);
        (chart.log, chart.bands) = (true, true);
        charts.push(chart.of(&[actor]).filled(record, lines, limit));
    }
    let in_flight = |i: usize| -> f64 {
        let devices = discards.devices.iter();
        devices
            .map(|&device| f64::from(record.intervals.devices[device].in_flight[i]))
            .sum()
    };
    let trim = |i: usize| discards.rate(record, i).unwrap_or(f64::NAN);
    let debt = |i: usize| discards.debt[i] as f64;
    let rate = Unit::BytesPerSecond;
    let single: [(&str, &str, Unit, &str, Value<'_>); 3] = [
        (
            "trim",
            "Discarded (TRIM)",
            rate,
            "discarded",
            Box::new(trim),
        ),
        (
            "debt",
            "Discard debt",
            Unit::Bytes,
            "freed, not yet discarded",
            Box::new(debt),
        ),
        (
            "queue",
            "Queue of the drives",
            Unit::Count,
            "in flight",
            Box::new(in_flight),
        ),
    ];
    for (id, title, unit, line, value) in single {
        let chart = Chart::new(id, title.to_owned(), unit);
        charts.push(chart.filled(record, vec![(line.to_owned(), value)], limit));
    }
    charts.retain(|chart| chart.tells(record));
    charts.extend(super::waits::waits(record, limit));
    charts
}

/// Returns where an axis has to end, so that a few values don't squash all others. An open
/// loop, for example, catches up with its backlog in the one interval after a stall.
fn far_below_the_most(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let most = *sorted.last()?;
    let usual = sorted[(sorted.len() - 1) * 95 / 100];
    (usual > 0.0 && most > FAR * usual).then_some(1.5 * usual)
}

/// The value of a line in an interval.
type Value<'a> = Box<dyn Fn(usize) -> f64 + 'a>;

impl Chart {
    pub(crate) fn new(id: &str, title: String, unit: Unit) -> Chart {
        Chart {
            id: id.to_owned(),
            title,
            unit,
            log: false,
            top: None,
            bands: false,
            actors: Vec::new(),
            x: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Whether there is something to see: an imported log has no latencies, no
    /// queue or no account of what was freed, and a line at 0 would say otherwise.
    fn tells(&self, record: &RunRecord) -> bool {
        let any = |wanted: fn(f64) -> bool| {
            let mut values = self.lines.iter().flat_map(|line| &line.y);
            values.any(|&y| wanted(y))
        };
        match self.id.as_str() {
            "debt" => record.intervals.freed_bytes.iter().any(|&n| n > 0),
            "queue" => any(|y| y > 0.0),
            _ => self.unit != Unit::Us || any(f64::is_finite),
        }
    }

    /// Names what its axis leaves out; `None` where it shows all.
    pub(crate) fn cut(&self) -> Option<String> {
        let top = self.top?;
        let values = self.lines.iter().flat_map(|line| &line.y);
        let most = values
            .copied()
            .filter(|y| y.is_finite())
            .fold(0.0, f64::max);
        (most > top).then(|| format!("cut off; the highest is {}", tables::shown(self.unit, most)))
    }

    fn of(mut self, actors: &[usize]) -> Chart {
        self.actors = actors.to_vec();
        self
    }

    fn filled(
        mut self,
        record: &RunRecord,
        lines: Vec<(String, Value<'_>)>,
        limit: usize,
    ) -> Chart {
        let intervals = &record.intervals;
        let values: Vec<Series<'_>> = lines.iter().map(|(_, value)| value as Series<'_>).collect();
        let kept = thin::indices(intervals.len(), focus(record), &values, limit);
        let middle = |&i: &usize| intervals.at_s[i] + f64::from(intervals.seconds[i]) / 2.0;
        self.x = kept.iter().map(middle).collect();
        for (name, value) in &lines {
            self.lines.push(Line {
                name: name.clone(),
                y: kept.iter().map(|&i| value(i)).collect(),
            });
        }
        self
    }
}

/// The intervals of the deletion, which are looked at most closely.
fn focus(record: &RunRecord) -> std::ops::Range<usize> {
    let is_main = |phase: &&record::Phase| phase.part == Part::Main;
    let mut phases = record.phases.iter().filter(is_main);
    let Some(delete) = phases.find(|phase| phase.name == PhaseName::Delete) else {
        return 0..0;
    };
    let index = |at_s: f64| record.intervals.at_s.partition_point(|&at| at < at_s);
    let end = record
        .phases
        .iter()
        .map(|phase| phase.at_s)
        .find(|&at| at > delete.at_s)
        .map_or(record.intervals.len(), index);
    let start = index(delete.at_s).saturating_sub(1);
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::{SHORT, T500};

    #[test]
    fn each_figure_has_its_chart() {
        let charts = over_time(&T500.record());
        let ids: Vec<&str> = charts.iter().map(|chart| chart.id.as_str()).collect();
        let all = ["rate-0", "rate-1", "latency-0", "latency-1", "trim", "debt"];
        assert_eq!(ids, all);
        for chart in &charts {
            assert!(chart.lines.iter().all(|line| line.y.len() == chart.x.len()));
            assert!(chart.x.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn a_slow_actor_has_its_own_scale_and_enough_operations_in_each_point() {
        let mut record = T500.record();
        let canary = &mut record.intervals.actors[1];
        for (i, ops) in canary.ops.iter_mut().enumerate() {
            *ops = u32::from(i % 5 == 0);
        }
        let chart = &over_time(&record)[1];
        assert_eq!(chart.title, "Rate of canary, means over 2.5 s");
        assert!(chart.lines[0].y.iter().all(|&y| (1.5..2.5).contains(&y)));
        assert_eq!(chart.top, None);
    }

    #[test]
    fn a_backlog_caught_up_with_squashes_nothing() {
        let mut record = T500.record();
        record.intervals.actors[1].ops[600] = 1700;
        let chart = &over_time(&record)[1];
        assert!(
            chart.top.is_some_and(|top| (top - 150.0).abs() < 0.1),
            "{:?}",
            chart.top
        );
        let most = chart.lines[0].y.iter().copied().fold(0.0, f64::max);
        assert!(most > 16_000.0, "{most}");
    }

    #[test]
    fn a_stall_survives_in_a_long_record() {
        let mut run = SHORT;
        run.baseline_s = 2000.0;
        let record = run.record();
        let rate = &over_time(&record)[0];
        assert!(rate.x.len() <= thin::POINTS && record.intervals.len() > 2 * thin::POINTS);
        let exact = (0..record.intervals.len()).filter_map(|i| series::rate(&record, 0, i));
        let least = exact.fold(f64::MAX, f64::min);
        let shown = rate.lines[0].y.iter().copied().fold(f64::MAX, f64::min);
        assert_eq!(shown, least);
    }
}
