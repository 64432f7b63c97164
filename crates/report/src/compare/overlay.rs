//! Runs over each other, their time counted from the first deletion call.
//!
//! All lines of a chart need the same moments, and no two runs' intervals begin
//! at the same distance from their deletions. So time is cut into equal steps, at
//! least as long as an interval; of each the mean rate is shown, and the longest
//! latency. Of a group's repeats it is the median.

use std::ops::Range;

use judge::compare::{Comparison, Figure, Group, Run};
use judge::{JudgeOptions, judge};
use record::RunRecord;
use record::{Event, EventKind, Part, Phase, PhaseName, latency_histogram};

use crate::charts::{
    self, Chart, Curve, Curves, Kind, Lane, Line, Moment, Spans, Unit, far_below_the_most,
};
use crate::series::{self, Discards, SIGNIFICANT};

/// Most points of a line.
const POINTS: f64 = 2500.0;

/// With more runs than this, each group gets one line.
const RUNS: usize = 4;

/// The charts of all runs over each other.
pub(super) struct Overlay {
    pub(super) charts: Vec<Chart>,
    /// Percentile curves of each run's foreground during the deletion.
    pub(super) curves: Vec<Curves>,
    pub(super) spans: Spans,
    /// Whether the lines are medians of repeats.
    pub(super) medians: bool,
    /// Runs without a deletion or a discard to count their time from.
    pub(super) adrift: Vec<String>,
}

/// A run with its own clock.
struct Timed<'a> {
    record: &'a RunRecord,
    options: &'a JudgeOptions,
    discards: Discards,
    zero_s: f64,
}

/// All charts of a comparison.
pub(super) fn overlay<'g>(groups: &'g [Group<'g>], comparison: &Comparison) -> Overlay {
    let mut adrift = Vec::new();
    let mut timed = |run: &'g Run<'g>| {
        let discards = Discards::of(run.record);
        let zero_s = zero(run.record, &discards).unwrap_or_else(|| {
            adrift.push(run.name.clone());
            run.record.intervals.at_s.first().copied().unwrap_or(0.0)
        });
        Timed {
            record: run.record,
            options: &run.options,
            discards,
            zero_s,
        }
    };
    let runs = groups
        .iter()
        .map(|group| group.runs.iter().map(&mut timed).collect());
    let timed: Vec<Vec<Timed<'_>>> = runs.collect();
    let all = || timed.iter().flatten();
    let begin = all().map(Timed::begin_s).fold(f64::INFINITY, f64::min);
    let end = all().map(Timed::end_s).fold(f64::NEG_INFINITY, f64::max);
    let (begin, end) = match begin < end {
        true => (begin, end),
        false => (0.0, 1.0),
    };
    let longest = all().map(|run| run.record.head.interval_ms / 1e3);
    let step_s = longest.fold((end - begin) / POINTS, f64::max).max(1e-3);
    let grid = Grid {
        // A step ends where the deletion begins.
        first: (begin / step_s).floor(),
        count: ((end - begin) / step_s).ceil().max(1.0) as usize + 1,
        step_s,
    };
    let medians = all().count() > RUNS && groups.iter().any(|group| group.runs.len() > 1);
    let drawn = Drawn {
        groups,
        timed: &timed,
        grid: &grid,
        medians,
    };
    let actors = actors(comparison);
    let lanes = drawn.lanes(&actors);
    let ends = all()
        .filter_map(Timed::deletion_s)
        .chain(lanes.iter().map(|lane| lane.to));
    let deletion_s = ends.fold(10.0 * step_s, f64::max);
    let view = [begin.max(-2.0 * deletion_s), end.min(3.0 * deletion_s)];
    let view = Some(view).filter(|[from, to]| from < to);
    Overlay {
        charts: drawn.charts(&actors),
        curves: drawn.curves(&actors),
        spans: Spans {
            lanes,
            all: [begin, end],
            step_s,
            phases: Vec::new(),
            marks: Vec::new(),
            events: vec![Moment {
                at: 0.0,
                word: "the deletion begins",
            }],
            view: view.unwrap_or([begin, end]),
        },
        medians,
        adrift,
    }
}

