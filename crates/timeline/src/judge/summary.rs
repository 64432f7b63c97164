//! The sentence a person can quote.

use super::actor::Judged;
use super::part::PartJudged;
use super::reference::Reference;
use crate::units;
use crate::verdict::{BaselineFrom, Finding, Reason};

/// The sentence about a record that ends before the deletion itself.
pub(super) fn before_the_deletion(why: Option<Reason>) -> String {
    let why = match why {
        Some(Reason::Interrupted) => "the run was interrupted before the deletion",
        Some(Reason::Failed) => "the run failed before the deletion",
        _ => "the record ends before the deletion",
    };
    format!("It cannot be told whether deleting stalls anything: {why}.")
}

/// One sentence, with the figures that matter.
pub(super) fn sentence(part: &PartJudged, finding: Finding, reasons: &[Reason]) -> String {
    match finding {
        Finding::Stall => stall(part),
        Finding::Slowdown => slowdown(part),
        Finding::None if reasons.contains(&Reason::NoDiscards) => no_discards(part, reasons),
        Finding::None => none(part),
        Finding::Inconclusive => inconclusive(part, reasons),
    }
}

fn stall(part: &PartJudged) -> String {
    let worst = part
        .actors
        .iter()
        .filter_map(|a| Some((a, a.foreground.stall?)))
        .max_by(|a, b| a.1.lost_s.total_cmp(&b.1.lost_s));
    let Some((actor, stall)) = worst else {
        return inconclusive(part, &[]);
    };
    let base = actor.foreground.baseline.ops_per_s.unwrap_or(f64::NAN);
    format!(
        "{} stalled {} for {} (to {} of {}{}{}){}{}.",
        doing(part),
        operations(part, actor),
        units::seconds(stall.seconds),
        units::percent(stall.depth),
        units::rate(base),
        compared(part, actor),
        longest(actor, stall.worst_latency_us),
        others(part, actor),
        trim(part)
    )
}

fn slowdown(part: &PartJudged) -> String {
    let slowed = part
        .actors
        .iter()
        .filter(|a| a.finding == Finding::Slowdown);
    let Some(actor) = slowed.max_by(|a, b| loss(a).total_cmp(&loss(b))) else {
        return inconclusive(part, &[]);
    };
    format!(
        "{} slowed {} by {} (from {}{}) for {}{}{}{}.",
        doing(part),
        operations(part, actor),
        units::percent(loss(actor)),
        units::rate(actor.foreground.baseline.ops_per_s.unwrap_or(f64::NAN)),
        compared(part, actor),
        units::seconds(part.discard.active_s.unwrap_or(f64::NAN)),
        longest(actor, actor.foreground.delete.max_us),
        others(part, actor),
        trim(part)
    )
}

fn none(part: &PartJudged) -> String {
    let seen = part.actors.iter().find(|a| a.finding == Finding::None);
    let Some(actor) = seen else {
        return inconclusive(part, &[]);
    };
    let base = actor.foreground.baseline.ops_per_s.unwrap_or(f64::NAN);
    // Unlike ops_ratio, without the intervals of dips.
    let ratio = actor.loss.map_or(f64::NAN, |loss| 1.0 - loss.share);
    let went_on = match actor.foreground.delete.max_us {
        // An open loop's rate is given, so its latency is what tells.
        Some(us) if actor.foreground.loop_kind.is_open() => {
            format!("the longest took {}", units::latency_us(us))
        }
        _ if part.discard.active_s.is_some_and(|s| s < 1.0) => {
            let lost = actor.foreground.lost_s.unwrap_or(f64::NAN);
            format!("they lost {}", units::seconds(lost))
        }
        _ => format!(
            "{} of {}{} went on",
            units::percent(ratio.min(1.0)),
            units::rate(base),
            compared(part, actor)
        ),
    };
    format!(
        "{} did not stall {}: {went_on}{}.",
        doing(part),
        operations(part, actor),
        trim(part).replacen(": TRIM", " while TRIM", 1)
    )
}

fn no_discards(part: &PartJudged, reasons: &[Reason]) -> String {
    let what = match &part.deletion {
        Some(deletion) if deletion.bytes > 0 => {
            format!("Deleting {} sent the devices", units::bytes(deletion.bytes))
        }
        _ => "The devices got".to_owned(),
    };
    let late = if reasons.contains(&Reason::DiscardsDidNotCome) {
        format!(" {}", in_time(part))
    } else {
        String::new()
    };
    let dips: usize = part.actors.iter().map(|a| a.foreground.dips.len()).sum();
    let but = match dips {
        0 => String::new(),
        1 => "; the foreground dipped once for another reason".to_owned(),
        n => format!("; the foreground dipped {n} times for other reasons"),
    };
    format!("{what} no discards{late}, so TRIM stalled nothing{but}.")
}

fn inconclusive(part: &PartJudged, reasons: &[Reason]) -> String {
    let why: Vec<String> = reasons.iter().filter_map(|r| because(part, *r)).collect();
    let why = if why.is_empty() {
        "the record does not tell".to_owned()
    } else {
        why.join("; ")
    };
    let what = match &part.deletion {
        Some(deletion) if deletion.bytes > 0 => {
            format!("deleting {} stalls anything", units::bytes(deletion.bytes))
        }
        _ => "discards stall anything".to_owned(),
    };
    format!("It cannot be told whether {what}: {why}.")
}

/// `within 60 s of the last deletion call`, as far as the record tells.
fn in_time(part: &PartJudged) -> String {
    match part.drain_limit_s {
        Some(limit) => format!("within {} of the last deletion call", units::seconds(limit)),
        None => "while they were waited for".to_owned(),
    }
}

