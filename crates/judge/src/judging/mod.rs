//! From a record to its verdict: did the discards of this deletion stall the foreground?
//!
//! [`judge`] is pure: the same record gives the same verdict, on any machine,
//! years later. It goes the same way for a native run, a run in virtual time
//! and an imported log:
//!
//! 1. `window`: the intervals of each phase of the part that is judged.
//! 2. `discards`: which devices count, which intervals discard significantly,
//!    and in which a discard was in service; the TRIM rate.
//! 3. `reference`: what the deletion is compared with, what came before it or, of one
//!    that also writes all the time, its own stretches without discards.
//!    For each actor its `baseline`, a `grid` coarse enough to tell its rate,
//!    the `low` cells, and their `runs`: stalls and dips.
//! 4. `yardstick`: how slow it gets without discards; `effect`, `actor` and `part`: the
//!    finding; `barrier`: whether discards serve others beside them; `debt`: what was freed and not yet discarded.
//! 5. `writes`: how evenly the devices wrote, and whether that may be all. `gain`: of a run that
//!    trims all free space, whether writes are faster after it.
//! 6. The control, where there was one; a dip that it shows, too, isn't TRIM's.
//!
//! It needs a few numbers per interval and actor beside the record, so that
//! eight hours at 100 ms stay far below 100 MB.

mod actor;
mod barrier;
mod baseline;
pub mod counting;
mod debt;
mod discards;
mod effect;
mod event;
mod figures;
pub mod gain;
mod grid;
mod low;
mod others;
mod part;
mod presence;
mod reference;
mod runs;
pub(crate) mod samples;
mod spans;
pub(crate) mod stats;
mod summary;
mod waits;
mod window;
mod writes;
mod yardstick;

#[cfg(test)]
mod tests;

use crate::verdict::condition::{Checked, Condition};
use crate::verdict::{Control, Finding, Foreground, Reason, VERDICT_SCHEMA, Verdict};
use actor::Judged;
use part::{FromControl, PartJudged};
use record::as_drive;
use record::{DiscardSetting, Event, EventKind, Part, RunRecord, Slower};
use reference::Reference;
pub use stats::drift;
use window::Window;

/// The options of judging that the user may set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgeOptions {
    /// An interval is low below this share of the baseline, 0 to 1.
    pub low: f64,
}

impl JudgeOptions {
    /// Returns the options that the record's run was given.
    pub fn of(record: &RunRecord) -> JudgeOptions {
        let said = record.head.scenario.get("low").and_then(|low| low.as_f64());
        let low = said.filter(|low| (0.0..=1.0).contains(low));
        low.map_or_else(JudgeOptions::default, |low| JudgeOptions { low })
    }
}

impl Default for JudgeOptions {
    fn default() -> Self {
        JudgeOptions { low: 0.5 }
    }
}

/// The control "lost about as much" at this share of what the deletion lost.
const AS_MUCH: f64 = 0.5;

/// Returns the verdict of a record.
pub fn judge(record: &RunRecord, options: &JudgeOptions) -> Verdict {
    with_its_part(record, options).0
}

