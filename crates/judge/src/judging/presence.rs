//! How far trimbench itself was there: spans in which it did not run, and what its actors' threads
//! waited for a processor.

use super::spans::Spans;
use crate::verdict::{Absence, CpuWait, Foreground};
use record::absence::{self, Absent};
use record::{ActorColumns, RunRecord};

/// An actor that waited for a processor for more than this share of its time makes a warning.
const SHORT_OF_CPU: f64 = 0.05;

/// The spans in which trimbench did not run, in order of time.
pub(super) fn absences(record: &RunRecord) -> Vec<Absence> {
    let intervals = &record.intervals;
    let all = intervals.absent.iter();
    all.map(|(&i, &absent)| Absence {
        at_s: intervals.at_s[i],
        absent,
    })
    .collect()
}

/// That they are left out.
pub(super) fn left_out(absences: &[Absence]) -> Option<String> {
    let all: Vec<Absent> = absences.iter().map(|one| one.absent).collect();
    let spans = absence::in_words(&all)?;
    let at = match absences {
        [one] => format!(" at {:.1} s", one.at_s),
        _ => String::new(),
    };
    Some(format!(
        "trimbench itself did not run for {spans}{at}. All figures leave out that time, and I/O that \
         was in flight."
    ))
}

/// The share of its time that an actor's threads waited, in these stretches; `None` where
/// nobody looked.
pub(super) fn cpu_wait(
    record: &RunRecord,
    actor: &ActorColumns,
    baseline: Option<&Spans>,
    delete: Option<&Spans>,
) -> Option<CpuWait> {
    let share = |spans: Option<&Spans>| mean(record, actor, spans?);
    let wait = CpuWait {
        baseline: share(baseline),
        delete: share(delete),
    };
    (wait != CpuWait::default()).then_some(wait)
}

fn mean(record: &RunRecord, actor: &ActorColumns, spans: &Spans) -> Option<f64> {
    let known = |i: &usize| actor.cpu_wait.get(*i).is_some_and(|share| !share.is_nan());
    let (mut waited_s, mut all_s) = (0.0, 0.0);
    for i in spans.intervals().filter(known) {
        let seconds = f64::from(record.intervals.seconds[i]);
        waited_s += f64::from(actor.cpu_wait[i]) * seconds;
        all_s += seconds;
    }
    (all_s > 0.0).then(|| waited_s / all_s)
}

/// Whose threads waited for a processor, if that was long.
pub(super) fn short_of_cpu(actors: &[&Foreground]) -> Option<String> {
    let is_much = |share: &f64| *share > SHORT_OF_CPU;
    let words = |seen: &&Foreground| {
        let wait = seen.cpu_wait?;
        let parts = [(wait.baseline, "before"), (wait.delete, "during")];
        let known = parts.iter().filter_map(|(share, _)| share.as_ref());
        known.clone().any(is_much).then(|| {
            let parts: Vec<String> = parts
                .iter()
                .zip(["of its time ", ""])
                .filter_map(|((share, when), of)| {
                    Some(format!("{} {of}{when}", record::units::percent((*share)?)))
                })
                .collect();
            format!(
                "{} waited for a CPU for {} the deletion",
                seen.actor,
                parts.join(" and ")
            )
        })
    };
    let who: Vec<String> = actors.iter().filter_map(words).collect();
    (!who.is_empty()).then(|| {
        format!(
            "{}, so rates and waits tell less of the drive. Give trimbench more processors, or \
             stop what else runs.",
            who.join("; ")
        )
    })
}
