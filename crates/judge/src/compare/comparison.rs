//! The comparison, `trimbench.compare/1`.

use serde::{Deserialize, Serialize};

use super::figure::{Better, Figure, Unit};
use crate::verdict::{Finding, Reason};

/// The schema named in every comparison.
pub const COMPARE_SCHEMA: &str = "trimbench.compare/1";

/// The JSON Schema (2020-12) that every comparison conforms to.
pub const COMPARE_JSON_SCHEMA: &str = include_str!("../../schema/compare-1.json");

/// How runs, or groups of repeated runs, differ from the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`COMPARE_SCHEMA`].
    pub schema: String,
    /// The runs that are compared; the first is the reference.
    pub groups: Vec<GroupSummary>,
    /// One sentence for each group but the first.
    pub summaries: Vec<String>,
    /// The figures: of each actor, then those that a run has once.
    pub figures: Vec<Compared>,
    /// The differences between the set-ups.
    pub set_up: Vec<SetUpDifference>,
    /// Notes that a reader of the figures needs, in words.
    pub notes: Vec<String>,
}

/// A group of repeated runs, or a single one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// Its name.
    pub name: String,
    /// Its runs.
    pub runs: Vec<RunSummary>,
}

impl GroupSummary {
    /// Returns the runs that count. The inconclusive ones don't, where others are conclusive: they
    /// leave open whether there was a stall, and so are no stall of 0 s.
    pub fn counted(&self) -> impl Iterator<Item = &RunSummary> {
        self.runs.iter().filter(|run| !self.leaves_out(run))
    }

    /// Returns whether a run of this group doesn't count.
    pub fn leaves_out(&self, run: &RunSummary) -> bool {
        let is_conclusive = |run: &RunSummary| run.verdict != Finding::Inconclusive;
        !is_conclusive(run) && self.runs.iter().any(is_conclusive)
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its name: that of its file.
    pub name: String,
    /// Its finding, judged alone.
    pub verdict: Finding,
    /// Why.
    pub reasons: Vec<Reason>,
    /// The same in a sentence.
    pub summary: String,
    /// Whatever changes how far its figures can be trusted.
    pub warnings: Vec<String>,
}

/// One figure in all groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Which.
    pub figure: Figure,
    /// Whose: the actor's name in the reference; `None` for what a run has once.
    pub actor: Option<String>,
    /// The operation of the actor.
    pub op: Option<String>,
    /// Its unit.
    pub unit: Unit,
    /// Which way it gets better.
    pub better: Better,
    /// One per group, in their order.
    pub sides: Vec<Side>,
    /// One per group but the first: how it differs from the first.
    pub changes: Vec<Change>,
}

impl Compared {
    /// Returns the figure in each group, all in one unit, in sentences and tables alike.
    pub fn shown(&self) -> Vec<String> {
        let of = |side: &Side| side.value.filter(|_| !self.is_without_stall(side));
        let values: Vec<Option<f64>> = self.sides.iter().map(of).collect();
        let shown = self.unit.show(&values).into_iter().zip(&self.sides);
        let side = shown.map(
            |(shown, side)| match side.is_lower_bound && side.value.is_some() {
                true => format!("≥ {shown}"),
                false => shown,
            },
        );
        side.collect()
    }

    /// Whether this is what was left in the stall, and no run of this side stalled: then all was
    /// left.
    pub fn is_without_stall(&self, side: &Side) -> bool {
        let mut left = side.runs.iter().flatten();
        self.figure == Figure::Depth && left.all(|&share| share >= 1.0)
    }
}

/// A figure in one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The mean over its runs; `None` if no run has the figure.
    pub value: Option<f64>,
    /// Of each run; `None` also of a run that is left out.
    pub runs: Vec<Option<f64>>,
    /// Whether it is only a lower bound.
    pub is_lower_bound: bool,
}

