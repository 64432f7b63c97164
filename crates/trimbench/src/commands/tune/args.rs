//! The options of `trimbench tune`.

use std::path::PathBuf;
use std::time::Duration;

use ::tune::{Policy, Request};
use bench::scenario::values::{positive_duration, size};
use clap::{Args, ValueEnum};

use crate::goal::{default_slowdown, share};

const EXAMPLES: &str = "\
Examples:
  trimbench tune /dev/sda2                try, and say what suits the drive;
                                          changes nothing
  trimbench tune / --dry-run              only say what it would try
  trimbench tune / --svg tune.svg         with a picture of what each way costs,
                                          for how long
  trimbench tune /data --apply            and set it, until the next start
  trimbench tune /data --apply --persist  and for good
  trimbench tune /data --policies online --limits 128M,8M
                                          two values of discard_max_bytes,
                                          nothing else

Whatever it changes while it tries is put back when it ends, also by a kill;
only --apply leaves what it advises.

Exit codes: 0 done, 1 failed, 2 usage, interrupted 130 (SIGINT),
143 (SIGTERM), 129 (SIGHUP).";

/// The heading of the options for trials.
const TRIED: &str = "What is tried";
/// The heading of the options for settings.
const SET: &str = "What is set";

/// Arguments of `trimbench tune`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TuneArgs {
    /// A block device with a mounted file system, its mount point, or a directory on it
    #[arg(value_name = "DEVICE|DIR")]
    pub path: PathBuf,

    /// Bytes that each run writes and deletes [default: what is safe, at most 4G]
    #[arg(long, help_heading = TRIED, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// Longest time for all runs together
    #[arg(
        long,
        help_heading = TRIED,
        value_name = "TIME",
        default_value = "15m",
        value_parser = positive_duration
    )]
    pub time: Duration,
    /// Runs of each setting; they take turns
    #[arg(
        long,
        help_heading = TRIED,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..=20)
    )]
    pub repeats: u32,
    /// Values of discard_max_bytes [default: a handful, from the hardware's limit down]
    #[arg(
        long,
        help_heading = TRIED,
        value_name = "SIZE,…",
        value_delimiter = ',',
        value_parser = size
    )]
    pub limits: Vec<u64>,
    /// Ways of discarding
    #[arg(
        long,
        help_heading = TRIED,
        value_name = "WAY,…",
        value_delimiter = ',',
        default_value = "online,rm,fstrim"
    )]
    pub policies: Vec<PolicyArg>,
    /// How much of its throughput other I/O may lose to paced discards
    #[arg(
        long,
        help_heading = TRIED,
        value_name = "SHARE",
        default_value = default_slowdown(),
        value_parser = share
    )]
    pub slowdown: f64,
    /// Print what would be tried, and stop
    #[arg(long, help_heading = TRIED)]
    pub dry_run: bool,
    /// Don't ask before it begins; without a terminal nothing is asked
    #[arg(short, long, help_heading = TRIED)]
    pub yes: bool,

    /// Apply the advised settings
    #[arg(long, help_heading = SET)]
    pub apply: bool,
    /// Apply them at the next starts as well: a udev rule, a timer; of fstab it prints the line to
    /// change
    #[arg(long, help_heading = SET, requires = "apply")]
    pub persist: bool,
    /// Where the settings are
    #[arg(long, help_heading = SET, value_name = "DIR", default_value = "/etc", requires = "persist")]
    pub etc: PathBuf,

    /// Write the results to FILE as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a picture of the results to FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the advice to FILE as variables of the Ansible role (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub role: Option<PathBuf>,
    /// Keep each run's record in DIR
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,

    /// Remove FILE, and have `trimbench fstrim` discard what it took: a step of a run
    #[arg(long, hide = true, value_name = "FILE")]
    pub trim_after: Option<PathBuf>,
    /// Remove FILE of btrfs, and have the block groups that this empties discarded: a step of a run
    #[arg(long, hide = true, value_name = "FILE")]
    pub free_all: Option<PathBuf>,
}

/// A way of discarding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PolicyArg {
    /// Online discard
    Online,
    /// Online discard, and deletion with `trimbench rm`
    Rm,
    /// No online discard, and `trimbench fstrim`
    Fstrim,
}

impl From<PolicyArg> for Policy {
    fn from(arg: PolicyArg) -> Policy {
        match arg {
            PolicyArg::Online => Policy::Online,
            PolicyArg::Rm => Policy::PacedRm,
            PolicyArg::Fstrim => Policy::PacedFstrim,
        }
    }
}

impl TuneArgs {
    /// The trials that were asked for.
    pub(crate) fn request(&self) -> Request {
        Request {
            size_bytes: self.size,
            time: self.time,
            repeats: self.repeats,
            limits_bytes: self.limits.clone(),
            policies: self.policies.iter().copied().map(Policy::from).collect(),
            slowdown: self.slowdown,
        }
    }
}
