//! `trimbench inspect`.

pub(crate) mod args;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use diagnose::inspect::prove::ProveError;
use diagnose::inspect::text::{self, Look};
use diagnose::inspect::{Asked, Inspection, Now, Options, Proof, inspect, prove};
use linux::SysRoot;

use crate::commands::inspect::args::InspectArgs;
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::output::Output;
use crate::signals;

/// Carries out the command.
pub(crate) fn run(args: &InspectArgs) -> Result<Exit, Error> {
    let sys = match &args.sysroot {
        Some(root) => SysRoot::at(root),
        None => SysRoot::host(),
    };
    let asked = match args.all {
        true => Asked::All,
        false => Asked::Path(args.if_deleted.first().unwrap_or(&args.path).clone()),
    };
    let file = args
        .json
        .as_deref()
        .filter(|path| *path != Path::new("-"))
        .map(Output::open)
        .transpose()?;
    let mut options = options(args)?;
    if args.prove {
        match proof(args)? {
            Some(proof) => options.proof = Some(proof),
            None => return Ok(Exit::Interrupted),
        }
    }
    let found = inspect(&sys, &asked, &options)?;
    if args.json.is_some() && file.is_none() {
        Stream::Out.json(&json(&found));
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
        proof: None,
        if_deleted: args.if_deleted.clone(),
        card: args
            .profile
            .as_deref()
            .map(crate::card::named)
            .transpose()?,
    })
}

/// The result of a proof; `None` if a signal stopped it.
fn proof(args: &InspectArgs) -> Result<Option<Proof>, Error> {
    let stop = signals::stop_flag()
        .map_err(|error| Error::Usage(format!("signals can't be caught: {error}")))?;
    let terminal = Stream::Err.is_terminal();
    let proven = prove(&args.path, &stop, &mut |doing| {
        if terminal {
            Stream::Err.print(&format!("trimbench inspect: {doing}\n"));
        }
    });
    match proven {
        Ok(proof) => Ok(Some(proof)),
        Err(ProveError::Interrupted) => Ok(None),
        Err(error) => Err(error.into()),
    }
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
