//! `trimbench guard`.

pub(crate) mod args;
mod begin;
mod figures;
mod install;
mod messages;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use reclaim::guard::{
    Cleared, Event, GuardError, Order, Request, Watched, clear, order, status, watch,
};
use units::names::quoted;

use crate::commands::guard::args::{
    GuardArgs, GuardCommand, PlaceArgs, SetArgs, StartArgs, StatusArgs, StopArgs,
};
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::signals;

/// Carries out the command.
pub(crate) fn run(args: &GuardArgs) -> Result<Exit, Error> {
    let stop = signals::stop_flag()
        .map_err(|error| Error::Usage(format!("signals can't be caught: {error}")))?;
    match &args.order {
        None if args.start.install => install::install(&args.start),
        None if args.start.dry_run => dry_run(&args.start, &stop),
        None => begin::start(&args.start, &stop),
        Some(GuardCommand::Status(args)) => show(args),
        Some(GuardCommand::Set(args)) => set(args, &stop),
        Some(GuardCommand::Drain(args)) => drain(args, &stop),
        Some(GuardCommand::Stop(args)) => end(args, &stop),
    }
}

/// Watches, and changes nothing.
fn dry_run(args: &StartArgs, stop: &Arc<AtomicBool>) -> Result<Exit, Error> {
    let length = args.watch_for.unwrap_or_default();
    for directory in &args.directories {
        let watched: Watched = watch(directory, &begin::options(args), length, stop)?;
        Stream::Out.print(&messages::watched(directory, &watched, args.min_size));
    }
    Ok(Exit::Done)
}

fn show(args: &StatusArgs) -> Result<Exit, Error> {
    let found = status(&args.directory)?;
    if let Some(file) = &args.metrics {
        let registry = figures::registry(&found);
        match file.as_os_str() == "-" {
            true => Stream::Out.print(&crate::metrics::text(&registry)),
            false => crate::metrics::write_textfile(file, &registry)?,
        }
        return Ok(Exit::Done);
    }
    Stream::Out.print(&match args.json {
        true => format!("{:#}\n", messages::json(&found)),
        false => messages::status(&found),
    });
    Ok(Exit::Done)
}

fn set(args: &SetArgs, stop: &AtomicBool) -> Result<Exit, Error> {
    let request = Request {
        slowdown: args.slowdown,
        max_latency_ms: args.max_latency.map(|max| max.as_secs_f64() * 1e3),
        ..Request::default()
    };
    order(&args.directory, &request, Order::Taken, stop)?;
    Ok(Exit::Done)
}

fn drain(args: &PlaceArgs, stop: &AtomicBool) -> Result<Exit, Error> {
    let request = Request {
        drain: true,
        ..Request::default()
    };
    order(&args.directory, &request, Order::Drained, stop)?;
    Ok(ended(stop))
}

fn end(args: &StopArgs, stop: &AtomicBool) -> Result<Exit, Error> {
    let request = Request {
        stop: true,
        remove: args.remove,
        ..Request::default()
    };
    let say = |text: &str| Stream::Err.print(&format!("trimbench guard: {text}\n"));
    match order(&args.directory, &request, Order::Ended, stop) {
        Ok(()) => {}
        Err(GuardError::NotGuarded { .. }) => {
            let tell = |event: Event<'_>| say(&messages::event(&event));
            let nothing = clear(&args.directory, args.remove, stop, &tell)?;
            if nothing == Cleared::Nothing {
                say(&format!(
                    "{}: nothing of a guard is here",
                    quoted(&args.directory)
                ));
            }
        }
        Err(error) => return Err(error.into()),
    }
    // What an ended guard left can be seen by all.
    let left = match status(&args.directory) {
        Ok(left) => left.names.waiting_files + left.names.guarded_files,
        Err(_) => 0,
    };
    if left > 0 {
        let found = status(&args.directory)?;
        say(&messages::still_there(&args.directory, &found.names));
    }
    match args.remove && left > 0 {
        true => Ok(Exit::Failed),
        false => Ok(ended(stop)),
    }
}

fn ended(stop: &AtomicBool) -> Exit {
    match stop.load(std::sync::atomic::Ordering::Relaxed) {
        true => Exit::Interrupted,
        false => Exit::Done,
    }
}
