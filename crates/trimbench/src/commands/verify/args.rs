//! The options of `trimbench verify`.

use std::path::PathBuf;
use std::time::Duration;

use bench::scenario::values::{positive_duration, size};
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  trimbench verify /data --duration 10m   files in a directory of its own,
                                          removed at the end
  trimbench verify /data --rate 50M --json result.json
                                          beside live data, at 50 MiB/s
  trimbench verify /dev/sdb --destroy-data --size 64G --duration 8h
                                          a raw device, with discards of its own
  trimbench verify /data --state /root/data.state --duration 1h
                                          write down what was forced to the
                                          medium; the same command goes on after
                                          a crash, and checks that first
  trimbench verify /data --state /root/data.state --check
                                          only check it

As root it trims the file system in a loop, and reads what trimmed space holds
from the device. Without root both are left out, and it says so.

Exit codes: 0 all data were right, 1 it could not go on or the kernel reported
errors, 2 usage, 3 data were damaged.";

/// Arguments of `trimbench verify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// A directory, or a block device with --destroy-data
    #[arg(value_name = "PATH|DEVICE")]
    pub path: PathBuf,
    /// How long to write and discard; all data are read once more after that
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = positive_duration)]
    pub duration: Duration,
    /// Bytes to test [default: 1G, and at most a quarter of what may be written]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// Write and read at most this many bytes in a second [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub rate: Option<u64>,
    /// Threads, each with four files or regions
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub workers: u32,
    /// Don't trim the file system (FITRIM) beside it
    #[arg(long)]
    pub no_fstrim: bool,
    /// Unmount and mount the file system at the end, and read all data once more
    #[arg(long, conflicts_with = "destroy_data")]
    pub remount: bool,
    /// Note in FILE what was forced to the medium. If the file exists, check its data first, and
    /// continue for the rest of --duration. It is removed with the data at the end
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Only check the data of --state, change nothing, and end
    #[arg(long, requires = "state")]
    pub check: bool,
    /// Write the result as JSON as well (`-`: to standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Yes, all data on the device may be destroyed
    #[arg(long, help_heading = "Raw device")]
    pub destroy_data: bool,
    /// Go on although the device carries this (as the refusal names it); may be repeated
    #[arg(
        long,
        value_name = "NAME",
        requires = "destroy_data",
        help_heading = "Raw device"
    )]
    pub overwrite_signature: Vec<String>,
}
