//! The figures that are compared: their names, units, and which way is better.

use serde::{Deserialize, Serialize};

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Figure {
    /// Operations per second before the deletion.
    BaselineRate,
    /// Operations per second during it.
    DeleteRate,
    /// Median rate while discarding as a share of the baseline's.
    OpsRatio,
    /// Stalled seconds; 0 without a stall.
    Stall,
    /// Those of the longest stall.
    Longest,
    /// Share of the baseline that was left in the stall; 1 without one.
    Depth,
    /// Foreground seconds lost to discards; 0 without any.
    Lost,
    /// Longest latency during the deletion.
    Worst,
    /// A percentile of the response times.
    Latency(Stretch, Percentile),
    /// TRIM rate.
    TrimRate,
    /// Bytes discarded.
    DiscardBytes,
    /// Discard commands.
    DiscardCommands,
    /// Seconds with discards in service.
    DiscardActive,
    /// From the last deletion call's return until the debt was paid.
    Drain,
    /// Mean wait of a discard.
    Await,
    /// From the first deletion call to the last one's return.
    DeletionSeconds,
}

/// A stretch of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stretch {
    /// Before the deletion.
    Baseline,
    /// During it.
    Delete,
    /// After it.
    Recovery,
}

/// A percentile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Percentile {
    /// The median.
    P50,
    /// The 99th.
    P99,
    /// The 99.9th.
    P999,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Operations per second.
    #[serde(rename = "ops_per_s")]
    OpsPerSecond,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Bytes per second.
    #[serde(rename = "bytes_per_s")]
    BytesPerSecond,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// A number of things.
    #[serde(rename = "count")]
    Count,
    /// A share of 1.
    #[serde(rename = "share")]
    Share,
}

/// Which way a figure gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The more, the better.
    Higher,
    /// The less, the better.
    Lower,
    /// It is neither good nor bad.
    Neither,
}

impl Percentile {
    /// All of them.
    pub const ALL: [Percentile; 3] = [Percentile::P50, Percentile::P99, Percentile::P999];

    /// Returns it as a share of 1.
    pub fn quantile(self) -> f64 {
        match self {
            Percentile::P50 => 0.5,
            Percentile::P99 => 0.99,
            Percentile::P999 => 0.999,
        }
    }
}

impl Stretch {
    /// All of them, in order of time.
    pub const ALL: [Stretch; 3] = [Stretch::Baseline, Stretch::Delete, Stretch::Recovery];
}

/// The figures that each actor has, in the order in which the comparison lists them.
const OF_ACTORS: [Figure; 17] = {
    use Percentile::{P50, P99, P999};
    use Stretch::{Baseline, Delete, Recovery};
    [
        Figure::BaselineRate,
        Figure::DeleteRate,
        Figure::OpsRatio,
        Figure::Stall,
        Figure::Longest,
        Figure::Depth,
        Figure::Lost,
        Figure::Worst,
        Figure::Latency(Baseline, P50),
        Figure::Latency(Baseline, P99),
        Figure::Latency(Baseline, P999),
        Figure::Latency(Delete, P50),
        Figure::Latency(Delete, P99),
        Figure::Latency(Delete, P999),
        Figure::Latency(Recovery, P50),
        Figure::Latency(Recovery, P99),
        Figure::Latency(Recovery, P999),
    ]
};

/// Figures that a run has once.
const OF_RUNS: [Figure; 7] = [
    Figure::TrimRate,
    Figure::DiscardBytes,
    Figure::DiscardCommands,
    Figure::DiscardActive,
    Figure::Drain,
    Figure::Await,
    Figure::DeletionSeconds,
];

impl Figure {
    /// Figures that each actor has.
    pub fn of_actors() -> &'static [Figure] {
        &OF_ACTORS
    }

    /// Figures that a run has once.
    pub fn of_runs() -> &'static [Figure] {
        &OF_RUNS
    }

    /// Its name in conditions and in JSON.
    pub fn name(self) -> &'static str {
        use Percentile::{P50, P99, P999};
        match self {
            Figure::BaselineRate => "baseline",
            Figure::DeleteRate => "delete",
            Figure::OpsRatio => "ratio",
            Figure::Stall => "stall",
            Figure::Longest => "longest",
            Figure::Depth => "depth",
            Figure::Lost => "lost",
            Figure::Worst => "max",
            Figure::Latency(Stretch::Baseline, P50) => "baseline.p50",
            Figure::Latency(Stretch::Baseline, P99) => "baseline.p99",
            Figure::Latency(Stretch::Baseline, P999) => "baseline.p999",
            // Those of the deletion are run's own conditions.
            Figure::Latency(Stretch::Delete, P50) => "p50",
            Figure::Latency(Stretch::Delete, P99) => "p99",
            Figure::Latency(Stretch::Delete, P999) => "p999",
            Figure::Latency(Stretch::Recovery, P50) => "recovery.p50",
            Figure::Latency(Stretch::Recovery, P99) => "recovery.p99",
            Figure::Latency(Stretch::Recovery, P999) => "recovery.p999",
            Figure::TrimRate => "trim",
            Figure::DiscardBytes => "bytes",
            Figure::DiscardCommands => "commands",
            Figure::DiscardActive => "active",
            Figure::Drain => "drain",
            Figure::Await => "await",
            Figure::DeletionSeconds => "deletion",
        }
    }

    /// The figure of a name, in whatever case.
    pub fn named(name: &str) -> Option<Figure> {
        let mut all = OF_ACTORS.iter().chain(&OF_RUNS);
        all.find(|figure| name.eq_ignore_ascii_case(figure.name()))
            .copied()
    }

    /// All names, as a sentence lists them.
    pub(super) fn names() -> String {
        let all = OF_ACTORS.iter().chain(&OF_RUNS).map(|figure| figure.name());
        all.collect::<Vec<_>>().join(", ")
    }

    /// Its unit.
    pub fn unit(self) -> Unit {
        match self {
            Figure::BaselineRate | Figure::DeleteRate => Unit::OpsPerSecond,
            Figure::OpsRatio | Figure::Depth => Unit::Share,
            Figure::Stall
            | Figure::Longest
            | Figure::Lost
            | Figure::DiscardActive
            | Figure::Drain
            | Figure::DeletionSeconds => Unit::Seconds,
            Figure::Worst | Figure::Latency(..) | Figure::Await => Unit::Microseconds,
            Figure::TrimRate => Unit::BytesPerSecond,
            Figure::DiscardBytes => Unit::Bytes,
            Figure::DiscardCommands => Unit::Count,
        }
    }

    /// Which way it gets better for those who use the system.
    ///
    /// A stall's depth is neither: a deeper stall that is shorter can cost less. Its
    /// length and the lost time, which weighs both, say what it cost. The time with
    /// discards in service is neither: spread by pauses they take longer and cost less.
    pub fn better(self) -> Better {
        match self {
            Figure::BaselineRate | Figure::DeleteRate | Figure::OpsRatio | Figure::TrimRate => {
                Better::Higher
            }
            Figure::Depth
            | Figure::DiscardBytes
            | Figure::DiscardCommands
            | Figure::DiscardActive => Better::Neither,
            _ => Better::Lower,
        }
    }
}

impl From<Figure> for String {
    fn from(figure: Figure) -> String {
        figure.name().to_owned()
    }
}

impl TryFrom<String> for Figure {
    type Error = String;

    fn try_from(name: String) -> Result<Figure, String> {
        Figure::named(&name).ok_or_else(|| format!("'{name}' is no figure"))
    }
}
