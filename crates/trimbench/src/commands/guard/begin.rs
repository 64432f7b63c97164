//! The start of guards, one for each file system.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pace::Policy;
use reclaim::guard::{Guard, GuardOptions, Left};
use reclaim::throttle::Pacing;
use reclaim::{Event, Reply};
use ssd::Card;

use super::messages;
use crate::commands::guard::args::{Details, StartArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit};

pub(super) fn options(args: &StartArgs, details: &Details, card: Option<Card>) -> GuardOptions {
    GuardOptions {
        goal: args.goal.goal(),
        most: details.most(),
        max_age: details.max_age(),
        min_run: details.min_run,
        between: details.between,
        remount: args.remount,
        pacing: Pacing {
            card,
            canary_group: crate::simulated::group_beside(&args.mounts),
            protect: args.goal.protected(),
            ..Pacing::new(Policy::Adaptive(args.goal.goal()))
        },
    }
}

/// Guards until it is stopped.
pub(super) fn start(
    args: &StartArgs,
    details: &Details,
    stop: &Arc<AtomicBool>,
) -> Result<Exit, Error> {
    let card = args.goal.card()?;
    let print = |text: &str| Stream::Err.print(&format!("trimbench guard: {text}\n"));
    let say = |text: &str| {
        if !args.quiet {
            print(text);
        }
    };
    let hear = |event: Event<'_>| {
        if let Some(text) = messages::event(&event) {
            say(&text);
        }
        match stop.load(Ordering::Relaxed) {
            true => Reply::Stop,
            false => Reply::Yes,
        }
    };
    let mut guards = Vec::new();
    for mount in &args.mounts {
        let options = options(args, details, card.clone());
        let guard = Guard::start(mount, options, &mut { hear })?;
        say(&messages::begins(mount));
        guards.push(guard);
    }
    let left: Vec<Left> = std::thread::scope(|threads| {
        let run = |guard: Guard| guard.run(&mut { hear });
        let all: Vec<_> = (guards.into_iter())
            .map(|guard| threads.spawn(move || run(guard)))
            .collect();
        let ended = all.into_iter().filter_map(|guard| guard.join().ok());
        ended.collect()
    });
    // A guard is a service: to be told to end is how it ends.
    let mut exit = Exit::Done;
    for one in &left {
        if let Some(text) = messages::untrimmed(one) {
            say(&text);
        }
        for text in messages::failures(one) {
            print(&text);
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}
