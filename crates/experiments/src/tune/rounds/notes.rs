//! Sentences about how far the figures of all rounds can be trusted.

use super::Run;
use crate::tune::point::Point;
use crate::tune::trials::Trials;

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
