//! Settings that are written as `key = value`: in files and on the command line.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use record::units::{
    bytes_exact, duration_exact, parse_duration, parse_rate, parse_share, parse_size,
};

/// How a value is written.
pub(crate) trait Form<T> {
    /// The value of a text; the error says what is allowed.
    fn read(&self, text: &str) -> Result<T, String>;
    /// The value as text, which `read` takes.
    fn show(&self, value: &T) -> String;
}

/// A whole number of a range.
impl<T: FromStr + PartialOrd + Display + Copy> Form<T> for RangeInclusive<T> {
    fn read(&self, text: &str) -> Result<T, String> {
        Ok(record::units::parse_whole(text, self.clone())?)
    }

    fn show(&self, value: &T) -> String {
        value.to_string()
    }
}

/// A pair of functions, to read and to show.
pub(crate) struct Pair<T>(
    pub(crate) fn(&str) -> Result<T, String>,
    pub(crate) fn(&T) -> String,
);

impl<T> Form<T> for Pair<T> {
    fn read(&self, text: &str) -> Result<T, String> {
        self.0(text)
    }

    fn show(&self, value: &T) -> String {
        self.1(value)
    }
}

pub(crate) const SIZE: Pair<u64> = Pair(|text| Ok(parse_size(text)?), |&bytes| bytes_exact(bytes));
pub(crate) const BLOCKS: Pair<u64> = Pair(blocks, |&bytes| bytes_exact(bytes));
pub(crate) const DURATION: Pair<Duration> = Pair(|text| Ok(parse_duration(text)?), show_duration);
/// A duration above 0 and at most ten years.
pub(crate) const SPAN: Pair<Duration> = Pair(span, show_duration);
pub(crate) const SHARE: Pair<f64> = Pair(
    |text| Ok(parse_share(text)?),
    |&share| record::units::percent_exact(share),
);
pub(crate) const TRUTH: Pair<bool> = Pair(
    |text| Ok(record::units::parse_truth(text)?),
    bool::to_string,
);
/// Operations a second; 0 for none.
pub(crate) const RATE: Pair<f64> = Pair(
    |text| match text {
        "0" => Ok(0.0),
        _ => Ok(parse_rate(text)?),
    },
    f64::to_string,
);

/// A size of whole blocks, at least one.
pub(crate) fn blocks(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    match bytes > 0 && bytes.is_multiple_of(crate::volume::BLOCK) {
        true => Ok(bytes),
        false => Err(format!("'{text}': give a multiple of 4k, and at least 4k")),
    }
}

fn span(text: &str) -> Result<Duration, String> {
    let value = parse_duration(text)?;
    match value > Duration::ZERO && value <= Duration::from_secs(315_360_000) {
        true => Ok(value),
        false => Err(format!("'{text}': give more than 0 and at most ten years")),
    }
}

fn show_duration(value: &Duration) -> String {
    match value.is_zero() {
        true => "0".to_owned(),
        false => duration_exact(*value),
    }
}

/// Makes a struct of settings from a table. A row has a key's meaning, its name, its field, the
/// [`Form`] of its value, and its default (with other defaults by kind, as
/// [`record::units::settings::default_of`] reads them). The fields in brackets have no key.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $of:ident[$($(#[$extra_meta:meta])* $extra:ident: $extra_type:ty,)*] {
            $(
                $(#[doc = $about:literal])+
                $name:literal $field:ident: $type:ty = $form:expr, $default:literal;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $of {
            $( $(#[$extra_meta])* pub $extra: $extra_type, )*
            $( $(#[doc = $about])+ pub $field: $type, )+
        }

        impl $of {
            /// Every key.
            pub const KEYS: &'static [record::units::settings::Key] = &[$(record::units::settings::Key {
                name: $name,
                about: concat!($($about, "\n"),+),
                default: Some($default),
                words: Vec::new,
            }),+];

            /// The defaults of a kind.
            fn usual(kind: &str, $($extra: $extra_type),*) -> $of {
                $of {
                    $($field: {
                        let text = record::units::settings::default_of($default, kind);
                        match $crate::keys::Form::<$type>::read(&$form, text) {
                            Ok(value) => value,
                            Err(why) => unreachable!("the default of {}: {why}", $name),
                        }
                    },)+
                    $($extra,)*
                }
            }

            /// Sets one of its keys.
            pub(crate) fn set_own(&mut self, name: &str, text: &str) -> Result<(), record::units::settings::SetError> {
                match name {
                    $( $name => self.$field = $crate::keys::Form::<$type>::read(&$form, text)?, )+
                    _ => return Err(record::units::settings::SetError::Unknown(None)),
                }
                Ok(())
            }

            /// Its keys, each with the text of its value.
            pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static record::units::settings::Key, String)> {
                let texts = [$($crate::keys::Form::<$type>::show(&$form, &self.$field)),+];
                Self::KEYS.iter().zip(texts)
            }
        }
    };
}
pub(crate) use settings;
