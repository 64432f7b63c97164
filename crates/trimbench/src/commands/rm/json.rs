//! The result of a deletion as JSON: `trimbench.rm/1`.

use pace::Policy;
use reclaim::{Outcome, Spared, Why};
use record::Origin;
use serde_json::{Value, json};

use crate::commands::rm::args::RmArgs;
use crate::exit::Exit;
use crate::interference::json as interference;

pub(super) fn of(
    outcome: &Outcome,
    origin: &Origin,
    args: &RmArgs,
    policy: &Policy,
    exit: Exit,
) -> Value {
    let result = match &outcome.stopped {
        Some(stopped) if stopped.refused.is_some() => "refused",
        Some(stopped) if stopped.interrupted => "interrupted",
        Some(_) => "failed",
        None if exit == Exit::Failed => "failed",
        None => "done",
    };
    let path = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
    json!({
        "schema": "trimbench.rm/1",
        "origin": origin,
        "result": result,
        "exit_code": exit.code(),
        "error": outcome.stopped.as_ref().map(|stopped| &stopped.why),
        "paths": args.paths.iter().chain(&args.resume).map(path).collect::<Vec<_>>(),
        "names": outcome.names,
        "failures": outcome.failures,
        "not_emptied": outcome.spared.iter().map(spared).collect::<Vec<_>>(),
        "left": outcome.left.iter().map(path).collect::<Vec<_>>(),
        "pacing": interference::policy(policy),
        "file_systems": outcome
            .summary
            .iter()
            .map(|summary| interference::measured(summary, &args.goal))
            .collect::<Vec<_>>(),
    })
}

/// Files that were not emptied in pieces, for one reason.
fn spared(spared: &Spared) -> Value {
    let (reason, by) = match &spared.why {
        Why::Named => ("another-name", None),
        Why::Open(process) => ("open", process.clone()),
        Why::Mounted(point) => ("mounted", Some(point.to_string_lossy().into_owned())),
        Why::AtOnce(why) => ("freed-at-once", Some(why.clone())),
    };
    json!({
        "reason": reason,
        "by": by,
        "files": spared.files,
        "bytes": spared.bytes,
        "space_stays": spared.why.stays(),
    })
}
