//! The options of `trimbench rm`: rm's, and the goal for other I/O.

use std::path::PathBuf;
use std::time::Duration;

use bench::scenario::values::{duration, size, truth};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use units::section;
use units::settings::Section;

use crate::goal::{GOALS, GoalArgs};

const EXAMPLES: &str = "\
Examples:
  trimbench rm -r /data/old               gone from sight at once, freed without
                                          a stall
  trimbench rm big.img --max-latency 5ms  other I/O waits at most 5 ms longer
  trimbench rm -r /data/old --deadline 20m
                                          done by then, even if others' I/O
                                          loses more
  trimbench rm -r /data/old --dry-run     what it would free, and how
  trimbench rm --resume /data             go on with what was interrupted there
  trimbench rm --resume=all               go on with all that this user has left

What is named is first renamed, directories whole, into a directory
.trimbench-trash-* beside it, and freed from there: whatever ends it early,
nothing half-deleted is in sight, and --resume goes on. Where that can't be done
it is removed in place, with a warning. What can't be removed gets its name
back. With little space left the goal gives way to freeing, with a warning, too.
A large file is freed in pieces only if rm knows that no other process has it:
it must run as root, outside containers. Otherwise it frees the file whole, and
prints so.

Exit codes: 0 done, 1 something stays, 2 usage, 3 all is freed and a goal that
you gave was missed, interrupted 130 (SIGINT), 143 (SIGTERM), 129 (SIGHUP).";

/// Arguments of `trimbench rm`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_override_self = true, version)]
pub struct RmArgs {
    /// Files and directories to remove
    #[arg(
        value_name = "PATH",
        required_unless_present_any = ["resume", "force"],
        // An empty one is a name that isn't there, as for rm.
        value_parser = OsStringValueParser::new().map(PathBuf::from)
    )]
    pub paths: Vec<PathBuf>,

    /// Remove directories and all that is in them
    #[arg(short, long, short_alias = 'R')]
    pub recursive: bool,
    /// Ignore names that don't exist, and never ask
    #[arg(short, long, overrides_with_all = ["each", "once", "interactive"])]
    pub force: bool,
    /// Ask before each removal
    #[arg(short = 'i', overrides_with_all = ["force", "once", "interactive"])]
    pub each: bool,
    /// Ask once before removing more than three, or recursively
    #[arg(short = 'I', overrides_with_all = ["force", "each", "interactive"])]
    pub once: bool,
    /// When to ask: never, once (-I) or always (-i, the default)
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "always",
        overrides_with_all = ["force", "each", "once"]
    )]
    pub interactive: Option<Interactive>,
    /// Ask as if the standard input were a terminal: rm's own tests need it
    #[arg(long, alias = "-presume-input-tty", hide = true)]
    pub presume_input_tty: bool,
    /// Remove empty directories
    #[arg(short, long)]
    pub dir: bool,
    /// Stay on the file system of each argument
    ///
    /// It stays out of everything that is mounted in it.
    #[arg(short = 'x', long)]
    pub one_file_system: bool,
    /// Don't remove / (the default); with `all`, nor an argument on another device than its parent
    #[arg(
        hide_short_help = true,
        long,
        value_name = "all",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "root",
        hide_possible_values = true,
        overrides_with = "no_preserve_root"
    )]
    pub preserve_root: Option<Preserve>,
    /// Treat / as any other directory
    #[arg(hide_short_help = true, long, overrides_with = "preserve_root")]
    pub no_preserve_root: bool,
    /// Print each name that was removed
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub verbose: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "its own say it")]
    pub goal: GoalArgs,
    /// Set a detail, e.g. chunk=128M; `trimbench scenarios keys rm` lists all
    #[arg(long, help_heading = GOALS, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Resume interrupted removals in DIR, or `all` that this user has left
    ///
    /// Without DIR: in the current directory. A directory named all is ./all.
    #[arg(
        long,
        value_name = "DIR|all",
        num_args = 0..=1,
        default_missing_value = ".",
        conflicts_with_all = ["paths", "dry_run", "each", "once", "interactive"]
    )]
    pub resume: Option<PathBuf>,
    /// Print what would be done, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Write the result as JSON (- for standard output)
    ///
    /// The bytes freed, the loss of other I/O, and whether the goal was met.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FILE",
        conflicts_with = "dry_run"
    )]
    pub json: Option<PathBuf>,
    /// Print errors only
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
}

/// When to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Interactive {
    /// Never.
    #[value(aliases = ["no", "none"])]
    Never,
    /// Once before more than three, or recursively.
    Once,
    /// Before each.
    #[value(alias = "yes")]
    Always,
}

/// The values of `--preserve-root`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preserve {
    /// The root directory isn't removed.
    #[value(hide = true)]
    Root,
    /// As that, and an argument on another device than its parent isn't removed either.
    All,
}

section! {
    /// Details of a removal. Any of the first three frees in fixed steps, whatever the drive does,
    /// as slowrm; where no discards are sent, all is freed at once.
    pub(crate) struct Details["rm", |_| ""] {
        /// Fixed steps instead of a goal: free this much at once, then sleep.
        "chunk" chunk: u64 = size, default "128M";
        /// Fixed steps instead of a goal: how long to sleep after each.
        "sleep" sleep: Duration = duration, default "100ms";
        /// Force a commit after each piece; false: fixed steps without.
        "fsync" fsync: bool = truth, default "true";
        /// Rename into a trash first; false: an interrupted removal is half-deleted in sight, and
        /// can't be resumed.
        "trash" trash: bool = truth, default "true";
    }
}

impl Details {
    /// Reads the details of a removal. Fixed steps leave a goal nothing to decide.
    pub(crate) fn read(args: &RmArgs) -> Result<Details, String> {
        let details = Details::of(&args.set)?;
        let given = details.given();
        let fixed = given.iter().find(|key| **key != "trash");
        match (fixed, args.goal.has_limit(), details.trash()) {
            (Some(key), true, _) => Err(format!(
                "--set {key}: fixed steps don't go with --slowdown, --max-latency or --deadline: \
                 leave out one of them"
            )),
            (_, _, false) if args.resume.is_some() => {
                Err("--set trash=false: --resume goes on in a trash; leave it out".to_owned())
            }
            _ => Ok(details),
        }
    }

    /// Whether it frees in fixed steps.
    pub(crate) fn is_fixed(&self) -> bool {
        self.given().iter().any(|key| *key != "trash")
    }
}
