//! The options of `trimbench blkdiscard`: blkdiscard's, and the goal.

use std::path::PathBuf;

use clap::Args;

use crate::goal::GoalArgs;

const EXAMPLES: &str = "\
Examples:
  trimbench blkdiscard --dry-run /dev/vg/old     what it would do, and how long
                                                 it takes with --profile
  trimbench blkdiscard --destroy-data /dev/vg/old && lvremove vg/old
                                                 instead of issue_discards=1
  trimbench blkdiscard --destroy-data /dev/sdX && mkfs.xfs -K /dev/sdX
  trimbench blkdiscard --destroy-data --offset 1G --length 8G /dev/sdX

All data in the range are lost. A device that is mounted, held or in use is
always refused. One that carries a file system or other known data is refused
without --force. Interrupted, it prints how to go on.

Exit codes: 0 done, 1 failed, 2 usage, 3 all is discarded and a goal that you
gave was missed, interrupted 130 (SIGINT), 143 (SIGTERM), 129 (SIGHUP).";

/// Arguments of `trimbench blkdiscard`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BlkdiscardArgs {
    /// The block device: a drive, a partition or a logical volume
    #[arg(value_name = "DEVICE")]
    pub device: PathBuf,

    /// Where to begin, in bytes; a multiple of 512
    #[arg(short, long, value_name = "SIZE", value_parser = size, default_value = "0", hide_default_value = true)]
    pub offset: u64,
    /// How much to discard, a multiple of 512 [default: all behind the offset]
    #[arg(short, long, value_name = "SIZE", value_parser = size)]
    pub length: Option<u64>,
    /// Discard at most so much in one call
    #[arg(short = 'p', long, value_name = "SIZE", value_parser = size)]
    pub step: Option<u64>,
    /// Destroy file systems and other known data on it; a device that is mounted or in use is still
    /// refused
    #[arg(short, long)]
    pub force: bool,
    /// Yes, the data in the range may be destroyed
    #[arg(long)]
    pub destroy_data: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "its own say it")]
    pub goal: GoalArgs,

    /// Print what would be discarded, and stop; with --profile also how long it takes
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Print how much was discarded, as blkdiscard does
    #[arg(short, long)]
    pub verbose: bool,
    /// Print errors only
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
}

fn size(text: &str) -> Result<u64, String> {
    record::units::parse_size(text).map_err(|error| error.to_string())
}
