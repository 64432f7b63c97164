//! Reading settings from TOML, with the place of each mistake.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use units::typed::{Mistake, Place};

use crate::keys::{Key, find, nearest};

/// A text of TOML and what stands in it.
#[derive(Debug)]
pub struct Document<'t> {
    text: &'t str,
    table: Spanned<DeTable<'t>>,
}

/// A key, its place, and its values as text.
#[derive(Debug, Clone)]
pub struct Cells {
    /// The key.
    pub key: String,
    /// Where it stands.
    pub at: Place,
    /// Its values; one, unless an array was given.
    pub values: Vec<(Place, String)>,
    /// Whether an array was given.
    pub is_list: bool,
}

impl<'t> Document<'t> {
    /// Reads TOML.
    ///
    /// # Errors
    /// If it isn't TOML.
    pub fn parse(text: &'t str) -> Result<Document<'t>, Mistake> {
        let table = DeTable::parse(text).map_err(|e| Mistake::Syntax {
            at: Place::of(text, e.span().map_or(0, |span| span.start)),
            why: e.message().to_owned(),
        })?;
        Ok(Document { text, table })
    }

    /// The keys of the top level that are no sections, in the order of the text.
    ///
    /// # Errors
    /// If a value is neither a text, a number, a truth value nor a list of these.
    pub fn top(&self) -> Result<Vec<Cells>, Mistake> {
        self.cells(self.table.get_ref(), true)
    }

    /// Every `[[name]]` with its place and its keys; a single `[name]` is taken as one.
    ///
    /// # Errors
    /// As [`Document::top`]; or if it is no section.
    pub fn sections(&self, name: &str) -> Result<Vec<(Place, Vec<Cells>)>, Mistake> {
        let Some(cell) = self.table.get_ref().get(name) else {
            return Ok(Vec::new());
        };
        let list: Vec<&Spanned<DeValue<'t>>> = match cell.get_ref() {
            DeValue::Array(cells) => cells.iter().collect(),
            _ => vec![cell],
        };
        let each = list.into_iter().map(|cell| match cell.get_ref() {
            DeValue::Table(table) => Ok((self.place(&cell.span()), self.cells(table, false)?)),
            _ => Err(Mistake::Value {
                at: self.place(&cell.span()),
                key: name.to_owned(),
                why: format!("this is a section: write [{name}] on a line of its own"),
            }),
        });
        each.collect()
    }

    /// Refuses a section that isn't one of these.
    ///
    /// # Errors
    /// If there is one.
    pub fn only_sections(&self, names: &[&str]) -> Result<(), Mistake> {
        for (key, cell) in self.table.get_ref() {
            let is_section = match cell.get_ref() {
                DeValue::Table(_) => true,
                DeValue::Array(cells) => {
                    matches!(
                        cells.iter().next().map(Spanned::get_ref),
                        Some(DeValue::Table(_))
                    )
                }
                _ => false,
            };
            let name: &str = key.get_ref();
            if is_section && !names.contains(&name) {
                return Err(Mistake::UnknownKey {
                    at: self.place(&key.span()),
                    key: name.to_owned(),
                    nearest: nearest(name, names.iter().copied()),
                });
            }
        }
        Ok(())
    }

    fn cells(&self, table: &DeTable<'t>, skip_sections: bool) -> Result<Vec<Cells>, Mistake> {
        let mut cells = Vec::new();
        for (key, cell) in table {
            let name: &str = key.get_ref();
            let list: Vec<&Spanned<DeValue<'t>>> = match cell.get_ref() {
                DeValue::Array(list) => list.iter().collect(),
                _ => vec![cell],
            };
            let is_section =
                |cell: &&Spanned<DeValue<'t>>| matches!(cell.get_ref(), DeValue::Table(_));
            if skip_sections && list.iter().any(is_section) {
                continue;
            }
            let values = list.iter().map(|cell| {
                let at = self.place(&cell.span());
                let value = scalar(cell.get_ref()).ok_or_else(|| Mistake::Value {
                    at,
                    key: name.to_owned(),
                    why: "its value is a text, a number, true or false".to_owned(),
                })?;
                Ok((at, value))
            });
            cells.push((
                key.span().start,
                Cells {
                    key: name.to_owned(),
                    at: self.place(&key.span()),
                    values: values.collect::<Result<_, _>>()?,
                    is_list: matches!(cell.get_ref(), DeValue::Array(_)),
                },
            ));
        }
        cells.sort_by_key(|(start, _)| *start);
        Ok(cells.into_iter().map(|(_, cells)| cells).collect())
    }

    fn place(&self, span: &Range<usize>) -> Place {
        Place::of(self.text, span.start)
    }
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        _ => None,
    }
}

impl Cells {
    /// Its only value.
    ///
    /// # Errors
    /// If it has several, or none.
    pub fn single(&self) -> Result<(Place, &str), Mistake> {
        match &self.values[..] {
            [(at, text)] if !self.is_list => Ok((*at, text)),
            _ => Err(self.bad("give one value, not a list".to_owned())),
        }
    }

    pub(crate) fn bad(&self, why: String) -> Mistake {
        Mistake::Value {
            at: self.at,
            key: self.key.clone(),
            why,
        }
    }

    /// Sets the key of this name.
    pub(crate) fn set<T>(
        &self,
        keys: &[Key<T>],
        to: &mut T,
        at: Place,
        text: &str,
    ) -> Result<(), Mistake> {
        let Some(key) = find(keys, &self.key) else {
            return Err(self.unknown(keys.iter().map(|key| key.name)));
        };
        (key.set)(to, text).map_err(|why| Mistake::Value {
            at,
            key: self.key.clone(),
            why,
        })
    }

    pub(crate) fn unknown<'k>(&self, names: impl Iterator<Item = &'k str>) -> Mistake {
        Mistake::UnknownKey {
            at: self.at,
            key: self.key.clone(),
            nearest: nearest(&self.key, names),
        }
    }
}
