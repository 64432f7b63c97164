//! Options of `trimbench run`. An option that stands for a key of a scenario is a text, which the
//! scenario's own reader reads: [`KEYS`] names the key of each.

use std::path::PathBuf;

use clap::{Arg, Args};
use judge::verdict::condition::Condition;

use bench::scenario;
use record::units::settings::default_of;

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
  trimbench run /data --delete 'slowrm {}'
                                          the same, deleted by another program
  trimbench run /data --delete truncate --set chunk=64M --set sleep=20ms
                                          in steps; `trimbench scenarios keys`
                                          lists all that can be set
  trimbench run /data --event 'mysql t -e \"DROP TABLE big\"'
                                          what a deletion of your own does
  trimbench run /data --control=remount   compare with the same deletion without
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

/// Arguments of `trimbench run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_args = with_default)]
pub struct RunArgs {
    /// Directory on the file system to test
    #[arg(default_value = ".", conflicts_with = "device")]
    pub path: PathBuf,

    /// Repeat a production case: NAME of `trimbench scenarios`, or a file
    ///
    /// A file's name has a slash or ends in .toml. Every other option overrides the scenario.
    #[arg(long, value_name = "NAME|FILE")]
    pub scenario: Option<String>,
    /// Set any key, e.g. chunk=64M; `trimbench scenarios keys` lists all
    ///
    /// The key's section may be left out where one section alone has such a key; else write e.g.
    /// actor.size=2G. actor.NAME.KEY changes a scenario's actor of this name. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// The deletion.
    #[command(flatten)]
    pub deletion: DeletionArgs,
    /// The foreground.
    #[command(flatten)]
    pub foreground: ForegroundArgs,
    /// The lengths of the phases.
    #[command(flatten)]
    pub phases: PhaseArgs,
    /// A raw device.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The data to delete, and the way of deleting.
#[derive(Debug, Args)]
#[command(next_help_heading = "Deletion")]
pub struct DeletionArgs {
    /// Bytes to delete, over all files
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,

    /// Number of files to delete
    #[arg(long, value_name = "N", conflicts_with = "device")]
    pub files: Option<String>,

    /// How: unlink, truncate, punch, fstrim, …, or a program
    ///
    /// The ways are unlink, truncate, punch, fstrim, swap, purge, lsm, spill and none.
    /// `trimbench scenarios keys deletion.how` explains the ways. A program is a command with
    /// arguments: {} stands for each file, as in 'rm {}', and without it all files come last.
    #[arg(long, value_name = "HOW|CMD")]
    pub delete: Option<String>,

    /// Delete nothing of the test's: run this command and measure its discards
    ///
    /// E.g. 'fstrim /data' or 'sh -c "rm -r /data/old/*"' (no shell runs it by itself). PATH is on
    /// the file system that it frees.
    #[arg(long, value_name = "CMD", conflicts_with_all = ["device", "delete"])]
    pub event: Option<String>,

    /// Run first without discards: do other causes make the same dip?
    ///
    /// second-name unlinks a second name of each file, which frees nothing. remount switches the
    /// file system to nodiscard for the same deletion, and back.
    #[arg(long, conflicts_with = "device", value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "second-name")]
    pub control: Option<String>,
}

/// The I/O that must not stall.
#[derive(Debug, Args)]
#[command(next_help_heading = "Foreground")]
pub struct ForegroundArgs {
    /// First actor: read, write, append, mixed or a task
    ///
    /// `trimbench scenarios keys actor.op` explains all of them. With a scenario, --op, --depth and
    /// --rate change its first actor.
    #[arg(long, value_name = "OP")]
    pub op: Option<String>,

    /// Operations in flight; with --rate the most, and then 64
    #[arg(long, value_name = "N")]
    pub depth: Option<String>,

    /// Open loop: operations per second, whatever happens
    ///
    /// Latency then counts from the intended start.
    #[arg(long, value_name = "N")]
    pub rate: Option<String>,

    /// Another actor: OP[,KEY=VALUE…], e.g. 'save' or 'append-fsync,rate=100'
    ///
    /// The keys are those of `trimbench scenarios keys actor`. With the name of a scenario's actor it
    /// replaces that one, e.g. 'name=wal,op=append-fdatasync'. May be repeated.
    #[arg(long, value_name = "SPEC", value_parser = str::parse::<scenario::Actor>)]
    pub actor: Vec<scenario::Actor>,

    /// io_uring, libaio, sync, mmap, mmap-sync, null or auto
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<String>,
}

/// How long the phases last.
#[derive(Debug, Args)]
#[command(next_help_heading = "Phases")]
pub struct PhaseArgs {
    /// Longest wait for the foreground to be steady
    #[arg(hide_short_help = true, long, value_name = "TIME")]
    pub settle: Option<String>,

    /// Undisturbed time before the deletion or the event
    #[arg(hide_short_help = true, long, value_name = "TIME")]
    pub baseline: Option<String>,

