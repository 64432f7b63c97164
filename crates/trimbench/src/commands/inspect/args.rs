//! The options of `trimbench inspect`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use diagnose::inspect::Severity;

const EXAMPLES: &str = "\
Examples:
  trimbench inspect                       the stack under the current directory
  trimbench inspect /data                 the stack under /data
  trimbench inspect /dev/nvme0n1 -v       a drive, with all it says of itself
  trimbench inspect --all --fail-on warning
                                          the whole machine, for a check in CI
  trimbench inspect --all --json all.json the same as JSON
  trimbench inspect --all --metrics /var/lib/node_exporter/trimbench.prom
                                          the same for Prometheus, from cron
  trimbench inspect / --profile 870-evo   what deleting there will cost
  trimbench inspect --collect here.tar    this machine's files, for --sysroot
  trimbench inspect --sysroot here.tar
                                          the machine that they are from
  trimbench inspect --prove /data         whether TRIM arrives, by trying
  trimbench inspect --if-deleted old.db --profile 870-evo
                                          its discards, and the stall

It only reads, but for --prove. Without root it shows what the kernel lets it
see, and lists what is missing.

Exit codes: 0 done, 1 failed, 2 usage, 3 a finding is at least
as grave as --fail-on says.";

/// Arguments of `trimbench inspect`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InspectArgs {
    /// A path or a block device
    #[arg(
        value_name = "PATH|DEVICE",
        default_value = ".",
        conflicts_with = "all"
    )]
    pub path: PathBuf,
    /// Every mounted file system on block devices, and drives without one
    #[arg(short, long)]
    pub all: bool,
    /// Prove whether TRIM arrives: write 66 MiB to the directory PATH, delete them, count the
    /// discards at each layer and, as root, read the probe's blocks from the device
    #[arg(long, conflicts_with_all = ["all", "sysroot"])]
    pub prove: bool,
    /// Forecast the discards of a deletion of these files and directories, which are all on one
    /// file system; with --profile also how long they keep the drive. Deletes nothing
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["all", "sysroot", "path"])]
    pub if_deleted: Vec<PathBuf>,
    /// Print every figure, also all that the drives report of themselves
    #[arg(short, long)]
    pub verbose: bool,
    /// Write it as JSON as well (`-`: to standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write findings, drives and last trims for Prometheus instead, to a file of node_exporter's textfile
    /// collector, or as OpenMetrics to standard output (`-`)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "sysroot"])]
    pub metrics: Option<PathBuf>,
    /// Exit with code 3 if a finding is at least this grave
    #[arg(long, value_name = "SEVERITY", value_enum)]
    pub fail_on: Option<FailOn>,
    /// The drive's card, to predict stalls: a name that `trimbench lab profiles` lists, or a device
    /// card that `trimbench fit` wrote
    #[arg(long, value_name = "PROFILE|FILE")]
    pub profile: Option<String>,
    /// Write the files that an inspection reads into an archive (tar) that --sysroot takes, without
    /// keys and passwords; inspects nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "prove", "if_deleted", "sysroot", "profile", "json", "metrics", "fail_on", "path"])]
    pub collect: Option<PathBuf>,
    /// Inspect another machine by its files: all its file systems, or that of PATH. Takes an archive
    /// of --collect, or a directory with proc, sys, dev, etc and usr/lib/systemd (copied with cp -r,
    /// not tar)
    #[arg(long, value_name = "FILE|DIR")]
    pub sysroot: Option<PathBuf>,
}

/// A severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Good to know
    Note,
    /// Space stays untrimmed, or trimming costs more than it need
    Warning,
    /// Data or the machine are at risk
    Critical,
}

impl FailOn {
    /// Returns the severity of a finding that corresponds to it.
    pub(crate) fn severity(self) -> Severity {
        match self {
            FailOn::Note => Severity::Note,
            FailOn::Warning => Severity::Warning,
            FailOn::Critical => Severity::Critical,
        }
    }
}