/// How a figure differs from the reference's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The group that is compared with the first.
    pub group: String,
    /// Its value less the reference's.
    pub absolute: Option<f64>,
    /// The 95 % confidence interval's lower end; `None` also where it is unknown how much less the
    /// value is than a lower bound.
    pub absolute_low: Option<f64>,
    /// Its upper end; `None` also where the value is a lower bound.
    pub absolute_high: Option<f64>,
    /// The difference as a share of the reference's value; `None` where that is 0.
    pub relative: Option<f64>,
    /// The interval's lower end as such a share.
    pub relative_low: Option<f64>,
    /// Its upper end.
    pub relative_high: Option<f64>,
    /// The meaning of that.
    pub finding: ChangeFinding,
    /// Of `same`: no more than this share of the reference's value lies between them.
    pub within: Option<f64>,
    /// Of `cannot-tell`: why.
    pub why: Option<Doubt>,
    /// The data behind the interval.
    pub basis: Basis,
}

/// The meaning of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeFinding {
    /// The interval excludes 0.
    Differs,
    /// It doesn't, and a difference of 10 % would have been seen.
    Same,
    /// Neither.
    CannotTell,
}

/// The reason why a difference can't be distinguished from chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// One of both has no such figure.
    NotMeasured,
    /// A run has only one of it, so how it scatters takes repeats to tell.
    MeasuredOnce,
    /// One of both is only a lower bound.
    LowerBound,
    /// It scatters too much to see a difference of 10 %.
    TooNoisy,
    /// A single run has fewer than about eight independent intervals of it, and they
    /// scatter too much: repeat the runs.
    TooFew,
}

impl Doubt {
    /// The words for it, in sentences and tables alike.
    fn in_words(self) -> &'static str {
        match self {
            Doubt::NotMeasured => "not measured",
            Doubt::MeasuredOnce => "can't tell: once",
            Doubt::LowerBound => "can't tell: a lower bound",
            Doubt::TooNoisy => "can't tell",
            Doubt::TooFew => "can't tell from one run",
        }
    }
}

/// Changes to at least so many times the reference's value are factors, e.g. `8.5 times`.
const FACTOR: f64 = 3.0;

/// A larger factor says less than both values.
const MOST: f64 = 1000.0;

impl Change {
    /// Returns the change to the relative value and its interval's ends as factors where those are
    /// easier to read than per cent; `None` of a smaller change.
    pub fn factors(&self) -> Option<[Option<f64>; 3]> {
        let all = [self.relative, self.relative_low, self.relative_high];
        let all = all.map(|share| share.map(|share| 1.0 + share));
        all[0].filter(|times| *times >= FACTOR).map(|_| all)
    }

    /// Returns `≥ ` or `≤ ` where one of both figures is only a lower bound, in sentences and
    /// tables alike.
    pub fn bound(&self) -> &'static str {
        match (self.finding, self.absolute_low, self.absolute_high) {
            (ChangeFinding::Differs, Some(_), None) => "≥ ",
            (ChangeFinding::Differs, None, Some(_)) => "≤ ",
            _ => "",
        }
    }

    /// Whether the reference is so small that the change as a share of it says nothing.
    pub fn is_from_next_to_nothing(&self) -> bool {
        self.relative.is_some_and(|share| share >= MOST)
    }

    /// Returns the finding where there is no difference, in sentences and tables alike; `None` of a difference.
    pub fn in_words(&self) -> Option<String> {
        match self.finding {
            ChangeFinding::Differs => None,
            ChangeFinding::Same => Some(match self.within.filter(|&within| within > 0.0) {
                Some(within) => format!("same within {}", record::units::percent(within)),
                None => "same".to_owned(),
            }),
            ChangeFinding::CannotTell => {
                let why = self.why.unwrap_or(Doubt::NotMeasured);
                Some(why.in_words().to_owned())
            }
        }
    }
}

/// The data behind an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The scatter of intervals within one run of each; how runs scatter isn't known.
    Intervals,
    /// The repeats of both groups, and the intervals within them.
    Repeats,
    /// The repeats of one group; the single run is assumed to scatter as they do.
    RepeatsOfOne,
    /// Counted, not sampled: it has no scatter within a run.
    Counted,
    /// There is no interval.
    None,
}

/// Something in which the set-ups differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetUpDifference {
    /// Its name, in words.
    pub name: String,
    /// Where it stands in a record's head, e.g. `/host/kernel`.
    pub path: String,
    /// The values that each group's runs have, one group after another, each value once;
    /// `–` where a run doesn't tell.
    pub values: Vec<Vec<String>>,
}
