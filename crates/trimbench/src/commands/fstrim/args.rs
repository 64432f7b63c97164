//! The options of `trimbench fstrim`: fstrim's, and the goal for other I/O.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use reclaim::lease::{LeaseError, Place};
use record::section;
use record::units::settings::Section;
use record::units::values::{byte_rate, path, truth};

use crate::goal::{GOALS, GoalArgs};

const EXAMPLES: &str = "\
Examples:
  trimbench fstrim /                      other I/O loses at most 10 % of their
                                          throughput
  trimbench fstrim /data --max-latency 5ms
                                          other I/O waits at most 5 ms longer
  trimbench fstrim --all --slowdown 5%    whatever is mounted and can be trimmed
  trimbench fstrim --resume /data         go on where it was interrupted
  trimbench fstrim --fstab --dry-run      what it would trim, and how
  trimbench fstrim --install-timer --slowdown 5%
                                          every week, instead of the
                                          distribution's fstrim.timer

It trims window by window. Interrupted by Ctrl-C, SIGTERM or a power failure, it
can be gone on with: how far it came is kept in /var/lib/trimbench/fstrim
($XDG_STATE_HOME/trimbench/fstrim if not root) until it is done. The kernel ends
a window that is under way after the free extent at which it is.

Exit codes: 0 done, 1 failed or not supported, 2 usage, 3 all is trimmed and a
goal that you gave was missed, interrupted 130 (SIGINT), 143 (SIGTERM), 129
(SIGHUP); of --all, --fstab and --listed-in 0 all done or not supported, 32 all
failed, 64 some failed. A table without entries is no failure: nothing is
trimmed, and that is printed. As fstrim, it takes mount points, not devices.";

/// Arguments of `trimbench fstrim`.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    args_override_self = true,
    group = ArgGroup::new("which")
        .args(["mounts", "all", "fstab", "listed_in"])
        .required(false)
)]
pub struct FstrimArgs {
    /// Where the file systems are mounted
    #[arg(
        value_name = "MOUNT",
        required_unless_present_any = ["all", "fstab", "listed_in", "install_timer"]
    )]
    pub mounts: Vec<PathBuf>,

    /// Trim all that is mounted, writable, and on devices that take discards
    #[arg(short, long)]
    pub all: bool,
    /// Of these, trim those that /etc/fstab lists, and the root file system
    #[arg(short = 'A', long)]
    pub fstab: bool,
    /// Trim what the first non-empty one of these files lists (A:B)
    #[arg(short = 'I', long, value_name = "FILES")]
    pub listed_in: Option<String>,
    /// Only file systems of these types; `no` before the list or a type excludes
    #[arg(short, long, value_name = "TYPES", conflicts_with = "mounts")]
    pub types: Option<String>,

    /// Where to begin, in bytes of the file system
    #[arg(hide_short_help = true, short, long, value_name = "SIZE", value_parser = size, default_value = "0", hide_default_value = true)]
    pub offset: u64,
    /// How much of it to look at [default: all]
    #[arg(hide_short_help = true, short, long, value_name = "SIZE", value_parser = length)]
    pub length: Option<u64>,
    /// Leave free extents alone that are shorter than this
    #[arg(hide_short_help = true, short, long, value_name = "SIZE", value_parser = size, default_value = "0", hide_default_value = true)]
    pub minimum: u64,

    #[command(flatten)]
    #[allow(missing_docs, reason = "its own say it")]
    pub goal: GoalArgs,
    /// Set a detail, e.g. rate=1G/s; `trimbench scenarios keys fstrim` lists all
    #[arg(long, help_heading = GOALS, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Measure what a trim gains: `run --scenario never-trimmed MOUNT`
    ///
    /// Writes before, while and after the trim. Minutes, and at most 32 GiB of writes.
    #[arg(
        hide_short_help = true,
        long,
        conflicts_with_all = [
            "all", "fstab", "listed_in", "offset", "length", "minimum", "slowdown", "max_latency",
            "deadline", "protect", "profile", "set", "resume", "verbose", "quiet_unsupported",
            "install_timer",
        ]
    )]
    pub gain: bool,
    /// Resume an interrupted trim of the same file system, or part of it
    #[arg(long)]
    pub resume: bool,
    /// Print what would be trimmed, and stop
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Write the result as JSON (- for standard output)
    ///
    /// The bytes trimmed, the loss of other I/O, and whether the goal was met.
    #[arg(hide_short_help = true, long, value_name = "FILE", conflicts_with_all = ["dry_run", "install_timer"])]
    pub json: Option<PathBuf>,
    /// Print how much was trimmed, as fstrim does
    #[arg(short, long)]
    pub verbose: bool,
    /// Print errors only. With --install-timer: in the week's quietest window, by --set history
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Treat a file system that can't be trimmed as no failure, and print nothing about it
    #[arg(hide_short_help = true, long)]
    pub quiet_unsupported: bool,

    /// Write a service and a timer of systemd that do this every week
    #[arg(long, help_heading = "Every week", conflicts_with = "resume")]
    pub install_timer: bool,
}