/// The name and operation of all actors whose rate is compared.
fn actors(comparison: &Comparison) -> Vec<(&str, &str)> {
    let mut actors: Vec<(&str, &str)> = Vec::new();
    for row in &comparison.figures {
        if let (Some(actor), Some(op), Figure::BaselineRate | Figure::DeleteRate) =
            (&row.actor, &row.op, row.figure)
            && !actors.contains(&(actor, op))
        {
            actors.push((actor, op));
        }
    }
    actors
}

/// When the first deletion call began; in a log without, the first discards that matter.
fn zero(record: &RunRecord, discards: &Discards) -> Option<f64> {
    let calls = record.deletions.iter().filter(|d| d.part == Part::Main);
    let first = calls.map(|d| d.at_s).reduce(f64::min);
    let event = || {
        let began = |event: &&Event| event.kind == EventKind::DeletionBegan;
        record.events.iter().find(began).map(|event| event.at_s)
    };
    let phase = || {
        let delete = |p: &&Phase| p.part == Part::Main && p.name == PhaseName::Delete;
        record.phases.iter().find(delete).map(|phase| phase.at_s)
    };
    let discard = || {
        let total: f64 = discards.bytes.iter().map(|&n| n as f64).sum();
        let matters = |&n: &u64| n > 0 && n as f64 >= SIGNIFICANT * total;
        let i = discards.bytes.iter().position(matters)?;
        record.intervals.at_s.get(i).copied()
    };
    first.or_else(event).or_else(phase).or_else(discard)
}

impl Timed<'_> {
    /// Where it is looked at: from its baseline on.
    fn begin_s(&self) -> f64 {
        let mut phases = self.record.phases.iter();
        let baseline = phases.find(|p| p.part == Part::Main && p.name == PhaseName::Baseline);
        let first = self.record.intervals.at_s.first().copied();
        baseline.map(|p| p.at_s).or(first).unwrap_or(0.0) - self.zero_s
    }

    /// How long it deleted and discarded what it had deleted; `None` if nothing tells.
    fn deletion_s(&self) -> Option<f64> {
        let record = self.record;
        let ends = record.events.iter().filter(|event| {
            matches!(
                event.kind,
                EventKind::DeletionReturned | EventKind::DebtPaid
            )
        });
        let calls = record.deletions.iter().filter(|d| d.part == Part::Main);
        let discards = self.discards.last_s(record);
        let all = calls.map(|d| d.at_s + d.seconds).chain(discards);
        let main = |at: &f64| *at <= self.main_end_s();
        let last = all.chain(ends.map(|event| event.at_s)).filter(main);
        last.reduce(f64::max).map(|at| at - self.zero_s)
    }

    /// Where the control part begins, or the record ends.
    fn main_end_s(&self) -> f64 {
        let mut phases = self.record.phases.iter();
        let control = phases.find(|p| p.part == Part::Control && p.at_s > self.zero_s);
        control.map_or(self.record.intervals.end_s(), |p| p.at_s)
    }

    fn end_s(&self) -> f64 {
        self.record.intervals.end_s() - self.zero_s
    }
}

struct Grid {
    /// The first step, counted from the deletion.
    first: f64,
    count: usize,
    step_s: f64,
}

/// How the intervals of a step become one value.
#[derive(Clone, Copy)]
enum Join {
    Mean,
    Most,
}

