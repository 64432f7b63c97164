//! The sentence a person can quote.

use super::actor::Judged;
use super::counting::LEAST_FREED;
use super::part::PartJudged;
use super::reference::Reference;
use crate::verdict::{BaselineFrom, DipDiscards, Finding, Reason, Stall};
use record::RunRecord;
use record::units::{bytes, latency_us, percent, seconds};

/// The sentence about a record that ends before the deletion itself.
pub(super) fn before_the_deletion(why: Option<Reason>) -> String {
    let why = match why {
        Some(Reason::Interrupted) => "the run was interrupted before the deletion",
        Some(Reason::Failed) => "the run failed before the deletion",
        _ => "the record ends before the deletion",
    };
    format!("It is unknown whether deleting stalls anything: {why}.")
}

/// One sentence, with the figures that matter, and one for each actor that no verdict is of.
pub(super) fn sentence(
    part: &PartJudged,
    finding: Finding,
    reasons: &[Reason],
    look_at: &[usize],
) -> String {
    let text = match finding {
        Finding::Stall => stall(part, reasons, look_at),
        Finding::Slowdown => slowdown(part, reasons, look_at),
        Finding::None if !part.discards.any() => no_discards(part, reasons),
        Finding::None => none(part, look_at),
        Finding::Inconclusive if reasons.contains(&Reason::ForeignDiscards) => {
            by_others(part, reasons)
        }
        Finding::Inconclusive => inconclusive(part, reasons),
    };
    part.actors.iter().fold(text, |text, actor| {
        let Some([rate, asked]) = actor.saturated.map(|rates| rates.map(record::units::rate))
        else {
            return text;
        };
        let name = &actor.foreground.actor;
        format!(
            "{text} {name} was saturated before the deletion ({rate} of {asked}): lower its rate."
        )
    })
}

/// Discards that can't be the deletion's, and what they did.
fn by_others(part: &PartJudged, reasons: &[Reason]) -> String {
    let others = &part.discards.others;
    let Some(why) = others.why.filter(|_| others.any()) else {
        return inconclusive(part, reasons);
    };
    let (came, why) = (bytes(others.total_bytes), why.in_words());
    let deleted = part.deletion.as_ref().filter(|deletion| deletion.bytes > 0);
    let (whose, unknown) = match (&part.event, deleted) {
        (None, None) => (came, "nothing was deleted".to_owned()),
        (event, _) => {
            let of = event.as_ref().map_or("this deletion's", |_| "the event's");
            let unknown = format!("it is unknown whether {} does", the_deletion(part));
            (format!("{came}, not {of}: {why}"), unknown)
        }
    };
    let lost = |actor: &&Judged| {
        let both = [actor.foreground.stall_by_others, actor.foreground.stall];
        both.iter().flatten().map(|stall| stall.lost_s).sum::<f64>()
    };
    let actors = part.actors.iter();
    let worst = actors.max_by(|a, b| lost(a).total_cmp(&lost(b)));
    let worst = worst.map(|worst| (operations(part, worst), &worst.foreground));
    match worst.map(|(slow, seen)| (slow, seen.stall_by_others, seen.stall)) {
        Some((slow, Some(theirs), None)) => {
            let lasted = seconds(theirs.seconds);
            format!("Discards of others ({whose}) stalled {slow} for {lasted}; {unknown}.")
        }
        Some((slow, theirs, Some(own))) => {
            let lasted = seconds(own.seconds + theirs.map_or(0.0, |stall| stall.seconds));
            format!(
                "Discards of others ({whose}) or this deletion's stalled {slow} for {lasted}; it is \
                 unknown whose did it."
            )
        }
        _ => format!(
            "Discards of others ({whose}) disturbed the measurement; {unknown} stall anything."
        ),
    }
}

/// Returns what it is unknown of: `deleting 8.0 GiB`, or an event.
fn the_deletion(part: &PartJudged) -> String {
    match (&part.event, &part.deletion) {
        (Some(event), _) => event.name(),
        (None, Some(deletion)) if deletion.bytes > 0 => {
            format!("deleting {}", bytes(deletion.bytes))
        }
        _ => "discards".to_owned(),
    }
}

