//! Every figure of a log as a row of one long table.

use report::parquet::{Column, Values};

use crate::cell::Cell;
use crate::engines::EngineRun;
use crate::log::{Figures, Log, Outcome};
use crate::measure::{Measure, Unit};
use crate::step::Step;

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
        measure: word(&measure),
        unit: word(&measure.unit()),
        value: Some(value),
        verdict: verdict.clone(),
        ..row.clone()
    };
    Measure::of(step, figures).into_iter().map(of).collect()
}

/// Rates, latencies and processor time of every engine, and what trimbench adds.
fn engines(row: &Row, figures: &Figures) -> Vec<Row> {
    let Some(engines) = &figures.engines else {
        return Vec::new();
    };
    let named = |measure: &str, unit: Unit, value: Option<f64>| Row {
        measure: Some(measure.to_owned()),
        unit: word(&unit),
        value,
        ..row.clone()
    };
    let seconds = |us: Option<f64>| us.map(|us| us / 1e6);
    let mut rows = Vec::new();
    for run in &engines.runs {
        let of_run = [
            ("reads", Unit::PerSecond, run.reads_per_s),
            ("p50", Unit::Seconds, seconds(run.p50_us)),
            ("p99", Unit::Seconds, seconds(run.p99_us)),
            ("processor-time", Unit::Seconds, seconds(run.cpu_us)),
        ];
        rows.extend(of_run.map(|(measure, unit, value)| Row {
            engine: Some(run.clone()),
            why: run.why.clone(),
            ..named(measure, unit, value)
        }));
    }
    let costs = &engines.costs;
    rows.extend(
        [
            ("clock", costs.clock_ns),
            ("kernel-clock", costs.kernel_clock_ns),
            ("recording", costs.record_ns),
        ]
        .map(|(measure, ns)| named(measure, Unit::Seconds, Some(ns / 1e9))),
    );
    rows
}

/// The word that the JSON has for it.
fn word(of: &impl serde::Serialize) -> Option<String> {
    let json = serde_json::to_value(of).ok()?;
    json.as_str().map(str::to_owned)
}

fn table(log: &Log, rows: &[Row]) -> Vec<Column> {
    let text = |name: &str, of: &dyn Fn(&Row) -> Option<String>| Column {
        name: name.to_owned(),
        values: Values::Text(rows.iter().map(of).collect()),
    };
    let cell = |row: &Row| Cell::named(&row.cell);
    let drive = log.head.drive.words();
    vec![
        text("drive", &|_| Some(drive.clone())),
        text("kernel", &|_| Some(log.head.host.kernel.clone())),
        text("cell", &|row| Some(row.cell.clone())),
        text("file_system", &|row| {
            Some(cell(row)?.kind.name().to_owned())
        }),
        text("mkfs", &|row| Some(cell(row)?.mkfs().to_owned())),
        text("mount", &|row| Some(cell(row)?.mounting.name.to_owned())),
        Column {
            name: "round".to_owned(),
            values: Values::Whole(rows.iter().map(|row| Some(row.round.into())).collect()),
        },
        text("step", &|row| Some(row.step.to_owned())),
        text("measure", &|row| row.measure.clone()),
        text("unit", &|row| row.unit.clone()),
        Column {
            name: "value".to_owned(),
            values: Values::Number(rows.iter().map(|row| row.value).collect()),
        },
        text("verdict", &|row| row.verdict.clone()),
        text("engine", &|row| Some(row.engine.as_ref()?.engine.clone())),
        text("cache", &|row| word(&row.engine.as_ref()?.cache)),
        Column {
            name: "batch".to_owned(),
            values: Values::Whole(
                rows.iter()
                    .map(|row| row.engine.as_ref().map(|run| run.batch.into()))
                    .collect(),
            ),
        },
        text("why", &|row| row.why.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

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
        let results = crate::Results::of(&made::log(&[name], 2, 1.0));
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
