//! Which card a drive gets: a shipped profile by its name or a part of it, or a
//! file.

use std::path::Path;

use ::lab::Info;
use ssd::card::KEYS;
use ssd::{Card, profiles};

use crate::exit::Error;

/// The card that `--profile` names, as a scenario is named: what has a slash or
/// ends in `.toml` is a file.
pub(crate) fn named(name: &str) -> Result<Card, Error> {
    if name.contains('/') || Path::new(name).extension().is_some_and(|e| e == "toml") {
        let usage = |why: String| Error::Usage(format!("{name}: {why}"));
        let text = std::fs::read_to_string(name)
            .map_err(|error| usage(format!("can't be read: {error}; give a device card")))?;
        return text.parse().map_err(|error| usage(format!("{error}")));
    }
    if let Some(card) = profiles::by_name(name) {
        return Ok(card.clone());
    }
    let part: Vec<&Card> = profiles::all()
        .iter()
        .filter(|card| !name.is_empty() && card.name().contains(name))
        .collect();
    match part[..] {
        [card] => Ok(card.clone()),
        [] => Err(Error::Usage(unknown(name))),
        _ => Err(Error::Usage(format!(
            "--profile {name} could be {}: give more of the name",
            names(&part)
        ))),
    }
}

/// Figures of a drive that aren't its profile's.
pub(crate) fn changed(info: &Info) -> Vec<&'static str> {
    let Ok(card) = info.spec.card() else {
        return Vec::new();
    };
    let by_hand = |path| card.note(path).is_some_and(|n| n.source == "set by hand");
    let paths = KEYS.iter().map(|key| key.path);
    paths.filter(|path| by_hand(path)).collect()
}

fn unknown(name: &str) -> String {
    let all: Vec<&Card> = profiles::all().iter().collect();
    // Of a long name a part may have been meant: `t5000` of `crucial-t500-2tb`.
    let likeness = |card: &Card| {
        let parts = card.name().split('-').chain([card.name()]);
        parts
            .map(|part| strsim::jaro_winkler(name, part))
            .fold(0.0, f64::max)
    };
    let nearest = all
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
        .filter(|card| likeness(card) > 0.7);
    let hint = match nearest {
        Some(card) => format!("; did you mean '{}'?", card.name()),
        None => ".".to_owned(),
    };
    format!(
        "there is no profile '{name}'{hint} There are {}; a file of your own has a slash in its \
         name or ends in .toml",
        names(&all)
    )
}

fn names(cards: &[&Card]) -> String {
    let names: Vec<&str> = cards.iter().map(|card| card.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_by_a_part_that_no_other_has() {
        assert_eq!(named("t500").unwrap().name(), "crucial-t500-2tb");
        assert_eq!(named("ideal").unwrap().name(), "ideal");
        let said = named("ocz").unwrap_err().to_string();
        assert!(said.contains("ocz-vertex-2, ocz-agility-2"), "{said}");
        for (typed, meant) in [
            ("idael", "ideal"),
            ("samsung-870-evo-1tb", "samsung-870-evo-2tb"),
        ] {
            let said = named(typed).unwrap_err().to_string();
            assert!(
                said.contains(&format!("did you mean '{meant}'? There are")),
                "{said}"
            );
        }
        let said = named("").unwrap_err().to_string();
        assert!(said.contains("no profile ''. There are"), "{said}");
    }
}