/// Returns the verdict, and the deletion's own part that it rests on.
fn with_its_part(
    record: &RunRecord,
    options: &JudgeOptions,
) -> (Verdict, Option<(Window, PartJudged)>) {
    let Some(window) = Window::of(record, Part::Main) else {
        return (nothing(record), None);
    };
    let main = part::judge(record, &window, None, options);
    let control = Window::of(record, Part::Control).map(|control| {
        // Others discard, too, while the control runs: a tenth of the deletion's is
        // few, and a hundredth of the reference is what makes them count.
        let bytes = Some(main.discards.total_bytes.saturating_mul(10)).filter(|&b| b > 0);
        let from_control = FromControl {
            baseline: window.baseline.clone(),
            bytes,
            reference: main.reference.clone(),
        };
        part::judge(record, &control, Some(from_control), options)
    });
    let (mut finding, mut reasons) = (main.finding, main.reasons.clone());
    let mut warnings = warnings(record, Some(&main));
    let clean = control.as_ref().is_some_and(|c| !c.discards.any());
    let unproven = match finding {
        Finding::Stall | Finding::Slowdown if clean => None,
        Finding::Stall | Finding::Slowdown if main.reference == Reference::Bound => {
            Some(Reason::DiscardsAllTheTime)
        }
        Finding::Slowdown if main.more_writes => Some(Reason::MoreWritesWithDiscards),
        Finding::Stall | Finding::Slowdown if writes::only_into_the_cache(record, &main.actors) => {
            Some(Reason::Writeback)
        }
        _ => None,
    };
    if let Some(why) = unproven {
        finding = Finding::Inconclusive;
        reasons.push(why);
    }
    if finding == Finding::Stall && main.more_writes && !clean {
        warnings.push(WRITES_TOO.to_owned());
    }
    if let Some(control) = &control {
        if control.discards.any() {
            warnings.push(CONTROL_DISCARDS.to_owned());
        } else if matches!(finding, Finding::Stall | Finding::Slowdown)
            && lost_as_much(&main, control)
        {
            finding = Finding::Inconclusive;
            reasons.push(Reason::ControlDipsToo);
        }
    }
    let look_at = summary::look_at(record);
    let method = record
        .head
        .scenario
        .get("control")
        .and_then(|method| method.as_str());
    let control = control.map(|control| Control {
        method: method.map(str::to_owned),
        verdict: control.finding,
        discard_bytes: control.discard.bytes,
        foreground: foreground(&control),
    });
    let mut verdict = Verdict {
        verdict: finding,
        summary: summary::sentence(&main, finding, &reasons, &look_at),
        reasons,
        foreground: foreground(&main),
        discard: main.discard,
        deletion: main.deletion.clone(),
        try_bytes: main.try_bytes,
        fit: main.fit,
        control,
        others: main.discards.others.figures(record),
        writes: writes::of(record, &window),
        gain: gain::of(record, &window, main.discards.total_bytes),
        warnings,
        ..blank(record)
    };
    if let Some(gain) = &verdict.gain {
        verdict.summary = format!("{} {}", gain.sentence, verdict.summary);
    }
    // Even if it stalled, or its deletion was over: what the record lacks may be worse.
    let why = window::cut_short(record).filter(|why| !verdict.reasons.contains(why));
    verdict.reasons.extend(why);
    verdict.conditions = conditions(record, &verdict);
    (verdict, Some((window, main)))
}

fn foreground(part: &PartJudged) -> Vec<Foreground> {
    part.actors.iter().map(|a| a.foreground.clone()).collect()
}

/// Whether some actor that lost time to discards lost about as much in the control.
fn lost_as_much(main: &PartJudged, control: &PartJudged) -> bool {
    let as_much = |a: &Judged| {
        let Some(same) = control.actors.iter().find(|c| c.index == a.index) else {
            return false;
        };
        match (a.foreground.stall, a.loss) {
            (Some(stall), _) => same.low_lost_s >= AS_MUCH * stall.lost_s,
            (None, loss) => loss.is_some_and(|loss| same.delete_loss >= AS_MUCH * loss),
        }
    };
    let slow = |a: &&Judged| matches!(a.finding, Finding::Stall | Finding::Slowdown);
    main.actors.iter().filter(slow).all(as_much)
}

const NEVER_STEADY: &str = "The foreground was not seen to be steady within the settling limit, so the \
    baseline may drift; give it longer.";
const NO_DEVICE: &str =
    "No block device is known below the target, so discards could not be watched.";
const OF_ABOVE: &str = "The devices below saw (almost) no discards; those of the device above them were \
    counted.";
const UNEXPECTED: &str =
    "There were discards although the mount sends none: another program's, or an fstrim.";
const WRITES_TOO: &str = "The devices wrote far more while discards were in service than without, so a \
    part of the stall may be due to the writes; a control run (--control) tells.";
const CONTROL_DISCARDS: &str = "The control had discards of its own, so it does not show what happens \
    without them, and was left out.";