/// The actors that the scenario's `look-at` names, by their index in the head, in its order.
pub(super) fn look_at(record: &RunRecord) -> Vec<usize> {
    let text = record.head.scenario.get("look_at");
    let text = text.and_then(|text| text.as_str()).unwrap_or_default();
    let mut named = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '-') {
        let index = record.head.actors.iter().position(|a| a.name == word);
        if let Some(index) = index.filter(|index| !named.contains(index)) {
            named.push(index);
        }
    }
    named
}

/// Of the actors that a finding rests on, the one that the sentence is about: the first that
/// `look-at` names, else the worst.
fn leading<'a>(
    actors: impl Iterator<Item = &'a Judged> + Clone,
    look_at: &[usize],
    harm: impl Fn(&Judged) -> f64,
) -> Option<&'a Judged> {
    let named = |index: &usize| actors.clone().find(|a| a.index == *index);
    let worst = || actors.clone().max_by(|a, b| harm(a).total_cmp(&harm(b)));
    look_at.iter().find_map(named).or_else(worst)
}

/// `did not stall fsyncs (wal), whose longest took 3.1 ms, but `: of the first actor that
/// `look-at` names, if the sentence is about another one.
fn looked_at(part: &PartJudged, leading: &Judged, look_at: &[usize]) -> String {
    let named = |index: &usize| part.actors.iter().find(|a| a.index == *index);
    let Some(actor) = look_at.iter().find_map(named) else {
        return String::new();
    };
    let operations = operations(part, actor);
    match actor.finding {
        _ if look_at.contains(&leading.index) => String::new(),
        // One whose rate fell may have stalled all the same.
        Finding::None if actor.foreground.ops_ratio.is_some_and(|r| r < UNHARMED) => String::new(),
        Finding::None => {
            let longest = match actor.foreground.beside().max_us {
                Some(us) => format!(", whose longest took {}", latency_us(us)),
                None => String::new(),
            };
            format!("did not stall {operations}{longest}, but ")
        }
        Finding::Slowdown => {
            let slower = percent(loss(actor));
            format!("slowed {operations} by {slower} and ")
        }
        // A stall leads, and of the rest nothing is known.
        Finding::Stall | Finding::Inconclusive => String::new(),
    }
}

fn stall(part: &PartJudged, reasons: &[Reason], look_at: &[usize]) -> String {
    let stalled = part.actors.iter().filter(|a| a.foreground.stall.is_some());
    let lost = |actor: &Judged| actor.foreground.stall.map_or(0.0, |stall| stall.lost_s);
    let actor = leading(stalled, look_at, lost);
    let Some((actor, stall)) = actor.and_then(|a| Some((a, a.foreground.stall?))) else {
        return inconclusive(part, &[]);
    };
    let before = looked_at(part, actor, look_at);
    let (doing, operations) = (doing(part), operations(part, actor));
    let mut lasted = lasted(stall.seconds, reasons);
    // One of 1 s isn't ten of 100 ms.
    if stall.longest_s < 0.5 * stall.seconds {
        lasted += &format!(" in all, at most {} at once", seconds(stall.longest_s));
    }
    let how = stalled_how(part, actor, &stall);
    let (others, trim) = (others(part, actor, before.is_empty()), trim(part));
    format!("{doing} {before}stalled {operations} for {lasted} ({how}){others}{trim}.")
}

/// `to 4 % of 92,000/s`; of an open loop, whose rate is given, how long its operations waited.
fn stalled_how(part: &PartJudged, actor: &Judged, stall: &Stall) -> String {
    if let (Some(limit), true) = (stall.limit_us, actor.foreground.loop_kind.is_open()) {
        let [limit, longest] = [limit, stall.worst_latency_us.unwrap_or(limit)].map(latency_us);
        return format!("waits above {limit}; the longest took {longest}");
    }
    let (depth, base) = (percent(stall.depth), base(part, actor));
    let longest = longest(actor, stall.worst_latency_us);
    format!("to {depth} of {base}{longest}")
}

