//! The options of `trimbench lab`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use ::lab::Fs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use record::section;
use record::units::values::{size, truth};

const EXAMPLES: &str = "\
Examples:
  trimbench lab up evo --profile 870-evo --size 16G --slower 4 \\
    --fs ext4 --mount /mnt/evo -o discard
                                          an SSD that stalls, with a file
                                          system, mounted
  trimbench run /mnt/evo                  does deleting stall it?
  trimbench lab exec evo -- fio job.fio   anything else, as its foreground
  trimbench lab stats evo                 what the drive has done
  trimbench lab set evo queue=exclusive phi=0
                                          as if its TRIM let reads through, from
                                          now on
  trimbench lab fault evo read error rate 1%
                                          every hundredth read fails; `lab fault
                                          evo clear` ends it
  trimbench lab down evo                  unmounts and detaches it; its data are
                                          gone

Everything but `profiles` needs root, /dev/fuse and loop devices. The loop
driver holds reads of the root cgroup behind each whole discard, whatever the
drive says; `trimbench run` and whatever `lab exec` starts are in a cgroup of
the drive's own, where they wait only for the drive itself. Drives are kept in
/run/trimbench/lab, or where TRIMBENCH_LAB_DIR says.";

const FAULTS: &str = "\
Faults:
  read error | write error | flush error | discard error | zero error
                            such commands fail
  flush lost                flushes are acknowledged and not done
  write power | flush power | discard power
                            the power is cut when such a command arrives, e.g.
                            write power after 99
  write lost                writes are acknowledged and dropped: reads return
                            stale data
  write misplaced SIZE      the data land so many bytes behind their place
  read zeros                reads return zeros
  read flip                 a bit of what they return is wrong
  read holes                every other byte of it is 0xff
  discard nothing           discards are acknowledged and do nothing
  discard neighbour SIZE    discards take so much behind them, too
  discard late TIME         discards are acknowledged and come so much later:
                            data written since
                            are gone
    at OFFSET+LENGTH          only those that touch this place, e.g. at 1M+16k
    rate PERCENT              only so many of them, e.g. rate 1%
    after N                   not the first N
    times N                   N of them at most
  hang TIME                 the drive does nothing for so long, e.g. hang 2s
  power off                 everything fails; what wasn't flushed is lost (up
                            --set volatile-cache=true)
  power on                  ends that
  clear                     takes back every fault, ends a hang, and switches
                            the power on (damaged data stay so)

Without words it lists the faults that are in force.";

/// Arguments of `trimbench lab`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LabArgs {
    /// The command to run.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// The commands of the laboratory.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Make a drive: a loop device that behaves like a profile
    ///
    /// Prints the device to standard output, and the next steps to standard error.
    Up(Box<UpArgs>),
    /// List the drives
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a drive has done: commands, bytes and latencies by kind, mapped bytes
    Stats(StatsArgs),
    /// Change figures of a drive's profile while it runs, e.g. a=2ms b=8us/MiB
    Set {
        /// Which drive
        name: String,
        /// Figures and their values; `trimbench lab profiles show PROFILE` has them all
        #[arg(value_name = "KEY=VALUE", required = true)]
        changes: Vec<String>,
    },
    /// Make a drive fail on purpose, e.g. read error rate 1%
    #[command(after_help = FAULTS)]
    Fault {
        /// Which drive; several with commas, e.g. those of one power supply
        name: String,
        /// The fault
        #[arg(value_name = "WORD")]
        words: Vec<String>,
    },
    /// Run a command as the drive's foreground: in its cgroup
    Exec {
        /// Which drive
        name: String,
        /// The command and its arguments
        #[arg(value_name = "COMMAND", required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Take drives down: unmount, detach, forget the data
    Down {
        /// Which drives
        #[arg(value_name = "NAME", required_unless_present = "all")]
        names: Vec<String>,
        /// Every drive, whatever is left of it
        #[arg(long, conflicts_with = "names")]
        all: bool,
        /// Also if it is in use: its users get I/O errors
        #[arg(long)]
        force: bool,
    },
    /// List the profiles: drives as they were measured
    Profiles(ProfilesArgs),
    /// The process behind a drive
    #[command(hide = true)]
    Serve {
        /// End with the process that started it, however that ends; the guardian takes the drive
        /// down then
        #[arg(long)]
        with_parent: bool,
        /// The drive's directory
        dir: PathBuf,
    },
}

