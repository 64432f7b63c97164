//! `trimbench rm`.

pub(crate) mod args;
mod ask;
mod json;
mod messages;
mod progress;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use linux::files::directory_of;
use pace::{Refusal, Work};
use reclaim::throttle::Pacing;
use reclaim::{Asking, Options, Outcome, PreserveRoot, Volumes, Where};
use record::units::names::{quoted, shown};
use record::units::{bytes_exact, duration_exact};
use ssd::Card;

use crate::commands::rm::args::{Details, Interactive, Preserve, RmArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::filled::Stores;
use crate::output::Sink;
use crate::{goal, interference, signals};
use messages::Printer;

/// Carries out the command.
pub(crate) fn run(args: &RmArgs) -> Result<Exit, Error> {
    let details = args.details().map_err(Error::Usage)?;
    let card = args.goal.card()?;
    let policy = args.policy(&details);
    let stop = signals::stop_flag()?;
    let options = options(args, &details);
    if asks_once(args) && !ask::once(args.paths.len(), args.recursive, &stop) {
        return Ok(match stop.load(Ordering::Relaxed) {
            true => Exit::Interrupted,
            false => Exit::Done,
        });
    }
    let file = Sink::named(&args.json)?;
    let places = places(args);
    // Where they lie is not to be seen any more when they are gone.
    let origin = file.as_ref().map(|_| {
        let directories: BTreeSet<&Path> = places.iter().map(|path| directory_of(path)).collect();
        storage::origin(directories)
    });
    crate::simulated::refuse_full(&places)?;
    let stores = Stores::under(&places);
    let mut volumes = Volumes::new(Pacing {
        card: card.clone(),
        canary_group: crate::simulated::group_beside(&places),
        skip_commits: !details.fsync(),
        protect: args.goal.protected(),
        ..Pacing::new(policy)
    });
    // The JSON has standard output to itself.
    let verbose = args.verbose.then(|| Sink::people(&file));
    let mut printer = Printer::new(args.quiet, verbose, stop);
    if args.dry_run {
        let intended = reclaim::intend(&args.paths, &options, &mut volumes, &mut |event| {
            printer.hear(event)
        });
        printer.end();
        let (intentions, failures) = match intended {
            Ok(intended) => intended,
            Err(reclaim::ReclaimError::Interrupted) => return Ok(Exit::Interrupted),
            Err(error) => return Err(Error::Reclaim(error)),
        };
        for intention in &intentions {
            Stream::Out.print(&messages::intention(intention));
        }
        if let Some(text) = messages::subvolumes(&intentions) {
            Stream::Out.print(&text);
        }
        goal_foreseen(args, card.as_ref(), &intentions)?;
        return Ok(match failures {
            0 => Exit::Done,
            _ => Exit::Failed,
        });
    }
    let outcome = match &args.resume {
        Some(directory) => {
            let place = match directory.as_os_str() == ALL {
                true => Where::All,
                false => Where::Directory(directory.clone()),
            };
            let (outcome, count) =
                reclaim::resume(&place, &mut volumes, &mut |event| printer.hear(event))?;
            // Where there is none, all that is noted is which wait for their file systems.
            let none = count == 0 && outcome.failures == 0 && !printer.has_noted();
            if none && !args.quiet {
                let text = messages::nothing_left(&place, reclaim::left_elsewhere());
                Stream::Err.print(&text);
            }
            outcome
        }
        None => reclaim::remove(&args.paths, &options, &mut volumes, &mut |event| {
            printer.hear(event)
        }),
    };
    printer.end();
    stores.report("rm");
    let exit = end(&outcome, args);
    if let Some((file, origin)) = file.zip(origin) {
        file.json(&json::of(&outcome, &origin, args, &policy, exit))?;
    }
    Ok(exit)
}

/// rm's hint for a file whose name looks like options.
pub(crate) fn dash_hint(words: impl Iterator<Item = OsString>) -> Option<String> {
    let mut words = words.skip(1);
    words
        .find(|word| !word.as_bytes().starts_with(b"-"))
        .filter(|command| command == "rm")?;
    let file = words
        .take_while(|word| word != "--")
        .find(|word| word.as_bytes().starts_with(b"-") && fs::symlink_metadata(word).is_ok())?;
    let path = shown(Path::new(".").join(&file));
    let name = quoted(&file);
    Some(format!(
        "\nTry 'trimbench rm {path}' to remove the file {name}.\n"
    ))
}

/// The directory of `--resume` that stands for everything of this user.
const ALL: &str = "all";

/// The paths that were named.
fn places(args: &RmArgs) -> Vec<PathBuf> {
    let resume = args.resume.iter().filter(|path| path.as_os_str() != ALL);
    args.paths.iter().chain(resume).cloned().collect()
}

/// Prints what a dry run leaves unknown of the goal; refuses what the card excludes.
fn goal_foreseen(
    args: &RmArgs,
    card: Option<&Card>,
    intentions: &[reclaim::Intention],
) -> Result<(), Error> {
    let paced = || intentions.iter().filter(|intention| intention.paced);
    if paced().count() == 0 {
        return Ok(());
    }
    let bytes = |intention: &reclaim::Intention| {
        let exclusive = intention.subvolumes.iter().flatten();
        intention.bytes + exclusive.sum::<u64>()
    };
    let bytes = paced().map(bytes).sum();
    let work = Work::new(bytes, paced().map(|intention| intention.names).sum());
    let foreseen = args.goal.foreseen(card, &work);
    if let Some(open) = foreseen.map_err(reclaim::ReclaimError::Refused)? {
        Stream::Out.print(&format!("  {open}\n"));
    }
    Ok(())
}

fn options(args: &RmArgs, details: &Details) -> Options {
    let terminal = args.presume_input_tty || std::io::stdin().is_terminal();
    let asking = match () {
        () if args.each || args.interactive == Some(Interactive::Always) => Asking::Always,
        () if args.force || args.interactive == Some(Interactive::Never) => Asking::Never,
        // Root may write to everything.
        () if terminal && !rustix::process::geteuid().is_root() => Asking::Protected,
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
        trash: details.trash(),
    }
}

fn asks_once(args: &RmArgs) -> bool {
    let once = args.once || args.interactive == Some(Interactive::Once);
    once && (args.recursive || args.paths.len() > 3)
}

/// Prints how the removal ended, and returns the exit code.
fn end(outcome: &Outcome, args: &RmArgs) -> Exit {
    if !args.quiet {
        for summary in &outcome.summary {
            Stream::Err.print(&messages::summary(summary));
        }
        for spared in &outcome.spared {
            Stream::Err.print(&format!("trimbench rm: {spared}\n"));
        }
        let ended = outcome.stopped.is_none();
        if ended && outcome.summary.is_empty() && args.goal.has_limit() {
            Stream::Err.print("trimbench rm: goal: not measured, for nothing was paced\n");
        }
    }
    if let Some(stopped) = &outcome.stopped {
        Stream::Err.print(&format!("trimbench rm: {}\n", stopped.why));
    }
    let refused = outcome.stopped.as_ref().and_then(|stopped| stopped.refused);
    let goal = goal::in_shell(&given(args, refused));
    for trash in &outcome.left {
        let (trash, directory) = (quoted(trash), quoted(directory_of(trash)));
        Stream::Err.print(&format!(
            "What is left is in {trash}; go on with: trimbench rm --resume={directory}{goal}\n"
        ));
    }
    match &outcome.stopped {
        Some(stopped) if stopped.interrupted => Exit::Interrupted,
        // Also a trash that can't be removed: its names may come back with a file system
        // that failed at the end.
        None if outcome.failures == 0 && outcome.left.is_empty() => {
            let mut all = outcome.summary.iter();
            match all.any(|summary| interference::is_missed(summary, &args.goal)) {
                true => Exit::ConditionHeld,
                false => Exit::Done,
            }
        }
        _ => Exit::Failed,
    }
}

/// How it was to be paced, in options that are read as the same; of a goal that was refused,
/// with what can be met instead.
fn given(args: &RmArgs, refused: Option<Refusal>) -> Vec<String> {
    let chunk = args
        .chunk
        .map(|chunk| format!("--chunk={}", bytes_exact(chunk)));
    let sleep = args
        .sleep
        .map(|sleep| format!("--sleep={}", duration_exact(sleep)));
    let set = args.set.iter().map(|setting| format!("--set={setting}"));
    let goal = args.goal.given_but(refused).into_iter();
    goal.chain(chunk).chain(sleep).chain(set).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn parsed(words: &[&str]) -> Box<RmArgs> {
        let all = [&["trimbench", "rm", "--resume=."], words].concat();
        match Cli::try_parse_from(all).unwrap().command {
            Command::Rm(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_given_is_read_as_the_same() {
        for (words, expected) in [
            (
                &["--slowdown", "0.05", "--max-latency", "5000us"][..],
                &["--slowdown=5%", "--max-latency=5ms"][..],
            ),
            (
                &["--profile", "my card.toml", "--deadline", "90s"],
                &["--deadline=90s", "--profile=my card.toml"],
            ),
            (
                &["-c", "128", "-s", "0.1", "--set", "fsync=false"],
                &["--chunk=128M", "--sleep=100ms", "--set=fsync=false"],
            ),
            (&[], &[]),
        ] {
            let once = given(&parsed(words), None);
            assert_eq!(once, expected, "{words:?}");
            let again: Vec<&str> = once.iter().map(String::as_str).collect();
            assert_eq!(given(&parsed(&again), None), once);
        }
    }

    #[test]
    fn the_command_that_goes_on_has_every_goal_and_one_that_can_be_met() {
        let asked = parsed(&[
            "--slowdown",
            "5%",
            "--max-latency",
            "6ms",
            "--deadline",
            "1h",
        ]);
        let ms = Duration::from_millis;
        let refused = Refusal::latency(ms(6), ms(8));
        assert_eq!(
            given(&asked, Some(refused)),
            ["--slowdown=5%", "--max-latency=28ms", "--deadline=1h"]
        );
    }
}
