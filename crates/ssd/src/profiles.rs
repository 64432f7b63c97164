//! The device cards that are shipped: `profiles/*.toml`.

use std::sync::LazyLock;

use crate::card::Card;

/// Every shipped card as its text, in the order in which they are listed.
pub const TEXTS: &[&str] = &[
    include_str!("../profiles/samsung-870-evo-2tb.toml"),
    include_str!("../profiles/crucial-t500-2tb.toml"),
    include_str!("../profiles/samsung-980-pro-1tb.toml"),
    include_str!("../profiles/ocz-vertex-2.toml"),
    include_str!("../profiles/ocz-agility-2.toml"),
    include_str!("../profiles/intel-x25-e.toml"),
    include_str!("../profiles/emc-xtremio-10tb.toml"),
    include_str!("../profiles/fusionio.toml"),
    include_str!("../profiles/ideal.toml"),
    include_str!("../profiles/no-trim.toml"),
];

static CARDS: LazyLock<Vec<Card>> =
    // A test reads every one of them, so none is left out here.
    LazyLock::new(|| TEXTS.iter().filter_map(|text| text.parse().ok()).collect());

/// Every shipped card.
pub fn all() -> &'static [Card] {
    &CARDS
}

/// The shipped card of this name.
pub fn by_name(name: &str) -> Option<&'static Card> {
    all().iter().find(|card| card.name() == name)
}
