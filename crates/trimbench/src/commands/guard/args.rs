//! The options of `trimbench guard`.

use std::path::PathBuf;
use std::time::Duration;

use bench::scenario::values::positive_duration;
use clap::{Args, Subcommand, ValueEnum};
use reclaim::guard::Hours;

use crate::goal::{GOALS, GoalArgs, share};

const EXAMPLES: &str = "\
Examples:
  trimbench guard /var/lib/mysql         free what is deleted there, as others
                                         lose at most 10 % of their throughput
  trimbench guard /data --min-size 64M --max-latency 5ms
  trimbench guard /data --dry-run --for 1h
                                         what programs delete there, and how
                                         much of it would be caught
  trimbench guard /data --by trim --remount
                                         whatever is freed on that file system,
                                         also by truncating files
  trimbench guard status /data           what waits to be freed
  trimbench guard set --slowdown 30% /data
  trimbench guard drain /data            free what waits, at once
  trimbench guard stop --remove /data    free what waits, remove all second
                                         names, and end

By link, it keeps a second name (hard link) of each large file in a hidden
directory, .trimbench-guard-*, so that a program that deletes the file frees
nothing. Then guard frees it in pieces. Until then df shows the space as used.
It ends on Ctrl-C, SIGTERM or `guard stop`, and then removes the second names of
files in use. Files that still wait stay there, and are freed at the next start.

By trim, the file system runs without discard, and guard trims what was freed.
That catches truncation, holes and small files too, and df is right at once.

Exit codes: 0 done, 1 failed, 2 usage or a directory that can't be guarded.";

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
    /// Show what a guard keeps, what waits to be freed, and what it has freed
    Status(StatusArgs),
    /// Change the goal of a running guard
    Set(SetArgs),
    /// Free at once all that waits, and wait until that is done; the guard continues
    Drain(PlaceArgs),
    /// End a guard, and remove the second names of files in use
    Stop(StopArgs),
}

/// The heading of the options for a service.
const SERVICE: &str = "As a service";

/// The heading of the options for trims.
const TRIMS: &str = "With --by trim";

/// How a guard works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ByWay {
    /// Keep a second name of each large file, and free it in pieces
    Link,
    /// On a whole file system that is mounted without discard: trim what is freed, all the time
    Trim,
}

/// How a deleted file is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HoldBy {
    /// By a second name, which survives a crash, and which programs see in the link count
    Link,
    /// By an open descriptor, which no program sees; when guard ends, the kernel frees all that
    /// waits at once
    Fd,
}

/// The start of a guard.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Directories to guard, with all below them on the same file system
    #[arg(value_name = "DIR", required = true)]
    pub directories: Vec<PathBuf>,

    /// How to guard [default: as it fits; guard prints why]
    #[arg(long, value_name = "WAY")]
    pub by: Option<ByWay>,

    /// Guard files that take at least this much space
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "256M")]
    pub min_size: u64,
    /// Also guard files that don't belong to the owner of DIR; root only
    #[arg(long)]
    pub any_owner: bool,
    /// The pause between two looks for new files, where the kernel doesn't report them; longer
    /// where a look takes long
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "2s")]
    pub scan_every: Duration,
    /// Look for new files by scans alone, even where the kernel reports them (fanotify, root)
    #[arg(long)]
    pub only_scan: bool,
    /// Free faster while more than this share of the file system waits to be freed or trimmed
    /// [default: 10%, by trims 20%]
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = GOALS)]
    pub most: Option<f64>,
    /// How to keep a file that is deleted until it is freed
    #[arg(long, value_name = "HOW", default_value = "link")]
    pub hold: HoldBy,
    /// Let programs hand over files to be freed: by renaming them into DIR/.trimbench/in, or by a
    /// line of JSON on the socket DIR/.trimbench/socket
    #[arg(long)]
    pub hand_over: bool,
    /// Keep the second names of files in use at the end, for a restart: files deleted meanwhile are
    /// freed only when a guard runs again
    #[arg(long)]
    pub keep_names: bool,

    /// Trim space faster that was freed longer ago than this
    #[arg(long, help_heading = TRIMS, value_name = "TIME", value_parser = positive_duration, default_value = "1h")]
    pub max_age: Duration,
    /// Leave shorter runs of free space for later, up to half of --max-age; 0: none
    /// [default: those whose trim takes longer than writing them would]
    #[arg(long, help_heading = TRIMS, value_name = "SIZE", value_parser = size_or_none)]
    pub min_run: Option<u64>,
    /// Trim only in these hours of the day, e.g. 01:00-06:00, unless too much waits or for too long
    #[arg(long, help_heading = TRIMS, value_name = "HOURS", value_parser = hours)]
    pub between: Option<Hours>,
    /// Remount with nodiscard until the guard ends (not XFS, which keeps the option)
    #[arg(long, help_heading = TRIMS)]
    pub remount: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "its own say it")]
    pub goal: GoalArgs,

    /// Only watch what programs delete, for --for, and print what guard would have caught
    #[arg(short = 'n', long, requires = "watch_for")]
    pub dry_run: bool,
    /// How long to watch with --dry-run
    #[arg(long = "for", value_name = "TIME", value_parser = positive_duration, requires = "dry_run")]
    pub watch_for: Option<Duration>,
    /// Print errors only
    #[arg(short, long)]
    pub quiet: bool,

    /// Write a service of systemd that does this, and stop
    #[arg(long, help_heading = SERVICE, conflicts_with = "dry_run")]
    pub install: bool,
    /// Replace an existing service that has other options, and run trimbench from where it is
    #[arg(long, help_heading = SERVICE, requires = "install")]
    pub force: bool,
    /// Where to write it
    #[arg(long, help_heading = SERVICE, value_name = "DIR", default_value = "/etc/systemd/system", requires = "install")]
    pub unit_dir: PathBuf,
}

/// A guarded directory.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// The guarded directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// The guard to show.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The guarded directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Show it as JSON
    #[arg(long)]
    pub json: bool,
    /// Write it as OpenMetrics, for a collector of Prometheus's; to standard output for `-`
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub metrics: Option<PathBuf>,
}

/// The goal to change.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The guarded directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// How much of its throughput other I/O may lose
    #[arg(long, value_name = "SHARE", value_parser = share, required_unless_present = "max_latency")]
    pub slowdown: Option<f64>,
    /// How much longer other I/O may wait
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub max_latency: Option<Duration>,
}

/// How to end.
#[derive(Debug, Args)]
pub struct StopArgs {
    /// The guarded directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// First free all that waits, within the goal, so that nothing is left. Works without a guard
    /// as well
    #[arg(long)]
    pub remove: bool,
}

fn hours(text: &str) -> Result<Hours, String> {
    text.parse()
}

fn size_or_none(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|error| error.to_string())
}

fn size(text: &str) -> Result<u64, String> {
    match units::parse_size(text) {
        Ok(0) => Err("must be above 0".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}
