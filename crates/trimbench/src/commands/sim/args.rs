//! The options of `trimbench sim`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  trimbench sim run --profile t500 --policy xfs-online --set size=1T
                                          one run, and its verdict
  trimbench sim compare --profile vertex-2 --workload spill
                                          every policy beside the others
  trimbench sim compare --like run.jsonl --profile mine.toml
                                          a recorded deletion, done otherwise
  trimbench sim list                      policies, workloads and settings";

/// Arguments of `trimbench sim`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SimArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: SimCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Run one policy, and show its verdict and its figures
    Run(RunArgs),
    /// Run every policy, and show a table and which of them no other one beats
    Compare(CompareArgs),
    /// List policies with their parameters, workloads, settings and profiles
    List,
}

/// Options of all runs.
#[derive(Debug, Args)]
pub struct Common {
    /// The drive: a profile's name or a part of it, a stack's name, or a device card of your own
    ///
    /// [default: crucial-t500-2tb; with --like as fitted]
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,

    /// Repeat a recorded run: its deletion as its discards show it, its readers, and its drive as
    /// fitted or as --profile
    #[arg(long, value_name = "RUN")]
    pub like: Option<PathBuf>,

    /// The workload: see `trimbench sim list`
    #[arg(long, value_name = "NAME", default_value = "drop-file")]
    pub workload: String,

    /// Change a setting, or a parameter of the policy; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Arguments of `trimbench sim run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Settings.
    #[command(flatten)]
    pub common: Common,

    /// The policy: one of `trimbench sim list`
    ///
    /// [default: ext4-online; with --like as the record's file system]
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,

    /// Write the record to FILE, compressed if it ends in .zst
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write the figures to FILE as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `trimbench sim compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Settings.
    #[command(flatten)]
    pub common: Common,

    /// Only these policies of `trimbench sim list` [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub policy: Vec<String>,

    /// Write the figures to FILE as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
