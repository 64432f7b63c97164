//! `trimbench watch`.

pub(crate) mod args;
mod outputs;
mod terminal;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use diagnose::watch::{Targets, TargetsError, Watcher};
use diagnose::why::sampler::around;
use linux::SysRoot;
use storage::disks::Disks;

use crate::commands::watch::args::WatchArgs;
use crate::commands::watch::outputs::Outputs;
use crate::commands::watch::terminal::Shown;
use crate::exit::{Error, Exit, usage};
use crate::signals;

/// Threads are looked at and events are read about so often.
const LOOK: Duration = Duration::from_millis(100);

/// The same while a discard is in flight: a stall is short.
const IN_DISCARDS: Duration = Duration::from_millis(20);

/// Carries out the command.
pub(crate) fn run(args: &WatchArgs) -> Result<Exit, Error> {
    let sys = SysRoot::host();
    let disks = Disks::now(&sys);
    let watched = Targets::of(&sys, &disks, &args.paths).map_err(|error| match error {
        TargetsError::Target(error) => usage(error.to_string()),
        TargetsError::NoDevice(_) => usage(error.to_string()),
    })?;
    let mut outputs = Outputs::open(args, &watched)?;
    let stop = signals::stop_flag()?;
    let mut watcher = Watcher::begin(sys, disks, &watched);
    let mut shown = Shown::begin(args)?;
    let began = Instant::now();
    let look = LOOK.min(args.interval);
    let mut next_look = began;
    let mut next_update = began + args.interval;
    let mut quit = false;
    loop {
        let now = Instant::now();
        let over = args.duration.is_some_and(|most| now - began >= most);
        let stopped = stop.load(Ordering::Relaxed);
        // After a pause a look comes first: it stands for the time until now, as the update does.
        if now >= next_look {
            let step = match watcher.look() {
                true => look.min(IN_DISCARDS),
                false => look,
            };
            next_look = (next_look + around(step)).max(now);
        }
        // The rest of an interval counts if it is not much shorter than one.
        if now >= next_update || over && next_update - now < args.interval / 2 {
            let update = watcher.update();
            outputs.add(&update)?;
            shown.show(update)?;
            next_update += args.interval;
            // One that was late makes up for nothing.
            if next_update <= now {
                next_update = now + args.interval;
            }
        }
        if over || quit || stopped {
            drop(shown);
            outputs.finish()?;
            let ended = over || quit;
            return Ok(if ended { Exit::Done } else { Exit::Interrupted });
        }
        let mut until = next_look.min(next_update);
        if let Some(most) = args.duration {
            until = until.min(began + most);
        }
        match shown.wait(until.saturating_duration_since(Instant::now()))? {
            terminal::Request::Nothing => {}
            terminal::Request::Quit => quit = true,
            terminal::Request::Interrupt => stop.store(true, Ordering::Relaxed),
        }
    }
}
