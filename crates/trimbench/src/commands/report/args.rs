//! The options of `trimbench report`.

use std::path::PathBuf;

use clap::Args;

use crate::record_output::Format;

const EXAMPLES: &str = "\
Examples:
  trimbench report run.jsonl              what `run` showed at its end
  trimbench report run.jsonl --format html --output run.html
                                          a page with charts that opens from
                                          disk, without a network
  trimbench report *.jsonl.zst --format html --output pages/
                                          a page of each
  trimbench report run.jsonl --format csv > run.csv
                                          a row per actor and interval
  trimbench report run.jsonl --svg charts each chart as a picture
  ssh db7 cat run.jsonl.zst | trimbench report -
                                          a record from elsewhere

The sentence and the figures are judged anew from the record: those of an old
record are today's.";

/// Arguments of `trimbench report`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// Records that `run --output` or `import --output` wrote; - for standard input
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,

    /// The form of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,

    /// Write to FILE instead of to standard output (-). A directory (an existing one, or a name
    /// that ends in a slash) gets a file for each RUN, as several RUNs need for html
    #[arg(long, value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,

    /// Write each chart as SVG into DIR as well
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,

    /// Set low=SHARE, or as-drive=true; `trimbench scenarios keys report`
    ///
    /// An interval counts as stalled below `low` of the baseline [default: each run's own setting, or
    /// 50%]. `as-drive` is for runs on a slowed drive of `trimbench lab`; runs on other
    /// drives stay as they are.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Print only the verdict's sentence
    #[arg(long, short, conflicts_with = "format")]
    pub quiet: bool,
}
