//! Which card a drive gets: a shipped profile by its name or a part of it, or a
//! file.

use std::path::Path;

use ::lab::Info;
use ::sim::STACKS;
use record::units::typed::{hint, nearest, sentence_end};
use record::units::{MIB, bytes, seconds};
use ssd::card::{KEYS, Sure};
use ssd::{Card, profiles};

use crate::exit::Error;

/// The card that `--profile` names, as a scenario is named: what has a slash or
/// ends in `.toml` is a file.
pub(crate) fn named(name: &str) -> Result<Card, Error> {
    let is_profile = profiles::all()
        .iter()
        .any(|card| card.name().contains(name));
    let stacks: Vec<&str> = STACKS.iter().map(|(stack, _)| *stack).collect();
    if let Some(stack) = stack_of_parts(name, &stacks).filter(|_| !is_profile) {
        return Err(Error::Usage(format!(
            "{stack} is a stack of drives, which only `trimbench sim` takes; give the profile of one \
             drive: {}",
            names(profiles::all().iter().map(Card::name))
        )));
    }
    named_beside(name, &[])
}

/// Returns a warning if the drive's card holds for discards of one size alone.
pub(crate) fn of_one_size(card: &Card) -> Option<String> {
    let holds = card.holds_for()?;
    Some(format!("The card {} {holds}", card.name()))
}

/// A size this many times another one is another size.
const OTHER_SIZE: f64 = 1.25;

/// Returns why nothing is known of the time of discards of so many bytes, on average, by this card.
pub(crate) fn of_other_size(card: &Card, mean: u64) -> Option<String> {
    let size = card.one_size()?;
    let times = mean as f64 / size as f64;
    (times.max(times.recip()) > OTHER_SIZE).then(|| {
        let (size, mean, name) = (bytes(size), bytes(mean), card.name());
        format!("{mean} on average, and the card {name} holds for about {size} alone")
    })
}

/// Returns why the time of discards of so many bytes, on average, is a guess by this card.
pub(crate) fn guess(card: &Card, mean: u64) -> Option<String> {
    // Of its own size the whole time was measured, of others nothing is known.
    if card.one_size().is_some() {
        return None;
    }
    let discard = card.figures().discard.as_ref()?;
    let (all, a) = (discard.service(mean, 0, 1), discard.a);
    let (figure, most) = match a * 2 > all {
        true => ("a", a),
        false => ("b", all.saturating_sub(a)),
    };
    let sure = card.note(&format!("discard.{figure}"))?.sure;
    (!most.is_zero() && matches!(sure, Sure::Bound | Sure::Assumed)).then(|| {
        format!("the card's `{figure}`, most of the time of such discards, was not measured")
    })
}

/// Returns a warning if the fixed time of a discard was not measured: `rm` cuts files by it.
pub(crate) fn of_unmeasured_cuts(card: &Card) -> Option<String> {
    let discard = card.figures().discard.as_ref()?;
    let note = card.note("discard.a")?;
    let costs = !discard.service(MIB, 0, 1).is_zero();
    (costs && matches!(note.sure, Sure::Bound | Sure::Assumed)).then(|| {
        let (name, a) = (card.name(), seconds(discard.a.as_secs_f64()));
        format!(
            "adaptive cuts files by the fixed time of a discard. That of {name} was not measured (its card \
             has {a}), so the number of discards, the time and the loss are a guess."
        )
    })
}

/// The same where stacks of drives can be named as well.
pub(crate) fn named_beside(name: &str, stacks: &[&str]) -> Result<Card, Error> {
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
        [] => Err(Error::Usage(unknown(name, stacks))),
        _ => Err(Error::Usage(format!(
            "--profile {name} could be {}: give more of the name",
            names(part.iter().map(|card| card.name()))
        ))),
    }
}

/// Figures of a drive that aren't its profile's, as `discard.phi=0`.
pub(crate) fn changed(info: &Info) -> Vec<String> {
    let of = |(path, value)| format!("{path}={value}");
    by_hand(info).into_iter().map(of).collect()
}

/// The same by their names, in the order of all figures.
pub(crate) fn by_hand(info: &Info) -> Vec<(String, String)> {
    let Ok(card) = info.spec.card() else {
        return Vec::new();
    };
    let by_hand = |path: &&str| card.note(path).is_some_and(|n| n.source == "set by hand");
    let paths = KEYS.iter().map(|key| key.name).filter(by_hand);
    let value = |path: &str| Some((path.to_owned(), card.text(path)?.to_owned()));
    paths.filter_map(value).collect()
}

