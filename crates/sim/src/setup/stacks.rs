//! Several drives as one volume: `stacks/*.toml`.

use record::units::document::Document;
use record::units::typed::Mistake;
use ssd::Card;

use super::Drives;
use crate::keys::blocks;

/// Every shipped stack: its name and its text.
pub const STACKS: &[(&str, &str)] = &[(
    "crucial-t500-2tb-raid0",
    include_str!("../../stacks/crucial-t500-2tb-raid0.toml"),
)];

/// The keys of a stack.
const KEYS: [&str; 6] = ["name", "about", "profile", "drives", "chunk", "set"];

/// The drives of a stack.
///
/// A stack is TOML with `name`, `about`, `profile` (the card of each drive) and `drives` (their
/// number). `chunk` is the bytes on one drive before the next one's turn. `set` lists figures of
/// the card that differ, as `lab up --set` takes them. `card` finds a card by its name.
///
/// # Errors
/// With line and column: if it isn't TOML, or has a wrong key or value.
pub fn stack(text: &str, card: impl Fn(&str) -> Result<Card, String>) -> Result<Drives, Mistake> {
    let document = Document::parse(text)?;
    let mut drives = Drives {
        name: "stack".to_owned(),
        cards: Vec::new(),
        chunk: 512 << 10,
    };
    let (mut count, mut one, mut changes) = (2, None, Vec::new());
    for item in document.items() {
        match item.key {
            "name" => drives.name = item.text()?,
            "about" => drop(item.text()?),
            "profile" => one = Some(item.read(&card)?),
            "drives" => count = item.read(|text| record::units::parse_whole(text, 1..=64))?,
            "chunk" => drives.chunk = item.read(blocks)?,
            "set" => changes = item.list(),
            _ => return Err(item.unknown(KEYS)),
        }
    }
    let mut one = one.ok_or(Mistake::Missing {
        key: "profile",
        about: "the card of its drives, for example profile = \"ideal\"",
    })?;
    for change in changes {
        one = change.read(|text| one.with(text))?;
    }
    drives.cards = vec![one; count];
    Ok(drives)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> Result<Card, String> {
        ssd::profiles::by_name(name)
            .cloned()
            .ok_or_else(|| "unknown".to_owned())
    }

    #[test]
    fn every_shipped_stack_is_good() {
        for (name, text) in STACKS {
            let drives = stack(text, shipped).unwrap();
            assert_eq!(drives.name, *name);
            assert!(drives.cards.len() > 1);
        }
    }

    #[test]
    fn a_mistake_is_reported_with_its_place() {
        let wrong = |text: &str| stack(text, shipped).unwrap_err().to_string();
        assert_eq!(
            wrong("profile = \"ideal\"\ndrivse = 2\n"),
            "line 2, column 1: unknown key 'drivse'; did you mean 'drives'?"
        );
        let said = wrong("profile = \"ideal\"\nset = [\"read.latncy=1us\"]\n");
        assert!(said.starts_with("line 2, column 8: 'set'"), "{said}");
        assert!(wrong("drives = 2").contains("there is no 'profile': add it"));
    }
}
