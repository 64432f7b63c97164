//! The options of `trimbench rm`: rm's, and the goal for other I/O.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use pace::Policy;
use record::section;
use record::units::settings::Section;
use record::units::values::{duration, size, truth};

use crate::goal::{GOALS, GoalArgs};

const EXAMPLES: &str = "\
Examples:
  trimbench rm -r /data/old               gone from sight at once, freed without
                                          a stall
  trimbench rm -r /mnt/.snapshots/17      a btrfs subvolume or snapshot, as one
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
    /// No goal: free this much (MiB) at once, and sleep, as slowrm
    ///
    /// It frees in fixed steps, whatever the drive does. Where no discards are sent, all is freed
    /// at once.
    #[arg(short, long, help_heading = GOALS, value_name = "SIZE", value_parser = chunk)]
    pub chunk: Option<u64>,
    /// How long to sleep (seconds) after each --chunk [default: 0.1]
    #[arg(short, long, help_heading = GOALS, value_name = "TIME", value_parser = sleep)]
    pub sleep: Option<Duration>,
    /// Set a detail; `trimbench scenarios keys rm` lists all
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
        conflicts_with_all = ["paths", "each", "once", "interactive"]
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
    /// Details of a removal.
    pub(crate) struct Details["rm", |_| ""] {
        /// Force a commit after each piece; false: free in fixed steps, as with --chunk, without
        /// commits (slowrm's -S).
        "fsync" fsync: bool = truth, default "true";
        /// Rename into a trash first; false: an interrupted removal is half-deleted in sight, and
        /// can't be resumed.
        "trash" trash: bool = truth, default "true";
    }
}

/// slowrm's step: so much at once, and so long a sleep.
const STEP: (u64, Duration) = (128 << 20, Duration::from_millis(100));

impl RmArgs {
    /// The options' details. Fixed steps leave a goal nothing to decide.
    pub(crate) fn details(&self) -> Result<Details, String> {
        let details = Details::of(&self.set)?;
        if self.is_fixed(&details) && self.goal.has_limit() {
            return Err(
                "--chunk, --sleep and --set fsync=false free in fixed steps: leave them out, or \
                 --slowdown, --max-latency and --deadline"
                    .to_owned(),
            );
        }
        if self.dry_run && self.resume.is_some() {
            return Err(
                "--dry-run: --resume removes only what an earlier `trimbench rm` began to remove, \
                 and can't list it; leave one out"
                    .to_owned(),
            );
        }
        if !details.trash() && self.resume.is_some() {
            return Err("--set trash=false: --resume goes on in a trash; leave it out".to_owned());
        }
        Ok(details)
    }

    /// Whether it frees in fixed steps, whatever the drive does.
    fn is_fixed(&self, details: &Details) -> bool {
        self.chunk.is_some() || self.sleep.is_some() || details.given().contains(&"fsync")
    }

    /// How it is paced.
    pub(crate) fn policy(&self, details: &Details) -> Policy {
        match self.is_fixed(details) {
            true => Policy::Fixed {
                chunk: self.chunk.unwrap_or(STEP.0),
                sleep: self.sleep.unwrap_or(STEP.1),
            },
            false => Policy::Adaptive(self.goal.goal()),
        }
    }
}

/// slowrm counts in megabytes.
fn chunk(text: &str) -> Result<u64, String> {
    let bytes = match text.parse::<u64>() {
        Ok(mib) => mib.checked_mul(1 << 20).ok_or("too much")?,
        Err(_) => size(text)?,
    };
    match bytes {
        0 => Err("must be more than 0".to_owned()),
        bytes => Ok(bytes),
    }
}

/// slowrm counts in seconds.
fn sleep(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string()),
        Err(_) => duration(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_are_slowrms() {
        assert_eq!(chunk("128"), Ok(128 << 20));
        assert_eq!(chunk("64k"), Ok(64 << 10));
        assert!(chunk("0").is_err());
        assert_eq!(sleep("0.1"), Ok(Duration::from_millis(100)));
        assert_eq!(sleep("20ms"), Ok(Duration::from_millis(20)));
        assert!(sleep("-1").is_err());
    }
}
