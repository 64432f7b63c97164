//! `trimbench rm`.

mod ask;
mod progress;
mod told;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pace::Policy;
use reclaim::freer::FreerOptions;
use reclaim::words::quoted;
use reclaim::{Asking, Kernel, Options, Outcome, PreserveRoot, Where};

use crate::cli::{Interactive, Preserve, RmArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::{lab, signals};
use told::Told;

/// slowrm's.
const CHUNK: u64 = 128 << 20;
const SLEEP: Duration = Duration::from_millis(100);

/// Carries out the command.
pub(crate) fn run(args: &RmArgs) -> Result<Exit, Error> {
    if args.all && args.resume.is_none() {
        return Err(Error::Usage("--all: goes with --resume".into()));
    }
    let card = args.goal.profile.as_deref().map(lab::named).transpose()?;
    let policy = policy(args);
    let stop = signals::stop_flag()
        .map_err(|error| Error::Usage(format!("signals can't be caught: {error}")))?;
    let options = options(args);
    if asks_once(args) && !ask::once(args.paths.len(), args.recursive, &stop) {
        return Ok(match stop.load(Ordering::Relaxed) {
            true => Exit::Interrupted,
            false => Exit::Done,
        });
    }
    let mut freers = Kernel::new(policy, card.as_ref(), freer_options(args));
    let mut told = Told::new(args.quiet, args.verbose, stop);
    if args.dry_run {
        let intended = reclaim::intend(&args.paths, &options, &mut freers, &mut told);
        told.end();
        let (intentions, failures) = match intended {
            Ok(intended) => intended,
            Err(reclaim::ReclaimError::Interrupted) => return Ok(Exit::Interrupted),
            Err(error) => return Err(Error::Reclaim(error)),
        };
        for intention in &intentions {
            Stream::Out.print(&told::intention(intention));
        }
        return Ok(if failures > 0 {
            Exit::Failed
        } else {
            Exit::Done
        });
    }
    let outcome = match &args.resume {
        Some(directory) => {
            let place = match args.all {
                true => Where::All,
                false => Where::Directory(directory.clone()),
            };
            let (outcome, count) = reclaim::resume(&place, &mut freers, &mut told)?;
            if count == 0 && outcome.failures == 0 && !args.quiet {
                Stream::Err.print("trimbench rm: nothing to go on with\n");
            }
            outcome
        }
        None => reclaim::remove(&args.paths, &options, &mut freers, &mut told),
    };
    told.end();
    Ok(end(&outcome, args))
}

fn freer_options(args: &RmArgs) -> FreerOptions {
    let paths = args.paths.iter().chain(&args.resume).cloned();
    FreerOptions {
        canary_group: lab::group_beside(&paths.collect::<Vec<_>>()),
        skip_commits: args.skip_fsync,
        ..FreerOptions::default()
    }
}

fn policy(args: &RmArgs) -> Policy {
    if args.chunk.is_some() || args.sleep.is_some() || args.skip_fsync {
        return Policy::Fixed {
            chunk: args.chunk.unwrap_or(CHUNK),
            sleep: args.sleep.unwrap_or(SLEEP),
        };
    }
    Policy::Adaptive(args.goal.goal())
}

fn options(args: &RmArgs) -> Options {
    let asking = match () {
        () if args.each || args.interactive == Some(Interactive::Always) => Asking::Always,
        () if args.force || args.interactive == Some(Interactive::Never) => Asking::Never,
        // Root may write to everything.
        () if std::io::stdin().is_terminal() && !rustix::process::geteuid().is_root() => {
            Asking::Protected
        }
        () => Asking::Never,
    };
    Options {
        recursive: args.recursive,
        force: args.force,
        empty_directories: args.dir,
        one_file_system: args.one_file_system,
        preserve_root: match args.preserve_root {
            _ if args.no_preserve_root => PreserveRoot::No,
            Some(Preserve::All) => PreserveRoot::All,
            _ => PreserveRoot::Yes,
        },
        asking,
        trash: !args.no_trash,
    }
}

fn asks_once(args: &RmArgs) -> bool {
    let once = args.once || args.interactive == Some(Interactive::Once);
    once && (args.recursive || args.paths.len() > 3)
}

/// Tells how it ended.
fn end(outcome: &Outcome, args: &RmArgs) -> Exit {
    if !args.quiet {
        for felt in &outcome.felt {
            Stream::Err.print(&told::felt(felt));
        }
    }
    if let Some(stopped) = &outcome.stopped {
        Stream::Err.print(&format!("trimbench rm: {}\n", stopped.why));
    }
    for trash in &outcome.left {
        Stream::Err.print(&format!(
            "What is left is in {}; go on with: trimbench rm --resume={}\n",
            quoted(trash),
            quoted(parent(trash))
        ));
    }
    match &outcome.stopped {
        Some(stopped) if stopped.interrupted => Exit::Interrupted,
        // Also a trash that can't be removed: its names may come back with a file system
        // that failed at the end.
        None if outcome.failures == 0 && outcome.left.is_empty() => Exit::Done,
        _ => Exit::Failed,
    }
}

/// The directory of a trash.
fn parent(trash: &Path) -> &Path {
    trash
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
