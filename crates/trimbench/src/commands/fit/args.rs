//! The options of `trimbench fit`.

use std::path::PathBuf;

use clap::Args;
use record::section;
use record::units::values::{size, text};

const EXAMPLES: &str = "\
Examples:
  trimbench fit run.jsonl                 what the discards of a run cost
  trimbench fit *.jsonl.zst --output mine.toml
                                          of several runs on one drive, as a
                                          device card
  trimbench fit /data --output mine.toml  a ladder of deletions on /data: some
                                          minutes
  trimbench fit /dev/sdX --destroy-data
                                          a ladder of discards, on a drive
                                          without data
  trimbench lab up mine --profile ./mine.toml --size 8G
                                          a drive that behaves as this one did";

/// Arguments of `trimbench fit`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FitArgs {
    /// Records of one kind of drive (- for standard input), or a directory or device to try
    ///
    /// `run --output` and `import --output` write records. A directory stands for the file system
    /// that it is on. A block device needs --destroy-data.
    #[arg(value_name = "RUN|DIR|DEVICE", required = true)]
    pub paths: Vec<PathBuf>,

    /// Write the device card to FILE (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Set a detail, e.g. space=1G; `trimbench scenarios keys fit` lists all
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Yes, all data on the DEVICE may be destroyed
    #[arg(long, help_heading = "Raw device")]
    pub destroy_data: bool,

    /// Also if it carries a file system or other known data
    #[arg(long, help_heading = "Raw device", requires = "destroy_data")]
    pub force: bool,

    /// Print what the ladder would do, and stop
    #[arg(long)]
    pub dry_run: bool,
}

section! {
    /// Details of a ladder, and of the card.
    pub(crate) struct Details["fit", |_| ""] {
        /// The drive's name in the card.
        "name" name: String = text, shown "from its model";
        /// Sizes of the ladder's discards, from the smallest to the largest.
        "sizes" sizes: Vec<u64> = sizes, default "1M,4M,16M,64M,128M";
        /// Most that is written, and deleted again, at once.
        "space" space: u64 = size, shown "what is safe, at most 4G";
    }
}

/// Reads sizes with commas between them.
pub(crate) fn sizes(text: &str) -> Result<Vec<u64>, String> {
    text.split(',').map(size).collect()
}
