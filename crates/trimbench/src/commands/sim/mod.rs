//! `trimbench sim`.

pub(crate) mod args;
mod like;
mod setup;
mod table;

use std::slice::from_mut;

use ::sim::{Figures, Outcome, PolicyKind, Setup, SimError};
use serde_json::json;

use crate::card;
use crate::commands::sim::args::{Common, CompareArgs, RunArgs, SimArgs, SimCommand};
use crate::commands::sim::like::Recorded;
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::output::{Output, Sink};
use crate::record_output;
use crate::status_line::Live;

/// The schema of the figures as JSON.
const SCHEMA: &str = "trimbench.sim/1";

/// Carries out the command.
pub(crate) fn run(args: &SimArgs) -> Result<Exit, Error> {
    match &args.command {
        SimCommand::Run(args) => one(args),
        SimCommand::Compare(args) => compare(args),
        SimCommand::List => {
            Stream::Out.print(&setup::list());
            Ok(Exit::Done)
        }
    }
}

fn one(args: &RunArgs) -> Result<Exit, Error> {
    let named = args.policy.as_deref().map(setup::policy).transpose()?;
    let recorded = recorded(&args.common)?;
    let usual = || {
        recorded
            .as_ref()
            .map_or(PolicyKind::Ext4Online, Recorded::policy)
    };
    let mut simulated = setup_of(&args.common, recorded.as_ref(), named.unwrap_or_else(usual))?;
    setup::change(from_mut(&mut simulated), &args.common.set, false)?;
    let record = args.output.as_deref().map(Output::open).transpose()?;
    let json = Sink::named(&args.json)?;
    let outcome = ::sim::run(&simulated).map_err(failed)?;
    if let Some(why) = unknown(&args.common, &simulated, &outcome.figures) {
        return Err(usage(format!("{why}. {LADDER}")));
    }
    let text = Sink::people(&json);
    let record_made = &outcome.record;
    // The same as `report` prints of the record, which has no card.
    let mut verdict = record_output::verdict(record_made);
    verdict.summary += &guessed(&simulated, &outcome);
    text.print(&record_output::ended(record_made, &verdict, &text.style()));
    text.print(&format!("\n{}", table::single(&simulated, &outcome)));
    let notes = notes(recorded.as_ref(), [(&simulated, &outcome)]);
    noted(&text, notes.into_iter().chain(of_cards(&simulated)));
    if let Some(record) = record {
        record.whole_record(record_made)?;
    }
    if let Some(json) = json {
        json.json(&json!({ "schema": SCHEMA, "runs": [row(&simulated, &outcome, None)] }))?;
    }
    Ok(match outcome.figures.is_full {
        true => Exit::Failed,
        false => Exit::Done,
    })
}

fn compare(args: &CompareArgs) -> Result<Exit, Error> {
    let named = args.policy.iter().map(|name| setup::policy(name));
    let mut policies = named.collect::<Result<Vec<_>, _>>()?;
    let recorded = recorded(&args.common)?;
    let lacks = |&policy: &PolicyKind| recorded.as_ref()?.lacks(policy);
    let mut left_out = None;
    if policies.is_empty() {
        policies = PolicyKind::ALL.to_vec();
        left_out = policies.iter().find_map(lacks);
        policies.retain(|policy| lacks(policy).is_none());
    }
    let goes_on = setup::of(&args.common, PolicyKind::None)?
        .workload
        .is_continuous();
    if goes_on && !policies.contains(&PolicyKind::None) {
        policies.insert(0, PolicyKind::None);
    }
    let setups = policies
        .iter()
        .map(|&policy| setup_of(&args.common, recorded.as_ref(), policy));
    let mut setups = setups.collect::<Result<Vec<_>, _>>()?;
    setup::change(&mut setups, &args.common.set, true)?;
    let json = Sink::named(&args.json)?;
    let mut outcomes = Vec::new();
    let mut error = None;
    let count = setups.len();
    let mut live = Live::new("trimbench sim");
    ::sim::in_order(&setups, threads(), ::sim::run, |at, result| {
        live.show(|_| format!("{} of {count} policies", at + 1));
        match result {
            Ok(outcome) => outcomes.push(outcome),
            Err(why) => error = Some(why),
        }
        error.is_none()
    });
    live.end();
    if let Some(why) = error {
        return Err(failed(why));
    }
    let without = policies
        .iter()
        .position(|policy| *policy == PolicyKind::None);
    if let Some(without) = without.filter(|_| goes_on).map(|at| outcomes[at].clone()) {
        outcomes
            .iter_mut()
            .for_each(|outcome| outcome.measure_by(&without));
    }
    let mut unknowns = Vec::new();
    (setups, outcomes) = setups
        .into_iter()
        .zip(outcomes)
        .filter(|(setup, outcome)| {
            let why = unknown(&args.common, setup, &outcome.figures);
            unknowns.extend(why.clone());
            why.is_none()
        })
        .unzip();
    if setups.is_empty() {
        return Err(usage(format!("{}. {LADDER}", unknowns.join("; "))));
    }
    if !unknowns.is_empty() {
        left_out = Some(format!("Left out: {}. {LADDER}", unknowns.join("; ")));
    }
    let figures: Vec<_> = outcomes.iter().map(|o| o.figures.clone()).collect();
    let front = ::sim::pareto_front(&figures);
    let text = Sink::people(&json);
    text.print(&table::all(&setups, &figures, &front));
    // All have the same drives, so one setup has all notes.
    let with_all = setups.iter().max_by_key(|setup| cuts(setup));
    let notes = notes(recorded.as_ref(), setups.iter().zip(&outcomes));
    // What is left out is so because of the card.
    let with_all = with_all.filter(|_| left_out.is_none());
    let of_cards = with_all.into_iter().flat_map(of_cards);
    noted(&text, notes.into_iter().chain(left_out).chain(of_cards));
    if let Some(json) = json {
        let runs = setups.iter().zip(&outcomes).zip(&front);
        let runs = runs.map(|((setup, outcome), &front)| row(setup, outcome, Some(front)));
        let runs: Vec<_> = runs.collect();
        json.json(&json!({ "schema": SCHEMA, "runs": runs }))?;
    }
    Ok(Exit::Done)
}

