//! The options of `trimbench verify`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use record::section;
use record::units::values::{positive_duration, size, truth, whole};

const EXAMPLES: &str = "\
Examples:
  trimbench verify /data --for 10m   files in a directory of its own,
                                          removed at the end
  trimbench verify /data --set rate=50M --json result.json
                                          beside live data, at 50 MiB/s
  trimbench verify /dev/sdb --destroy-data --size 64G --for 8h
                                          a raw device, with discards of its own

As root it trims the file system in a loop. Without root that is left out, and
it says so.

Exit codes: 0 all data were right, 1 it could not go on or the kernel reported
errors, 2 usage, 3 data were damaged.";

/// Arguments of `trimbench verify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// A directory, or a block device with --destroy-data
    #[arg(value_name = "PATH|DEVICE")]
    pub path: PathBuf,
    /// How long to write and discard, before all data are read once more
    #[arg(long = "for", value_name = "TIME", default_value = "1m", value_parser = positive_duration)]
    pub duration: Duration,
    /// Bytes to test [default: 1G, and at most a quarter of what may be written]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// Set a detail, e.g. rate=50M; `trimbench scenarios keys verify` lists all
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write the result as JSON as well (-: to standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Yes, all data on the device may be destroyed
    #[arg(long, help_heading = "Raw device")]
    pub destroy_data: bool,
    /// Also if it carries a file system or other known data
    #[arg(long, requires = "destroy_data", help_heading = "Raw device")]
    pub force: bool,
}

section! {
    /// Details of a test.
    pub(crate) struct Details["verify", |_| ""] {
        /// Most bytes to write and read in a second.
        "rate" rate: u64 = size, shown "no limit";
        /// Threads, each with four files or regions, 1 to 256.
        "workers" workers: u32 = |text| whole(text, 1, 256), default "4";
        /// Trim the file system (FITRIM) beside it.
        "fstrim" fstrim: bool = truth, default "true";
    }
}
