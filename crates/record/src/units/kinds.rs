//! Values that are words, each with its meaning, for parsers, errors, records and help alike.

pub use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::units::UnitError;
use crate::units::typed::nearest;

/// Makes an enum of words: with `ALL` variants, the `name` and the meaning (`about`) of each, and
/// [`FromStr`](std::str::FromStr), whose error has the nearest word. Records have the names.
///
/// The text behind the enum's name is what one of them is called in errors.
#[macro_export]
macro_rules! kinds {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident[$what:literal] {
            $( $(#[doc = $about:literal])+ $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $visibility enum $name {
            $( $(#[doc = $about])+ $variant, )+
        }

        impl $name {
            /// All of them, in the order of lists.
            $visibility const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Each name with its meaning.
            $visibility fn words() -> Vec<(&'static str, &'static str)> {
                Self::ALL.iter().map(|one| (one.name(), one.about())).collect()
            }

            /// Its name in options and files.
            $visibility const fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// Its meaning, in a line.
            $visibility const fn about(self) -> &'static str {
                match self { $($name::$variant => concat!($($about),+).trim_ascii(),)+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::units::UnitError;

            /// The one of this name.
            fn from_str(text: &str) -> Result<$name, $crate::units::UnitError> {
                let all = Self::ALL.iter().map(|one| (one.name(), *one));
                $crate::units::kinds::one_of($what, text, all)
            }
        }

        impl $crate::units::kinds::Serialize for $name {
            fn serialize<S>(&self, serializer: S) -> Result<S::Ok, S::Error>
            where
                S: $crate::units::kinds::Serializer,
            {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> $crate::units::kinds::Deserialize<'de> for $name {
            fn deserialize<D>(deserializer: D) -> Result<$name, D::Error>
            where
                D: $crate::units::kinds::Deserializer<'de>,
            {
                let word: String = $crate::units::kinds::Deserialize::deserialize(deserializer)?;
                word.parse().map_err($crate::units::kinds::de::Error::custom)
            }
        }
    };
}

/// The value of a word.
///
/// # Errors
/// If there is no such word: with the nearest, or else all of them.
pub fn one_of<'w, T>(
    what: &str,
    text: &str,
    mut words: impl Iterator<Item = (&'w str, T)> + Clone,
) -> Result<T, UnitError> {
    let names = words.clone().map(|(name, _)| name);
    let named = words.find(|(name, _)| *name == text.trim());
    named
        .map(|(_, value)| value)
        .ok_or_else(|| unknown(what, text, names))
}

/// No such word: with the nearest, or else all of them.
fn unknown<'w>(what: &str, text: &str, words: impl Iterator<Item = &'w str> + Clone) -> UnitError {
    UnitError(match nearest(text, words.clone()) {
        Some(near) => format!("there is no {what} '{text}'; did you mean '{near}'?"),
        None => {
            let words: Vec<&str> = words.collect();
            format!("there is no {what} '{text}': give {}", any_of(&words))
        }
    })
}

/// Names as alternatives: `a, b or c`.
pub fn any_of(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    kinds! {
        /// A fruit.
        enum Fruit["fruit"] {
            /// Grows on
            /// trees.
            Apple = "apple",
            /// Grows on bushes.
            Berry = "blue-berry",
        }
    }

    #[test]
    fn a_word_is_read_and_a_mistyped_one_is_reported_with_the_nearest() {
        for &fruit in Fruit::ALL {
            assert_eq!(fruit.name().parse(), Ok(fruit));
            let json = serde_json::to_string(&fruit).unwrap();
            assert_eq!(json, format!("\"{}\"", fruit.name()));
            assert_eq!(serde_json::from_str::<Fruit>(&json).unwrap(), fruit);
        }
        assert_eq!(Fruit::words()[0], ("apple", "Grows on trees."));
        let wrong = |text: &str| text.parse::<Fruit>().unwrap_err().to_string();
        assert_eq!(
            wrong("aple"),
            "there is no fruit 'aple'; did you mean 'apple'?"
        );
        assert_eq!(
            wrong("zzz"),
            "there is no fruit 'zzz': give apple or blue-berry"
        );
    }
}