/// The run of --like.
fn recorded(common: &Common) -> Result<Option<Recorded>, Error> {
    let path = common.like.as_deref();
    path.map(|path| Recorded::read(path, common)).transpose()
}

/// A policy's setup: as recorded, or as set.
fn setup_of(
    common: &Common,
    recorded: Option<&Recorded>,
    policy: PolicyKind,
) -> Result<Setup, Error> {
    match recorded {
        Some(recorded) => recorded.with(policy),
        None => setup::of(common, policy),
    }
}

/// Notes on repeats of a recorded run.
fn notes<'s>(
    recorded: Option<&Recorded>,
    runs: impl IntoIterator<Item = (&'s Setup, &'s Outcome)>,
) -> Vec<String> {
    let Some(recorded) = recorded else {
        return Vec::new();
    };
    let runs = runs.into_iter();
    let own = runs.flat_map(|(setup, outcome)| recorded.notes_on(setup, &outcome.verdict));
    recorded.notes.iter().cloned().chain(own).collect()
}

fn noted(text: &Stream, notes: impl Iterator<Item = String>) {
    for note in notes {
        text.print(&format!("! {note}\n"));
    }
}

/// The way to a card of several sizes.
const LADDER: &str = "A ladder on a drive without other I/O measures several sizes: trimbench fit DIRECTORY --output CARD";

/// Why nothing is known of a run by its drive's card; a record's own discards have its card's sizes.
fn unknown(common: &Common, setup: &Setup, figures: &Figures) -> Option<String> {
    let mean = figures.discarded_bytes.checked_div(figures.commands)?;
    let is_own = common.like.is_some() && common.profile.is_none();
    let card = setup.drives.cards.first().filter(|_| !is_own)?;
    let why = card::of_other_size(card, mean)?;
    Some(format!("{} sends discards of {why}", setup.policy.name()))
}

/// Whether the policy cuts files by what discards cost.
fn cuts(setup: &Setup) -> bool {
    setup.policy == PolicyKind::Adaptive
}

/// Warnings of cards that hold for discards of one size alone, or assume what the policy goes by.
fn of_cards(setup: &Setup) -> impl Iterator<Item = String> + '_ {
    setup.drives.cards.iter().filter_map(|card| {
        let unmeasured = || card::of_unmeasured_cuts(card);
        let cut = cuts(setup).then(unmeasured).flatten();
        cut.or_else(|| card::of_one_size(card))
    })
}

/// Returns why a run's times are a guess, if they are, with the mean size of its discards.
fn guess(setup: &Setup, figures: &Figures) -> Option<(String, u64)> {
    let mean = figures.discarded_bytes.checked_div(figures.commands)?;
    let card = setup.drives.cards.first()?;
    let cut = || card::of_unmeasured_cuts(card).filter(|_| cuts(setup));
    let by_a =
        || cut().map(|_| "the card's `a`, by which files are cut, was not measured".to_owned());
    Some((card::guess(card, mean).or_else(by_a)?, mean))
}

/// The same as a sentence after the verdict's.
fn guessed(setup: &Setup, outcome: &Outcome) -> String {
    guess(setup, &outcome.figures).map_or(String::new(), |(why, mean)| {
        let mean = record::units::bytes(mean);
        format!(" A guess: {why}; the run's discards were of {mean} on average.")
    })
}

/// A run's settings and figures.
fn row(setup: &Setup, outcome: &Outcome, front: Option<bool>) -> serde_json::Value {
    json!({
        "settings": setup.describe(),
        "figures": outcome.figures,
        "pareto": front,
        "summary": outcome.verdict.summary.clone() + &guessed(setup, outcome),
        "events": outcome.events,
    })
}

/// Runs at once: one for each processor that this process may use.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn failed(error: SimError) -> Error {
    match error {
        SimError::TooSmall { .. } | SimError::TooLong(_) => usage(error.to_string()),
        SimError::Refused(_) | SimError::LiveData { .. } => Error::Simulated(error.to_string()),
    }
}
