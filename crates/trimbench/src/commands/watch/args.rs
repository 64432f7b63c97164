//! The options of `trimbench watch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  trimbench watch                           every device that takes discards
  trimbench watch /data                     the devices below a path
  trimbench watch sda nvme0n1 --interval 100ms
  trimbench watch /data --for 1m | tee log  plain lines
  trimbench watch --json - --for 10s        an object of JSON each second
  trimbench watch /data --output night.jsonl.zst   then: trimbench report ...
  trimbench watch --prometheus :9877 --quiet

Keys: q quit, s sort, / filter, space freeze, up and down the device of the
timeline, ? help.

Root sees who sends discards, and the stacks of blocked programs. Without root
watch shows what is left, and lists what is missing.

Exit codes: 0 done, 1 failed, 2 usage, 130 Ctrl-C.";

/// Arguments of `trimbench watch`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WatchArgs {
    /// Paths and devices to watch: the devices below them (default: every device that takes
    /// discards)
    #[arg(value_name = "PATH|DEVICE")]
    pub paths: Vec<PathBuf>,
    /// Stop after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = record::units::parse_duration)]
    pub duration: Option<Duration>,
    /// The time from one update to the next, 50ms to 1m
    #[arg(short, long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// Write each update as a line of JSON (`-`: to standard output, instead of the view)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Record the run for `trimbench report` and `compare` (compressed if its name ends in .zst)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Answer Prometheus at HOST:PORT or :PORT, path /metrics; or replace FILE at each update, in the
    /// directory of node_exporter's textfile collector
    #[arg(long, value_name = "ADDRESS|FILE")]
    pub prometheus: Option<String>,
    /// Show neither the view nor lines
    #[arg(short, long)]
    pub quiet: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = record::units::parse_duration(text).map_err(|error| error.to_string())?;
    let allowed = Duration::from_millis(50)..=Duration::from_secs(60);
    match allowed.contains(&interval) {
        true => Ok(interval),
        false => Err("it must be 50ms to 1m".to_owned()),
    }
}