fn because(part: &PartJudged, reason: Reason) -> Option<String> {
    let why = match reason {
        Reason::NoDiscards if part.discard.bytes.is_none() => {
            "what the devices did isn't known, nor so whether there were discards"
        }
        Reason::NoDiscards => "the devices saw no discards",
        Reason::DiscardsDidNotCome => {
            let late = in_time(part);
            return Some(format!("most of what was freed was not discarded {late}"));
        }
        Reason::NoDeletion => "nothing was deleted",
        Reason::NoSteadyBaseline => "there was no steady stretch to compare with",
        Reason::TooFewOperations => {
            "there were too few operations or intervals to see a loss of 10 %"
        }
        Reason::ControlDipsToo => "the control, which had no discards, lost about as much",
        Reason::DipsWithoutDiscards => "the foreground was slow without discards, too",
        Reason::Interrupted => "the run was interrupted before its deletion was over",
        Reason::Failed => "the run failed before its deletion was over",
        Reason::DiscardsAllTheTime => {
            "there was hardly a second without discards to compare with, and the time before it \
             had none of the deleter's writes"
        }
        Reason::MoreWritesWithDiscards => {
            "the devices wrote far more in the seconds with discards than in those without"
        }
        Reason::ForegroundErrors => return None,
    };
    Some(why.to_owned())
}

/// `Deleting 8.0 GiB`; or what was discarded, where no file was deleted (an fstrim, a raw
/// device) or it isn't known which.
fn doing(part: &PartJudged) -> String {
    match &part.deletion {
        Some(deletion) if deletion.bytes > 0 && deletion.files > 0 => {
            format!("Deleting {}", units::bytes(deletion.bytes))
        }
        _ => format!("Discarding {}", units::bytes(part.discards.total_bytes)),
    }
}

/// `: TRIM ran at 9.1 GB/s (8.5 GiB/s)`, where it is known.
fn trim(part: &PartJudged) -> String {
    let bound = if part.discard.bytes_per_s_is_lower_bound {
        "no less than "
    } else {
        ""
    };
    part.discard.bytes_per_s.map_or(String::new(), |rate| {
        format!(": TRIM ran at {bound}{}", units::byte_rate(rate))
    })
}

fn loss(actor: &Judged) -> f64 {
    actor.loss.map_or(0.0, |loss| loss.share)
}

/// Of a continuous deleter, what its baseline is.
fn compared(part: &PartJudged, actor: &Judged) -> &'static str {
    let from = actor.foreground.baseline_from;
    match part.reference {
        Reference::Within(_) if from == Some(BaselineFrom::WithoutDiscards) => {
            " in its seconds without discards"
        }
        Reference::Bound => " before it, with none of its writes",
        _ => "",
    }
}

/// The longest operation, where people wait for single ones (an fsync, a save)
/// rather than for a rate.
fn longest(actor: &Judged, us: Option<f64>) -> String {
    let single = class(&actor.foreground.op) == Class::Other;
    match us.filter(|_| single) {
        Some(us) => format!("; the longest took {}", units::latency_us(us)),
        None => String::new(),
    }
}

/// A reader of which nothing can be told counts as unharmed above this share of its rate.
const UNHARMED: f64 = 0.9;

/// What the others saw: who or how many suffered, too, and that readers didn't.
fn others(part: &PartJudged, worst: &Judged) -> String {
    let suffers = |a: &&Judged| matches!(a.finding, Finding::Stall | Finding::Slowdown);
    let others = || part.actors.iter().filter(|a| a.index != worst.index);
    let suffering: Vec<&Judged> = others().filter(suffers).collect();
    let mut text = match (suffering.as_slice(), others().count()) {
        ([], _) => String::new(),
        ([one], _) => format!(", and {}", operations(part, one)),
        (some, all) if some.len() == all => format!(", and all {all} others"),
        (some, all) => format!(", and {} of {all} others", some.len()),
    };
    // Readers alone tell half of what a deletion does; so does the rest without them.
    let readers = part.actors.iter();
    let mut readers = readers.filter(|a| class(&a.foreground.op) == Class::Read);
    let unharmed = |a: &Judged| match a.finding {
        Finding::None => true,
        Finding::Stall | Finding::Slowdown => false,
        // It can't be told of this one; but it must not have been slow.
        Finding::Inconclusive => a.foreground.ops_ratio.is_none_or(|r| r >= UNHARMED),
    };
    let told = readers.clone().any(|a| a.finding == Finding::None);
    if told && readers.all(unharmed) {
        text += ", but not reads";
    }
    text
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Read,
    Write,
    Other,
}

/// What kind of operation this is.
fn class(op: &str) -> Class {
    match op {
        "read" => Class::Read,
        "write" | "append" => Class::Write,
        _ => Class::Other,
    }
}

/// `reads`; with several actors also which: `reads (canary)`.
fn operations(part: &PartJudged, actor: &Judged) -> String {
    let plural = match actor.foreground.op.as_str() {
        "" => "operations".to_owned(),
        "metadata" => "metadata operations".to_owned(),
        // Two in a row: `first` and `again`.
        "first" => "first syncs".to_owned(),
        "again" => "repeated syncs".to_owned(),
        op if op.ends_with('s') => op.to_owned(),
        op => format!("{op}s"),
    };
    if part.actors.len() > 1 {
        format!("{plural} ({})", actor.foreground.actor)
    } else {
        plural
    }
}
