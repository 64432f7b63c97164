//! The options of `trimbench import`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use formats::Moment;
use judge::verdict::condition::Condition;
use record::section;
use record::units::values::{duration, positive_duration};

use crate::record_output::Format;

const EXAMPLES: &str = "\
Examples:
  trimbench import iostat.txt             what `iostat -y -t -x 1` wrote
  trimbench import fio.json fio_*.log iostat.txt --output run.jsonl
                                          one record of what ran beside each
                                          other
  trimbench import results/2024-06-19     a folder with any of these in it
  trimbench import iostat.txt --at 30s --members md0=nvme0n1,nvme1n1
                                          what the log itself can't tell
  kubectl logs --timestamps db-0 -c iostat | trimbench import -
                                          stamps before each line are no matter
  trimbench import iostat.txt.gz --fail-on 'stall>1s'
                                          exit with 3 if discards stalled it

A file's content shows what it is: extended reports of iostat (sysstat 10
to 12, as text or JSON) or of `sadf -j -- -d`, fio's JSON and logs, and what a
script wrote down that ran them and rm; also compressed with zstd or gzip. Only
names tell which log of fio is which: leave them as fio made them
(NAME_iops.1.log, NAME_clat_hist.1.log, …).

Exit codes: 0 done, 1 failed or no result, 2 usage, 3 a --fail-on condition
held.";

/// Arguments of `trimbench import`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ImportArgs {
    /// Files or folders that were recorded at the same time; - for standard input
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    /// Write the record to FILE (.zst: compressed), for `report`, `compare`, `fit`
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// How to show it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,

    /// When the deletion began, e.g. 30s or 2024-06-19T05:02:34Z
    ///
    /// A time after the log's first interval began, a date and time with its zone, or what `date +%s`
    /// prints. By default it is found by the first discards that matter.
    #[arg(long, value_name = "TIME", value_parser = at)]
    pub at: Option<Moment>,

    /// The devices that a device consists of, e.g. md0=nvme0n1,nvme1n1
    ///
    /// By default those whose reads add up to its own. May be repeated.
    #[arg(long, value_name = "DEV=DEV,DEV", value_parser = members)]
    pub members: Vec<(String, Vec<String>)>,

    /// Set a detail, e.g. interval=1s; `trimbench scenarios keys import` lists all
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Exit with 3 if this holds, as in `trimbench run`, e.g. 'stall>1s'
    ///
    /// Also 'p99>20ms', 'depth<10%' or 'stall(sdb)>200ms'. Exit with 1 if the log does not tell. May
    /// be repeated.
    #[arg(long, value_name = "COND", value_parser = str::parse::<Condition>)]
    pub fail_on: Vec<Condition>,

    /// Print only the verdict's sentence
    #[arg(long, short, conflicts_with = "format")]
    pub quiet: bool,
}

section! {
    /// Details of logs.
    pub(crate) struct Details["import", |_| ""] {
        /// The devices, with commas, whose I/O is the foreground.
        "device" device: Vec<String> = devices, shown "all that are busy";
        /// The length of iostat's intervals where it printed no times (-t), or, with fio's logs
        /// alone, of the record's.
        "interval" interval: Duration = positive_duration, shown "as in the logs";
        /// Keep or drop iostat's first report. It covers the time since the machine started, unless
        /// iostat had -y.
        "first-report" first_report: FirstReport = first_report, shown "recognised by its figures";
    }
}

/// The handling of iostat's first report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstReport {
    /// It is of an interval.
    Keep,
    /// It is left out.
    Drop,
}

fn devices(text: &str) -> Result<Vec<String>, String> {
    Ok(text.split(',').map(|name| name.trim().to_owned()).collect())
}

fn first_report(text: &str) -> Result<FirstReport, String> {
    match text {
        "keep" => Ok(FirstReport::Keep),
        "drop" => Ok(FirstReport::Drop),
        _ => Err(format!("'{text}' is neither keep nor drop")),
    }
}

/// `md0=nvme0n1,nvme1n1`.
fn members(text: &str) -> Result<(String, Vec<String>), String> {
    let (whole, parts) = text
        .split_once('=')
        .ok_or("give a device and what it is made of, e.g. md0=nvme0n1,nvme1n1")?;
    let named = |name: &str| name.trim().trim_start_matches("/dev/").to_owned();
    let parts: Vec<String> = parts.split(',').map(named).collect();
    let whole = named(whole);
    if whole.is_empty() || parts.iter().any(String::is_empty) {
        return Err("a name is empty; give e.g. md0=nvme0n1,nvme1n1".to_owned());
    }
    if parts.contains(&whole) {
        return Err(format!("{whole} can't be a part of itself"));
    }
    Ok((whole, parts))
}

/// From this number of seconds on it is a time of `date +%s`, not one after a log's begin.
const LEAST_UNIX_S: f64 = 1e9;

/// A time after the begin, a date and time with its zone, or seconds since 1970.
fn at(text: &str) -> Result<Moment, String> {
    const DATE: &str = "2024-06-19T05:02:34Z, 2024-06-19T07:02:34+0200 or 1718773354 (date +%s)";
    if let Some(moment) = Moment::zoned(text) {
        return Ok(moment);
    }
    let number = text.parse().ok();
    if let Some(unix_s) =
        number.filter(|unix_s: &f64| unix_s.is_finite() && *unix_s >= LEAST_UNIX_S)
    {
        return Ok(Moment::Unix(unix_s));
    }
    if text.contains(':') {
        return Err(format!("give the date and the zone too, like {DATE}"));
    }
    duration(text)
        .map(|after| Moment::After(after.as_secs_f64()))
        .map_err(|e| format!("{e}; or give a time like {DATE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(at("30s"), Ok(Moment::After(30.0)));
        let second = 1_718_773_354.0;
        assert_eq!(at("2024-06-19T05:02:34Z"), Ok(Moment::Unix(second)));
        assert_eq!(at("2024-06-19T07:02:34+0200"), Ok(Moment::Unix(second)));
        assert_eq!(at("1970-01-01 00:00:00Z"), Ok(Moment::Unix(0.0)));
        assert_eq!(at("1718773354.0"), Ok(Moment::Unix(second)));
        for wrong in ["", "soon", "25", "1e999", "2024-13-19T05:02:34Z", "-3s"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
        for wrong in ["05:02:34", "05:02:34Z", "2024-06-19T05:02:34"] {
            assert!(
                at(wrong).unwrap_err().contains("the date and the zone"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn made_of() {
        let (whole, parts) = members("md0=nvme0n1,/dev/nvme1n1").unwrap();
        assert_eq!(whole, "md0");
        assert_eq!(parts, ["nvme0n1", "nvme1n1"]);
        for wrong in ["md0", "md0=", "=sda", "md0=sda,,sdb", "md0=md0"] {
            assert!(members(wrong).is_err(), "{wrong}");
        }
    }
}
