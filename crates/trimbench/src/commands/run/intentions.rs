//! Describes a run in a few lines, before it begins.

use std::time::Duration;

use bench::Survey;
use bench::plan::{
    ActorSpec, Control, Deletion, Discard, Event, LoopKind, Lsm, Method, Op, Place, Plan, Program,
    Punch, Purge, Spill, Truncate, Unlink, Work,
};
use bench::scenario::Scenario;
use bench::sizes::Fragments;
use record::units::duration_exact;
use storage::FileSystem;

/// The lines.
pub(crate) fn of(plan: &Plan, survey: &Survey) -> String {
    let mut text = String::new();
    for actor in &plan.actors {
        text += &own_files(actor);
    }
    let foreground = match plan.needs_file() {
        true => plan.file.size_bytes,
        false => 0,
    };
    let Some(deletion) = &plan.deletion else {
        let size = record::units::bytes(foreground);
        text += &format!("Will write {size} for the foreground and delete nothing.\n");
        return text + &written_on(plan);
    };
    text += &deleted(plan, deletion, foreground);
    text += &written_on(plan);
    if let Some(extent_bytes) = deletion.extent_bytes {
        let fragments = Fragments::on(survey, deletion.files, extent_bytes);
        text += &format!(
            "Keeping the extents apart takes up to {} more meanwhile.\n",
            record::units::bytes(
                fragments.overhead(deletion.size_bytes) * u64::from(plan.control.deletions())
            ),
        );
    }
    match plan.control {
        Control::Nodiscard => {
            text += "Control: the same deletion first, with the file system remounted nodiscard.\n";
        }
        Control::SecondName => {
            text += "Control: a second name of each file is unlinked first, which frees nothing";
            text += match FileSystem::named(&survey.target).remount_switches_discard() {
                true => ".\n",
                false => " (XFS can't be remounted nodiscard).\n",
            };
        }
        Control::Off => {}
    }
    text
}

/// Introduces a scenario before its run begins.
pub(crate) fn introduced(name: &str, scenario: &Scenario) -> String {
    let mut text = format!("Scenario {name}");
    if let Some(about) = &scenario.general.about {
        text += &format!(": {about}");
    }
    text += ".\n";
    if let Some(figure) = &scenario.general.look_at {
        text += &format!("Look at: {figure}.\n");
    }
    text
}

/// The files that an actor keeps beside the shared file.
fn own_files(actor: &ActorSpec) -> String {
    let own = actor.own_bytes();
    match (own, &actor.work, actor.arrival.depth()) {
        (0, ..) => String::new(),
        (own, Work::Task(_), depth @ 2..) => format!(
            "{} has {depth} files of its own, of up to {} each.\n",
            actor.name,
            record::units::bytes(own / u64::from(depth))
        ),
        (own, ..) => format!(
            "{} has a file of its own, of up to {}.\n",
            actor.name,
            record::units::bytes(own)
        ),
    }
}

/// Returns a line for each actor that goes on writing while the run lasts.
fn written_on(plan: &Plan) -> String {
    let least = plan.phases.baseline() + plan.phases.recovery();
    match plan.writes_at_most() {
        Some(_) => String::new(),
        None => plan.actors.iter().map(|a| goes_on(a, least)).collect(),
    }
}

/// Returns the line of one that does so for `least` or longer; nothing of one that only reads.
fn goes_on(actor: &ActorSpec, least: Duration) -> String {
    let (share, block) = match &actor.work {
        Work::Blocks(blocks) => match blocks.op {
            Op::Mixed { read_percent } => {
                (1.0 - f64::from(read_percent) / 100.0, blocks.block_bytes)
            }
            op => (f64::from(u8::from(op.writes())), blocks.block_bytes),
        },
        Work::Task(task) => (1.0, task.block_bytes),
    };
    let (name, each) = (&actor.name, share * f64::from(block));
    let long = duration_exact(least);
    let amount = match actor.arrival {
        _ if each == 0.0 => return String::new(),
        LoopKind::Open { rate_per_s, .. } => {
            let bytes = each * rate_per_s * least.as_secs_f64();
            format!(
                "about {} more in {long}",
                record::units::bytes(bytes as u64)
            )
        }
        LoopKind::Closed { .. } => format!("as fast as the drive takes it, for {long}"),
    };
    format!("{name} goes on writing: {amount}, and longer while it settles and deletes.\n")
}

fn deleted(plan: &Plan, deletion: &Deletion, foreground: u64) -> String {
    let bytes = deletion.size_bytes * u64::from(plan.control.deletions());
    let size = record::units::bytes(bytes);
    let files = match (deletion.files, &plan.place) {
        (_, Place::Device { .. }) => String::new(),
        (1, _) => " in 1 file".to_owned(),
        (files, _) => format!(" in {files} files"),
    };
    let writes = |bytes: u64| record::units::bytes(bytes + foreground);
    match &deletion.method {
        Method::Fstrim(_) => format!(
            "Will write {}, delete {size}{files} before the measurement, and trim the whole file \
             system in it.\n",
            writes(bytes)
        ),
        Method::Event(event) => watched(plan, event, foreground),
        Method::Swap(_) => format!(
            "Will write {}, rename {size}{files} aside and replacements in, and delete the old \
             ones.\n",
            writes(bytes)
        ),
        Method::Lsm(Lsm {
            levels,
            file_bytes,
            rate_bytes_per_s,
            run_for,
        }) => format!(
            "Will write {} for the foreground; then, for {}, an LSM tree of {levels} levels writes \
             {}/s in files of {} and drops what it has merged; never more than {size} at once.\n",
            record::units::bytes(foreground),
            duration_exact(*run_for),
            record::units::bytes(*rate_bytes_per_s),
            record::units::bytes(*file_bytes),
        ),
        Method::Spill(Spill {
            parallel,
            pause,
            run_for,
        }) => format!(
            "Will write {} for the foreground; then, for {}, create, write and unlink {parallel} \
             files of {} at a time, {} apart.\n",
            record::units::bytes(foreground),
            duration_exact(*run_for),
            record::units::bytes(deletion.size_bytes / u64::from(*parallel)),
            duration_exact(*pause),
        ),
        other => format!(
            "Will write {} and delete {size}{files} by {}.{}\n",
            writes(bytes),
            how(other),
            match pauses(deletion) {
                waited if waited >= LONG => format!(
                    " Its pauses alone take {}.",
                    record::units::seconds(waited.as_secs_f64())
                ),
                _ => String::new(),
            }
        ),
    }
}

