//! The result of a deletion as JSON: `trimbench.rm/1`.

use pace::Policy;
use reclaim::Outcome;
use serde_json::{Value, json};

use crate::commands::rm::args::RmArgs;
use crate::exit::Exit;
use crate::interference::json as interference;

pub(super) fn of(outcome: &Outcome, args: &RmArgs, policy: &Policy, exit: Exit) -> Value {
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
        "version": env!("CARGO_PKG_VERSION"),
        "result": result,
        "exit_code": exit.code(),
        "error": outcome.stopped.as_ref().map(|stopped| &stopped.why),
        "paths": args.paths.iter().chain(&args.resume).map(path).collect::<Vec<_>>(),
        "names": outcome.names,
        "failures": outcome.failures,
        "left": outcome.left.iter().map(path).collect::<Vec<_>>(),
        "pacing": interference::policy(policy),
        "file_systems": outcome
            .summary
            .iter()
            .map(|summary| interference::measured(summary, &args.goal))
            .collect::<Vec<_>>(),
    })
}