impl Grid {
    /// A run's values on the grid: not a number where it has none.
    fn laid(&self, run: &Timed<'_>, join: Join, value: impl Fn(usize) -> Option<f64>) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); self.count];
        let intervals = &run.record.intervals;
        for i in 0..intervals.len() {
            let Some(value) = value(i) else { continue };
            let seconds = f64::from(intervals.seconds[i]);
            let from = (intervals.at_s[i] - run.zero_s) / self.step_s - self.first;
            let to = from + seconds / self.step_s;
            for n in self.steps(from, to) {
                // The part of the step that the interval covers.
                let part = (to.min(n as f64 + 1.0) - from.max(n as f64)).max(0.0);
                match join {
                    Join::Mean => {
                        sums[n].0 += part * value;
                        sums[n].1 += part;
                    }
                    Join::Most if part > 1e-9 => sums[n] = (value.max(sums[n].0), 1.0),
                    Join::Most => {}
                }
            }
        }
        let mean = |&(sum, weight): &(f64, f64)| {
            // A step that is hardly covered says little.
            if weight > 0.25 {
                sum / weight
            } else {
                f64::NAN
            }
        };
        sums.iter().map(mean).collect()
    }

    fn steps(&self, from: f64, to: f64) -> Range<usize> {
        if to.is_nan() || to <= 0.0 || from >= self.count as f64 {
            return 0..0;
        }
        (from.max(0.0).floor() as usize)..(to.ceil() as usize).min(self.count)
    }

    fn middles(&self) -> Vec<f64> {
        let middle = |n: usize| (self.first + n as f64 + 0.5) * self.step_s;
        (0..self.count).map(middle).collect()
    }
}

struct Drawn<'a> {
    groups: &'a [Group<'a>],
    timed: &'a [Vec<Timed<'a>>],
    grid: &'a Grid,
    medians: bool,
}

