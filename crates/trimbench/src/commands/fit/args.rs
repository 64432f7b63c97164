//! The options of `trimbench fit`.

use std::path::PathBuf;

use bench::scenario::values::size;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  trimbench fit run.jsonl                 what the discards of a run cost
  trimbench fit *.jsonl.zst --output mine.toml
                                          of several runs on one drive, as a
                                          device card
  trimbench fit /data --output mine.toml  a ladder of deletions on /data: some
                                          minutes
  trimbench fit --device /dev/sdX --destroy-data
                                          a ladder of discards, on a drive
                                          without data
  trimbench lab up mine --profile ./mine.toml
                                          a drive that behaves as this one did";

/// Arguments of `trimbench fit`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FitArgs {
    /// Records that `run --output` or `import --output` wrote (- for standard input), all of one
    /// kind of drive; or a directory, to try the file system that it is on
    #[arg(value_name = "RUN|DIR", required_unless_present = "device")]
    pub paths: Vec<PathBuf>,

    /// Write the device card to FILE (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The drive's name in the card [default: from its model]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Sizes of the discards, from the smallest to the largest
    #[arg(
        long,
        help_heading = "Ladder",
        value_name = "SIZE,…",
        value_delimiter = ',',
        default_value = "1M,4M,16M,64M,128M",
        value_parser = size
    )]
    pub sizes: Vec<u64>,

    /// Most that is written, and deleted again, at once [default: what is safe, at most 4G]
    #[arg(long, help_heading = "Ladder", value_name = "SIZE", value_parser = size)]
    pub space: Option<u64>,

    /// Try a raw block device; needs --destroy-data
    #[arg(
        long,
        help_heading = "Ladder",
        value_name = "DEV",
        requires = "destroy_data",
        conflicts_with = "paths"
    )]
    pub device: Option<PathBuf>,

    /// Yes, all data on the --device may be destroyed
    #[arg(
        long,
        help_heading = "Ladder",
        requires = "device",
        conflicts_with = "paths"
    )]
    pub destroy_data: bool,

    /// Go on although the --device carries this (as the refusal names it); may be repeated
    #[arg(
        long,
        help_heading = "Ladder",
        value_name = "NAME",
        requires = "device",
        conflicts_with = "paths"
    )]
    pub overwrite_signature: Vec<String>,

    /// Print what the ladder would do, and stop
    #[arg(long, help_heading = "Ladder")]
    pub dry_run: bool,
}
