//! A card's TOML.

use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use units::typed::{Place, nearest};

use super::{At, Card, CardError, Entry, KEYS, Note, Sure, build, keys};

type Cell<'i> = Spanned<DeValue<'i>>;

impl FromStr for Card {
    type Err = CardError;

    /// Reads a card from TOML.
    fn from_str(text: &str) -> Result<Card, CardError> {
        let document = DeTable::parse(text).map_err(|e| CardError::Syntax {
            at: Place::of(text, e.span().map_or(0, |s| s.start)),
            why: e.message().to_owned(),
        })?;
        let mut reader = Reader {
            text,
            entries: BTreeMap::new(),
            places: BTreeMap::new(),
        };
        let (mut name, mut about) = (None, None);
        for (key, span, cell) in in_order(document.get_ref()) {
            match key {
                "name" => name = Some(reader.string(key, cell)?),
                "about" => about = Some(reader.string(key, cell)?),
                _ => reader.section(key, span, cell)?,
            }
        }
        let missing = |key, about| CardError::Missing { key, about };
        let figures = build::figures(&reader.entries).map_err(|e| reader.placed(e))?;
        Ok(Card {
            name: name.ok_or_else(|| missing("name", "what to call the drive"))?,
            about: about.ok_or_else(|| missing("about", "what drive this is"))?,
            entries: reader.entries,
            figures,
        })
    }
}

struct Reader<'t> {
    text: &'t str,
    entries: BTreeMap<&'static str, Entry>,
    /// Where each value stands, for errors that are found later.
    places: BTreeMap<&'static str, Place>,
}

impl Reader<'_> {
    fn section(
        &mut self,
        name: &str,
        span: Range<usize>,
        cell: &Cell<'_>,
    ) -> Result<(), CardError> {
        if !KEYS.iter().any(|k| k.section() == name) {
            let sections = KEYS.iter().map(super::Key::section);
            let names = sections.chain(["name", "about"]);
            return Err(self.unknown(span, name, nearest(name, names)));
        }
        let DeValue::Table(table) = cell.get_ref() else {
            return Err(self.shape(cell, name, "this is a section: write it as [section]"));
        };
        for (key, span, cell) in in_order(table) {
            let path = format!("{name}.{key}");
            let Some(known) = keys::by_path(&path) else {
                let near = nearest(&path, KEYS.iter().map(|k| k.path));
                return Err(self.unknown(span, &path, near));
            };
            let entry = self.figure(&path, cell)?;
            self.places.insert(known.path, self.place(cell.span()));
            self.entries.insert(known.path, entry);
        }
        Ok(())
    }

    /// `{ value = …, sure = …, source = … }`, all three.
    fn figure(&self, path: &str, cell: &Cell<'_>) -> Result<Entry, CardError> {
        const SHAPE: &str = "a figure is { value = …, sure = …, source = … }";
        let DeValue::Table(table) = cell.get_ref() else {
            return Err(self.shape(cell, path, SHAPE));
        };
        let (mut value, mut sure, mut source) = (None, None, None);
        for (key, span, cell) in in_order(table) {
            match key {
                "value" => value = Some(self.scalar(path, cell)?),
                "sure" => sure = Some(self.sure(path, cell)?),
                "source" => source = Some(self.string(path, cell)?),
                _ => {
                    let near = nearest(key, ["value", "sure", "source"]);
                    return Err(self.unknown(span, key, near));
                }
            }
        }
        match (value, sure, source) {
            (Some(text), Some(sure), Some(source)) if !source.trim().is_empty() => Ok(Entry {
                text,
                note: Note { sure, source },
            }),
            _ => Err(self.shape(cell, path, SHAPE)),
        }
    }

    fn sure(&self, path: &str, cell: &Cell<'_>) -> Result<Sure, CardError> {
        let text = self.string(path, cell)?;
        Sure::NAMES
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(sure, _)| *sure)
            .ok_or_else(|| {
                let why = format!(
                    "'{text}' is not how sure it is: give measured, derived, bound or assumed"
                );
                self.shape(cell, path, &why)
            })
    }

    fn string(&self, key: &str, cell: &Cell<'_>) -> Result<String, CardError> {
        match cell.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.shape(cell, key, "this is a text: write it in quotation marks")),
        }
    }

    /// A text, a number or a truth value; its key decides later what it means.
    fn scalar(&self, key: &str, cell: &Cell<'_>) -> Result<String, CardError> {
        match cell.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            // Without the sign of its base: 0x40 is "40" here.
            DeValue::Integer(number) if number.radix() != 10 => {
                let value = u64::from_str_radix(number.as_str(), number.radix());
                let value = value.map_err(|_| self.shape(cell, key, "it must fit into 64 bits"))?;
                Ok(value.to_string())
            }
            DeValue::Integer(number) => Ok(number.as_str().to_owned()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            DeValue::Boolean(truth) => Ok(truth.to_string()),
            _ => Err(self.shape(cell, key, "its value is a text, a number, true or false")),
        }
    }

    fn place(&self, span: Range<usize>) -> Place {
        Place::of(self.text, span.start)
    }

    fn unknown(&self, span: Range<usize>, key: &str, nearest: Option<String>) -> CardError {
        CardError::UnknownKey {
            at: At(Some(self.place(span))),
            key: key.to_owned(),
            nearest,
        }
    }

    fn shape(&self, cell: &Cell<'_>, key: &str, why: &str) -> CardError {
        CardError::Shape {
            at: At(Some(self.place(cell.span()))),
            key: key.to_owned(),
            why: why.to_owned(),
        }
    }

    fn placed(&self, error: CardError) -> CardError {
        match error {
            CardError::Value { key, why, .. } => CardError::Value {
                at: At(self.places.get(key).copied()),
                key,
                why,
            },
            other => other,
        }
    }
}

/// A table's keys in the order of the text, so that the first mistake is reported.
fn in_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<(&'a str, Range<usize>, &'a Cell<'i>)> {
    let mut cells: Vec<_> = table
        .iter()
        .map(|(key, cell)| (key.get_ref().as_ref(), key.span(), cell))
        .collect();
    cells.sort_by_key(|(_, span, _)| span.start);
    cells
}