/// Arguments of `trimbench lab stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Which drive
    pub name: String,
    /// All of it as JSON, with histograms of the latencies
    #[arg(long)]
    pub json: bool,
    /// Count from 0 afterwards
    #[arg(long)]
    pub reset: bool,
}

section! {
    /// Details of a drive.
    pub(crate) struct DriveDetails["lab up", |_| ""] {
        /// All of it counts as written, as on a drive that was filled once; it reads as a pattern
        /// and takes no memory.
        "premapped" premapped: bool = truth, default "false";
        /// So much of it was filled, overwritten at random, and deleted without a discard: writes
        /// wait for its flash to be cleaned (flash.geometry).
        "aged" aged: f64 = share, default "0%";
        /// A power cut loses what wasn't flushed.
        "volatile-cache" volatile_cache: bool = truth, default "false";
        /// Size of its sectors, 512 or 4096.
        "sector-size" sector_bytes: u32 = sector, default "512";
        /// The kernel looks for partitions on it, as losetup's option does.
        "partscan" partscan: bool = truth, default "false";
        /// Use the data that --store holds, of an earlier drive.
        "keep" keep: bool = truth, default "false";
        /// Most data that it keeps; writes beyond fail. In memory at most what is free and not
        /// promised to another drive.
        "store-limit" store_limit: u64 = size, shown "half of that; in a file, what fits";
    }
}

fn share(text: &str) -> Result<f64, String> {
    record::units::parse_share(text).map_err(|error| error.to_string())
}

fn sector(text: &str) -> Result<u32, String> {
    match text {
        "512" => Ok(512),
        "4096" | "4k" => Ok(4096),
        _ => Err(format!("'{text}': give 512 or 4096")),
    }
}

/// Arguments of `trimbench lab profiles`.
#[derive(Debug, Args)]
pub struct ProfilesArgs {
    /// The command to run instead of listing them.
    #[command(subcommand)]
    pub command: Option<ProfilesCommand>,
}

/// The commands for profiles.
#[derive(Debug, Subcommand)]
pub enum ProfilesCommand {
    /// Print a profile's file, with the source of each figure
    Show {
        /// Which
        #[arg(value_name = "PROFILE")]
        name: String,
    },
}

/// Arguments of `trimbench lab up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// The drive's new name
    pub name: String,
    /// The drive that it behaves like: one of `lab profiles`, or a file
    ///
    /// A part of a profile's name is enough. A file's name has a slash or ends in .toml.
    #[arg(long, value_name = "PROFILE|FILE")]
    pub profile: String,
    /// Its size; memory or disk space is taken only for what is written
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: u64,
    /// Stretch its time: how many times slower than the profile it is
    ///
    /// Needed where the drive is faster than this machine; divide measured times by N. Below 1 it
    /// is faster than the profile: with 0.1, an experiment that takes hours there is over in minutes.
    /// Times given with --set are stretched, too.
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub slower: f64,
    /// Change a figure, e.g. a=2ms, or set a detail, e.g. premapped=true
    ///
    /// `trimbench scenarios keys 'lab up'` lists all. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Keep the data in this file instead of in memory; it is emptied first
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Empty --store also if it holds something that isn't a drive's data
    #[arg(long, requires = "store")]
    pub force: bool,
    /// Make a file system on it, without discards
    #[arg(long, value_parser = PossibleValuesParser::new(Fs::ALL.iter().map(|fs| fs.name()))
        .try_map(|name| Fs::from_str(&name)))]
    pub fs: Option<Fs>,
    /// Mount it here; a missing directory is made, and removed with the drive
    #[arg(long, value_name = "DIR", requires = "fs")]
    pub mount: Option<PathBuf>,
    /// Options of the mount, e.g. discard
    #[arg(
        short,
        long,
        value_name = "OPTIONS",
        requires = "mount",
        default_value = "",
        hide_default_value = true
    )]
    pub options: String,
}