/// Whatever the run warned of, and what is odd about the record itself.
fn warnings(record: &RunRecord, main: Option<&PartJudged>) -> Vec<String> {
    let of_event = |event: &Event| match event.kind {
        EventKind::Warning => event.detail.clone(),
        EventKind::SettleLimit => Some(NEVER_STEADY.to_owned()),
        _ => None,
    };
    let mut warnings: Vec<String> = record.events.iter().filter_map(of_event).collect();
    warnings.dedup();
    let actors = main.map_or(&[][..], |main| &main.actors);
    for seen in actors.iter().map(|actor| &actor.foreground) {
        warnings.extend(seen.drifted().map(|drift| {
            let (name, drift) = (&seen.actor, record::units::percent(drift));
            format!("The baseline of {name} drifted by {drift} over its length; let it settle for longer.")
        }));
    }
    let frees = record
        .head
        .actors
        .iter()
        .filter(|actor| others::frees(actor));
    let frees: Vec<&str> = frees.map(|actor| actor.name.as_str()).collect();
    let frees = frees.join(", ");
    warnings.extend(actors.iter().filter_map(|one| beside_discards(one, &frees)));
    match &record.end {
        Some(end) => warnings.extend(end.message.clone()),
        None => warnings.push("The record has no end: its run was killed.".to_owned()),
    }
    warnings.extend(presence::left_out(&presence::absences(record)));
    let seen: Vec<&Foreground> = actors.iter().map(|actor| &actor.foreground).collect();
    warnings.extend(presence::short_of_cpu(&seen));
    warnings.extend(slower(record).map(in_what_time));
    let mut warn = |holds: bool, text: &str| warnings.extend(holds.then(|| text.to_owned()));
    warn(record.head.devices.is_empty(), NO_DEVICE);
    warn(main.is_some_and(|main| main.discards.upper), OF_ABOVE);
    warnings.extend(main.and_then(|main| main.discards.others.warning(record)));
    let off = counting::blind(&record.head.devices).join(" and ");
    let off_text = format!("The discards of {off} were not counted.");
    let sends_none =
        record.head.target.discard == DiscardSetting::Off && !others::is_simulated(record);
    let unexpected = sends_none && main.is_some_and(|main| main.discards.any());
    let mut warn = |holds: bool, text: &str| warnings.extend(holds.then(|| text.to_owned()));
    warn(!off.is_empty(), &off_text);
    warn(unexpected, UNEXPECTED);
    warnings
}

/// A baseline that lost this share of its time beside discards is warned of.
const BASELINE_LOST: f64 = 0.05;

/// Returns a warning if discards that this deletion didn't send slowed an actor's baseline. `frees`:
/// the actors that free space themselves.
fn beside_discards(actor: &Judged, frees: &str) -> Option<String> {
    let how = match actor.baseline_lost {
        Some(lost) if lost < BASELINE_LOST => return None,
        Some(lost) => format!("lost {} of its time beside", record::units::percent(lost)),
        None => "had all its time beside".to_owned(),
    };
    let name = &actor.foreground.actor;
    let (whose, without) = match frees.is_empty() {
        true => ("another program's".to_owned(), "it".to_owned()),
        false => (
            format!("those of {frees}, which frees space, too, or another program's"),
            frees.to_owned(),
        ),
    };
    Some(format!(
        "The baseline of {name} {how} discards that this deletion did not send: {whose}. The verdict \
         may count such discards as the deletion's; without {without} it is surer."
    ))
}

/// How much slower its drive was than the one it stands for.
fn slower(record: &RunRecord) -> Option<Slower> {
    // Where its drives differ, the run's own notes tell of each.
    as_drive::slower(&record.head.devices).ok().flatten()
}

fn in_what_time(slower: Slower) -> String {
    let (times, how) = slower.in_words();
    if slower.converted {
        return format!(
            "All times and rates are those of the drive that the simulated one stands for. The measured ones \
             were converted, because it was {times} times {how}."
        );
    }
    format!(
        "The simulated drive was {times} times {how} than the one it stands for, and all times and \
         rates are as measured; --set as-drive=true gives those of that drive."
    )
}

/// Returns what a verdict says of every record, whatever was found.
fn blank(record: &RunRecord) -> Verdict {
    let verdict = Verdict {
        schema: VERDICT_SCHEMA.to_owned(),
        slower: slower(record),
        absences: presence::absences(record),
        waits: waits::waited(record),
        ..Verdict::default()
    };
    verdict.with_origin(record::Origin::of_run(record))
}

/// Returns the verdict of a record that lacks the deletion.
fn nothing(record: &RunRecord) -> Verdict {
    let why = window::cut_short(record);
    let mut reasons = vec![Reason::NoDeletion];
    reasons.extend(why);
    let mut verdict = Verdict {
        reasons,
        summary: summary::before_the_deletion(why),
        warnings: warnings(record, None),
        ..blank(record)
    };
    verdict.conditions = conditions(record, &verdict);
    verdict
}

/// Returns the result of each condition that the run was given.
fn conditions(record: &RunRecord, verdict: &Verdict) -> Vec<Checked> {
    let given = record.head.run.iter().flat_map(|run| &run.fail_on);
    given
        // Text that no version wrote says nothing.
        .filter_map(|text| text.parse::<Condition>().ok())
        .map(|condition| condition.check(verdict))
        .collect()
}
