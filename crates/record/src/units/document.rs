//! The reader of TOML that people write: scenarios, device cards, policies, stacks and grids.
//!
//! Each value is a text, a number or a truth value, and its key reads its text. So a key of a file
//! and one of `--set KEY=VALUE` take the same values. Every mistake has its line and column.

use std::fmt::Display;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::units::settings::SetError;
use crate::units::typed::{Mistake, Place, nearest};

/// A text of TOML.
#[derive(Debug)]
pub struct Document<'t> {
    text: &'t str,
    table: Spanned<DeTable<'t>>,
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

    /// The keys of the top level, in the order of the text.
    pub fn items(&self) -> Vec<Item<'_>> {
        items(self.text, self.table.get_ref())
    }
}

/// A key with its value, or one value of a key's list.
#[derive(Debug, Clone)]
pub struct Item<'d> {
    text: &'d str,
    /// The key.
    pub key: &'d str,
    span: Range<usize>,
    value: &'d Spanned<DeValue<'d>>,
}

impl<'d> Item<'d> {
    /// The keys of a section, in the order of the text.
    ///
    /// # Errors
    /// If it is no section.
    pub fn items(&self) -> Result<Vec<Item<'d>>, Mistake> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(items(self.text, table)),
            _ => Err(self.mistake("this is a section: write it in brackets on a line of its own")),
        }
    }

    /// The values of a list; of anything else, itself.
    pub fn list(&self) -> Vec<Item<'d>> {
        let DeValue::Array(list) = self.value.get_ref() else {
            return vec![self.clone()];
        };
        let values = list.iter();
        values
            .map(|value| Item {
                value,
                ..self.clone()
            })
            .collect()
    }

    /// The text of the value.
    ///
    /// # Errors
    /// If it is neither a text, a number nor a truth value.
    pub fn text(&self) -> Result<String, Mistake> {
        Ok(match self.value.get_ref() {
            DeValue::String(text) => text.clone().into_owned(),
            // Without the sign of its base: 0x40 is "40" here.
            DeValue::Integer(number) if number.radix() != 10 => {
                let value = u64::from_str_radix(number.as_str(), number.radix());
                let value = value.map_err(|_| self.mistake("it must fit into 64 bits"))?;
                value.to_string()
            }
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(truth) => truth.to_string(),
            _ => return Err(self.mistake("its value is a text, a number, true or false")),
        })
    }

    /// The value that `read` makes of its text.
    ///
    /// # Errors
    /// As [`Item::text`], or with the place and the reason of `read`.
    pub fn read<T, E: Display>(
        &self,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Mistake> {
        read(&self.text()?).map_err(|why| self.mistake(why))
    }

    /// Sets the key of this name.
    ///
    /// # Errors
    /// If there is none, or it doesn't take the value.
    pub fn set(&self, set: impl FnOnce(&str, &str) -> Result<(), SetError>) -> Result<(), Mistake> {
        // An unknown key is reported as such, whatever its value.
        let text = self.text();
        match (set(self.key, text.as_deref().unwrap_or_default()), text) {
            (Err(SetError::Unknown(nearest)), _) => Err(self.unknown_but(nearest)),
            (_, Err(mistake)) => Err(mistake),
            (Err(SetError::Value(why)), _) => Err(self.mistake(why)),
            (Ok(()), Ok(_)) => Ok(()),
        }
    }

    /// A mistake in the value.
    pub fn mistake(&self, why: impl Display) -> Mistake {
        Mistake::Value {
            at: self.place(),
            key: self.key.to_owned(),
            why: why.to_string(),
        }
    }

    /// A key that is none of these.
    pub fn unknown<'k>(&self, names: impl IntoIterator<Item = &'k str>) -> Mistake {
        self.unknown_but(nearest(self.key, names))
    }

    fn unknown_but(&self, nearest: Option<String>) -> Mistake {
        Mistake::UnknownKey {
            at: Place::of(self.text, self.span.start),
            key: self.key.to_owned(),
            nearest,
        }
    }

    /// The place of the value.
    pub fn place(&self) -> Place {
        Place::of(self.text, self.value.span().start)
    }
}

fn items<'d>(text: &'d str, table: &'d DeTable<'d>) -> Vec<Item<'d>> {
    let mut items: Vec<_> = table
        .iter()
        .map(|(key, value)| Item {
            text,
            key: key.get_ref(),
            span: key.span(),
            value,
        })
        .collect();
    items.sort_by_key(|item| item.span.start);
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{parse_size, parse_truth};

    fn first<T>(text: &str, of: impl FnOnce(&Item<'_>) -> Result<T, Mistake>) -> Result<T, String> {
        let document = Document::parse(text).map_err(|error| error.to_string())?;
        of(&document.items()[0]).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_read_from_their_texts_in_the_order_of_the_file() {
        let document = Document::parse("b = \"4k\"\na = [1, 0x40]\n[c]\nd = true\n").unwrap();
        let [b, a, c] = &document.items()[..] else {
            panic!()
        };
        assert_eq!(b.read(parse_size), Ok(4096));
        let numbers: Vec<_> = a.list().iter().map(|one| one.text().unwrap()).collect();
        assert_eq!(numbers, ["1", "64"]);
        assert_eq!(c.items().unwrap()[0].read(parse_truth), Ok(true));
    }

    #[test]
    fn mistakes_have_line_column_key_and_the_nearest_one() {
        let size = |text: &str| first(text, |item| item.read(parse_size));
        for (mistake, words) in [
            (
                size("\nsize = \"4 q\""),
                "line 2, column 8: 'size': '4 q': 'q' is not a unit",
            ),
            (
                size("size = [4]"),
                "line 1, column 8: 'size': its value is a text, a number",
            ),
            (size("size = "), "line 1, column "),
            (size("size = 0xffffffffffffffffff"), "64 bits"),
            (
                first("szie = 4", |item| {
                    Err::<u64, _>(item.unknown(["size", "files"]))
                }),
                "line 1, column 1: unknown key 'szie'; did you mean 'size'?",
            ),
            (
                first("size = 4", |item| item.items().map(|_| 0)),
                "line 1, column 8: 'size': this is a section",
            ),
        ] {
            let mistake = mistake.unwrap_err();
            assert!(
                mistake.starts_with(words) || mistake.contains("64 bits"),
                "{mistake}"
            );
        }
    }
}
