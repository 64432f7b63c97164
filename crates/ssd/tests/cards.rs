//! Device cards: what is read, what is refused, and that every shipped one is good.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use ssd::card::{KEYS, Sure};
use ssd::{Card, Queue, profiles};

const MINIMAL: &str = r#"
name = "mine"
about = "a drive"
[discard]
a = { value = "2ms", sure = "measured", source = "here" }
b = { value = "8us/MiB", sure = "measured", source = "here" }
queue = { value = "exclusive", sure = "assumed", source = "here" }
[read]
latency = { value = "80us", sure = "measured", source = "here" }
parallelism = { value = 64, sure = "assumed", source = "here" }
[write]
latency = { value = "20us", sure = "measured", source = "here" }
parallelism = { value = 4, sure = "assumed", source = "here" }
[flush]
latency = { value = "0", sure = "assumed", source = "here" }
"#;

fn error(text: &str) -> String {
    text.parse::<Card>().unwrap_err().to_string()
}

#[test]
fn every_shipped_card_is_good() {
    for text in profiles::TEXTS {
        let card: Card = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(
            &card.to_string(),
            text,
            "{} is not printed as it is",
            card.name()
        );
        assert_eq!(profiles::by_name(card.name()), Some(&card));
    }
    assert_eq!(profiles::all().len(), profiles::TEXTS.len());
    // A file nobody listed would never be found.
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles")).unwrap();
    let mut names: Vec<_> = files
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut listed: Vec<_> = profiles::all()
        .iter()
        .map(|c| format!("{}.toml", c.name()))
        .collect();
    names.sort();
    listed.sort();
    assert_eq!(names, listed);
    assert!(
        profiles::by_name("no-trim")
            .unwrap()
            .figures()
            .discard
            .is_none()
    );
}

#[test]
fn what_a_card_leaves_out_has_its_default() {
    let card: Card = MINIMAL.parse().unwrap();
    let discard = card.figures().discard.as_ref().unwrap();
    assert_eq!(discard.queue, Queue::Exclusive { phi: 1.0 });
    assert_eq!(discard.b_unmapped, discard.b);
    assert_eq!(card.figures().granule, 4096);
    assert_eq!(card.note("discard.a").unwrap().sure, Sure::Measured);
    assert!(card.note("discard.phi").is_none());
}

#[test]
fn says_where_a_key_is_unknown_and_which_was_meant() {
    let typo = MINIMAL.replace("parallelism = { value = 64", "paralelism = { value = 64");
    assert_eq!(
        error(&typo),
        "line 10, column 1: unknown key 'paralelism'; did you mean 'parallelism'?"
    );
    let section = MINIMAL.replace("[discard]", "[discrad]");
    assert_eq!(
        error(&section),
        "line 4, column 2: unknown key 'discrad'; did you mean 'discard'?"
    );
    let inner = MINIMAL.replacen("sure", "shure", 1);
    assert_eq!(
        error(&inner),
        "line 5, column 22: unknown key 'shure'; did you mean 'sure'?"
    );
    assert!(error(&format!("{MINIMAL}[zzz]\n")).ends_with("unknown key 'zzz'"));
}

#[test]
fn says_where_a_value_is_wrong() {
    let unit = MINIMAL.replace("\"2ms\"", "\"2\"");
    let message = error(&unit);
    assert!(
        message.starts_with("line 5, column 5: 'discard.a': '2' has no unit: a duration needs one"),
        "{message}"
    );
    for (from, to, says) in [
        ("\"exclusive\"", "\"serial\"", "not a queue kind"),
        ("value = 64", "value = 0", "whole number from 1"),
        (
            "value = 64",
            "value = [64]",
            "a text, a number, true or false",
        ),
        ("\"8us/MiB\"", "\"8us\"", "not a time by size"),
        (
            "sure = \"measured\"",
            "sure = \"certain\"",
            "measured, derived, bound or assumed",
        ),
        ("source = \"here\"", "source = \" \"", "a figure is {"),
        (", source = \"here\"", "", "a figure is {"),
        (
            "name = \"mine\"",
            "name = [5]",
            "a text, a number, true or false",
        ),
        ("name = \"mine\"", "", "no 'name'"),
        ("about = \"a drive\"", "about = ", "line 3, column"),
    ] {
        let message = error(&MINIMAL.replacen(from, to, 1));
        assert!(message.contains(says), "{to}: {message}");
    }
    let missing = MINIMAL.replace(
        "queue =",
        "phi = { value = 1, sure = \"assumed\", source = \"here\" } #",
    );
    assert!(
        error(&missing).starts_with("there is no 'discard.queue': add it (exclusive"),
        "{}",
        error(&missing)
    );
    assert!(error(&MINIMAL.replacen("a = { value", "a = 5 #", 1)).contains("a figure is {"));
}