/// `17.0 s`; with discards to come, which may do the same, `at least 17.0 s`.
fn lasted(long_s: f64, reasons: &[Reason]) -> String {
    let least = match reasons.contains(&Reason::DiscardsDidNotCome) {
        true => "at least ",
        false => "",
    };
    format!("{least}{}", seconds(long_s))
}

/// Returns the baseline's rate, and of what it is.
fn base(part: &PartJudged, actor: &Judged) -> String {
    let rate = record::units::rate(actor.foreground.baseline.ops_per_s.unwrap_or(f64::NAN));
    format!("{rate}{}", compared(part, actor))
}

fn slowdown(part: &PartJudged, reasons: &[Reason], look_at: &[usize]) -> String {
    let actors = part.actors.iter();
    let slowed = actors.filter(|a| a.finding == Finding::Slowdown);
    let Some(actor) = leading(slowed, look_at, loss) else {
        return inconclusive(part, &[]);
    };
    let before = looked_at(part, actor, look_at);
    let (doing, operations) = (doing(part), operations(part, actor));
    let (loss, base) = (percent(loss(actor)), base(part, actor));
    let lasted = lasted(part.discard.active_s.unwrap_or(f64::NAN), reasons);
    let longest = longest(actor, actor.foreground.beside().max_us);
    let (others, trim) = (others(part, actor, before.is_empty()), trim(part));
    format!(
        "{doing} {before}slowed {operations} by {loss} (from {base}) for {lasted}{longest}{others}{trim}."
    )
}

fn none(part: &PartJudged, look_at: &[usize]) -> String {
    let seen = part.actors.iter().filter(|a| a.finding == Finding::None);
    // The fastest baseline is the surest.
    let rate = |actor: &Judged| actor.foreground.baseline.ops_per_s.unwrap_or(0.0);
    let Some(actor) = leading(seen, look_at, rate) else {
        return inconclusive(part, &[]);
    };
    // Unlike ops_ratio, without the intervals of dips.
    let ratio = actor.loss.map_or(f64::NAN, |loss| 1.0 - loss);
    let went_on = match actor.foreground.beside().max_us {
        // An open loop's rate is given, so its latency is what tells.
        Some(us) if actor.foreground.loop_kind.is_open() => {
            format!("the longest took {}", latency_us(us))
        }
        _ if part.discard.active_s.is_some_and(|s| s < 1.0) => {
            let lost = actor.foreground.lost_s.unwrap_or(f64::NAN);
            format!("they lost {}", seconds(lost))
        }
        _ => format!(
            "{} of {} went on",
            percent(ratio.min(1.0)),
            base(part, actor)
        ),
    };
    let (doing, operations) = (doing(part), operations(part, actor));
    let trim = trim(part).replacen(": TRIM", " while TRIM", 1);
    format!("{doing} did not stall {operations}: {went_on}{trim}.")
}

fn no_discards(part: &PartJudged, reasons: &[Reason]) -> String {
    let what = match (&part.event, &part.deletion) {
        (Some(event), Some(deletion)) => {
            let (event, freed) = (event.name(), bytes(deletion.bytes));
            format!("{event} freed {freed} and sent the devices")
        }
        (None, Some(deletion)) if deletion.bytes > 0 => {
            format!("Deleting {} sent the devices", bytes(deletion.bytes))
        }
        _ => "The devices got".to_owned(),
    };
    let late = match reasons.contains(&Reason::DiscardsDidNotCome) {
        true => format!(" {}", in_time(part)),
        false => String::new(),
    };
    let dips = |kind| {
        let all = part.actors.iter().flat_map(|a| &a.foreground.dips);
        all.filter(|dip| dip.discards == kind).count()
    };
    let mut but = match dips(None) {
        0 => String::new(),
        1 => "; the foreground dipped once for another reason".to_owned(),
        n => format!("; the foreground dipped {n} times for other reasons"),
    };
    let small = match dips(Some(DipDiscards::Small)) {
        0 => None,
        1 => Some("once".to_owned()),
        n => Some(format!("{n} times")),
    };
    if let Some(times) = small {
        but += &format!("; it dipped {times} beside small discards, which may be the cause");
    }
    let others = match part.discards.others.any() {
        true => {
            let theirs = bytes(part.discards.others.total_bytes);
            format!("; others discarded {theirs} meanwhile, and that stalled nothing either")
        }
        false => String::new(),
    };
    let got = match part.discards.total_bytes {
        0 => "no discards".to_owned(),
        few => format!("only {} of discards", bytes(few)),
    };
    format!("{what} {got}{late}, so TRIM stalled nothing{others}{but}.")
}

