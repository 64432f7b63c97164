//! Options of `trimbench run`.
//!
//! An option that a scenario can also set has no default here, so that it overrides the scenario
//! only if it is given. Its default is in `bench::scenario`; a test compares it with the help.

use std::path::PathBuf;
use std::time::Duration;

use bench::plan::{End, Engine, Pattern};
use bench::scenario::values::{
    block_size, byte_rate, duration, interval, low, positive_duration, rate, rate_or_none,
    read_percent, size,
};
use bench::scenario::words::{ARRIVALS, ENDS, ENGINES, HOWS, OPS, PATTERNS};
use bench::scenario::{self, ActorOp, How};
use clap::Args;
use clap::value_parser as number;
use judge::verdict::condition::Condition;

use super::parsers::{condition, word};

const EXAMPLES: &str = "\
Examples:
  trimbench run                           the current directory, safe sizes
  trimbench run /data --size 64G          delete 64 GiB on /data
  trimbench run /data --scenario drop-table
                                          a case that `scenarios` lists
  trimbench run /data --rate 1000         reads arrive at 1000 per second,
                                          whatever happens
  trimbench run /data --actor save --actor append-fdatasync,rate=100
                                          beside the reader an editor's saves,
                                          and a log
  trimbench run /data --delete-with 'slowrm {}'
                                          the same, deleted by another program
  trimbench run /data --event 'mysql t -e \"DROP TABLE big\"'
                                          what a deletion of your own does
  trimbench run /data --control --remount
                                          compare with the same deletion without
                                          discards
  trimbench run /data --why               and who waited in what: the deleter in
                                          its discards, the readers behind them
  trimbench run /data --fail-on 'stall>1s' --fail-on 'depth<10%'
                                          qualify a drive: exit 3 when it stalls
  trimbench run --device /dev/sdX --destroy-data
                                          a raw device, all of whose data may be
                                          lost

Sizes take k, M, G, T (1024) and kB, MB, GB, TB (1000); times ns to h.

Exit codes: 0 done, 1 failed, 2 usage, 3 a --fail-on condition held, interrupted
130 (SIGINT), 143 (SIGTERM), 129 (SIGHUP).";

/// Heading of the options that only some ways to delete take.
const DETAILS: &str = "Deletion: details of one way or another";
/// Heading of the options that aren't the first actor's.
const WHOLE: &str = "Foreground: all of it";

/// Arguments of `trimbench run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// Directory on the file system to test
    #[arg(default_value = ".", conflicts_with = "device")]
    pub path: PathBuf,

    /// The production case.
    #[command(flatten)]
    pub scenario: ScenarioArgs,
    /// The deletion.
    #[command(flatten)]
    pub deletion: DeletionArgs,
    /// The foreground.
    #[command(flatten)]
    pub foreground: ForegroundArgs,
    /// The lengths of the phases.
    #[command(flatten)]
    pub phases: PhaseArgs,
    /// Devices whose counters are off.
    #[command(flatten)]
    pub counters: CounterArgs,
    /// A raw device.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The production case.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scenario")]
pub struct ScenarioArgs {
    /// Repeat a production case: one that `trimbench scenarios` lists, or a file of your own (its
    /// name has a slash or ends in .toml). Every other option overrides it; turn a switch off with
    /// e.g. --control=false
    #[arg(long, value_name = "NAME|FILE")]
    pub scenario: Option<String>,
}

/// The data to delete, and the way of deleting.
#[derive(Debug, Args)]
#[command(next_help_heading = "Deletion")]
pub struct DeletionArgs {
    /// Bytes to delete, over all files; lsm, spill: most that is there at once [default: what is
    /// safe, at most 32G; lsm, spill: at most 4G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,

    /// Number of files to delete [default: 1; purge: 32]
    #[arg(long, value_name = "N", conflicts_with = "device", value_parser = number!(u32).range(1..=100_000))]
    pub files: Option<u32>,

