//! Settings that a person gives as `KEY=VALUE`, or in sections of a file of TOML.
//!
//! [`section!`](crate::section) makes a struct of optional values from a table. A row has a key's
//! meaning, its name, how its text is read, its default, and the rule by which it does nothing. The
//! reader of files, `--set`, the list of keys and the resolved values all come from that row.

use crate::units::UnitError;
use crate::units::typed::{hint, nearest};

/// A key of a section, as a list of keys shows it.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name, without the section.
    pub name: &'static str,
    /// Its meaning: lines of documentation.
    pub about: &'static str,
    /// Its default, as text; `A; KIND: B` where a KIND has another one. `None`: no fixed default.
    pub default: Option<&'static str>,
    /// The words that it takes, each with its meaning; none for a key that takes others.
    pub words: fn() -> Vec<(&'static str, &'static str)>,
}

/// Why a key can't be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// No key has this name.
    #[error("there is no such key{}", hint(.0))]
    Unknown(Option<String>),
    /// The key doesn't take this value.
    #[error("{0}")]
    Value(String),
}

impl SetError {
    /// An unknown key with this nearest one, where it has none.
    pub fn or(self, nearest: Option<String>) -> SetError {
        match self {
            SetError::Unknown(None) => SetError::Unknown(nearest),
            error => error,
        }
    }
}

impl From<String> for SetError {
    fn from(why: String) -> SetError {
        SetError::Value(why)
    }
}

impl From<UnitError> for SetError {
    fn from(why: UnitError) -> SetError {
        SetError::Value(why.into())
    }
}

/// Optional values, one for each key.
pub trait Section: Default {
    /// The section's name; empty for keys outside any section.
    const NAME: &'static str;
    /// Every key, in the order of the documentation.
    const KEYS: &'static [Key];

    /// Sets a key's value from its text.
    ///
    /// # Errors
    /// If there is no such key, or it doesn't take the value.
    fn set(&mut self, key: &str, text: &str) -> Result<(), SetError>;

    /// The keys that have a value.
    fn given(&self) -> Vec<&'static str>;

    /// Removes a key's value.
    fn forget(&mut self, key: &str);

    /// Adopts every value that `over` has.
    fn overlay(&mut self, over: Self);

    /// The keys that have a value and would do nothing, each with the setting that it needs.
    fn idle(&self) -> Vec<(&'static str, String)>;

    /// The key most like a mistyped one.
    fn near(typed: &str) -> Option<String> {
        nearest(typed, Self::KEYS.iter().map(|key| key.name))
    }

    /// The section that has these settings, each `KEY=VALUE`.
    ///
    /// # Errors
    /// With the first setting that is wrong, the reason, and the nearest key.
    fn of(settings: &[String]) -> Result<Self, String> {
        let mut section = Self::default();
        for setting in settings {
            let (key, text) = pair(setting)?;
            if section.given().contains(&key) {
                return Err(format!("--set {setting}: '{key}' is set twice"));
            }
            let set = section.set(key, text);
            set.map_err(|why| format!("--set {setting}: {why}"))?;
        }
        Ok(section)
    }
}

/// The key and the value of a setting.
///
/// # Errors
/// If it isn't `KEY=VALUE`.
pub fn pair(setting: &str) -> Result<(&str, &str), String> {
    let both = setting.split_once('=');
    both.map(|(key, value)| (key.trim(), value.trim()))
        .ok_or_else(|| format!("--set {setting}: give KEY=VALUE"))
}

/// The default of a kind, of a text such as `1; spill: 4`.
pub fn default_of<'t>(defaults: &'t str, kind: &str) -> &'t str {
    let mut parts = defaults.split("; ");
    let first = parts.next().unwrap_or_default();
    let own = parts.filter_map(|part| part.split_once(": "));
    let mut own = own.filter(|(kinds, _)| kinds.split(", ").any(|one| one == kind));
    own.next().map_or(first, |(_, value)| value)
}

