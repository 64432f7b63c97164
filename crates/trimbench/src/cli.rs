//! The command line: every option once, from which help, man page and
//! completions come.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use timeline::units;
use timeline::verdict::condition::{Condition, ConditionError};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Tells whether deleting data stalls your storage.
///
/// Deleting a lot of data on an SSD makes the file system send TRIM (discard)
/// commands, and many drives stop serving reads, writes and fsyncs while they
/// process them. trimbench measures that on your own drive.
#[derive(Debug, Parser)]
#[command(name = "trimbench", version, styles = STYLES, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Delete data while a foreground runs, and tell whether it stalls
    ///
    /// Makes a file to delete and a file to read, reads until the rate is steady, then deletes,
    /// and watches what the readers and the drive do until all that was freed has been discarded.
    /// Removes what it made, also when it is interrupted.
    Run(Box<RunArgs>),
}

const RUN_EXAMPLES: &str = "\
Examples:
  trimbench run                           the file system of the current directory, safe sizes
  trimbench run /data --size 64G          delete 64 GiB on /data
  trimbench run /data --rate 1000         reads arrive at 1000 per second, whatever happens
  trimbench run /data --delete-with 'slowrm {}'
                                          the same, deleted by another program
  trimbench run /data --control --remount
                                          compare with the same deletion without discards
  trimbench run /data --fail-on 'stall>1s' --fail-on 'depth<10%'
                                          qualify a drive: exit 3 when it stalls
  trimbench run --device /dev/sdX --destroy-data
                                          a raw device, all of whose data may be lost

Sizes take k, M, G, T (1024) and kB, MB, GB, TB (1000); durations ns, us, ms, s, m, h.

Exit codes: 0 done, 1 failed, 2 usage, 3 a --fail-on condition held, 130 interrupted.";

/// Arguments of `trimbench run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// Directory on the file system to test
    #[arg(default_value = ".", conflicts_with = "device")]
    pub path: PathBuf,

    /// What is deleted.
    #[command(flatten)]
    pub deletion: DeletionArgs,
    /// What suffers.
    #[command(flatten)]
    pub foreground: ForegroundArgs,
    /// How long.
    #[command(flatten)]
    pub phases: PhaseArgs,
    /// On a raw device.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// What is written.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is deleted, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Deletion")]
pub struct DeletionArgs {
    /// Bytes to delete, over all files [default: what is safe, at most 32G]
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub size: Option<u64>,

    /// Number of files to delete [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "device", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub files: Option<u32>,

    /// Fragment the files on purpose: make their extents this large
    #[arg(long, value_name = "SIZE", conflicts_with = "device", value_parser = positive_size)]
    pub extent_size: Option<u64>,

    /// How to delete
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value = "unlink",
        conflicts_with = "delete_with"
    )]
    pub delete: DeleteHow,

    /// Delete with an outside program; {} stands for each file, e.g. 'rm {}'; without it all files
    /// come after the arguments
    #[arg(long, value_name = "CMD")]
    pub delete_with: Option<String>,

    /// unlink: calls in flight at once [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "device", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub parallel: Option<u32>,

    /// truncate: bytes per step; raw device: bytes per discard call [default: 128M; raw device: 1G]
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub chunk: Option<u64>,

    /// truncate: pause after each step [default: 100ms]
    #[arg(long, value_name = "TIME", conflicts_with = "device", value_parser = duration)]
    pub sleep: Option<Duration>,

    /// truncate: fsync after each step
    #[arg(long, conflicts_with = "device")]
    pub fsync: bool,

    /// Don't force a commit after the deletion; discards come when the file system likes
    #[arg(long, conflicts_with = "device")]
    pub no_sync: bool,

    /// Run first without discards, to tell whether other causes make the same dip
    #[arg(long, conflicts_with = "device")]
    pub control: bool,

    /// With --control: remount the file system nodiscard for it, and back (otherwise a second name
    /// of the file is unlinked, which frees nothing)
    #[arg(long, requires = "control")]
    pub remount: bool,
}

/// Ways to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeleteHow {
    /// unlink the files
    Unlink,
    /// Truncate them from the tail in steps, then unlink (what slowrm does)
    Truncate,
    /// Delete nothing: only measure the foreground
    None,
}

/// The I/O somebody cares about.
#[derive(Debug, Args)]
#[command(next_help_heading = "Foreground")]
pub struct ForegroundArgs {
    /// What the foreground does
    #[arg(long, value_enum, value_name = "OP", default_value = "read")]
    pub op: ForegroundOp,

    /// Order of the blocks
    #[arg(long, value_enum, value_name = "ORDER", default_value = "random")]
    pub pattern: ForegroundPattern,

