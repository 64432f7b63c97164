//! Values that are words, each with its meaning, for parsers, errors, records and help alike.

use crate::units::typed::{hint, nearest};

/// A value that has a name.
#[derive(Debug, Clone, Copy)]
pub struct Word<T> {
    /// As it is written.
    pub name: &'static str,
    /// Its meaning, in a line.
    pub about: &'static str,
    /// The value.
    pub value: T,
}

/// The value of a word.
///
/// # Errors
/// With all words, if it is none of them.
pub fn one_of<T: Copy>(text: &str, words: &[Word<T>]) -> Result<T, String> {
    let named = words.iter().find(|word| word.name == text);
    named.map(|word| word.value).ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|word| word.name).collect();
        let near = hint(&nearest(text, names.iter().copied()));
        format!("'{text}' is none of {}{near}", names.join(", "))
    })
}

/// Names as alternatives: `a, b or c`.
pub fn any_of(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Makes an enum of words from a table: a row has a value's meaning, its name in Rust, and the word.
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident {
            $( $(#[doc = $about:literal])+ $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ::serde::Serialize)]
        $visibility enum $name {
            $( $(#[doc = $about])+ #[serde(rename = $word)] $variant, )+
        }

        impl $name {
            /// Every value with its word and its meaning.
            $visibility const WORDS: &'static [$crate::units::words::Word<$name>] = &[$(
                $crate::units::words::Word {
                    name: $word,
                    about: concat!($($about),+).trim_ascii(),
                    value: $name::$variant,
                },
            )+];

            /// The value of a word.
            ///
            /// # Errors
            /// With all words, if it is none of them.
            $visibility fn parse(text: &str) -> Result<$name, String> {
                $crate::units::words::one_of(text, Self::WORDS)
            }

            /// The word for it.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $( $name::$variant => $word, )+
                }
            }
        }
    };
}
