//! Published measurements, again in virtual time.
#![allow(clippy::unwrap_used)]

mod devices;
mod ffs_2011;
mod mkfs_2015;

use sim::{Drives, Outcome, Setup};
use ssd::Card;

/// A shipped card, changed.
fn card(name: &str, changes: &[&str]) -> Card {
    let card = ssd::profiles::by_name(name).unwrap().clone();
    changes
        .iter()
        .fold(card, |card, change| card.with(change).unwrap())
}

fn single(name: &str) -> Drives {
    Drives::single(card(name, &[]))
}

fn run(setup: &Setup) -> Outcome {
    sim::run(setup).unwrap()
}