    /// Bytes per operation
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = block_size)]
    pub block_size: u32,

    /// Closed loop: operations kept in flight. With --rate: most in flight [default: 8; with --rate 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub depth: Option<u32>,

    /// Operations submitted and reaped at once (closed loop)
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "rate", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch: u32,

    /// Open loop: operations per second, whatever happens; latency counts from the intended start
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    /// Open loop: when operations arrive
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value = "constant",
        requires = "rate"
    )]
    pub arrival: ArrivalKind,

    /// Go through the page cache instead of past it
    #[arg(long)]
    pub buffered: bool,

    /// I/O engine
    #[arg(long, value_enum, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineKind,

    /// Size of the file that the foreground works on [default: what is safe, at most 1G]
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub foreground_size: Option<u64>,

    /// Leave the foreground's file behind (as .trimbench-foreground) for a later --reuse
    #[arg(long, conflicts_with = "device")]
    pub keep: bool,

    /// Use the foreground's file that an earlier --keep left behind, if it is large enough
    /// (otherwise a new one is written, and that is said)
    #[arg(long, conflicts_with = "device")]
    pub reuse: bool,

    /// Reads per second of the canary, one outstanding 4 KiB read beside the foreground; 0 for none
    #[arg(long, value_name = "N", default_value = "100", value_parser = rate_or_none)]
    pub canary: f64,

    /// Seed of offsets and arrivals
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}

/// What the foreground does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ForegroundOp {
    /// Read blocks
    Read,
    /// Overwrite blocks
    Write,
}

/// Order of the foreground's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ForegroundPattern {
    /// Any block, each as likely
    Random,
    /// One after the other
    Sequential,
}

/// When an open loop's operations arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalKind {
    /// Evenly spaced
    Constant,
    /// As a Poisson process
    Poisson,
}

/// I/O engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    /// io_uring, or sync where it is forbidden (said)
    Auto,
    /// io_uring
    #[value(name = "io_uring")]
    IoUring,
    /// Blocking calls, a thread per operation in flight
    Sync,
    /// io_uring no-ops: measures trimbench itself
    Null,
}

/// How long the phases last.
#[derive(Debug, Args)]
#[command(next_help_heading = "Phases")]
pub struct PhaseArgs {
    /// Longest time to wait for the foreground to be steady
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub settle: Duration,

    /// Length of the undisturbed baseline
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive_duration)]
    pub baseline: Duration,

    /// Time to go on after the discards are done
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub recovery: Duration,

    /// How long to wait for discards after the last deletion call
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub drain_limit: Duration,

    /// Length of the record's intervals, 10ms to 10s
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = interval)]
    pub interval: Duration,

    /// An interval counts as stalled below this share of the baseline
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = share)]
    pub low: f64,
}

/// A raw device instead of a file system.
#[derive(Debug, Args)]
#[command(next_help_heading = "Raw device")]
pub struct DeviceArgs {
    /// Test a raw block device; needs --destroy-data
    #[arg(long, value_name = "DEV", requires = "destroy_data")]
    pub device: Option<PathBuf>,

    /// Yes, all data on the --device may be destroyed
    // A PATH would make clap forget that it requires a device, which conflicts with it.
    #[arg(long, requires = "device", conflicts_with = "path")]
    pub destroy_data: bool,

    /// Go on although the --device carries this (as the refusal names it); may be repeated
    #[arg(
        long,
        value_name = "NAME",
        requires = "device",
        conflicts_with = "path"
    )]
    pub overwrite_signature: Vec<String>,
}

/// What is printed and written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the verdict as JSON to FILE (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the whole record as JSON Lines to FILE (compressed if it ends in .zst)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Exit with 3 when this holds of the worst actor (the canary, too): stall, longest, lost, p99,
    /// p999 or max against a time, or depth against a share, e.g. 'stall>1s', 'p99>20ms', 'depth<10%';
    /// may be repeated. A stall that the --control had too doesn't count; and with 1 when no discard
    /// was measured or nothing can be told
    #[arg(long, value_name = "COND", value_parser = condition)]
    pub fail_on: Vec<Condition>,

    /// Say what would be done and stop
    #[arg(long)]
    pub dry_run: bool,

    /// Print only the verdict's sentence
    #[arg(long, short)]
    pub quiet: bool,
}

fn positive_size(text: &str) -> Result<u64, String> {
    match units::parse_size(text).map_err(|e| e.to_string())? {
        0 => Err("must be more than 0".into()),
        bytes => Ok(bytes),
    }
}

fn block_size(text: &str) -> Result<u32, String> {
    u32::try_from(positive_size(text)?).map_err(|_| "must be at most 16M".into())
}

fn duration(text: &str) -> Result<Duration, String> {
    units::parse_duration(text).map_err(|e| e.to_string())
}

fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be more than 0".into()),
        time => Ok(time),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if (Duration::from_millis(10)..=Duration::from_secs(10)).contains(&time) {
        Ok(time)
    } else {
        Err("must be from 10ms to 10s".into())
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = units::parse_share(text).map_err(|e| e.to_string())?;
    if share > 0.0 && share < 1.0 {
        Ok(share)
    } else {
        Err("must be between 0% and 100%".into())
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match rate_or_none(text)? {
        0.0 => Err("must be more than 0".into()),
        rate => Ok(rate),
    }
}

fn rate_or_none(text: &str) -> Result<f64, String> {
    let rate: f64 = text
        .parse()
        .map_err(|_| "not a number of operations per second".to_string())?;
    if (0.0..=10e6).contains(&rate) {
        Ok(rate)
    } else {
        Err("must be from 0 to 10000000 per second".into())
    }
}

fn condition(text: &str) -> Result<Condition, String> {
    text.parse().map_err(|e: ConditionError| e.to_string())
}
