//! The options of `trimbench guard`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use reclaim::guard::Hours;
use record::section;
use record::units::values::{path, positive_duration, truth};

use crate::goal::{GoalArgs, share};

const EXAMPLES: &str = "\
Examples:
  trimbench guard /data              trim what is freed there; other I/O loses
                                     at most 10 % of its throughput
  trimbench guard /data --remount    switch /data to nodiscard meanwhile
  trimbench guard /data --max-latency 5ms --set between=01:00-06:00
  trimbench guard --dry-run /data    what guard would do, or why it can't
  trimbench guard status /data       what waits to be trimmed, and why
  trimbench guard set /data slowdown=30%
  trimbench guard drain /data        trim what waits, at once
  trimbench guard stop /data

It works on ext4 and XFS that are mounted with nodiscard, and on btrfs that is
mounted with discard=async. It takes root and the whole file system. Otherwise
it prints the commands that make it possible. It ends on Ctrl-C, SIGTERM or
`guard stop`.

Exit codes: 0 done, 1 failed, 2 usage or a file system that can't be guarded.";

/// Arguments of `trimbench guard`.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_precedence_over_arg = true
)]
pub struct GuardArgs {
    #[command(subcommand)]
    #[allow(missing_docs, reason = "its own say it")]
    pub order: Option<GuardCommand>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its own say it")]
    pub start: StartArgs,
}

/// Orders to a running guard.
#[derive(Debug, Subcommand)]
pub enum GuardCommand {
    /// Show what waits to be trimmed and why, what was trimmed, and whether the goal was met
    Status(StatusArgs),
    /// Change the goal of a running guard
    Set(SetArgs),
    /// Trim at once all that waits, and wait until that is done; the guard continues
    Drain(PlaceArgs),
    /// End a guard
    Stop(PlaceArgs),
}

/// The heading of the options for a service.
const SERVICE: &str = "As a service";

/// The start of a guard.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Where the file systems to guard are mounted
    #[arg(value_name = "MOUNT", required = true)]
    pub mounts: Vec<PathBuf>,

    /// Remount with nodiscard until the guard ends (not XFS, which keeps the option)
    #[arg(long)]
    pub remount: bool,

    /// Set a detail, e.g. between=01:00-06:00; `trimbench scenarios keys guard` lists all
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "its own say it")]
    pub goal: GoalArgs,

    /// Only print what guard would do or install, or why it can't
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Print errors only
    #[arg(hide_short_help = true, short, long)]
    pub quiet: bool,

    /// Write a service of systemd that does this, and stop
    #[arg(long, help_heading = SERVICE)]
    pub install: bool,
}

section! {
    /// Details of a guard: what waits, and for how long.
    pub(crate) struct Details["guard", |_| ""] {
        /// Trim space faster that was freed longer ago than this.
        "max-age" max_age: Duration = positive_duration, default "1h";
        /// Trim faster while more than this share of the file system waits.
        "most" most: f64 = share, default "20%";
        /// Leave shorter runs of free space for later, up to half of max-age; 0: none.
        "min-run" min_run: u64 = size_or_none,
            shown "those whose trim takes longer than writing them would";
        /// Trim only in these hours of the day, unless too much waits or for too long.
        "between" between: Hours = hours, shown "all day";
        /// Where --install writes.
        "unit-dir" unit_dir: PathBuf = path, default "/etc/systemd/system";
        /// Replace an existing service that has other options. Run trimbench from where it is: a build folder,
        /// a directory that the machine empties, or one to which others can write.
        "replace" replace: bool = truth, default "false";
    }
}

section! {
    /// The goal that `guard set` changes.
    pub(crate) struct NewGoal["guard set", |_| ""] {
        /// How much of its throughput other I/O may lose.
        "slowdown" slowdown: f64 = share, shown "as it is";
        /// How much longer other I/O may wait.
        "max-latency" max_latency: Duration = positive_duration, shown "as it is";
    }
}

/// A guarded file system.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// The guarded file system
    #[arg(value_name = "MOUNT")]
    pub mount: PathBuf,
}

/// The guard to show.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The guarded file system [default: all]
    #[arg(value_name = "MOUNT")]
    pub mount: Option<PathBuf>,
    /// Show it as JSON
    #[arg(long)]
    pub json: bool,
    /// Write it as OpenMetrics, for a collector of Prometheus's; to standard output for `-`
    #[arg(long, value_name = "FILE", conflicts_with = "json", requires = "mount")]
    pub metrics: Option<PathBuf>,
}

/// The goal to change.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The guarded file system
    #[arg(value_name = "MOUNT")]
    pub mount: PathBuf,
    /// The goal, e.g. slowdown=30% or max-latency=5ms
    #[arg(value_name = "KEY=VALUE", required = true)]
    pub changes: Vec<String>,
}

fn hours(text: &str) -> Result<Hours, String> {
    text.parse()
}

fn size_or_none(text: &str) -> Result<u64, String> {
    record::units::parse_size(text).map_err(|error| error.to_string())
}
