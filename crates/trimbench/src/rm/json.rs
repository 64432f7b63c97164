//! What a deletion came to, as JSON: `trimbench.rm/1`.

use pace::Policy;
use reclaim::Outcome;
use serde_json::{Value, json};

use crate::cli::RmArgs;
use crate::cost::json as cost;
use crate::exit::Exit;

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
        "pacing": cost::policy(policy),
        "file_systems": outcome
            .felt
            .iter()
            .map(|felt| cost::measured(felt, &args.goal))
            .collect::<Vec<_>>(),
    })
}