    /// Fragment the files on purpose: make their extents this large
    #[arg(long, value_name = "SIZE", conflicts_with = "device", value_parser = size)]
    pub extent_size: Option<u64>,

    /// How to delete [default: unlink]
    #[arg(
        long,
        value_name = "HOW",
        value_parser = word(HOWS),
        conflicts_with = "delete_with"
    )]
    pub delete: Option<How>,

    /// Delete with an outside program; {} stands for each file, e.g. 'rm {}'; without it all files
    /// come after the arguments
    #[arg(long, value_name = "CMD")]
    pub delete_with: Option<String>,

    /// Delete no files of the test, but run this command and measure what its discards do to the
    /// foreground. E.g. 'fstrim /data' or 'sh -c "rm -r /data/old/*"' (no shell runs it by itself).
    /// PATH is on the file system that it frees. 'manual': you mark the begin and the end of the
    /// event with Enter or SIGUSR1
    #[arg(long, value_name = "CMD", conflicts_with_all = ["device", "delete_with"])]
    pub event: Option<String>,

    /// --event: undisturbed time before it [default: as --baseline, 10s]
    #[arg(long, value_name = "TIME", conflicts_with_all = ["device", "baseline"], value_parser = positive_duration)]
    pub event_at: Option<Duration>,

    /// --event: it is over when the command has ended and no discards have come for this long
    /// [default: 2s]
    #[arg(long, value_name = "TIME", conflicts_with = "device", value_parser = positive_duration)]
    pub event_quiet: Option<Duration>,

    /// unlink: calls in flight at once [default: 1]; spill: files at once [default: 4]
    #[arg(long, help_heading = DETAILS, value_name = "N", conflicts_with = "device", value_parser = number!(u32).range(1..=256))]
    pub parallel: Option<u32>,

    /// truncate, punch: bytes per step [default: 128M]; raw device: bytes per discard call
    /// [default: 1G]
    #[arg(long, help_heading = DETAILS, value_name = "SIZE", value_parser = size)]
    pub chunk: Option<u64>,

    /// truncate, punch: pause after each step [default: 100ms]; spill: between two files
    /// [default: 500ms]
    #[arg(long, help_heading = DETAILS, value_name = "TIME", conflicts_with = "device", value_parser = duration)]
    pub sleep: Option<Duration>,

    /// truncate: fsync after each step
    #[arg(long, help_heading = DETAILS, conflicts_with = "device", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub fsync: Option<bool>,

    /// punch: the end of the file that is freed first [default: head]
    #[arg(long, help_heading = DETAILS, value_name = "END", conflicts_with = "device", value_parser = word(ENDS))]
    pub from: Option<End>,

    /// purge: files unlinked at once [default: 4]
    #[arg(long, help_heading = DETAILS, value_name = "N", conflicts_with = "device", value_parser = number!(u32).range(1..=100_000))]
    pub at_once: Option<u32>,

    /// purge: time from one to the next [default: 2s]
    #[arg(long, help_heading = DETAILS, value_name = "TIME", conflicts_with = "device", value_parser = positive_duration)]
    pub every: Option<Duration>,

    /// lsm: levels of the tree [default: 3]
    #[arg(long, help_heading = DETAILS, value_name = "N", conflicts_with = "device", value_parser = number!(u32).range(2..=7))]
    pub levels: Option<u32>,

    /// lsm: bytes of each file [default: 64M]
    #[arg(long, help_heading = DETAILS, value_name = "SIZE", conflicts_with = "device", value_parser = size)]
    pub file_size: Option<u64>,

    /// lsm: bytes per second that are written, compactions included [default: 100M/s]
    #[arg(long, help_heading = DETAILS, value_name = "RATE", conflicts_with = "device", value_parser = byte_rate)]
    pub write_rate: Option<u64>,

    /// lsm, spill: how long they go on [default: 30s]
    #[arg(long, help_heading = DETAILS, value_name = "TIME", conflicts_with = "device", value_parser = positive_duration)]
    pub run_for: Option<Duration>,

    /// Don't force a commit after the deletion; then the file system decides when discards come
    #[arg(long, conflicts_with = "device", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub no_sync: Option<bool>,

    /// Run first without discards, to find out whether other causes make the same dip
    #[arg(long, conflicts_with = "device", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub control: Option<bool>,

    /// With --control: remount the file system nodiscard for it, and back (otherwise a second name
    /// of the file is unlinked, which frees nothing)
    #[arg(long, conflicts_with = "device", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub remount: Option<bool>,
}

