//! A mistake in what a person typed: its place, and the word that may have been meant.

use std::fmt;

/// Two names are much alike from this Jaro-Winkler similarity on (0 to 1).
const ALIKE: f64 = 0.7;

/// A name that needs more changes than half of what was typed, and more than two, is another one.
fn is_near(typed: &str, name: &str) -> bool {
    let most = (typed.chars().count() / 2).max(2);
    strsim::jaro_winkler(typed, name) > ALIKE && strsim::damerau_levenshtein(typed, name) <= most
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Place {
    /// The place of a byte of a text; of one beyond its end, the end.
    pub fn of(text: &str, byte: usize) -> Place {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Place {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A mistake in a text of TOML, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// It isn't TOML.
    #[error("{at}: {why}")]
    Syntax {
        /// The place where the parser stopped.
        at: Place,
        /// The report of TOML's parser.
        why: String,
    },
    /// A key or section that doesn't exist.
    #[error("{at}: unknown key '{key}'{}", hint(.nearest))]
    UnknownKey {
        /// The place of the key.
        at: Place,
        /// The key in the text.
        key: String,
        /// A known key with a similar name.
        nearest: Option<String>,
    },
    /// A value that its key doesn't take.
    #[error("{at}: '{key}': {why}")]
    Value {
        /// The place of the value.
        at: Place,
        /// The key.
        key: String,
        /// The mistake, and the allowed values.
        why: String,
    },
    /// A key that must be there.
    #[error("there is no '{key}': add it ({about})")]
    Missing {
        /// The key.
        key: &'static str,
        /// Its meaning.
        about: &'static str,
    },
}

/// Of some names, the one most like a mistyped one, if any is much like it.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    names
        .into_iter()
        .filter(|name| is_near(typed, name))
        .map(|name| (strsim::jaro_winkler(typed, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

/// `; did you mean 'X'?`, where something was near.
pub fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

/// Returns a [`hint`] that ends its sentence: a full stop if there is none.
pub fn sentence_end(hint: &str) -> &str {
    if hint.is_empty() { "." } else { hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let text = "a = 1\nmü = 2\n";
        let at = |byte| Place::of(text, byte).to_string();
        assert_eq!(at(0), "line 1, column 1");
        assert_eq!(at(text.find("= 2").unwrap()), "line 2, column 4");
        assert_eq!(at(1000), "line 3, column 1");
    }

    #[test]
    fn what_is_like_nothing_is_near_nothing() {
        let names = ["read.latency", "flush.latency"];
        assert_eq!(
            hint(&nearest("flush.latencey", names)),
            "; did you mean 'flush.latency'?"
        );
        assert_eq!(hint(&nearest("zzz", names)), "");
        let names = ["fold.longest", "fold.per_mib"];
        assert_eq!(nearest("foo", names), None);
    }
}
