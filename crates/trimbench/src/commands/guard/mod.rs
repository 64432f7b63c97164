//! `trimbench guard`.

pub(crate) mod args;
mod begin;
mod figures;
mod install;
mod messages;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use pace::Work;
use reclaim::ReclaimError;
use reclaim::guard::{GuardError, Order, Request, intend, order, status, statuses};

use record::units::settings::Section;

use crate::commands::guard::args::{
    Details, GuardArgs, GuardCommand, NewGoal, SetArgs, StartArgs, StatusArgs,
};
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::signals;

/// Carries out the command.
pub(crate) fn run(args: &GuardArgs) -> Result<Exit, Error> {
    let stop = signals::stop_flag()?;
    let drain = Request {
        drain: true,
        ..Request::default()
    };
    let end = Request {
        stop: true,
        ..Request::default()
    };
    let details = Details::of(&args.start.set).map_err(Error::Usage)?;
    match &args.order {
        None if args.start.install => install::install(&args.start, &details),
        None if args.start.dry_run => {
            Stream::Out.print(&intentions(&args.start, &details)?);
            Ok(Exit::Done)
        }
        None => begin::start(&args.start, &details, &stop),
        Some(GuardCommand::Status(args)) => show(args),
        Some(GuardCommand::Set(args)) => set(args, &stop),
        Some(GuardCommand::Drain(args)) => {
            order(&args.mount, &drain, Order::Drained, &stop)?;
            // A guard that ends meanwhile hasn't trimmed all.
            status(&args.mount)?;
            Ok(ended(&args.mount, "all that waited is trimmed", &stop))
        }
        Some(GuardCommand::Stop(args)) => {
            order(&args.mount, &end, Order::Ended, &stop)?;
            Ok(ended(&args.mount, "the guard has ended", &stop))
        }
    }
}

/// Makes the checks of a start, and returns what guard would do.
fn intentions(args: &StartArgs, details: &Details) -> Result<String, Error> {
    let options = begin::options(args, details, None);
    let mut text = String::new();
    for mount in &args.mounts {
        let intention = intend(mount, &options)?;
        text += &messages::intended(mount, &intention, &args.goal);
    }
    let card = args.goal.card()?;
    let foreseen = args.goal.foreseen(card.as_ref(), &Work::new(1, 1));
    if let Some(open) = foreseen.map_err(ReclaimError::Refused)? {
        text += &format!("  {open}\n");
    }
    Ok(text)
}

fn show(args: &StatusArgs) -> Result<Exit, Error> {
    let Some(mount) = &args.mount else {
        return show_all(args.json);
    };
    let found = status(mount);
    if let Some(file) = &args.metrics {
        let found = match found {
            Err(GuardError::NotGuarded { .. }) => None,
            found => Some(found?),
        };
        let at = mount.canonicalize().unwrap_or_else(|_| mount.clone());
        let registry = figures::registry(&at, found.as_ref());
        crate::metrics::write(file, &registry)?;
        return Ok(Exit::Done);
    }
    let found = found?;
    Stream::Out.print(&match args.json {
        true => format!("{:#}\n", messages::json(&found)),
        false => messages::status(&found),
    });
    Ok(Exit::Done)
}

/// Shows all guards that run.
fn show_all(as_json: bool) -> Result<Exit, Error> {
    let found = statuses()?;
    Stream::Out.print(&match as_json {
        true => {
            let all: Vec<_> = found.iter().map(messages::json).collect();
            format!("{:#}\n", serde_json::Value::from(all))
        }
        false if found.is_empty() => "no guard runs\n".to_owned(),
        false => found.iter().map(messages::status).collect(),
    });
    Ok(Exit::Done)
}

fn set(args: &SetArgs, stop: &AtomicBool) -> Result<Exit, Error> {
    let goal = NewGoal::of(&args.changes).map_err(Error::Usage)?;
    let request = Request {
        slowdown: goal.slowdown,
        max_latency_ms: goal.max_latency.map(|max| max.as_secs_f64() * 1e3),
        ..Request::default()
    };
    order(&args.mount, &request, Order::Accepted, stop)?;
    Stream::Out.print(&messages::done(&args.mount, &messages::new_goal(&goal)));
    Ok(Exit::Done)
}

/// Prints what an order did, unless the user stopped the waiting for it.
fn ended(mount: &Path, what: &str, stop: &AtomicBool) -> Exit {
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        return Exit::Interrupted;
    }
    Stream::Out.print(&messages::done(mount, what));
    Exit::Done
}