fn inconclusive(part: &PartJudged, reasons: &[Reason]) -> String {
    let why: Vec<String> = reasons.iter().filter_map(|r| because(part, *r)).collect();
    let why = match why.is_empty() {
        true => "the record does not tell".to_owned(),
        false => why.join("; "),
    };
    let what = the_deletion(part);
    let s = if what == "discards" { "" } else { "s" };
    format!("It is unknown whether {what} stall{s} anything: {why}.")
}

/// `within 60 s of the last deletion call`, as far as the record tells.
fn in_time(part: &PartJudged) -> String {
    let end = match part.event {
        Some(_) => "the event's end",
        None => "the last deletion call",
    };
    match part.drain_limit_s {
        Some(limit) => format!("within {} of {end}", seconds(limit)),
        None => "while they were waited for".to_owned(),
    }
}

fn because(part: &PartJudged, reason: Reason) -> Option<String> {
    let why = match reason {
        Reason::DevicesUnknown => {
            "what the devices did isn't known, nor so whether there were discards"
        }
        Reason::CountersOff => "the devices' discards were not counted",
        Reason::ForeignDiscards => "discards that can't be this deletion's came beside it",
        Reason::NoDiscards => "the devices saw no discards",
        Reason::DiscardsDidNotCome => {
            let late = in_time(part);
            return Some(format!("not all that was freed was discarded {late}"));
        }
        Reason::NoDeletion => "nothing was deleted",
        Reason::NothingDeleted if part.event.is_some() => {
            "it freed nothing, and the devices saw no discards"
        }
        Reason::NothingDeleted => "nothing was deleted, for the outside program freed no space",
        Reason::NoSteadyBaseline => "there was no steady stretch to compare with",
        Reason::TooFewOperations if part.actors.is_empty() => {
            "no reads or writes were measured meanwhile"
        }
        Reason::TooFewOperations => {
            "there were too few operations or intervals to see a loss of 10 %"
        }
        Reason::TooNoisy => return Some(too_noisy(part)),
        Reason::TooLittleDeleted => return Some(too_little(part)),
        Reason::ControlDipsToo => "the control, which had no discards, lost about as much",
        Reason::DipsWithoutDiscards => {
            "the foreground was slow without discards, too, or for longer than they took"
        }
        Reason::Interrupted => "the run was interrupted before its deletion was over",
        Reason::Failed => "the run failed before its deletion was over",
        Reason::DiscardsAllTheTime => {
            "there was hardly a second without discards to compare with, and the time before it \
             had none of the deleter's writes"
        }
        Reason::MoreWritesWithDiscards => {
            "the devices wrote far more in the seconds with discards than in those without"
        }
        Reason::Writeback => {
            "only writes into the page cache were slow, and the kernel's writeback slows them, too"
        }
        Reason::Absent => "trimbench itself did not run while most of the discards were processed",
        Reason::ForegroundErrors => return None,
    };
    Some(why.to_owned())
}

/// How large a loss would have been seen.
fn too_noisy(part: &PartJudged) -> String {
    let seen = part.actors.iter().filter_map(|a| a.foreground.detectable);
    let least = seen.min_by(f64::total_cmp).filter(|&loss| loss < 1.0);
    let from = match least {
        Some(loss) => format!("only a loss of {} or more", percent(loss)),
        None => "no loss".to_owned(),
    };
    format!("the foreground scatters so much by itself that {from} would have been seen")
}

