//! Kinds, each with its word and its meaning.

use crate::units::UnitError;
use crate::units::typed::nearest;

/// Makes an enum of words: with `ALL` variants, the `name` and the meaning (`about`) of each, and
/// [`FromStr`](std::str::FromStr), whose error has the nearest word.
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
                let named = Self::ALL.iter().find(|one| one.name() == text.trim());
                named.copied().ok_or_else(|| {
                    $crate::units::kinds::unknown($what, text, Self::ALL.iter().map(|one| one.name()))
                })
            }
        }
    };
}

/// No such word: with the nearest, or else all of them.
pub fn unknown<'w>(
    what: &str,
    text: &str,
    words: impl Iterator<Item = &'w str> + Clone,
) -> UnitError {
    UnitError(match nearest(text, words.clone()) {
        Some(near) => format!("there is no {what} '{text}'; did you mean '{near}'?"),
        None => {
            let words: Vec<&str> = words.collect();
            let words = words.join(", ");
            let (first, last) = words.rsplit_once(", ").unwrap_or((&words, "nothing"));
            format!("there is no {what} '{text}': give {first} or {last}")
        }
    })
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
        }
        assert_eq!(Fruit::Apple.about(), "Grows on trees.");
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
