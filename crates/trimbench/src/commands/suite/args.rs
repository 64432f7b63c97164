//! The options of `trimbench suite`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use experiments::suite::Step;
use record::section;
use record::units::values::{path, size, whole};

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
  trimbench suite report suite.jsonl      what was measured, again

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
    /// Show what was measured.
    #[command(subcommand)]
    pub command: Option<SuiteCommand>,

    /// A block device, with --destroy-data
    #[arg(value_name = "DEVICE", conflicts_with_all = ["on_file", "lab"])]
    pub device: Option<PathBuf>,
    /// Run on two block devices as RAID 0, with --destroy-data
    ///
    /// By md; where there is no md, by btrfs itself and without other file systems.
    #[arg(hide_short_help = true, long, value_names = ["DEVICE", "DEVICE"], num_args = 2, conflicts_with_all = ["on_file", "lab"])]
    pub raid0: Option<Vec<PathBuf>>,
    /// Run on a file of this size, as a loop device
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "lab")]
    pub on_file: Option<u64>,
    /// Run on a simulated drive of `lab profiles`, or of a device card

    #[arg(long, value_name = "PROFILE")]
    pub lab: Option<String>,
    /// Cells to go through [default: all usual ones]
    #[arg(
        long,
        help_heading = "What is done",
        value_name = "CELL,…",
        value_delimiter = ','
    )]
    pub cells: Vec<String>,
    /// Steps to do besides mkfs [default: all that apply to a cell]
    ///
    /// create, rm-each, rm, rm-trimbench, fstrim, fstrim-trimbench, run, run-rm-trimbench,
    /// run-fstrim.
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
    /// Set a detail, e.g. size=1G; `trimbench scenarios keys suite` lists all
    #[arg(long, help_heading = "What is done", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print what would be done, its time and its writes, and stop
    #[arg(long, help_heading = "What is done")]
    pub dry_run: bool,

    /// Yes, all data on the DEVICE may be destroyed; of --raid0, on both
    #[arg(
        hide_short_help = true,
        long,
        help_heading = "Raw device",
        requires = "raw"
    )]
    pub destroy_data: bool,
    /// Also if it carries a file system or other known data
    #[arg(
        hide_short_help = true,
        long,
        help_heading = "Raw device",
        requires = "destroy_data"
    )]
    pub force: bool,

    /// Keep a line for each finished step in FILE, and go on from there
    #[arg(
        hide_short_help = true,
        long,
        help_heading = "Output",
        value_name = "FILE",
        default_value = "trimbench-suite.jsonl"
    )]
    pub output: PathBuf,
}

section! {
    /// Details of a suite.
    pub(crate) struct Details["suite", |_| ""] {
        /// Bytes of all files of a cell.
        "size" size: u64 = size, shown "an eighth of the device, at most 8G, with --quick 512M";
        /// Files of each cell.
        "files" files: u32 = |text| whole(text, 1, 10_000), shown "64";
        /// Rounds; cells take turns.
        "repeats" repeats: u32 = |text| whole(text, 1, 100), shown "3, with --quick 2";
        /// Files that are written at once.
        "writers" writers: u32 = |text| whole(text, 1, 256), shown "8";
        /// The directory of --on-file's file.
        "dir" dir: PathBuf = path, default ".";
        /// Size of --lab's drive; only data that are there take memory.
        "lab-size" lab_size: u64 = size, default "16G";
        /// How many times slower than the profile --lab's drive is.
        "lab-slower" lab_slower: f64 = times, default "1";
    }
}

/// A form of a suite's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SuiteFormat {
    /// Tables
    Text,
    /// All of it
    Json,
}

/// Uses of suites that were measured.
#[derive(Debug, Subcommand)]
pub enum SuiteCommand {
    /// Show what a suite measured, as far as it came
    Report {
        /// The file of --output
        file: PathBuf,
        /// How to show it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: SuiteFormat,
        /// Write to FILE instead of to standard output (-)
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Reads how many times slower a simulated drive is: the lab takes 0.001 to 1000.
fn times(text: &str) -> Result<f64, String> {
    let times = text.parse::<f64>().ok();
    times
        .filter(|times| (0.001..=1000.0).contains(times))
        .ok_or_else(|| "give a number from 0.001 to 1000".to_owned())
}