impl Drawn<'_> {
    fn charts(&self, actors: &[(&str, &str)]) -> Vec<Chart> {
        let mut charts = Vec::new();
        let all = |chart: &Chart| -> Vec<f64> {
            let values = chart.lines.iter().flat_map(|line| &line.y);
            values.copied().collect()
        };
        for (n, &(name, op)) in actors.iter().enumerate() {
            let title = format!("Rate of {name}");
            let lines = self.lines(Join::Mean, |run| {
                let (rates, _) = index(run.record, (name, op), actors)
                    .map_or((Vec::new(), 1), |actor| series::rates(run.record, actor));
                move |i| rates.get(i).copied().filter(|rate| rate.is_finite())
            });
            let chart = self.chart(&format!("rate-{n}"), &title, Unit::PerSecond, lines);
            charts.extend(chart.map(|chart| Chart {
                top: far_below_the_most(&all(&chart)),
                actors: vec![n],
                ..chart
            }));
        }
        for (n, &(name, op)) in actors.iter().enumerate() {
            let title = format!("Latency of {name}: p99, or the wait of the oldest in flight");
            let lines = self.lines(Join::Most, |run| {
                let actor = index(run.record, (name, op), actors);
                move |i| series::latency_us(run.record, actor?, i)
            });
            let chart = self.chart(&format!("latency-{n}"), &title, Unit::Us, lines);
            charts.extend(chart.map(|chart| Chart {
                log: true,
                actors: vec![n],
                ..chart
            }));
        }
        let trim = self.lines(Join::Mean, |run| |i| run.discards.rate(run.record, i));
        let unit = Unit::BytesPerSecond;
        charts.extend(self.chart("trim", "Discarded (TRIM)", unit, trim));
        let debt = self.lines(Join::Most, |run| |i| Some(run.discards.debt[i] as f64));
        let has_debt = |line: &Line| line.y.iter().any(|&y| y > 0.0);
        if debt.iter().any(has_debt) {
            let title = "Discard debt: freed, not yet discarded";
            charts.extend(self.chart("debt", title, Unit::Bytes, debt));
        }
        charts
    }

    /// `None` where no run tells anything.
    fn chart(&self, id: &str, title: &str, unit: Unit, lines: Vec<Line>) -> Option<Chart> {
        let mut values = lines.iter().flat_map(|line| &line.y);
        let known = values.any(|y| y.is_finite());
        known.then(|| Chart {
            x: self.grid.middles(),
            lines,
            ..Chart::new(id, title.to_owned(), unit)
        })
    }

    /// The runs of each line with the line's name: a run, or all of a group.
    fn named(&self) -> Vec<(String, &[Timed<'_>])> {
        let mut named = Vec::new();
        for (group, runs) in self.groups.iter().zip(self.timed) {
            if self.medians || runs.len() == 1 {
                named.push((group.name.clone(), runs.as_slice()));
                continue;
            }
            for (n, run) in (1..).zip(runs) {
                let name = format!("{} {n}", group.name);
                named.push((name, std::slice::from_ref(run)));
            }
        }
        named
    }

    /// Response times during the deletion: of repeats drawn as one, all operations together.
    fn curves(&self, actors: &[(&str, &str)]) -> Vec<Curves> {
        let mut all = Vec::new();
        for (n, &(name, op)) in actors.iter().enumerate() {
            let mut curves = Vec::new();
            for (style, (line, runs)) in self.named().into_iter().enumerate() {
                let known = runs.iter().filter_map(|run| {
                    let actor = index(run.record, (name, op), actors)?;
                    charts::response(run.record, actor, PhaseName::Delete)
                });
                let mut sum = latency_histogram();
                for histogram in known {
                    // All records' histograms reach equally far.
                    sum.add(histogram).ok();
                }
                if !sum.is_empty() {
                    curves.push(Curve {
                        name: line,
                        style,
                        us: charts::points(&sum),
                    });
                }
            }
            if !curves.is_empty() {
                all.push(Curves {
                    actor: n,
                    name: name.to_owned(),
                    x: charts::shares(),
                    curves,
                });
            }
        }
        all
    }

    /// The stalls of each line, as the verdicts have them.
    fn lanes(&self, actors: &[(&str, &str)]) -> Vec<Lane> {
        let mut lanes = Vec::new();
        for (line, (_, runs)) in self.named().into_iter().enumerate() {
            for run in runs {
                let verdict = judge(run.record, run.options);
                let spans = charts::spans(run.record, &verdict);
                for (actor, &of) in actors.iter().enumerate() {
                    let Some(own) = index(run.record, of, actors) else {
                        continue;
                    };
                    let stalls = spans.united(Kind::Stall, &[own]).into_iter();
                    lanes.extend(stalls.map(|(from, to)| Lane {
                        line,
                        actor,
                        from: from - run.zero_s,
                        to: to - run.zero_s,
                    }));
                }
            }
        }
        lanes
    }

    /// A line for each run, or for each group.
    fn lines<'s, V>(&'s self, join: Join, values: impl Fn(&'s Timed<'s>) -> V) -> Vec<Line>
    where
        V: Fn(usize) -> Option<f64>,
    {
        let named = self.named().into_iter();
        let line = |(name, runs): (String, &'s [Timed<'s>])| {
            let laid = runs
                .iter()
                .map(|run| self.grid.laid(run, join, values(run)));
            let laid: Vec<Vec<f64>> = laid.collect();
            let middle = |n: usize| median(laid.iter().map(|run| run[n]));
            let y = (0..self.grid.count).map(middle).collect();
            Line { name, y }
        };
        named.map(line).collect()
    }
}

/// The actor of this name and operation; else the only one with the operation, unless
/// it is another of the comparison's, as the comparison matches them.
fn index(record: &RunRecord, (name, op): (&str, &str), all: &[(&str, &str)]) -> Option<usize> {
    let actors = &record.head.actors;
    let named = actors.iter().position(|a| a.name == name && a.op == op);
    named.or_else(|| {
        let mut same = actors.iter().enumerate().filter(|(_, a)| a.op == op);
        match (same.next(), same.next()) {
            (Some((i, only)), None) if !all.contains(&(&only.name, op)) => Some(i),
            _ => None,
        }
    })
}

/// The median of what is finite; not a number of nothing.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    record::units::median(values.filter(|v| v.is_finite())).unwrap_or(f64::NAN)
}