/// Makes a section: a struct of optional values with its [`Section`](crate::units::settings::Section).
/// Each key with a `default` also has a method with the field's name. It returns the value, or else
/// the default. A key whose default depends on the place has the `most` that is chosen for it, and the
/// method returns that. A key that takes words has the function that lists them.
///
/// The expression behind the section's name returns the kind of which the defaults are. A function
/// behind it, if any, returns the need of a key, by its name, that would do nothing.
#[macro_export]
macro_rules! section {
    (@method $name:ident $kind:expr, $visibility:vis $field:ident $key:literal, $type:ty, $parse:expr,) => {};
    (
        @method $name:ident $kind:expr, $visibility:vis $field:ident $key:literal, $type:ty, $parse:expr,
        $default:literal
    ) => {
        /// The value, or else the default of its kind.
        ///
        /// # Panics
        /// If the key doesn't take its own default, which a test rules out.
        $visibility fn $field(&self) -> $type {
            self.$field.clone().unwrap_or_else(|| {
                let kind: fn(&$name) -> &str = $kind;
                match $parse($crate::units::settings::default_of($default, kind(self))) {
                    Ok(value) => value,
                    Err(why) => unreachable!("the default of {}: {why}", $key),
                }
            })
        }
    };
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident[$section:literal, $kind:expr $(, $rule:expr)?] {
            $(
                $(#[doc = $about:literal])+
                $key:literal $field:ident: $type:ty = $parse:expr
                $(, default $default:literal)?
                $(, shown $shown:literal)?
                $(, most $most:literal)?
                $(, words $words:expr)?
                $(, needs $need:expr)?
                ;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        $visibility struct $name {
            $( $(#[doc = $about])+ $visibility $field: Option<$type>, )+
        }

        impl $name {
            $(
                $crate::section!(@method $name $kind, $visibility $field $key, $type, $parse,
                    $($default)? $($most)?);
            )+
        }

        impl $crate::units::settings::Section for $name {
            const NAME: &'static str = $section;
            const KEYS: &'static [$crate::units::settings::Key] = &[$(
                $crate::units::settings::Key {
                    name: $key,
                    about: concat!($($about, "\n"),+),
                    default: {
                        let default: &[&str] =
                            &[$($default,)? $($shown,)? $(concat!("what is safe, at most ", $most),)?];
                        match default {
                            [] => None,
                            [text, ..] => Some(*text),
                        }
                    },
                    words: {
                        let words: &[fn() -> Vec<(&'static str, &'static str)>] = &[$($words)?];
                        match words {
                            [] => Vec::new,
                            [words, ..] => *words,
                        }
                    },
                },
            )+];

            fn set(&mut self, key: &str, text: &str) -> Result<(), $crate::units::settings::SetError> {
                match key {
                    $( $key => self.$field = Some($parse(text)?), )+
                    _ => return Err($crate::units::settings::SetError::Unknown(Self::near(key))),
                }
                Ok(())
            }

            fn given(&self) -> Vec<&'static str> {
                let mut given = Vec::new();
                $( if self.$field.is_some() { given.push($key); } )+
                given
            }

            fn forget(&mut self, key: &str) {
                match key {
                    $( $key => self.$field = None, )+
                    _ => {}
                }
            }

            fn overlay(&mut self, over: $name) {
                $( if over.$field.is_some() { self.$field = over.$field; } )+
            }

            fn idle(&self) -> Vec<(&'static str, String)> {
                #[allow(unused_mut, reason = "some sections have no rule")]
                let mut idle = Vec::new();
                $($(
                    let need: fn(&$name) -> Option<String> = $need;
                    if self.$field.is_some() && let Some(need) = need(self) {
                        idle.push(($key, need));
                    }
                )?)+
                $(
                    let rule: fn(&$name, &str) -> Option<String> = $rule;
                    for key in self.given() {
                        idle.extend(rule(self, key).map(|need| (key, need)));
                    }
                )?
                idle
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<u32, String> {
        let number = text.parse().ok();
        number.ok_or_else(|| format!("'{text}' is no whole number"))
    }

    section! {
        /// A kitchen.
        struct Kitchen["kitchen", Kitchen::meal] {
            /// Cooks at work.
            "cooks" cooks: u32 = number, default "1; feast: 4";
            /// Guests of a feast.
            "guests" guests: u32 = number, shown "none",
                needs |kitchen| (kitchen.meal() != "feast").then(|| "a feast".to_owned());
            /// 1 for a feast.
            "feast" feast: u32 = number;
        }
    }

    impl Kitchen {
        fn meal(&self) -> &'static str {
            match self.feast {
                Some(1) => "feast",
                _ => "supper",
            }
        }
    }

    fn kitchen(settings: &[&str]) -> Result<Kitchen, String> {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        Kitchen::of(&settings)
    }

    #[test]
    fn a_default_is_that_of_the_kind() {
        assert_eq!(kitchen(&[]).unwrap().cooks(), 1);
        assert_eq!(kitchen(&["feast=1"]).unwrap().cooks(), 4);
        assert_eq!(kitchen(&["feast=1", "cooks = 2"]).unwrap().cooks(), 2);
        assert_eq!(default_of("1; a, b: 2; c: 3", "b"), "2");
    }

    #[test]
    fn a_key_that_would_do_nothing_is_found_with_its_need() {
        let supper = kitchen(&["guests=9"]).unwrap();
        assert_eq!(supper.idle(), [("guests", "a feast".to_owned())]);
        assert_eq!(kitchen(&["guests=9", "feast=1"]).unwrap().idle(), []);
    }

    #[test]
    fn mistakes_name_the_setting_and_the_nearest_key() {
        for (settings, words) in [
            (
                &["cook=2"][..],
                "--set cook=2: there is no such key; did you mean 'cooks'?",
            ),
            (&["cooks=two"], "--set cooks=two: 'two' is no whole number"),
            (&["cooks"], "--set cooks: give KEY=VALUE"),
            (
                &["cooks=1", "cooks=2"],
                "--set cooks=2: 'cooks' is set twice",
            ),
        ] {
            assert_eq!(kitchen(settings).unwrap_err(), words);
        }
    }

    #[test]
    fn a_list_of_keys_has_meanings_and_defaults() {
        let [cooks, guests, feast] = Kitchen::KEYS else {
            panic!()
        };
        assert_eq!(cooks.about.trim(), "Cooks at work.");
        let defaults = [cooks, guests, feast].map(|key| key.default);
        assert_eq!(defaults, [Some("1; feast: 4"), Some("none"), None]);
    }

    #[test]
    fn a_section_lies_over_another_key_by_key() {
        let mut below = kitchen(&["cooks=1", "feast=1"]).unwrap();
        below.overlay(kitchen(&["cooks=3"]).unwrap());
        assert_eq!(below, kitchen(&["cooks=3", "feast=1"]).unwrap());
        below.forget("cooks");
        assert_eq!(below.given(), ["feast"]);
    }
}
