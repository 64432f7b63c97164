//! Sections of a scenario: every key once, from which come its field, its
//! parser, and how a section is laid over another.

/// A struct of optional values, one for each key of a section.
macro_rules! section {
    (
        $(#[$meta:meta])*
        $name:ident {
            $( $(#[doc = $about:literal])+ $key:literal $field:ident: $type:ty = $parse:expr; )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            $( $(#[doc = $about])+ pub $field: Option<$type>, )+
        }

        impl $name {
            /// Its keys, as they are written, in the order of the documentation.
            pub const KEYS: &'static [&'static str] = &[$($key),+];

            /// Sets a key's value from its text.
            ///
            /// # Errors
            /// If there is no such key, or it doesn't take the value.
            pub(super) fn set(&mut self, key: &str, text: &str) -> Result<(), $crate::scenario::section::SetError> {
                match key {
                    $( $key => self.$field = Some($parse(text)?), )+
                    _ => return Err($crate::scenario::section::SetError::Unknown),
                }
                Ok(())
            }

            /// The keys that have a value.
            pub fn given(&self) -> Vec<&'static str> {
                let mut given = Vec::new();
                $( if self.$field.is_some() { given.push($key); } )+
                given
            }

            /// Takes a key's value away.
            pub fn forget(&mut self, key: &str) {
                match key {
                    $( $key => self.$field = None, )+
                    _ => {}
                }
            }

            /// Takes over every value that `over` has.
            pub(super) fn overlay(&mut self, over: $name) {
                $( if over.$field.is_some() { self.$field = over.$field; } )+
            }
        }
    };
}
pub(super) use section;

/// Why a key can't be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SetError {
    /// There is none of this name.
    Unknown,
    /// It doesn't take this value.
    Value(String),
}

impl From<String> for SetError {
    fn from(why: String) -> SetError {
        SetError::Value(why)
    }
}
