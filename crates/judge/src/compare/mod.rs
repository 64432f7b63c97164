//! Runs, or groups of repeated runs, against each other: what differs, by how
//! much, and how sure that is.
//!
//! Pure, and always the same for the same records; groups that change places turn
//! each ratio over and change nothing else.
//!
//! 1. `replicate`: each figure of each run, and how uncertain the scatter of the
//!    run's intervals makes it; `spread` knows the statistics of that.
//! 2. `difference`: the groups' means, and the 95 % interval of their difference.
//! 3. `set_up`: what else differs, from the heads.
//!
//! Each figure is compared for itself: of twenty that are equal one is expected
//! to be called different.

mod actors;
mod alike;
mod comparison;
pub mod condition;
pub(crate) mod difference;
mod figure;
mod replicate;
mod set_up;
pub(crate) mod spread;
mod summary;

#[cfg(test)]
mod tests;

pub use comparison::{
    Basis, COMPARE_JSON_SCHEMA, COMPARE_SCHEMA, Change, ChangeFinding, Compared, Comparison, Doubt,
    GroupSummary, RunSummary, SetUpDifference, Side,
};
pub use difference::student_95;
pub use figure::{Better, Figure, Percentile, Stretch, Unit};

use crate::judging::samples::{Sampled, sample};
use crate::verdict::Verdict;
use record::RunRecord;

use crate::JudgeOptions;
use difference::Sided;
use replicate::Estimate;

/// A run to compare.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// Its name in the comparison.
    pub name: String,
    /// The record.
    pub record: &'a RunRecord,
    /// How it is judged.
    pub options: JudgeOptions,
}

/// Repeats of a run, or a single one.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// Its name in the comparison.
    pub name: String,
    /// Its runs.
    pub runs: Vec<Run<'a>>,
}

/// Returns how the groups differ from the first of them.
pub fn compare(groups: &[Group<'_>]) -> Comparison {
    let sampled: Vec<Vec<Sampled<'_>>> = groups
        .iter()
        .map(|group| {
            let runs = group.runs.iter();
            runs.map(|run| sample(run.record, &run.options)).collect()
        })
        .collect();
    let verdicts: Vec<Vec<&Verdict>> = sampled
        .iter()
        .map(|runs| runs.iter().map(|run| &run.verdict).collect())
        .collect();
    let summaries: Vec<GroupSummary> = groups
        .iter()
        .zip(&verdicts)
        .map(|(group, verdicts)| GroupSummary {
            name: group.name.clone(),
            runs: group.runs.iter().zip(verdicts).map(run_summary).collect(),
        })
        .collect();
    let counts = |group: usize, run: usize| {
        let group: &GroupSummary = &summaries[group];
        !group.leaves_out(&group.runs[run])
    };
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let mut figures = Vec::new();
    for actor in actors::matched(&verdicts) {
        for figure in Figure::of_actors() {
            let estimates = of_groups(&sampled, counts, |group, run, sampled| {
                let i = actor.places[group][run]?;
                let samples = sampled.actors.get(i)?;
                replicate::of_actor(sampled, &sampled.verdict.foreground[i], samples, figure)
            });
            let whose = Some((actor.name.clone(), actor.op.clone()));
            figures.extend(compared(figure, whose, &names, &estimates));
        }
    }
    for figure in Figure::of_runs() {
        let of_run = |_, _, sampled: &Sampled<'_>| replicate::of_run(sampled, figure);
        let estimates = of_groups(&sampled, counts, of_run);
        figures.extend(compared(figure, None, &names, &estimates));
    }
    let heads: Vec<Vec<_>> = groups
        .iter()
        .map(|group| group.runs.iter().map(|run| &run.record.head).collect())
        .collect();
    Comparison {
        schema: COMPARE_SCHEMA.to_owned(),
        summaries: summary::sentences(&summaries, &figures),
        notes: summary::notes(&summaries, &figures, &heads, &verdicts),
        set_up: set_up::differences(&heads, &verdicts),
        groups: summaries,
        figures,
    }
}

/// Returns an estimate for each run that counts.
fn of_groups(
    sampled: &[Vec<Sampled<'_>>],
    counts: impl Fn(usize, usize) -> bool,
    estimates: impl Fn(usize, usize, &Sampled<'_>) -> Option<Estimate>,
) -> Vec<Vec<Option<Estimate>>> {
    let groups = sampled.iter().enumerate();
    groups
        .map(|(group, runs)| {
            let runs = runs.iter().enumerate();
            let estimate = |(run, sampled)| {
                let counted = counts(group, run).then_some(sampled)?;
                estimates(group, run, counted)
            };
            runs.map(estimate).collect()
        })
        .collect()
}

/// A figure in all groups; `None` if no run tells it.
fn compared(
    figure: Figure,
    whose: Option<(String, String)>,
    groups: &[&str],
    estimates: &[Vec<Option<Estimate>>],
) -> Option<Compared> {
    let sided: Vec<Option<Sided<'_>>> = estimates.iter().map(|runs| Sided::of(runs)).collect();
    if sided.iter().all(Option::is_none) {
        return None;
    }
    let (actor, op) = whose.unzip();
    let reference = sided.first().and_then(Option::as_ref);
    let others = groups.iter().zip(&sided).skip(1);
    Some(Compared {
        figure,
        actor,
        op,
        unit: figure.unit(),
        better: figure.better(),
        sides: estimates
            .iter()
            .map(|runs| difference::side(runs))
            .collect(),
        changes: others
            .map(|(name, other)| difference::change(name, reference, other.as_ref()))
            .collect(),
    })
}

fn run_summary((run, verdict): (&Run<'_>, &&Verdict)) -> RunSummary {
    RunSummary {
        name: run.name.clone(),
        verdict: verdict.verdict,
        reasons: verdict.reasons.clone(),
        summary: verdict.summary.clone(),
        warnings: verdict.warnings.clone(),
    }
}
