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
    /// Returns it as a share of 1.
    pub fn quantile(self) -> f64 {
        match self {
            Percentile::P50 => 0.5,
            Percentile::P99 => 0.99,
            Percentile::P999 => 0.999,
        }
    }
}

/// A figure's row: its name in conditions and in JSON, its label in tables, its unit, and which way it
/// gets better for those who use the system.
type Row = (Figure, &'static str, &'static str, Unit, Better);

macro_rules! table {
    ($($figure:expr, $name:literal, $label:literal, $unit:ident, $better:ident;)*) => {
        [$(($figure, $name, $label, Unit::$unit, Better::$better)),*]
    };
}

/// All figures, in the order in which a comparison lists them.
///
/// A stall's depth is neither good nor bad: a deeper stall that is shorter can cost less. Its length
/// and the lost time, which weighs both, say what it cost. The time with discards in service is
/// neither: spread by pauses they take longer and cost less. The latencies during the deletion have
/// the names of `run`'s own conditions.
const TABLE: [Row; 24] = {
    use Figure::*;
    use Percentile::{P50, P99, P999};
    use Stretch::{Baseline, Delete, Recovery};
    table! {
        BaselineRate, "baseline", "rate before", OpsPerSecond, Higher;
        DeleteRate, "delete", "rate discarding", OpsPerSecond, Higher;
        OpsRatio, "ratio", "median rate kept", Share, Higher;
        Stall, "stall", "stall", Seconds, Lower;
        Longest, "longest", "longest stall", Seconds, Lower;
        Depth, "depth", "left in stall", Share, Neither;
        Lost, "lost", "lost time", Seconds, Lower;
        Worst, "max", "worst latency", Microseconds, Lower;
        Latency(Baseline, P50), "baseline.p50", "p50 before", Microseconds, Lower;
        Latency(Baseline, P99), "baseline.p99", "p99 before", Microseconds, Lower;
        Latency(Baseline, P999), "baseline.p999", "p99.9 before", Microseconds, Lower;
        Latency(Delete, P50), "p50", "p50 discarding", Microseconds, Lower;
        Latency(Delete, P99), "p99", "p99 discarding", Microseconds, Lower;
        Latency(Delete, P999), "p999", "p99.9 discarding", Microseconds, Lower;
        Latency(Recovery, P50), "recovery.p50", "p50 after", Microseconds, Lower;
        Latency(Recovery, P99), "recovery.p99", "p99 after", Microseconds, Lower;
        Latency(Recovery, P999), "recovery.p999", "p99.9 after", Microseconds, Lower;
        TrimRate, "trim", "TRIM rate", BytesPerSecond, Higher;
        DiscardBytes, "bytes", "discarded", Bytes, Neither;
        DiscardCommands, "commands", "commands", Count, Neither;
        DiscardActive, "active", "active", Seconds, Neither;
        Drain, "drain", "drained after", Seconds, Lower;
        Await, "await", "mean wait", Microseconds, Lower;
        DeletionSeconds, "deletion", "deletion calls", Seconds, Lower;
    }
};

/// How many of these each actor has. A run has the others once.
const OF_ACTORS: usize = 17;

impl Figure {
    /// Figures that each actor has.
    pub fn of_actors() -> impl Iterator<Item = Figure> {
        TABLE[..OF_ACTORS].iter().map(|row| row.0)
    }

    /// Figures that a run has once.
    pub fn of_runs() -> impl Iterator<Item = Figure> {
        TABLE[OF_ACTORS..].iter().map(|row| row.0)
    }

    fn row(self) -> Row {
        let row = TABLE.iter().find(|row| row.0 == self);
        *row.unwrap_or(&TABLE[0])
    }

    /// Its name in conditions and in JSON.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Its name in tables.
    pub fn label(self) -> &'static str {
        self.row().2
    }

    /// Its unit.
    pub fn unit(self) -> Unit {
        self.row().3
    }

    /// Which way it gets better for those who use the system.
    pub fn better(self) -> Better {
        self.row().4
    }

    /// The figure of a name, in whatever case.
    pub fn named(name: &str) -> Option<Figure> {
        let row = TABLE.iter().find(|row| name.eq_ignore_ascii_case(row.1));
        row.map(|row| row.0)
    }

    /// All names, as a sentence lists them.
    pub(super) fn names() -> String {
        TABLE.map(|row| row.1).join(", ")
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