/// An event, or a trim whose gain is measured.
fn watched(plan: &Plan, event: &Event, foreground: u64) -> String {
    let foreground = record::units::bytes(foreground);
    let text = &event.text;
    if let Some(limit) = event.writes_at_most_bytes {
        return format!(
            "Will write {foreground} for the foreground, overwrite it before, while and after \
             `{text}`, and write at most {} in all.\n",
            record::units::bytes(limit)
        );
    }
    format!(
        "Will write {foreground} for the foreground and delete nothing else.\nAfter {} undisturbed, \
         run `{text}` as the event; it is over when no discards have come for {} after its end.\n",
        duration_exact(plan.phases.baseline()),
        duration_exact(event.quiet)
    )
}

/// Pauses that are worth a word, all together.
const LONG: Duration = Duration::from_secs(5);

/// How long a deletion in steps does nothing, over all its steps.
fn pauses(deletion: &Deletion) -> Duration {
    let files = u64::from(deletion.files.max(1));
    let (steps, pause) = match &deletion.method {
        Method::Truncate(Truncate {
            chunk_bytes, sleep, ..
        })
        | Method::Punch(Punch {
            chunk_bytes, sleep, ..
        }) => {
            let file_bytes = deletion.size_bytes / files;
            let steps = file_bytes.div_ceil((*chunk_bytes).max(1));
            (steps.saturating_mul(files), *sleep)
        }
        Method::Purge(Purge { at_once, every }) => {
            let purges = files.div_ceil(u64::from((*at_once).max(1)));
            (purges.saturating_sub(1), *every)
        }
        _ => return Duration::ZERO,
    };
    let nanos = u128::from(steps).saturating_mul(pause.as_nanos());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn how(method: &Method) -> String {
    match method {
        Method::Unlink(Unlink { parallel: 1 }) => "unlink".to_owned(),
        Method::Unlink(Unlink { parallel }) => format!("unlink, {parallel} at a time"),
        Method::Truncate(Truncate {
            chunk_bytes, sleep, ..
        }) => format!(
            "truncation in steps of {}, {} apart",
            record::units::bytes(*chunk_bytes),
            duration_exact(*sleep)
        ),
        Method::Punch(Punch {
            from,
            chunk_bytes,
            sleep,
        }) => format!(
            "holes of {} from the {} on, {} apart, and unlink",
            record::units::bytes(*chunk_bytes),
            from.name(),
            duration_exact(*sleep)
        ),
        Method::Purge(Purge { at_once, every }) => format!(
            "unlink of the oldest {at_once} at once, every {}",
            duration_exact(*every)
        ),
        Method::Program(Program { argv }) => format!("`{}`", argv.join(" ")),
        Method::Discard(Discard { step_bytes }) => {
            format!(
                "BLKDISCARD in steps of {}",
                record::units::bytes(*step_bytes)
            )
        }
        other => other.how().name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses_of(method: impl Into<Method>, size_bytes: u64, files: u32) -> Duration {
        pauses(&Deletion {
            method: method.into(),
            size_bytes,
            files,
            extent_bytes: None,
            commit: true,
        })
    }

    #[test]
    fn actors_that_write_on_are_announced() {
        let writes = |op, arrival| {
            let mut actor = ActorSpec::reader(true, arrival);
            if let Work::Blocks(blocks) = &mut actor.work {
                (blocks.op, blocks.block_bytes) = (op, 1 << 20);
            }
            goes_on(&actor, Duration::from_secs(20))
        };
        let (fast, slow) = (LoopKind::Closed { depth: 4 }, LoopKind::evenly(50.0));
        assert_eq!(writes(Op::Read, fast), "");
        let text = writes(Op::Write, fast);
        assert!(
            text.contains("as fast as the drive takes it, for 20s"),
            "{text}"
        );
        let text = writes(Op::Write, slow);
        assert!(text.contains("about 1000 MiB more in 20s"), "{text}");
        let text = writes(Op::Mixed { read_percent: 90 }, slow);
        assert!(text.contains("about 100 MiB more"), "{text}");
    }

    #[test]
    fn pauses_add_up() {
        let cut = |chunk_bytes| Truncate {
            chunk_bytes,
            sleep: Duration::from_millis(100),
            fsync: false,
        };
        let seconds = Duration::from_secs;
        assert_eq!(pauses_of(cut(10), 1000, 1), seconds(10));
        assert_eq!(pauses_of(cut(400), 1000, 2), Duration::from_millis(400));
        assert_eq!(
            pauses_of(cut(1), u64::MAX, 1),
            Duration::from_nanos(u64::MAX)
        );
        let purge = |at_once| Purge {
            at_once,
            every: seconds(2),
        };
        assert_eq!(pauses_of(purge(4), 1000, 32), seconds(14));
        assert_eq!(pauses_of(purge(50), 1000, 2), seconds(0));
        let unlink = Unlink { parallel: 1 };
        assert_eq!(pauses_of(unlink, 1000, 2), seconds(0));
    }
}
