//! Climbing a ladder: its runs, one after the other.

use std::sync::atomic::AtomicBool;

use bench::plan::Place;
use bench::{BenchError, Outcome, ReadyRun, Survey};
use record::RunRecord;
use record::as_drive::slower;
use record::units::{bytes, names, percent};
use record::{DiscardSetting, EndReason, RecordWriter};
use ssd::fit::{Fit, FitError};
use storage::FileSystem;

use super::plans::{self, Ladder, Rung};
use crate::commands::fit::args::{Details, FitArgs};
use crate::console::{self, Stream};
use crate::exit::{Error, usage};
use crate::run_progress::{self, Progress};
use crate::signals;

/// How far a ladder was climbed.
pub(super) enum Climbed {
    /// To its end: a record of each run.
    Whole(Vec<RunRecord>),
    /// It only printed what it would do.
    Described,
    /// The user stopped it.
    Interrupted,
}

/// Climbs the ladder of a place.
pub(super) fn climb(
    place: &Place,
    args: &FitArgs,
    details: &Details,
    people: Stream,
) -> Result<Climbed, Error> {
    if let (Place::Directory(directory), false) = (place, args.dry_run) {
        run_progress::sweep(directory);
    }
    let survey = crate::simulated::enter_cgroup(Survey::of(place)?, args.dry_run);
    if let DiscardSetting::Off | DiscardSetting::Unsupported = survey.target.discard {
        let warnings = survey.warnings.iter().map(ToString::to_string);
        let mut why = warnings.collect::<Vec<_>>().join("; ");
        if why.is_empty() {
            why = "no discards are sent there".to_owned();
        }
        return Err(usage(format!("there is nothing to fit: {why}")));
    }
    let times = slower(&survey.devices).map_err(super::no_one_time)?;
    let times = times.map_or(1.0, |slower| slower.times);
    let ladder = plans::of(&survey, &details.sizes(), details.space, times)?;
    for rung in &ladder.quiet {
        bench::preflight(&rung.plan, &survey)?;
    }
    people.print(&intentions(&ladder, &survey));
    if args.dry_run {
        return Ok(Climbed::Described);
    }
    // It discards free space beside what is deleted, each time.
    let ext = FileSystem::named(&survey.target).is_ext();
    let stop = signals::stop_flag()?;
    let mut climb = Climb {
        survey: &survey,
        people,
        stop: &stop,
        records: Vec::new(),
    };
    let all = ladder.quiet.len() + 1;
    let mut more = plans::MORE;
    for (i, rung) in ladder.quiet.iter().enumerate() {
        if !climb.step(&format!("{} of {all}", i + 1), rung)? {
            return Ok(Climbed::Interrupted);
        }
        while let Some(beside) = climb.beside()
            && more > 0
            && !ext
        {
            more -= 1;
            let beside = bytes(beside);
            let why = format!("Once more, for {beside} more were discarded than deleted");
            if !climb.step(&why, rung)? {
                return Ok(Climbed::Interrupted);
            }
        }
    }
    let mut before = None;
    for _ in 0..more {
        let seen = climb.seen()?;
        let Some((point, rung)) = ladder.again(&seen) else {
            break;
        };
        let (off, size) = (point.service_us.half_width(), point.size());
        // What a repeat tells no better, another one doesn't.
        if before.is_some_and(|(same, before)| same == size && off > 0.9 * before) {
            break;
        }
        before = Some((size.clone(), off));
        let off = percent(off / point.service_us.value);
        let why = format!("Once more, for a discard of {size} is only known to {off}");
        if !climb.step(&why, rung)? {
            return Ok(Climbed::Interrupted);
        }
    }
    let last = ladder.loaded(&survey, &climb.seen()?);
    if !climb.step(&format!("{all} of {all}"), &last)? {
        return Ok(Climbed::Interrupted);
    }
    people.print("\n");
    Ok(Climbed::Whole(climb.records))
}

/// A ladder that is being climbed.
struct Climb<'a> {
    survey: &'a Survey,
    people: Stream,
    stop: &'a AtomicBool,
    records: Vec<RunRecord>,
}

impl Climb<'_> {
    /// One run more. `false`: the user stopped it.
    fn step(&mut self, which: &str, rung: &Rung) -> Result<bool, Error> {
        self.people.print(&format!("{which}: {}\n", rung.about));
        let Outcome { record, error } = perform(rung, self.survey, self.stop)?;
        let whole = ended(&record, error)?;
        self.records.push(record);
        Ok(whole)
    }

    /// How much was discarded beside what the last run deleted, in bytes.
    fn beside(&self) -> Option<u64> {
        ssd::fit::beside_bytes(self.records.last()?)
    }

    fn seen(&self) -> Result<Fit, FitError> {
        ssd::fit::fit(&self.records.iter().collect::<Vec<_>>())
    }
}

fn perform(rung: &Rung, survey: &Survey, stop: &AtomicBool) -> Result<Outcome, BenchError> {
    let mut progress = Progress::new(true, rung.plan.phases.interval());
    let outcome = ReadyRun::claim(bench::preflight(&rung.plan, survey)?)?.perform(
        None::<RecordWriter<std::fs::File>>,
        &mut progress,
        stop,
    );
    drop(progress);
    outcome
}

/// Whether a run went to its end; `false`: the user stopped it.
fn ended(record: &RunRecord, error: Option<BenchError>) -> Result<bool, Error> {
    let end = record.end.as_ref();
    let interrupted = end.is_none_or(|end| end.reason == EndReason::Interrupted);
    match (error, interrupted) {
        (None, false) => Ok(true),
        (Some(error), false) => Err(error.into()),
        (error, true) => {
            if let Some(error) = error {
                console::error(&error.into());
            }
            Stream::Err.print("trimbench: interrupted; what it had made is removed\n");
            Ok(false)
        }
    }
}

fn intentions(ladder: &Ladder, survey: &Survey) -> String {
    let quiet = &ladder.quiet;
    let sizes = quiet.iter().filter_map(|rung| rung.plan.deletion.as_ref());
    let sizes = sizes.map(|deletion| deletion.size_bytes);
    let largest = sizes.clone().max().unwrap_or(0);
    let all = sizes.fold(ladder.space, u64::saturating_add);
    let most = all.saturating_add(largest.saturating_mul(plans::MORE as u64));
    let what = match survey.place {
        Place::Directory(_) => "deletes files in",
        Place::Device { .. } => "overwrites and discards data on",
    };
    let [at_once, all, most] = [ladder.space, all, most].map(bytes);
    let (place, runs) = (names::shown(survey.place.path()), quiet.len() + 1);
    format!(
        "Writes and {what} {place}: {runs} runs, and up to {} more where the ladder's ends aren't \
         sure; at most {at_once} at once, about {all} in all, and {most} with those. What it makes is \
         removed.{}\n\n",
        plans::MORE,
        beside(FileSystem::named(&survey.target))
    )
}

/// A warning, before anything is written, that a file system may hide what a discard costs.
fn beside(file_system: FileSystem) -> &'static str {
    match file_system.is_ext() {
        true => {
            "\n! ext4 discards the free space beside what is deleted, too. If the drive has no data \
             there, all of this may show upper bounds alone: XFS on the drive, or the raw device \
             (--destroy-data), tells."
        }
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ladder_on_ext4_warns_before_it_writes() {
        assert!(beside(FileSystem::Ext).contains("upper bounds"));
        assert!(beside(FileSystem::Ext3).contains("upper bounds"));
        assert_eq!(beside(FileSystem::Xfs), "");
        // A raw device has none.
        assert_eq!(beside(FileSystem::Other), "");
    }
}