/// How long the discards took, and how much to delete.
fn too_little(part: &PartJudged) -> String {
    let (active_s, waits_s) = (part.discard.active_s, part.discards.waits_s());
    // Those of a paced deletion come for long, and take little of it.
    let is_sparse = |&s: &f64| waits_s > 0.0 && waits_s < SPARSE * s;
    let took = match active_s.filter(is_sparse) {
        Some(s) => format!(
            "the discards took {} of the {} in which they came, too little",
            seconds(waits_s),
            seconds(s)
        ),
        None => {
            let within = active_s.map(|s| format!(" within {}", seconds(s)));
            let within = within.unwrap_or_default();
            format!("the discards were over{within}, too soon")
        }
    };
    let more = match part.try_bytes {
        Some(needed) => format!(" (try {})", bytes(needed)),
        None if part.is_full => ", and more than fits here would be needed".to_owned(),
        None => String::new(),
    };
    format!("{took} to tell a stall{more}")
}

/// Discards that take less than this share of the time in which they come.
const SPARSE: f64 = 0.25;

/// `Deleting 8.0 GiB`; of an event what it freed; or what was discarded, where no file was deleted (an fstrim, a raw
/// device) or it isn't known which.
fn doing(part: &PartJudged) -> String {
    let discarded = bytes(part.discards.total_bytes);
    let deletion = part.deletion.as_ref();
    let freed = deletion.map_or(0, |deletion| deletion.bytes);
    match (&part.event, deletion) {
        (Some(event), _) if freed >= LEAST_FREED => {
            let event = event.name();
            format!("{event} freed {}; the discards it caused", bytes(freed))
        }
        (Some(event), _) => format!("The discards of {} ({discarded})", event.name()),
        (None, Some(deletion)) if freed > 0 && deletion.files > 0 => {
            format!("Deleting {}", bytes(freed))
        }
        _ if part.discard.bytes.is_none() => {
            let of = |n| format!("{} discards of unknown size", record::units::count(n));
            part.discard.commands.map_or("Discarding".to_owned(), of)
        }
        _ if part.discards.unknown_copies => {
            format!("Discarding {discarded}, unknown copies included,")
        }
        _ => format!("Discarding {discarded}"),
    }
}

/// `: TRIM ran at 9.1 GB/s (8.5 GiB/s)`, where it is known.
fn trim(part: &PartJudged) -> String {
    let is_least = part.discard.bytes_per_s_is_lower_bound;
    let bound = match (is_least, part.discards.unknown_copies) {
        // Too slow by the one, too fast by the other.
        (true, true) => return String::new(),
        (true, false) => "no less than ",
        (false, true) => "up to ",
        (false, false) => "",
    };
    let waits_s = part.discards.waits_s();
    // Beside pauses nothing went on at the drive's rate.
    let paused = 0.0 < waits_s && 2.0 * waits_s < part.discard.active_s.unwrap_or(0.0);
    let rate = part.discard.bytes_per_s.filter(|_| !paused);
    let rate = rate.map(record::units::byte_rate);
    rate.map_or(String::new(), |rate| format!(": TRIM ran at {bound}{rate}"))
}

fn loss(actor: &Judged) -> f64 {
    actor.loss.unwrap_or(0.0)
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

/// Returns the longest operation, where people wait for single ones (an fsync, a save) rather than
/// for a rate.
fn longest(actor: &Judged, us: Option<f64>) -> String {
    let single = class(&actor.foreground.op) == Class::Other;
    match us.filter(|_| single) {
        Some(us) => format!("; the longest took {}", latency_us(us)),
        None => String::new(),
    }
}

/// A reader without a finding counts as unharmed from this share of its baseline's rate on.
const UNHARMED: f64 = 0.9;

/// Returns the clause about the other actors: which or how many suffered, too. `unharmed_too`: it
/// also reports that no reader suffered.
fn others(part: &PartJudged, worst: &Judged, unharmed_too: bool) -> String {
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
    let unharmed_reader = readers.clone().any(|a| a.finding == Finding::None);
    if unharmed_too && unharmed_reader && readers.all(unharmed) {
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

/// Returns the kind of an operation.
fn class(op: &str) -> Class {
    match op {
        "read" => Class::Read,
        "write" | "append" => Class::Write,
        _ => Class::Other,
    }
}

/// Returns `reads`; with several actors also which: `reads (canary)`.
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
    match part.actors.len() > 1 {
        true => format!("{plural} ({})", actor.foreground.actor),
        false => plural,
    }
}