#[test]
fn a_number_is_what_it_is_in_toml() {
    for (number, slots) in [("0x40", 64), ("0b100", 4), ("0o17", 15), ("1_000", 1000)] {
        let card = MINIMAL.replace("value = 64", &format!("value = {number}"));
        let card: Card = card.parse().unwrap_or_else(|e| panic!("{number}: {e}"));
        assert_eq!(card.figures().read.parallelism, slots, "{number}");
    }
}

#[test]
fn what_is_too_much_is_refused_and_not_taken_for_nothing() {
    let endless = format!("{}us/MiB", "9".repeat(400));
    let card: Card = MINIMAL.parse().unwrap();
    assert!(card.with(&format!("b={endless}")).is_err());
    for value in ["inf", "nan", "-1", "-0.5", "1e400"] {
        let card = MINIMAL.replace(
            "queue =",
            &format!("phi = {{ value = {value}, sure = \"assumed\", source = \"x\" }}\nqueue ="),
        );
        assert!(card.parse::<Card>().is_err(), "{value}");
    }
    let deep = format!("{MINIMAL}x = {}", "[".repeat(200_000));
    assert!(deep.parse::<Card>().is_err());
}

#[test]
fn overrides() {
    let card: Card = MINIMAL.parse().unwrap();
    let changed = card
        .with("a=5ms")
        .unwrap()
        .with(" read.jitter = 5% ")
        .unwrap();
    assert_eq!(changed.figures().discard.as_ref().unwrap().a.as_millis(), 5);
    assert_eq!(changed.figures().read.jitter, 0.05);
    assert_eq!(changed.note("discard.a").unwrap().sure, Sure::Assumed);
    assert_eq!(changed.to_string().parse::<Card>().unwrap(), changed);

    let off = card.with("supported=false").unwrap();
    assert!(off.figures().discard.is_none());
    assert!(
        off.with("supported=true")
            .unwrap()
            .figures()
            .discard
            .is_some()
    );

    let bare = card.with("a").unwrap_err().to_string();
    assert!(bare.contains("give KEY=VALUE"), "{bare}");
    let ambiguous = card.with("latency=1ms").unwrap_err().to_string();
    assert_eq!(
        ambiguous,
        "'latency' could be read.latency or write.latency or flush.latency: give the section too"
    );
    let near = card.with("grannule=8k").unwrap_err().to_string();
    assert_eq!(near, "there is no such key; did you mean 'granule'?");
    assert!(card.with("granule=3k").is_err() && card.with("jitter=50%").is_err());
    assert!(card.with("discard.jitter=50%").is_err() && card.with("phi=2").is_err());
}

#[test]
fn every_key_has_a_default_that_it_takes_or_must_be_given() {
    for key in KEYS {
        let path = key.name;
        assert!(path.contains('.') && !key.about.is_empty());
        if let Some(default) = key.default {
            let card: Card = MINIMAL.parse().unwrap();
            let same = card
                .with(&format!("{path}={default}"))
                .unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(same.figures(), card.figures(), "{path}");
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(noise in ".{0,40}", at in 0..800_usize, cut in 0..40_usize) {
        let mut text = MINIMAL.to_owned();
        let at = at.min(text.len());
        let end = (at + cut).min(text.len());
        text.replace_range(at..end, &noise);
        if let Ok(card) = text.parse::<Card>() {
            prop_assert_eq!(card.to_string().parse::<Card>().unwrap(), card);
        }
        if let Ok(card) = MINIMAL.parse::<Card>().unwrap().with(&noise) {
            prop_assert_eq!(card.to_string().parse::<Card>().unwrap(), card);
        }
    }
}

/// A card is a file that people write and names no version: a key that this version doesn't know
/// is refused by its name.
#[test]
fn the_cards_of_earlier_versions_are_read_and_an_unknown_key_is_refused() {
    for text in testkit::formats::all("card") {
        let text = str::from_utf8(&text).unwrap();
        let card: Card = text.parse().unwrap();
        assert!(card.figures().discard.is_some());
        let newer = format!("{text}\n[telepathy]\nrange = 1\n");
        let why = newer.parse::<Card>().unwrap_err().to_string();
        assert!(why.contains("telepathy"), "{why}");
    }
}
