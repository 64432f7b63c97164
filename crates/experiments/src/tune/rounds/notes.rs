//! Sentences about how far the figures of all rounds can be trusted, and which are missing.

use super::Run;
use crate::tune::frontier::Point;
use crate::tune::trials::{Trial, Trials};

/// A note tells of discards that exceed what was deleted by this factor.
const MORE: f64 = 1.25;

/// The notes of the runs and of the points they make.
pub(super) fn of(
    points: &[Point],
    runs: &[Run],
    trials: &Trials,
    interrupted: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    let all = runs.len();
    let count = |of: fn(&&Run) -> bool| runs.iter().filter(of).count();
    let left_out = count(|run| !run.counts);
    if left_out > 0 {
        notes.push(format!(
            "{left_out} of {all} runs were disturbed and don't count"
        ));
    }
    let though = count(|run| run.counts && run.disturbed.is_some());
    if though > 0 {
        notes.push(format!(
            "{though} of {all} runs were disturbed and count all the same: try again when the \
             machine is quiet"
        ));
    }
    notes.extend(discarded_more(points, trials));
    let whole = trials.repeats as usize;
    if points.iter().any(|point| point.runs < whole) && !interrupted {
        notes.push(format!(
            "fewer than {whole} runs of some count, so their figures are less sure"
        ));
    }
    if points.iter().all(|point| point.runs < 2) {
        notes.push(
            "with one run each, how far the figures scatter is a guess: give --set repeats=3"
                .into(),
        );
    }
    notes
}

/// The trials that have no point, each with the reason. A note that names one already is its own.
pub(super) fn missing(
    trials: &[Trial],
    runs: &[Run],
    notes: &[String],
    ended: Option<&str>,
) -> Vec<String> {
    let note = |trial: &Trial| {
        let name = trial.to_string();
        let mut own = runs.iter().filter(|run| run.trial == *trial).peekable();
        let tried = own.peek().is_some();
        if own.any(|run| run.counts) || notes.iter().any(|note| note.starts_with(&name)) {
            return None;
        }
        Some(match (tried, ended) {
            (true, _) => format!("{name} is not in the table: no run of it counts"),
            (false, Some(why)) => format!("{name} was not tried: {why}"),
            (false, None) => format!("{name} is not in the table: its run was not carried out"),
        })
    };
    trials.iter().filter_map(note).collect()
}

fn discarded_more(points: &[Point], trials: &Trials) -> Option<String> {
    let size = trials.setup.size_bytes;
    let discarded = points.iter().map(|point| point.discard_bytes.median);
    let most = discarded.max_by(f64::total_cmp)?;
    let why = match trials.setup.discards_twice {
        true => {
            "btrfs discards block groups that became empty once more, and a trim takes them whole"
        }
        false => "a trim reaches what is free between the pieces of a file, too",
    };
    (most > MORE * size as f64).then(|| {
        format!(
            "where {} were deleted, {} were discarded: {why}, and that takes longer",
            record::units::bytes(size),
            record::units::bytes(most as u64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::figures::Figures;
    use crate::tune::trials::Policy;

    fn run(trial: Trial, counts: bool) -> Run {
        let figures = Figures {
            freeing_s: 1.0,
            lost_s: 0.0,
            worst_loss: 0.0,
            usual_worst_loss: 0.0,
            usual_low: 0.0,
            worst_read_us: 0.0,
            worst_fsync_us: 0.0,
            baseline_reads_per_s: 1.0,
            discard_bytes: 1,
            discards: 1,
            stalled: false,
            inconclusive: false,
        };
        Run {
            trial,
            figures,
            disturbed: None,
            counts,
            repeated: false,
        }
    }

    #[test]
    fn each_trial_without_a_row_has_a_reason() {
        let online = |mib: u64| Trial {
            policy: Policy::Online,
            limit_bytes: mib << 20,
        };
        let trials = [online(64), online(8), online(2), online(1)];
        let runs = [run(trials[0], true), run(trials[1], false)];
        let noted = ["online discard, at most 2.0 MiB was not tried: it takes long".to_owned()];
        assert_eq!(
            missing(&trials, &runs, &noted, Some("--for 2m was over; give more")),
            [
                "online discard, at most 8.0 MiB is not in the table: no run of it counts",
                "online discard, at most 1.0 MiB was not tried: --for 2m was over; give more",
            ]
        );
        assert!(missing(&trials[..1], &runs, &[], None).is_empty());
    }
}
