//! Every figure of a log as a row of one long table.

use report::parquet::{Column, Values};

use crate::suite::cell::Cell;
use crate::suite::log::{Figures, Log, Outcome};
use crate::suite::measure::{EngineRun, Measure, Unit};
use crate::suite::step::Step;

/// A figure of one cell, round and step, or the reason why there is none.
#[derive(Debug, Clone, Default)]
struct Row {
    cell: String,
    round: u32,
    step: &'static str,
    measure: Option<String>,
    unit: Option<String>,
    value: Option<f64>,
    verdict: Option<String>,
    engine: Option<EngineRun>,
    why: Option<String>,
}

/// The figures of all cells, a row for each, as the columns of a table. A step that failed is a
/// row without a figure that says why.
pub fn columns(log: &Log) -> Vec<Column> {
    let mut rows = Vec::new();
    for ((cell, round, step), outcome) in &log.outcomes {
        let row = Row {
            cell: cell.clone(),
            round: *round,
            step: step.name(),
            ..Row::default()
        };
        match outcome {
            Outcome::Failed(why) => rows.push(Row {
                why: Some(why.clone()),
                ..row
            }),
            Outcome::Done(figures) => {
                rows.extend(measured(&row, *step, figures));
                rows.extend(engines(&row, figures));
            }
        }
    }
    table(log, &rows)
}

fn measured(row: &Row, step: Step, figures: &Figures) -> Vec<Row> {
    let verdict = figures.run.as_ref().map(|run| run.verdict.clone());
    let of = |(measure, value): (Measure, f64)| Row {
        verdict: verdict.clone(),
        ..row.with(
            &word(&measure).unwrap_or_default(),
            measure.unit(),
            Some(value),
        )
    };
    Measure::of(step, figures).into_iter().map(of).collect()
}

impl Row {
    /// The same cell, round and step with a figure.
    fn with(&self, measure: &str, unit: Unit, value: Option<f64>) -> Row {
        Row {
            measure: Some(measure.to_owned()),
            unit: word(&unit),
            value,
            ..self.clone()
        }
    }
}

/// Rates, latencies and processor time of every engine, and what trimbench adds.
fn engines(row: &Row, figures: &Figures) -> Vec<Row> {
    let Some(engines) = &figures.engines else {
        return Vec::new();
    };
    let seconds = |us: Option<f64>| us.map(|us| us / 1e6);
    let runs = engines.runs.iter().flat_map(|run| {
        let row = Row {
            engine: Some(run.clone()),
            why: run.why.clone(),
            ..row.clone()
        };
        [
            row.with("reads", Unit::PerSecond, run.reads_per_s),
            row.with("p50", Unit::Seconds, seconds(run.p50_us)),
            row.with("p99", Unit::Seconds, seconds(run.p99_us)),
            row.with("processor-time", Unit::Seconds, seconds(run.cpu_us)),
        ]
    });
    let costs = &engines.costs;
    let costs = [
        ("clock", costs.clock_ns),
        ("kernel-clock", costs.kernel_clock_ns),
        ("recording", costs.record_ns),
    ];
    let costs = costs.map(|(measure, ns)| row.with(measure, Unit::Seconds, Some(ns / 1e9)));
    runs.chain(costs).collect()
}

/// The word that the JSON has for it.
pub(crate) fn word(of: &impl serde::Serialize) -> Option<String> {
    let json = serde_json::to_value(of).ok()?;
    json.as_str().map(str::to_owned)
}

fn table(log: &Log, rows: &[Row]) -> Vec<Column> {
    fn all<T>(rows: &[Row], of: impl Fn(&Row) -> Option<T>) -> Vec<Option<T>> {
        rows.iter().map(of).collect()
    }
    let text = |of: &dyn Fn(&Row) -> Option<String>| Values::Text(all(rows, of));
    let part =
        |of: fn(Cell) -> &'static str| text(&|row| Some(of(Cell::named(&row.cell)?).to_owned()));
    let engine = |of: fn(&EngineRun) -> Option<String>| text(&|row| of(row.engine.as_ref()?));
    let batch = |row: &Row| Some(row.engine.as_ref()?.batch.into());
    let columns = [
        ("drive", text(&|_| Some(log.head.drive.words()))),
        ("kernel", text(&|_| Some(log.head.host.kernel.clone()))),
        ("cell", text(&|row| Some(row.cell.clone()))),
        ("file_system", part(|cell| cell.kind.name())),
        ("mkfs", part(|cell| cell.mkfs())),
        ("mount", part(|cell| cell.mounting.name)),
        (
            "round",
            Values::Whole(all(rows, |row| Some(row.round.into()))),
        ),
        ("step", text(&|row| Some(row.step.to_owned()))),
        ("measure", text(&|row| row.measure.clone())),
        ("unit", text(&|row| row.unit.clone())),
        ("value", Values::Number(all(rows, |row| row.value))),
        ("verdict", text(&|row| row.verdict.clone())),
        ("engine", engine(|run| Some(run.engine.clone()))),
        ("cache", engine(|run| word(&run.cache))),
        ("batch", Values::Whole(all(rows, batch))),
        ("why", text(&|row| row.why.clone())),
    ];
    let column = |(name, values): (&str, Values)| Column {
        name: name.to_owned(),
        values,
    };
    columns.map(column).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tests as made;

    #[test]
    fn every_figure_of_every_round_is_a_row_and_so_is_a_failure() {
        let name = "ext4/discard/discard";
        let mut log = made::log(&[name], 2, 1.0);
        let figures = columns(&log);
        let key = (name.to_owned(), 2, Step::Mkfs);
        log.outcomes
            .insert(key, Outcome::Failed("it is broken".to_owned()));
        let with_failure = columns(&log);
        let of = |columns: &[Column], name: &str| {
            let found = columns.iter().find(|column| column.name == name);
            found.unwrap().values.clone()
        };
        let Values::Number(values) = of(&figures, "value") else {
            panic!("no numbers")
        };
        let results = crate::suite::Results::of(&made::log(&[name], 2, 1.0));
        let known: usize = results.rows[0].values.values().map(Vec::len).sum();
        assert_eq!(values.len(), known);
        assert!(values.iter().all(Option::is_some));
        let Values::Text(why) = of(&with_failure, "why") else {
            panic!("no text")
        };
        assert_eq!(why.iter().flatten().count(), 1);
        report::parquet::parquet(&with_failure);
    }
}