    /// Time to continue after the discards are done
    #[arg(hide_short_help = true, long, value_name = "TIME")]
    pub recovery: Option<String>,
}

/// A raw device instead of a file system.
#[derive(Debug, Args)]
#[command(next_help_heading = "Raw device")]
pub struct DeviceArgs {
    /// Test a raw block device; needs --destroy-data
    #[arg(
        hide_short_help = true,
        long,
        value_name = "DEV",
        requires = "destroy_data"
    )]
    pub device: Option<PathBuf>,

    /// Yes, all data on the --device may be destroyed
    // A PATH would make clap forget that it requires a device, which conflicts with it.
    #[arg(
        hide_short_help = true,
        long,
        requires = "device",
        conflicts_with = "path"
    )]
    pub destroy_data: bool,

    /// Also if it carries a file system or other known data
    #[arg(
        hide_short_help = true,
        long,
        requires = "device",
        conflicts_with = "path"
    )]
    pub force: bool,
}

/// The figures that are printed and written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the verdict as JSON to FILE (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the whole record as JSON Lines to FILE (.zst: compressed)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Exit with 3 if this holds, e.g. 'stall>1s' or 'p99>20ms'
    ///
    /// A condition is stall, longest, lost, p99, p999 or max against a time, or depth against a
    /// share, e.g. 'depth<10%'. 'stall(wal)>200ms' names an actor; without a name the worst actor
    /// decides (the canary too). Exit with 1 if the run does not tell: no discards, or the --control
    /// stalled too. May be repeated.
    #[arg(long, value_name = "COND", value_parser = str::parse::<Condition>)]
    pub fail_on: Vec<Condition>,

    /// Also find out in what each actor waits: in discards, or behind them
    ///
    /// Watching takes 1 to 2 % of a CPU. Without root it finds out less, and reports what is missing.
    #[arg(long)]
    pub why: bool,

    /// Print what would be done, and stop
    #[arg(long)]
    pub dry_run: bool,

    /// Print only the verdict's sentence, and the result of each --fail-on
    #[arg(hide_short_help = true, long, short)]
    pub quiet: bool,
}

/// The options that stand for a key of a scenario, each with that key.
const KEYS: [(&str, &str); 12] = [
    ("--size", "deletion.size"),
    ("--files", "deletion.files"),
    ("--delete", "deletion.how"),
    ("--event", "deletion.event"),
    ("--control", "control"),
    ("--op", "actor.op"),
    ("--depth", "actor.depth"),
    ("--rate", "actor.rate"),
    ("--engine", "engine"),
    ("--settle", "phases.settle"),
    ("--baseline", "phases.baseline"),
    ("--recovery", "phases.recovery"),
];

/// The option with its key's default in its help.
fn with_default(arg: Arg) -> Arg {
    let is_its = |(option, _): &&(&str, &str)| arg.get_long() == option.strip_prefix("--");
    let path = KEYS.iter().find(is_its).map(|(_, path)| *path);
    let all = scenario::keys::all();
    let key = all.iter().find(|(other, _)| Some(&**other) == path);
    let default = key.and_then(|(_, key)| key.default);
    let Some(default) = default.filter(|default| !["none", "off"].contains(default)) else {
        return arg;
    };
    // Other kinds have others, which `scenarios keys` lists.
    let default = format!(" [default: {}]", default_of(default, ""));
    let short = arg.get_help().map(|help| format!("{help}{default}"));
    let long = arg.get_long_help().map(|help| {
        let help = help.to_string();
        let (first, rest) = help.split_once("\n\n").unwrap_or((&help, ""));
        format!("{first}{default}\n\n{rest}")
    });
    let arg = arg.help(short.unwrap_or_default());
    match long {
        Some(long) => arg.long_help(long),
        None => arg,
    }
}

impl RunArgs {
    /// The options that stand for keys: option, key, and the text that was given.
    pub(super) fn keys(&self) -> Vec<(&'static str, &'static str, &str)> {
        let (deletion, foreground, phases) = (&self.deletion, &self.foreground, &self.phases);
        let given = [
            &deletion.size,
            &deletion.files,
            &deletion.delete,
            &deletion.event,
            &deletion.control,
            &foreground.op,
            &foreground.depth,
            &foreground.rate,
            &foreground.engine,
            &phases.settle,
            &phases.baseline,
            &phases.recovery,
        ];
        let mut keys = Vec::new();
        for ((option, key), text) in KEYS.into_iter().zip(given) {
            let Some(text) = text.as_deref() else {
                continue;
            };
            // A program has arguments, and a way is one word.
            let is_program = text.contains([' ', '{', '/']) || text.is_empty();
            match option == "--delete" && is_program {
                true => keys.push((option, "deletion.command", text)),
                false => keys.push((option, key, text)),
            }
        }
        keys
    }
}
