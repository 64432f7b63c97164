//! A card from a text of TOML, from another one, and from figures.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use record::units::document::{Document, Item};
use record::units::settings::SetError;
use record::units::typed::{Mistake, Place};

use super::build::{Fault, figures};
use super::{Card, Entry, KEYS, Note, Sure, keys};

impl FromStr for Card {
    type Err = Mistake;

    /// Reads a card from TOML.
    fn from_str(text: &str) -> Result<Card, Mistake> {
        let document = Document::parse(text)?;
        let (mut name, mut about, mut origin) = (None, None, None);
        let (mut entries, mut places) = (BTreeMap::new(), BTreeMap::new());
        for item in document.items() {
            let own = || KEYS.iter().filter(|key| keys::parts(key).0 == item.key);
            match item.key {
                "name" => name = Some(item.text()?),
                "about" => about = Some(item.text()?),
                "origin" => origin = Some(item.read(|json| serde_json::from_str(json))?),
                _ if own().next().is_none() => {
                    let sections = KEYS.iter().map(|key| keys::parts(key).0);
                    return Err(item.unknown(sections.chain(["name", "about", "origin"])));
                }
                _ => {
                    for figure in item.items()? {
                        let Some(key) = own().find(|key| keys::parts(key).1 == figure.key) else {
                            return Err(figure.unknown(own().map(|key| keys::parts(key).1)));
                        };
                        places.insert(key.name, figure.place());
                        entries.insert(key.name, entry(&figure)?);
                    }
                }
            }
        }
        let missing = |key, about| Mistake::Missing { key, about };
        Ok(Card {
            figures: figures(&entries).map_err(|fault| match fault.why {
                None => missing(fault.key.name, fault.key.about),
                Some(why) => Mistake::Value {
                    at: *(places.get(fault.key.name)).unwrap_or(&Place::of(text, 0)),
                    key: fault.key.name.to_owned(),
                    why,
                },
            })?,
            name: name.ok_or_else(|| missing("name", "what to call the drive"))?,
            about: about.ok_or_else(|| missing("about", "what drive this is"))?,
            origin,
            entries,
        })
    }
}

/// `{ value = …, sure = …, source = … }`, all three.
fn entry(figure: &Item<'_>) -> Result<Entry, Mistake> {
    let shape = || figure.mistake("a figure is { value = …, sure = …, source = … }");
    let (mut value, mut sure, mut source) = (None, None, None);
    for part in figure.items().map_err(|_| shape())? {
        match part.key {
            "value" => value = Some(part.text()?),
            "sure" => sure = Some(part.read(Sure::from_str)?),
            "source" => source = Some(part.text()?).filter(|source| !source.trim().is_empty()),
            _ => return Err(part.unknown(["value", "sure", "source"])),
        }
    }
    match (value, sure, source) {
        (Some(text), Some(sure), Some(source)) => Ok(Entry {
            text,
            note: Note { sure, source },
        }),
        _ => Err(shape()),
    }
}

impl Card {
    /// A card with these figures, by their paths.
    ///
    /// # Errors
    /// If one is missing or isn't what its key takes.
    pub(crate) fn of(
        name: &str,
        about: &str,
        entries: Vec<(&'static str, Entry)>,
    ) -> Result<Card, SetError> {
        let entries = entries.into_iter().collect();
        Ok(Card {
            figures: figures(&entries)?,
            name: name.to_owned(),
            about: about.to_owned(),
            origin: None,
            entries,
        })
    }

    /// The card with one figure changed: `discard.a=2ms`, or `a=2ms` where only
    /// one section has such a key. The figure counts as assumed from then on.
    ///
    /// ```
    /// let card = ssd::profiles::by_name("crucial-t500-2tb").unwrap();
    /// let slower = card.with("a=2ms").unwrap();
    /// let discard = slower.figures().discard.as_ref().unwrap();
    /// assert_eq!(discard.a.as_millis(), 2);
    /// ```
    ///
    /// # Errors
    /// If it isn't KEY=VALUE, no key is called so (the error names the nearest),
    /// several are, or the value isn't what the key takes.
    pub fn with(&self, setting: &str) -> Result<Card, SetError> {
        self.with_all([setting]).map_err(|(_, why)| why)
    }

    /// The card with several figures changed, in any order: they need to fit each other in the end alone.
    ///
    /// # Errors
    /// As [`Card::with`], with the setting that is wrong.
    pub fn with_all<'a>(
        &self,
        settings: impl IntoIterator<Item = &'a str>,
    ) -> Result<Card, (&'a str, SetError)> {
        let mut changed = self.clone();
        let mut last = "";
        for setting in settings {
            last = setting;
            changed.enter(setting).map_err(|why| (setting, why))?;
        }
        changed.figures = figures(&changed.entries).map_err(|fault| (last, fault.into()))?;
        Ok(changed)
    }

    /// Enters a setting, without its figure.
    fn enter(&mut self, setting: &str) -> Result<(), SetError> {
        let pair = setting.split_once('=');
        let (key, value) = pair.ok_or("give KEY=VALUE, e.g. a=2ms".to_owned())?;
        let key = keys::typed(key.trim())?;
        let note = Note {
            sure: Sure::Assumed,
            source: "set by hand".to_owned(),
        };
        let text = value.trim().to_owned();
        self.entries.insert(key.name, Entry { text, note });
        Ok(())
    }
}

impl From<Fault> for SetError {
    fn from(Fault { key, why }: Fault) -> SetError {
        SetError::Value(match why {
            Some(why) => format!("'{}': {why}", key.name),
            None => format!("there is no '{}': add it ({})", key.name, key.about),
        })
    }
}

// A card as TOML.

impl fmt::Display for Card {
    /// TOML that reads back as the same card.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "name = {}", toml_text(&self.name))?;
        writeln!(f, "about = {}", toml_text(&self.about))?;
        if let Some(origin) = &self.origin {
            let json = serde_json::to_string(origin).map_err(|_| fmt::Error)?;
            writeln!(f, "origin = {}", toml_text(&json))?;
        }
        let mut section = "";
        for key in KEYS {
            let Some(entry) = self.entries.get(key.name) else {
                continue;
            };
            let (own, name) = keys::parts(key);
            if own != section {
                section = own;
                writeln!(f, "\n[{section}]")?;
            }
            writeln!(
                f,
                "{name} = {{ value = {}, sure = \"{}\", source = {} }}",
                value(&entry.text),
                entry.note.sure.name(),
                toml_text(&entry.note.source),
            )?;
        }
        Ok(())
    }
}

/// A number or a truth value bare, anything else as a string.
fn value(text: &str) -> String {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let whole = |part: &str| digits(part) && (part == "0" || !part.starts_with('0'));
    // What doesn't fit into TOML's 64 bits with a sign stays a string.
    let number = match text.split_once('.') {
        Some((before, after)) => whole(before) && digits(after),
        None => whole(text) && text.parse::<i64>().is_ok(),
    };
    if number || text == "true" || text == "false" {
        text.to_owned()
    } else {
        toml_text(text)
    }
}

/// A basic string of TOML.
fn toml_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
