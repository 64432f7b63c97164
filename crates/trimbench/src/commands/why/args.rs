//! The options of `trimbench why`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use diagnose::why::recorder::server::DIRECTORY;
use record::units::values::path;

use record::section;

use crate::commands::why::since::{self, Since};

const EXAMPLES: &str = "\
Examples:
  trimbench why -- vim -c wq /etc/fstab   why did saving take so long?
  trimbench why -- sync                   is it TRIM?
  trimbench why --pid 1234 --for 10s      what does this process wait for?
  trimbench why --all --for 30s           who waits on this machine?
  trimbench why --service postgresql      the processes of a unit of systemd
  trimbench why -o stacks.txt -- make     the stacks, for flame graph tools
  trimbench why --record                  remember the last 15 minutes
  trimbench why --since 12:01 --for 30s   what waited then? The recorder knows

Root sees stacks and who sends discards. Without root trimbench shows what is
left, and lists what is missing.

Exit codes: 0 done, 1 failed, 2 usage; with a COMMAND, that of the command.";

/// Arguments of `trimbench why`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WhyArgs {
    /// A command to start and to watch until it ends, with its descendants. The report goes to
    /// standard error
    #[arg(
        value_name = "COMMAND",
        last = true,
        required_unless_present_any = ["pid", "all", "service", "record", "since", "recording"]
    )]
    pub command: Vec<OsString>,
    /// A process to watch
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "all", "service"])]
    pub pid: Option<u32>,
    /// Watch every process
    #[arg(short, long, conflicts_with_all = ["command", "service"])]
    pub all: bool,
    /// Watch the processes of a control group: the name of a unit of systemd, or the group's path
    /// below /sys/fs/cgroup
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub service: Option<String>,
    /// Run a recorder until it is stopped: it remembers the discards and the blocked tasks of the
    /// last 15 minutes, in locked memory. SIGUSR1 makes it write a recording
    #[arg(
        long,
        conflicts_with_all = [
            "command", "pid", "all", "service", "duration", "json", "output",
        ]
    )]
    pub record: bool,
    /// Ask the recorder what waited since TIME: `12:01`, `12:01:30`, or `5m` for five minutes ago.
    /// --pid asks for one process, --for ends the time
    #[arg(long, value_name = "TIME", value_parser = since::parse, conflicts_with_all = ["command", "service", "record"])]
    pub since: Option<Since>,
    /// Read this recording, which SIGUSR1 made a recorder write, instead of asking the recorder
    #[arg(hide_short_help = true, long, value_name = "FILE", conflicts_with_all = ["command", "service", "record"])]
    pub recording: Option<PathBuf>,
    /// Stop after this time (default: 30s, and with a COMMAND or --pid at its end)
    #[arg(long = "for", value_name = "DURATION", value_parser = record::units::parse_duration)]
    pub duration: Option<Duration>,
    /// Set a detail: rate=50 or directory=DIR; see `trimbench scenarios keys why`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write the report as JSON as well (`-`: to standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the stacks of all waits, for flame graph tools
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

section! {
    /// Details of watching.
    pub(crate) struct Details["why", |_| ""] {
        /// Look at each thread this many times a second, 1 to 1000; with many threads less often.
        "rate" rate: f64 = rate, default "50";
        /// The directory of the recorder's lock, socket and recordings.
        "directory" directory: PathBuf = path, shown "/run/trimbench";
    }
}

impl Details {
    /// The directory of the recorder.
    pub(crate) fn recorder(&self) -> PathBuf {
        self.directory
            .clone()
            .unwrap_or_else(|| PathBuf::from(DIRECTORY))
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (1.0..=1000.0).contains(&rate) {
        true => Ok(rate),
        false => Err("it must be 1 to 1000".to_owned()),
    }
}
