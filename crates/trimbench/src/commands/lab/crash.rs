//! `trimbench lab crash`: a command on each crash state of a drive's log.

use ::lab::LabError;
use ::lab::crash::{Check, Outcome, Recorded, check, states};
use record::units::settings::Section;
use record::units::{count, names};
use serde_json::json;

use super::show;
use crate::commands::lab::args::{CrashArgs, CrashDetails};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::signals;

/// The most failed states that are printed with the command's output.
const SHOWN: usize = 5;

/// Checks every state, and reports those on which the command failed.
pub(super) fn crash(args: &CrashArgs) -> Result<Exit, Error> {
    // An exit code of 1 would be that of a state that failed.
    let not_begun = |error: LabError| usage(error.to_string());
    let details = CrashDetails::of(&args.set).map_err(Error::Usage)?;
    let log = Recorded::open(&args.log).map_err(not_begun)?;
    let torn = details.torn.unwrap_or(log.sector);
    let from = details.from.as_deref();
    let limit = usize::try_from(details.limit()).unwrap_or(usize::MAX);
    let all = states(&log.records, from, details.torn, limit, details.seed());
    let path = names::shown(&args.log);
    if all.is_empty() {
        let after = from.map_or_else(String::new, |mark| format!(" after a mark '{mark}'"));
        return Err(usage(format!("{path} has no crash states{after}")));
    }
    let (changes, states) = (count(log.changes() as u64), count(all.len() as u64));
    Stream::Err.print(&format!(
        "{changes} writes and discards in {path}: {states} crash states\n"
    ));
    let how = Check {
        command: args.command.clone(),
        timeout: details.timeout(),
        scratch: details.scratch(),
        unit: torn,
    };
    let stop = signals::stop_flag()?;
    let outcome = check(&log, &all, &how, &stop).map_err(|error| match error {
        LabError::NotRun { .. } => not_begun(error),
        error => error.into(),
    })?;
    Stream::Out.print(&match args.json {
        true => show::pretty(&in_json(&outcome, all.len())),
        false => text(&outcome),
    });
    Ok(match outcome {
        Outcome { stopped: true, .. } => Exit::Interrupted,
        outcome if outcome.failed.is_empty() => Exit::Done,
        _ => Exit::Failed,
    })
}

fn text(outcome: &Outcome) -> String {
    let [checked, failed] = [outcome.checked, outcome.failed.len()].map(|n| count(n as u64));
    let mut text = format!("{checked} crash states checked, the command failed on {failed}\n");
    for failed in outcome.failed.iter().take(SHOWN) {
        text += &format!("state {}: {}\n", failed.number, failed.state.name());
        if let Some(mark) = &failed.state.mark {
            text += &format!("  mark  {}\n", names::harmless(mark));
        }
        for line in failed.output.lines() {
            text += &format!("  {}\n", names::harmless(line));
        }
    }
    text
}

fn in_json(outcome: &Outcome, states: usize) -> serde_json::Value {
    let failed = outcome.failed.iter().map(|failed| {
        json!({
            "state": failed.number,
            "name": failed.state.name(),
            "mark": failed.state.mark,
            "said": failed.output,
        })
    });
    json!({
        "states": states,
        "checked": outcome.checked,
        "failed": failed.collect::<Vec<_>>(),
    })
}
