//! The start of guards: by second names, by trims, or as it fits each directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use reclaim::guard::{
    Event, Guard, GuardError, GuardOptions, Hold, Left, TrimLeft, TrimOptions, Trims, Way, choose,
};
use reclaim::throttle::ThrottleOptions;
use ssd::Card;
use units::names::quoted;

use super::messages;
use crate::commands::guard::args::{ByWay, HoldBy, StartArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit};

/// The share of the file system that may wait, by second names and by trims.
const MOST_BY_LINK: f64 = 0.1;
const MOST_BY_TRIM: f64 = 0.2;

pub(super) fn options(args: &StartArgs) -> GuardOptions {
    GuardOptions {
        min_bytes: args.min_size,
        any_owner: args.any_owner,
        scan_every: args.scan_every,
        only_scan: args.only_scan,
        most: args.most.unwrap_or(MOST_BY_LINK),
        goal: args.goal.goal(),
        keep_names: args.keep_names,
        hand_over: args.hand_over,
        hold: match args.hold {
            HoldBy::Link => Hold::Link,
            HoldBy::Fd => Hold::Descriptor,
        },
        throttle: throttle(args),
    }
}

fn trim_options(args: &StartArgs) -> TrimOptions {
    TrimOptions {
        goal: args.goal.goal(),
        most: args.most.unwrap_or(MOST_BY_TRIM),
        max_age: args.max_age,
        min_run: args.min_run,
        between: args.between,
        remount: args.remount,
        hand_over: args.hand_over,
        throttle: throttle(args),
    }
}

fn throttle(args: &StartArgs) -> ThrottleOptions {
    ThrottleOptions {
        canary_group: crate::simulated::group_beside(&args.directories),
        ..ThrottleOptions::default()
    }
}

/// Guards until it is stopped.
pub(super) fn start(args: &StartArgs, stop: &Arc<AtomicBool>) -> Result<Exit, Error> {
    if args.any_owner && !rustix::process::geteuid().is_root() {
        return Err(Error::Usage(
            "--any-owner: only root may link and free files of others".to_owned(),
        ));
    }
    let card = args.goal.profile.as_deref().map(crate::card::named);
    let card = card.transpose()?;
    let say = |text: &str| {
        if !args.quiet {
            Stream::Err.print(&format!("trimbench guard: {text}\n"));
        }
    };
    let guards = Guards::begin(args, card.as_ref(), &say)?;
    let tell = |event: Event<'_>| say(&messages::event(&event));
    let (left, trimmed) = guards.run(stop, &tell)?;
    for one in &left {
        say(&messages::left(one));
    }
    let mut exit = Exit::Done;
    for one in &trimmed {
        if let Some(text) = messages::untrimmed(one) {
            say(&text);
        }
        if let Some(error) = &one.not_restored {
            Stream::Err.print(&format!("trimbench guard: {error}\n"));
            exit = Exit::Failed;
        }
    }
    // A guard is a service: being told to end is how it ends.
    Ok(exit)
}

/// The guards of all directories that were named.
struct Guards<'a> {
    by_link: Option<Guard<'a>>,
    by_trim: Vec<Trims<'a>>,
}

impl<'a> Guards<'a> {
    fn begin(
        args: &StartArgs,
        card: Option<&'a Card>,
        say: &dyn Fn(&str),
    ) -> Result<Guards<'a>, Error> {
        let mut linked: Vec<PathBuf> = Vec::new();
        let mut by_trim = Vec::new();
        for directory in &args.directories {
            if way(args, directory, say) == Way::Link {
                linked.push(directory.clone());
                continue;
            }
            let (guard, notes) = Trims::start(directory, trim_options(args), card)?;
            notes.iter().for_each(|note| say(note));
            say(&messages::trims(directory));
            by_trim.push(guard);
        }
        let mut by_link = None;
        if !linked.is_empty() {
            let (guard, notes) = Guard::start(&linked, options(args), card)?;
            notes.iter().for_each(|note| say(note));
            for directory in &linked {
                say(&messages::begins(directory, args));
            }
            by_link = Some(guard);
        }
        Ok(Guards { by_link, by_trim })
    }

    /// Guards until all have ended.
    fn run(
        self,
        stop: &AtomicBool,
        tell: &(dyn Fn(Event<'_>) + Sync),
    ) -> Result<(Vec<Left>, Vec<TrimLeft>), GuardError> {
        std::thread::scope(|threads| {
            let trims: Vec<_> = (self.by_trim.into_iter())
                .map(|guard| threads.spawn(move || guard.run(stop, tell)))
                .collect();
            let left = self.by_link.map(|guard| guard.run(stop, tell)).transpose();
            let ended = trims.into_iter().filter_map(|trim| trim.join().ok());
            let trimmed = ended.collect();
            Ok((left?.unwrap_or_default(), trimmed))
        })
    }
}

/// The way for a directory; one that wasn't named is explained.
fn way(args: &StartArgs, directory: &std::path::Path, say: &dyn Fn(&str)) -> Way {
    match args.by {
        Some(ByWay::Link) => return Way::Link,
        Some(ByWay::Trim) => return Way::Trim,
        None => {}
    }
    let (way, why) = choose(directory);
    let word = match way {
        Way::Link => "link",
        Way::Trim => "trim",
    };
    say(&format!(
        "{}: --by {word}, because {why}",
        quoted(directory)
    ));
    way
}
