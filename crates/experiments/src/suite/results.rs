//! Medians and spreads of the lines of a log.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::Spread;
use crate::suite::advice::advise;
use crate::suite::cell::Cell;
use crate::suite::log::{Head, Log, Outcome};
use crate::suite::measure::Measure;
use crate::suite::step::Step;

/// The schema of the results as JSON.
const SUMMARY_SCHEMA: &str = "trimbench.suite/1";

/// A cell's figures over all rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The cell.
    pub cell: Cell,
    /// The values of each figure, one for each round that has it.
    pub values: BTreeMap<(Step, Measure), Vec<f64>>,
    /// The verdicts of each run, in the order of rounds.
    pub verdicts: BTreeMap<Step, Vec<String>>,
    /// Runs of which a round has only a lower bound of the TRIM rate.
    pub trim_bounds: BTreeSet<Step>,
    /// Runs that were not conclusive, each with its sentence and how often.
    pub inconclusive: Vec<(Step, String, usize)>,
    /// Steps that failed, each with its reason and how often.
    pub failures: Vec<(Step, String, usize)>,
}

impl Row {
    /// A figure's spread; `None` where no round has it.
    pub fn spread(&self, step: Step, measure: Measure) -> Option<Spread> {
        Spread::of(self.values.get(&(step, measure))?.iter().copied())
    }

    /// A figure's median.
    pub fn median(&self, step: Step, measure: Measure) -> Option<f64> {
        Some(self.spread(step, measure)?.median)
    }

    fn json(&self) -> Value {
        let figures = self.values.iter().map(|((step, measure), values)| {
            let spread = Spread::of(values.iter().copied());
            let of = |figure: fn(Spread) -> f64| spread.map(figure);
            json!({
                "step": step,
                "measure": measure,
                "unit": measure.unit(),
                "values": values,
                "least": of(|spread| spread.low),
                "median": of(|spread| spread.median),
                "most": of(|spread| spread.high),
                "count": values.len(),
            })
        });
        let failures = self.failures.iter();
        let failures =
            failures.map(|(step, why, times)| json!({"step": step, "why": why, "times": times}));
        json!({
            "cell": self.cell.to_string(),
            "file_system": self.cell.kind.name(),
            "mkfs": self.cell.mkfs(),
            "mount": self.cell.mounting.name,
            "mount_options": self.cell.mounting.options,
            "figures": figures.collect::<Vec<_>>(),
            "verdicts": self.verdicts,
            "failures": failures.collect::<Vec<_>>(),
        })
    }
}

/// The results of a suite, complete or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The machine, the drive and the plan.
    pub head: Head,
    /// The cells, in the order of the plan.
    pub rows: Vec<Row>,
    /// Turns that are over.
    pub done: usize,
    /// Turns of the plan.
    pub turns: usize,
}

impl Results {
    /// The results of a log.
    pub fn of(log: &Log) -> Results {
        let plan = &log.head.plan;
        let turns = plan.turns().len();
        Results {
            head: log.head.clone(),
            rows: plan.cells().map(|cell| row(log, cell)).collect(),
            done: turns - log.left().len(),
            turns,
        }
    }

    /// Whether any step failed.
    pub fn has_failures(&self) -> bool {
        self.rows.iter().any(|row| !row.failures.is_empty())
    }

    /// The results as JSON: `trimbench.suite/1`.
    pub fn json(&self) -> Value {
        json!({
            "schema": SUMMARY_SCHEMA,
            "head": self.head,
            "turns": self.turns,
            "done": self.done,
            "cells": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "advice": advise(self),
        })
    }

    /// A figure's spread over all rounds of those cells that are `wanted`.
    pub(crate) fn spread(
        &self,
        step: Step,
        measure: Measure,
        wanted: impl Fn(&Cell) -> bool,
    ) -> Option<Spread> {
        let rows = self.rows.iter().filter(|row| wanted(&row.cell));
        let values = rows.filter_map(|row| row.values.get(&(step, measure)));
        Spread::of(values.flatten().copied())
    }
}

fn row(log: &Log, cell: Cell) -> Row {
    let mut row = Row {
        cell,
        values: BTreeMap::new(),
        verdicts: BTreeMap::new(),
        trim_bounds: BTreeSet::new(),
        inconclusive: Vec::new(),
        failures: Vec::new(),
    };
    let name = cell.to_string();
    for round in 1..=log.head.plan.rounds {
        for step in Step::of(&cell) {
            let Some(outcome) = log.outcomes.get(&(name.clone(), round, step)) else {
                continue;
            };
            match outcome {
                Outcome::Failed(why) => count(&mut row.failures, step, why),
                Outcome::Done(figures) => {
                    for (measure, value) in Measure::of(step, figures) {
                        row.values.entry((step, measure)).or_default().push(value);
                    }
                    if let Some(run) = &figures.run {
                        let verdicts = row.verdicts.entry(step).or_default();
                        verdicts.push(run.verdict.clone());
                        if run.trim_is_bound {
                            row.trim_bounds.insert(step);
                        }
                        if run.is_inconclusive() {
                            count(&mut row.inconclusive, step, &run.summary);
                        }
                    }
                }
            }
        }
    }
    row
}

/// Counts one more of a sentence about a step.
fn count(known: &mut Vec<(Step, String, usize)>, step: Step, why: &str) {
    let mut same = known
        .iter_mut()
        .filter(|(other, text, _)| *other == step && text == why);
    match same.next() {
        Some((_, _, times)) => *times += 1,
        None => known.push((step, why.to_owned(), 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tests as made;

    #[test]
    fn a_row_has_medians_and_what_failed() {
        let mut log = made::log(&["ext4/discard/discard"], 3, 1.0);
        let key = ("ext4/discard/discard".to_owned(), 2, Step::Fstrim);
        log.outcomes
            .insert(key, Outcome::Failed("fstrim: no".to_owned()));
        let results = Results::of(&log);
        let row = &results.rows[0];
        let mkfs = row.spread(Step::Mkfs, Measure::Time).unwrap();
        assert_eq!(
            (mkfs.low, mkfs.median, mkfs.high, mkfs.count),
            (1.0, 1.1, 1.2, 3)
        );
        assert_eq!(row.spread(Step::Fstrim, Measure::Time).unwrap().count, 2);
        assert_eq!(row.failures, [(Step::Fstrim, "fstrim: no".to_owned(), 1)]);
        assert_eq!(row.verdicts[&Step::Run].len(), 3);
        assert!(results.has_failures() && results.done == 3 && results.turns == 3);
    }

    #[test]
    fn the_json_keeps_to_its_schema() {
        let validator = testkit::schema::open(include_str!("../../schema/suite-1.json"));
        let mut log = made::log(&["ext4/nodiscard/nodiscard", "btrfs/discard/sync"], 2, 1.0);
        let key = ("btrfs/discard/sync".to_owned(), 1, Step::Mkfs);
        log.outcomes.insert(key, Outcome::Failed("no".to_owned()));
        for log in [log, made::log(&["xfs/discard/discard"], 1, 1.0)] {
            let json = Results::of(&log).json();
            let wrong: Vec<String> = validator
                .iter_errors(&json)
                .map(|e| e.to_string())
                .collect();
            assert!(wrong.is_empty(), "{wrong:#?}");
        }
        let empty = serde_json::json!({"schema": SUMMARY_SCHEMA});
        assert!(!validator.is_valid(&empty));
    }
}
