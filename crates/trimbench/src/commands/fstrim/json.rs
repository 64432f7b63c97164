//! The result of a trim as JSON: `trimbench.fstrim/1`.

use pace::Policy;
use reclaim::trim::{Selected, Trimmed};
use record::Origin;
use serde_json::{Value, json};

use super::Outcome;
use crate::commands::fstrim::args::FstrimArgs;
use crate::exit::Exit;
use crate::interference::json as interference;

pub(super) fn of(file_systems: Vec<Value>, origin: &Origin, policy: &Policy, exit: Exit) -> Value {
    let result = match exit {
        Exit::Done | Exit::ConditionHeld => "done",
        Exit::Interrupted => "interrupted",
        _ => "failed",
    };
    json!({
        "schema": "trimbench.fstrim/1",
        "origin": origin,
        "result": result,
        "exit_code": exit.code(),
        "pacing": interference::policy(policy),
        "file_systems": file_systems,
    })
}

/// The result of one file system.
pub(super) fn file_system(one: &Selected, outcome: &Outcome, args: &FstrimArgs) -> Value {
    let (result, error, trimmed) = match outcome {
        Outcome::Looked => ("looked-at", None, None),
        Outcome::Trimmed(trimmed) if trimmed.stopped.is_some() => {
            ("interrupted", None, Some(trimmed))
        }
        Outcome::Trimmed(trimmed) => ("done", None, Some(trimmed)),
        Outcome::Unsupported(why) => ("unsupported", Some(why), None),
        Outcome::Failed(why) => ("failed", Some(why), None),
        Outcome::Interrupted => ("interrupted", None, None),
    };
    json!({
        "path": one.path.to_string_lossy().into_owned(),
        "result": result,
        "error": error,
        "trim": trimmed.map(|trimmed| trim(trimmed, args)),
    })
}

fn trim(trimmed: &Trimmed, args: &FstrimArgs) -> Value {
    let mut value = interference::measured(&trimmed.summary, &args.goal);
    let progress = &trimmed.progress;
    value["trimmed_bytes"] = trimmed.bytes.into();
    value["trimmed_now_bytes"] = progress.freed_bytes.into();
    value["looked_at_bytes"] = progress.looked.bytes.into();
    value["total_bytes"] = progress.total_bytes.into();
    value["windows"] = progress.looked.windows.into();
    value
}
