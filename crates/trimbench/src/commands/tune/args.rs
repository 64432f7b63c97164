//! The options of `trimbench tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use experiments::tune::{Policy, Request};
use record::section;
use record::units::values::{path, positive_duration, size, whole};

use crate::commands::fit::args::sizes;
use crate::goal::share;

const EXAMPLES: &str = "\
Examples:
  trimbench tune /dev/sda2                try, and say what suits the drive;
                                          changes nothing
  trimbench tune / --dry-run              only say what it would try
  trimbench tune /data --apply            and set it, until the next start
  trimbench tune /data --set policies=online --set limits=128M,8M
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

    /// Longest time for all runs together
    #[arg(
        long = "for",
        help_heading = TRIED,
        value_name = "TIME",
        default_value = "15m",
        value_parser = positive_duration
    )]
    pub time: Duration,
    /// Set a detail, e.g. limits=128M,8M; `trimbench scenarios keys tune` lists all
    #[arg(long, help_heading = TRIED, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print what would be tried, and stop
    #[arg(long, help_heading = TRIED)]
    pub dry_run: bool,
    /// Don't ask before it begins; without a terminal nothing is asked
    #[arg(short, long, help_heading = TRIED)]
    pub yes: bool,

    /// Apply the advised settings until the next start
    ///
    /// It prints what makes them last: a udev rule, an option in fstab, or a timer.
    #[arg(long, help_heading = SET)]
    pub apply: bool,

    /// Write the results to FILE as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Remove FILE, and have `trimbench fstrim` discard what it took: a step of a run
    #[arg(long, hide = true, value_name = "FILE")]
    pub trim_after: Option<PathBuf>,
    /// Remove FILE of btrfs, and have the block groups that this empties discarded: a step of a run
    #[arg(long, hide = true, value_name = "FILE")]
    pub free_all: Option<PathBuf>,
}

section! {
    /// Details of the trials.
    pub(crate) struct Details["tune", |_| ""] {
        /// Bytes that each run writes and deletes.
        "size" size: u64 = size, shown "what is safe, at most 4G";
        /// Runs of each setting; they take turns.
        "repeats" repeats: u32 = |text| whole(text, 1, 20), default "3";
        /// Values of discard_max_bytes.
        "limits" limits: Vec<u64> = sizes, shown "a handful, from the hardware's limit down";
        /// Ways of discarding: online, rm (online, deleted by `trimbench rm`), fstrim (no online
        /// discard, and `trimbench fstrim`).
        "policies" policies: Vec<Policy> = policies, default "online,rm,fstrim";
        /// How much of its throughput other I/O may lose to paced discards.
        "slowdown" slowdown: f64 = share, default "10%";
        /// Keep each run's record in this directory.
        "records" records: PathBuf = path, shown "none are kept";
    }
}

fn policies(text: &str) -> Result<Vec<Policy>, String> {
    let policy = |name: &str| match name.trim() {
        "online" => Ok(Policy::Online),
        "rm" => Ok(Policy::PacedRm),
        "fstrim" => Ok(Policy::PacedFstrim),
        name => Err(format!("'{name}' is none of online, rm, fstrim")),
    };
    text.split(',').map(policy).collect()
}

impl TuneArgs {
    /// The trials that were asked for.
    pub(crate) fn request(&self, details: &Details) -> Request {
        Request {
            size_bytes: details.size,
            time: self.time,
            repeats: details.repeats(),
            limits_bytes: details.limits.clone().unwrap_or_default(),
            policies: details.policies(),
            slowdown: details.slowdown(),
        }
    }
}
