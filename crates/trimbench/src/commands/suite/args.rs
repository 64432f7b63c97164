//! The options of `trimbench suite`.

use std::path::PathBuf;

use ::suite::Step;
use bench::scenario::values::size;
use clap::{ArgGroup, Args, Subcommand, value_parser};

const EXAMPLES: &str = "\
Examples:
  trimbench suite --lab t500 --quick      a simulated drive, in minutes
  trimbench suite --on-file 20G           a file in the current directory, as a
                                          loop device
  trimbench suite /dev/sdX --destroy-data --cells ext4,xfs
                                          a drive, all of whose data may be lost
  trimbench suite --raid0 /dev/sdX /dev/sdY --destroy-data
                                          two drives as RAID 0
  trimbench suite /dev/sdX --destroy-data --dry-run
                                          how long, and how much it writes
  trimbench suite report suite.jsonl --html suite.html
                                          what was measured, again
  trimbench suite compare old.jsonl new.jsonl
                                          two drives, or two kernels

A cell is FILE SYSTEM/MKFS/MOUNT, as ext4/nodiscard/discard. Parts may be * or
left out at the end: --cells 'xfs,btrfs/*/sync'.

A suite that was interrupted or killed goes on when the same command is given
again. Nothing stays mounted, and no loop device or simulated drive stays.

Exit codes: 0 done, 1 a step failed, 2 usage, interrupted 130 (SIGINT),
143 (SIGTERM), 129 (SIGHUP).";

/// Arguments of `trimbench suite`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[command(group(ArgGroup::new("raw").args(["device", "raid0"])))]
pub struct SuiteArgs {
    /// Show or compare what was measured.
    #[command(subcommand)]
    pub command: Option<SuiteCommand>,

    /// A block device, with --destroy-data
    #[arg(value_name = "DEVICE", conflicts_with_all = ["on_file", "lab"])]
    pub device: Option<PathBuf>,
    /// Run on two block devices as RAID 0, with --destroy-data: by md; where there is no md, by
    /// btrfs itself and without other file systems
    #[arg(long, value_names = ["DEVICE", "DEVICE"], num_args = 2, conflicts_with_all = ["on_file", "lab"])]
    pub raid0: Option<Vec<PathBuf>>,
    /// Run on a file of this size, as a loop device; it is removed with the suite
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "lab")]
    pub on_file: Option<u64>,
    /// The directory of --on-file's file
    #[arg(long, value_name = "DIR", default_value = ".", requires = "on_file")]
    pub dir: PathBuf,
    /// Run on a simulated drive: one that `trimbench lab profiles` lists, or a device card of your
    /// own
    #[arg(long, value_name = "PROFILE")]
    pub lab: Option<String>,
    /// Size of --lab's drive; only data that are there take memory
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "16G", requires = "lab")]
    pub lab_size: u64,
    /// Stretch the time of --lab's drive: how many times slower than the profile it is
    #[arg(long, value_name = "N", value_parser = times, default_value = "1", requires = "lab")]
    pub lab_slower: f64,

    /// Cells to go through [default: all usual ones]
    #[arg(
        long,
        help_heading = "What is done",
        value_name = "CELL,…",
        value_delimiter = ','
    )]
    pub cells: Vec<String>,
    /// Steps to do besides mkfs: create, rm-each, rm, rm-trimbench, fstrim, fstrim-trimbench, run,
    /// run-rm-trimbench, run-fstrim [default: all of these that apply to a cell]. Only by
    /// name: engines (reads by engine), mmap-writeback and msync-writeback (of a mapped file)
    #[arg(
        long,
        help_heading = "What is done",
        value_name = "STEP,…",
        value_delimiter = ',',
        value_parser = str::parse::<Step>
    )]
    pub steps: Vec<Step>,
    /// Fewer cells, smaller files, two rounds, short runs
    #[arg(long, help_heading = "What is done")]
    pub quick: bool,
    /// Rounds; cells take turns [default: 3, with --quick 2]
    #[arg(long, help_heading = "What is done", value_name = "N", value_parser = value_parser!(u32).range(1..=100))]
    pub repeats: Option<u32>,
    /// Files of each cell [default: 64]
    #[arg(long, help_heading = "What is done", value_name = "N", value_parser = value_parser!(u32).range(1..=10_000))]
    pub files: Option<u32>,
    /// Bytes of all files of a cell [default: an eighth of the device, at most 8G, with --quick
    /// 512M]
    #[arg(long, help_heading = "What is done", value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// Files that are written at once [default: 8]
    #[arg(long, help_heading = "What is done", value_name = "N", value_parser = value_parser!(u32).range(1..=256))]
    pub writers: Option<u32>,
    /// Print what would be done, how long it would take and how much it would write, and stop
    #[arg(long, help_heading = "What is done")]
    pub dry_run: bool,

    /// Yes, all data on the DEVICE may be destroyed; of --raid0, on both
    #[arg(long, help_heading = "Raw device", requires = "raw")]
    pub destroy_data: bool,
    /// Go on although the device carries this (as the refusal names it); may be repeated
    #[arg(
        long,
        help_heading = "Raw device",
        value_name = "NAME",
        requires = "destroy_data"
    )]
    pub overwrite_signature: Vec<String>,

    /// Keep a line for each finished step in FILE, and go on from there
    #[arg(
        long,
        help_heading = "Output",
        value_name = "FILE",
        default_value = "trimbench-suite.jsonl"
    )]
    pub output: PathBuf,
    /// Files to write beside the tables.
    #[command(flatten)]
    pub shown: ShownArgs,
}

/// Forms of the results.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ShownArgs {
    /// Write the results as JSON to FILE (- for standard output, instead of the tables)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the tables as Markdown to FILE
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write tables and charts as a page to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write every figure of every cell and round as a row to FILE, as Apache Parquet
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Write the charts as SVG to FILE
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Uses of suites that were measured.
#[derive(Debug, Subcommand)]
pub enum SuiteCommand {
    /// Show what a suite measured, as far as it came
    Report {
        /// The file of --output
        file: PathBuf,
        /// Files to write beside the tables.
        #[command(flatten)]
        shown: ShownArgs,
    },
    /// Show how two suites differ, and how certain that is
    Compare {
        /// The file of the first suite
        first: PathBuf,
        /// The file of the second one
        second: PathBuf,
        /// Write the comparison as JSON to FILE (- for standard output, instead of the tables)
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

/// Reads how many times slower a simulated drive is: the lab takes 0.001 to 1000.
fn times(text: &str) -> Result<f64, String> {
    let times = text.parse::<f64>().ok();
    times
        .filter(|times| (0.001..=1000.0).contains(times))
        .ok_or_else(|| "give a number from 0.001 to 1000".to_owned())
}