section! {
    /// Details of a trim.
    pub(crate) struct Details["fstrim", |_| ""] {
        /// Trim this much each second, whatever the drive does, instead of a goal.
        "rate" rate: u64 = byte_rate, shown "by the goal";
        /// Wait for this lease first, and keep it to the end: machines that share storage trim one
        /// after the other. A file on that storage is locked; k8s, k8s:NAME or k8s:NAMESPACE/NAME is
        /// a Lease of Kubernetes.
        "lease" lease: Place = lease, shown "none";
        /// Where --install-timer writes.
        "unit-dir" unit_dir: PathBuf = path, default "/etc/systemd/system";
        /// The I/O of a week or more, by which --install-timer --quiet picks a window: a log of watch
        /// --json, or Prometheus' answer to query_range.
        "history" history: PathBuf = path, shown "none";
        /// Replace an existing timer that has other options. Run trimbench from where it is: a build folder,
        /// a directory that the machine empties, or one to which others can write.
        "replace" replace: bool = truth, default "false";
    }
}

impl FstrimArgs {
    /// Returns the options that were given of which part to trim, each as a word.
    pub(super) fn part(&self) -> Vec<String> {
        let given = |bytes: u64| Some(bytes).filter(|&bytes| bytes > 0);
        let all = [
            ("offset", given(self.offset)),
            ("length", self.length),
            ("minimum", given(self.minimum)),
        ];
        all.into_iter()
            .filter_map(|(name, bytes)| Some(format!("--{name}={}", bytes?)))
            .collect()
    }
}

impl Details {
    /// Reads the details of a trim. A rate leaves a goal nothing to decide.
    pub(crate) fn read(args: &FstrimArgs) -> Result<Details, String> {
        let details = Details::of(&args.set)?;
        match (details.rate, args.goal.has_limit()) {
            (Some(_), true) => Err(
                "--set rate: it doesn't go with --slowdown, --max-latency or --deadline: leave out \
                 one of them"
                    .to_owned(),
            ),
            _ if (details.unit_dir.is_some() || details.replace()) && !args.install_timer => Err(
                "--set: unit-dir and replace only do something with --install-timer: leave them out, \
                 or add that"
                    .to_owned(),
            ),
            _ if details.history.is_some() != (args.install_timer && args.quiet) => Err(
                "--install-timer --quiet and --set history=FILE need each other: the history shows \
                 which window is quiet"
                    .to_owned(),
            ),
            _ => Ok(details),
        }
    }
}

fn lease(text: &str) -> Result<Place, String> {
    text.parse().map_err(|why: LeaseError| why.to_string())
}

fn size(text: &str) -> Result<u64, String> {
    record::units::parse_size(text).map_err(|error| error.to_string())
}

fn length(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("must be above 0".to_owned()),
        bytes => Ok(bytes),
    }
}