/// The I/O that must not stall.
#[derive(Debug, Args)]
#[command(next_help_heading = "Foreground: its first actor")]
pub struct ForegroundArgs {
    /// The foreground's operation. With a scenario, the options of this group change the first
    /// actor [default: read]
    #[arg(long, value_name = "OP", value_parser = word(OPS.as_slice()))]
    pub op: Option<ActorOp>,

    /// Order of the blocks [default: random]
    #[arg(long, value_name = "ORDER", value_parser = word(PATTERNS))]
    pub pattern: Option<Pattern>,

    /// Bytes per operation [default: 4k; tasks have their own]
    #[arg(long, value_name = "SIZE", value_parser = block_size)]
    pub block_size: Option<u32>,

    /// mixed: share of reads [default: 70%]
    #[arg(long, value_name = "SHARE", value_parser = read_percent)]
    pub reads: Option<u8>,

    /// Closed loop: operations kept in flight. With --rate: most in flight [default: 8, with --rate
    /// 64; append and most tasks 1]
    #[arg(long, value_name = "N", value_parser = number!(u32).range(1..=4096))]
    pub depth: Option<u32>,

    /// Operations submitted and reaped at once (closed loop) [default: 1]
    #[arg(long, value_name = "N", value_parser = number!(u32).range(1..=4096))]
    pub batch: Option<u32>,

    /// Open loop: operations per second, whatever happens; latency counts from the intended start
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    /// Open loop: when operations arrive [default: constant]
    #[arg(long, value_name = "HOW", value_parser = word(ARRIVALS))]
    pub arrival: Option<bool>,

    /// Go through the page cache instead of past it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub buffered: Option<bool>,

    /// Another actor beside the foreground: OP[,KEY=VALUE…]; may be repeated. The keys are name,
    /// pattern, block-size, reads, depth, batch, rate, arrival, buffered and size (of the own file
    /// of append and tasks). E.g. 'save', 'append-fsync,rate=100,block-size=16k' or
    /// 'mixed,reads=70%,depth=4'. With the name of a scenario's actor it replaces that one, e.g.
    /// 'name=wal,op=append-fdatasync'
    #[arg(long, help_heading = WHOLE, value_name = "SPEC", value_parser = str::parse::<scenario::Actor>)]
    pub actor: Vec<scenario::Actor>,

    /// A fio job file as the foreground, in place of the reader unless --op asks for one. fio runs
    /// it on files of the test, and its series join the record
    #[arg(long, help_heading = WHOLE, value_name = "FILE", conflicts_with = "device")]
    pub fio: Option<PathBuf>,

    /// I/O engine of reads and writes [default: auto]
    #[arg(long, help_heading = WHOLE, value_name = "ENGINE", value_parser = word(ENGINES))]
    pub engine: Option<Engine>,

    /// Size of the file that read, write, mixed and the canary share [default: what is safe, at
    /// most 1G]
    #[arg(long, help_heading = WHOLE, value_name = "SIZE", value_parser = size)]
    pub foreground_size: Option<u64>,

    /// Leave the foreground's file behind (as .trimbench-foreground) for a later --reuse
    #[arg(long, help_heading = WHOLE, conflicts_with = "device")]
    pub keep: bool,

