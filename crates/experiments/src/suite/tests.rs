//! Logs that were made up, for tests.

use record::Origin;

use crate::suite::cell::Cell;
use crate::suite::log::{Drive, Figures, Head, Line, Outcome, SCHEMA};
use crate::suite::measure::RunFigures;
use crate::suite::plan::{Asked, Plan};
use crate::suite::step::Step;

/// The head of a suite on a simulated drive.
pub(crate) fn head(cells: &[&str], rounds: u32) -> Head {
    let asked = Asked {
        cells: cells
            .iter()
            .map(|name| Cell::named(name).unwrap())
            .collect(),
        repeats: Some(rounds),
        ..Asked::default()
    };
    Head {
        schema: SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        origin: Origin {
            host: Some("made-up".to_owned()),
            kernel: Some("6.18.0".to_owned()),
            ..Origin::default()
        },
        drive: Drive::Lab {
            profile: "ideal".to_owned(),
            size_bytes: 1 << 36,
            slower: 1.0,
        },
        plan: Plan::new(&asked, 1 << 36).unwrap(),
    }
}

/// A step that took so many seconds.
pub(crate) fn step(cell: &Cell, round: u32, step: Step, seconds: f64) -> Line {
    let run = step.is_run().then(|| RunFigures {
        verdict: "stall".to_owned(),
        summary: "Deleting 1 GiB stalled reads.".to_owned(),
        before_per_s: Some(1000.0),
        during_per_s: Some(100.0 * seconds),
        in_stall_per_s: Some(50.0),
        after_per_s: Some(990.0),
        stall_s: Some(seconds),
        longest_stall_s: Some(seconds),
        trim_bytes_per_s: Some(1e9),
        trim_is_bound: false,
    });
    let run = run.map(Box::new);
    let removal = step.is_rm().then_some(seconds);
    Line::Step {
        cell: cell.to_string(),
        round,
        step,
        outcome: Outcome::Done(Figures {
            seconds,
            first_sync_s: removal,
            second_sync_s: removal.map(|s| s / 2.0),
            freed_s: removal
                .filter(|_| cell.mounting.discards())
                .map(|s| 3.0 * s),
            discards: 10,
            discard_bytes: 1 << 30,
            run,
        }),
    }
}

/// The log of a suite in which the k-th step of the first round took `k + 1` seconds, and each
/// later round a tenth of a second more.
pub(crate) fn log(cells: &[&str], rounds: u32, factor: f64) -> crate::suite::log::Log {
    let head = head(cells, rounds);
    let mut text = serde_json::to_string(&Line::Head(Box::new(head.clone()))).unwrap() + "\n";
    for (round, cell) in head.plan.turns() {
        for (k, one) in Step::of(&cell).into_iter().enumerate() {
            let seconds = factor * (k as f64 + 1.0 + 0.1 * f64::from(round - 1));
            text += &serde_json::to_string(&step(&cell, round, one, seconds)).unwrap();
            text.push('\n');
        }
    }
    crate::suite::log::Log::parse(&text).unwrap()
}
