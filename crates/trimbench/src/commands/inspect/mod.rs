//! `trimbench inspect`.

pub(crate) mod args;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use diagnose::inspect::text::{self, Look};
use diagnose::inspect::{Asked, Inspection, Now, Options, inspect};
use linux::SysRoot;

use crate::commands::inspect::args::InspectArgs;
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::output::Output;

/// Carries out the command.
pub(crate) fn run(args: &InspectArgs) -> Result<Exit, Error> {
    let sys = match &args.sysroot {
        Some(root) => SysRoot::at(root),
        None => SysRoot::host(),
    };
    let asked = match args.all {
        true => Asked::All,
        false => Asked::Path(args.path.clone()),
    };
    let file = args
        .json
        .as_deref()
        .filter(|path| *path != Path::new("-"))
        .map(Output::open)
        .transpose()?;
    let found = inspect(&sys, &asked, &options(args)?)?;
    if args.json.is_some() && file.is_none() {
        Stream::Out.print(&format!("{:#}\n", json(&found)));
    } else {
        Stream::Out.print(&text::page(&found, look(args)));
    }
    if let Some(file) = file {
        file.json(&json(&found))?;
    }
    let held = args
        .fail_on
        .is_some_and(|least| found.worst() >= Some(least.severity()));
    Ok(if held {
        Exit::ConditionHeld
    } else {
        Exit::Done
    })
}

fn options(args: &InspectArgs) -> Result<Options, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let unix_s = now.map_or(0, |now| now.as_secs() as i64);
    Ok(Options {
        now: Now {
            unix_s,
            offset_s: linux::clock::local_offset_s(unix_s),
        },
        privileged: rustix::process::geteuid().is_root(),
        card: args
            .profile
            .as_deref()
            .map(crate::card::named)
            .transpose()?,
    })
}

fn look(args: &InspectArgs) -> Look {
    let style = Stream::Out.style();
    Look {
        unicode: style.unicode,
        colour: style.colour,
        verbose: args.verbose,
        width: style.width.into(),
    }
}

fn json(found: &Inspection) -> serde_json::Value {
    // Its keys are words and its values plain, so nothing can fail.
    serde_json::to_value(found).unwrap_or_default()
}