    /// Use the foreground's file that an earlier --keep left behind, if it is large enough;
    /// otherwise write a new one, and print that
    #[arg(long, help_heading = WHOLE, conflicts_with = "device")]
    pub reuse: bool,

    /// Reads per second of the canary, one outstanding 4 KiB read beside the foreground; 0 for none
    /// [default: 100]
    #[arg(long, help_heading = WHOLE, value_name = "N", value_parser = rate_or_none)]
    pub canary: Option<f64>,

    /// Seed of offsets and arrivals [default: 1]
    #[arg(long, help_heading = WHOLE, value_name = "N")]
    pub seed: Option<u64>,
}

/// How long the phases last.
#[derive(Debug, Args)]
#[command(next_help_heading = "Phases")]
pub struct PhaseArgs {
    /// Longest time to wait for the foreground to be steady [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub settle: Option<Duration>,

    /// Length of the undisturbed baseline [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub baseline: Option<Duration>,

    /// Time to continue after the discards are done [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub recovery: Option<Duration>,

    /// How long to wait for discards after the last deletion call [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub drain_limit: Option<Duration>,

    /// Length of the record's intervals, 10ms to 10s [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,

    /// An interval counts as stalled below this share of the baseline [default: 50%]
    #[arg(long, value_name = "SHARE", value_parser = low)]
    pub low: Option<f64>,
}

/// The handling of devices whose discards the kernel doesn't count.
#[derive(Debug, Args)]
#[command(next_help_heading = "Devices whose counters are switched off")]
pub struct CounterArgs {
    /// Switch their counters on (queue/iostats) for the run, and off again however it ends (root
    /// only)
    #[arg(long, conflicts_with = "blind")]
    pub enable_counters: bool,

    /// Run although it stays unknown whether discards came
    #[arg(long)]
    pub blind: bool,
}

/// A raw device instead of a file system.
#[derive(Debug, Args)]
#[command(next_help_heading = "Raw device")]
pub struct DeviceArgs {
    /// Test a raw block device; needs --destroy-data
    #[arg(long, value_name = "DEV", requires = "destroy_data")]
    pub device: Option<PathBuf>,

    /// Yes, all data on the --device may be destroyed
    // A PATH would make clap forget that it requires a device, which conflicts with it.
    #[arg(long, requires = "device", conflicts_with = "path")]
    pub destroy_data: bool,

    /// Go on although the --device carries this (as the refusal names it); may be repeated
    #[arg(
        long,
        value_name = "NAME",
        requires = "device",
        conflicts_with = "path"
    )]
    pub overwrite_signature: Vec<String>,
}

/// The figures that are printed and written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the verdict as JSON to FILE (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the whole record as JSON Lines to FILE (compressed if it ends in .zst)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Exit with 3 if this condition holds: stall, longest, lost, p99, p999 or max against a time, or
    /// depth against a share, e.g. 'stall>1s', 'p99>20ms', 'depth<10%'. 'stall(wal)>200ms' names an
    /// actor; without a name the worst actor decides (the canary too). Exit with 1 if the run does not
    /// tell: no discards, or the --control stalled too. May be repeated
    #[arg(long, value_name = "COND", value_parser = condition)]
    pub fail_on: Vec<Condition>,

    /// On a slowed drive of `trimbench lab` (up --slower): give all times and rates as those of the
    /// drive it stands for. The record stays as measured; `report --as-drive` can convert it as
    /// well
    #[arg(long)]
    pub as_drive: bool,

    /// Also find out in what each actor waits: in discards of its own, behind discards, for a
    /// commit, or for something else. Watching takes 1 to 2 % of a CPU; without root it finds out
    /// less, and reports what is missing
    #[arg(long)]
    pub why: bool,

    /// Print what would be done, and stop
    #[arg(long)]
    pub dry_run: bool,

    /// Print only the verdict's sentence, and the result of each --fail-on
    #[arg(long, short)]
    pub quiet: bool,
}
