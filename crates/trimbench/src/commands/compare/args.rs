//! The options of `trimbench compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use judge::compare::condition::ChangeCondition;
use record::section;
use record::units::values::{low, truth};

const EXAMPLES: &str = "\
Examples:
  trimbench compare before.jsonl after.jsonl
                                          two runs
  trimbench compare --group before='before-*.jsonl' after='after-*.jsonl'
                                          five repeats of each: tells runs'
                                          noise from a difference
  trimbench compare --group old=a1.jsonl a2.jsonl new=b1.jsonl b2.jsonl
                                          the same, file by file
  trimbench compare --group a='6.12-*' b='6.13-*' --fail-on 'lost > +10%'
                                          qualify a kernel: exit 3 when deleting
                                          costs 10 % more

Conditions: a figure, >, >=, < or <=, and a change with its sign: of the first's
value (+10%) or in the figure's unit (+1s, -2ms, +1G). Figures: baseline, delete
(rates), ratio, stall, longest, depth, lost, max, p50, p99, p999 (while
discarding; baseline.p99 before, recovery.p99 after it); trim, bytes, commands,
active, drain, await (discards); deletion.

Exit codes: 0 done, 1 failed or undecided, 2 usage, 3 a --fail-on condition
held.";

/// Arguments of `trimbench compare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Records that `run --output` or `import --output` wrote, each by itself; the others are
    /// compared with the first
    #[arg(
        value_name = "RUN",
        required_unless_present = "group",
        conflicts_with = "group"
    )]
    pub runs: Vec<PathBuf>,

    /// Compare groups of repeated runs. NAME= is followed by a file or a pattern (with *, ? or **).
    /// trimbench expands the pattern, since a shell doesn't after a =; quote it. Further FILEs and
    /// patterns belong to the same group until the next NAME=. Give a file whose own name has a =
    /// with its directory, as in ./a=b. The other groups are compared with the first
    #[arg(long, value_name = "NAME=FILE", num_args = 1..)]
    pub group: Vec<String>,

    /// How to show it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: CompareFormat,

    /// Write to FILE instead of to standard output (-)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Exit with 3 if this holds, for any actor of any group: e.g. 'lost > +10%'. A change counts
    /// only if it differs from none at 95 %
    #[arg(long, value_name = "COND", value_parser = str::parse::<ChangeCondition>)]
    pub fail_on: Vec<ChangeCondition>,
    /// Write the result of each --fail-on to FILE as JUnit's XML
    #[arg(long, value_name = "FILE", requires = "fail_on")]
    pub junit: Option<PathBuf>,

    /// Set a detail, e.g. low=30%; `trimbench scenarios keys compare` lists all
    ///
    /// An interval counts as stalled below `low` of the baseline [default: each run's own setting, or
    /// 50%]. `as-drive` is for runs on a slowed drive of `trimbench lab`; runs on other
    /// drives stay as they are.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

section! {
    /// Details of a comparison.
    pub(crate) struct Details["compare", |_| ""] {
        /// An interval counts as stalled below this share of the baseline.
        "low" low: f64 = low, shown "each run's own, or 50%";
        /// Of runs on a slowed drive of `lab`: times and rates as those of the drive that it stands
        /// for.
        "as-drive" as_drive: bool = truth, default "false";
    }
}

/// A format that shows a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// Tables
    Text,
    /// Tables for an issue or a blog
    Markdown,
    /// All of it (schema trimbench.compare/1)
    Json,
}
