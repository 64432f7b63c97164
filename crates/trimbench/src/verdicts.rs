//! The verdict of a record: the same, whether its run has just ended or its file
//! was found years later.

use judge::verdict::condition::{CheckResult, Condition};
use judge::{JudgeOptions, Verdict, judge};
use record::as_drive::{NotSlowed, slower};
use record::{DeviceInfo, Head, RunRecord, as_drive};

use crate::exit::{Error, Exit, usage};

/// Judges a record as its run was asked to (`judge.low`), and fits its discards.
pub(crate) fn verdict(record: &RunRecord) -> Verdict {
    verdict_with(record, &JudgeOptions::of(record))
}

/// Judges a record with these options.
pub(crate) fn verdict_with(record: &RunRecord, options: &JudgeOptions) -> Verdict {
    ssd::fit::joined(judge(record, options), record)
}

/// Whether a run on these devices can be shown in another drive's time.
pub(crate) fn has_drives_time(devices: &[DeviceInfo]) -> Result<(), Error> {
    match slower(devices) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(refused(&NotSlowed::Real)),
        Err(why) => Err(refused(&why)),
    }
}

/// A record in the time of the drive that its simulated one stands for.
pub(crate) fn in_drives_time(record: RunRecord) -> Result<RunRecord, Error> {
    as_drive(record).map_err(|why| refused(&why))
}

fn refused(why: &NotSlowed) -> Error {
    usage(format!("as-drive: {why}"))
}

/// Returns the exit code that the verdict's conditions give (`--fail-on`).
pub(crate) fn ending(verdict: &Verdict) -> Result<Exit, Error> {
    let any = |outcome| verdict.conditions.iter().find(|c| c.result == outcome);
    if any(CheckResult::Held).is_some() {
        return Ok(Exit::ConditionHeld);
    }
    match any(CheckResult::Unknown) {
        Some(unknown) => Err(Error::Unqualified(format!(
            "--fail-on '{}' is unknown. {}",
            unknown.condition, verdict.summary
        ))),
        None => Ok(Exit::Done),
    }
}

/// A condition on an actor that the record does not have would never be tested.
pub(crate) fn refuse_unknown_actors(conditions: &[Condition], head: &Head) -> Result<(), Error> {
    let names: Vec<&str> = head.actors.iter().map(|a| a.name.as_str()).collect();
    let unknown = conditions.iter().find_map(|condition| {
        let actor = condition.actor.as_deref()?;
        (!names.contains(&actor)).then_some((condition, actor))
    });
    match unknown {
        Some((condition, actor)) => Err(usage(format!(
            "--fail-on '{condition}': this run has no actor '{actor}'; name one of: {}",
            names.join(", ")
        ))),
        None => Ok(()),
    }
}