fn unknown(name: &str, stacks: &[&str]) -> String {
    let all = || profiles::all().iter().map(Card::name);
    // Of a long name a part may have been meant: `t5000` of `crucial-t500-2tb`.
    let parts = || all().flat_map(|own| own.split('-').chain([own]).map(move |part| (part, own)));
    let near = nearest(name, parts().map(|(part, _)| part));
    let whole = |near: String| parts().find(|(part, _)| *part == near).map(|(_, own)| own);
    let meant = stack_of_parts(name, stacks).or_else(|| near.and_then(whole));
    let hint = hint(&meant.map(str::to_owned));
    format!(
        "there is no profile '{name}'{} There are {}; a file of your own has a slash in its name or \
         ends in .toml",
        sentence_end(&hint),
        names(all().chain(stacks.iter().copied()))
    )
}

/// The stack that has each part of a name between dashes.
fn stack_of_parts<'a>(name: &str, stacks: &[&'a str]) -> Option<&'a str> {
    let has = |stack: &&str| {
        let mut parts = name.split('-');
        parts.all(|part| stack.split('-').any(|own| own == part))
    };
    stacks.iter().copied().find(has)
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
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
        let stacks = ["crucial-t500-2tb-raid0"];
        let said = named_beside("raid0-t500", &stacks).unwrap_err().to_string();
        assert!(
            said.contains("did you mean 'crucial-t500-2tb-raid0'? There"),
            "{said}"
        );
        assert!(said.contains("no-trim, crucial-t500-2tb-raid0;"), "{said}");
        let said = named("crucial-t500-2tb-raid0").unwrap_err().to_string();
        assert!(
            said.contains("a stack of drives, which only `trimbench sim`"),
            "{said}"
        );
        let said = named("raid0-t500").unwrap_err().to_string();
        assert!(
            said.contains("crucial-t500-2tb-raid0 is a stack of drives"),
            "{said}"
        );
        let said = named("").unwrap_err().to_string();
        assert!(said.contains("no profile ''. There are"), "{said}");
    }

    #[test]
    fn an_assumed_fixed_time_is_warned_of_where_discards_take_time() {
        let warned = |name| of_unmeasured_cuts(&named(name).unwrap());
        let text = warned("980-pro").unwrap();
        assert!(
            text.contains("samsung-980-pro-1tb was not measured (its card has 100 µs)"),
            "{text}"
        );
        assert_eq!(warned("t500"), None);
        assert_eq!(warned("ideal"), None);
    }

    #[test]
    fn a_card_of_one_size_is_warned_of() {
        let t500 = named("t500").unwrap();
        assert_eq!(of_one_size(&t500), None);
        let alone = "It holds for discards of about 2.0 GiB alone: how a discard's cost depends on \
                     its size was not measured.";
        let text = t500.to_string().replace(t500.about(), alone);
        let warned = of_one_size(&text.parse().unwrap()).unwrap();
        let sentence = "The card crucial-t500-2tb holds for discards of about 2.0 GiB alone: how a";
        assert!(warned.starts_with(sentence), "{warned}");
    }

    #[test]
    fn times_of_other_sizes_are_unknown_and_by_assumed_figures_guesses() {
        let t500 = named("t500").unwrap();
        let alone = "It holds for discards of about 31.5 MiB alone: how a discard's cost depends on \
                     its size was not measured.";
        let text = t500.to_string().replace(t500.about(), alone);
        let one_size: Card = text.parse().unwrap();
        for mib in [4, 64] {
            let why = of_other_size(&one_size, mib * MIB).unwrap();
            assert!(why.ends_with("about 31.5 MiB alone"), "{why}");
            assert_eq!(guess(&one_size, mib * MIB), None);
        }
        assert_eq!(of_other_size(&one_size, 32 * MIB), None);
        // The 980 PRO's fixed time is assumed, its time for each byte isn't.
        let pro = named("980-pro").unwrap();
        assert!(guess(&pro, MIB).unwrap().contains("card's `a`, most"));
        assert_eq!(guess(&pro, 4096 * MIB), None);
        for known in ["t500", "870-evo", "vertex-2", "ideal"] {
            let card = named(known).unwrap();
            assert_eq!(
                (guess(&card, MIB), guess(&card, 1024 * MIB)),
                (None, None),
                "{known}"
            );
        }
    }
}
