//! Settings that are written as `key = value`: in files, grids and on the command line.

use std::time::Duration;

/// One setting of a `T`.
pub struct Key<T: 'static> {
    /// Its name, as it is written.
    pub name: &'static str,
    /// Its meaning, in a line.
    pub about: &'static str,
    /// Sets it from text; the error says what is allowed.
    pub(crate) set: fn(&mut T, &str) -> Result<(), String>,
    /// Its value as text, which `set` takes.
    pub(crate) show: fn(&T) -> String,
}

/// Keys from a table with a row for each: its name, its field, its meaning, how its text is read, and
/// how its value is shown.
macro_rules! keys {
    ($of:ty: $($name:literal $field:ident $about:literal: $set:expr, $show:expr;)+ $(more $more:expr;)?) => {
        &[
            $($crate::keys::Key {
                name: $name,
                about: $about,
                set: |to: &mut $of, text| {
                    to.$field = $set(text)?;
                    Ok(())
                },
                show: |of: &$of| $show(of.$field),
            },)+
            $($more)?
        ]
    };
}
pub(crate) use keys;

impl<T> std::fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The key of this name.
pub(crate) fn find<'k, T>(keys: &'k [Key<T>], name: &str) -> Option<&'k Key<T>> {
    keys.iter().find(|key| key.name == name)
}

/// Of all keys, the name that is most like a mistyped one.
pub(crate) fn nearest<'k>(name: &str, names: impl Iterator<Item = &'k str>) -> Option<String> {
    units::typed::nearest(name, names)
}

pub(crate) fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|e| e.to_string())
}

/// A size of whole blocks, at least one.
pub(crate) fn blocks(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    match bytes > 0 && bytes.is_multiple_of(crate::volume::BLOCK) {
        true => Ok(bytes),
        false => Err(format!("'{text}': give a multiple of 4k, and at least 4k")),
    }
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    units::parse_duration(text).map_err(|e| e.to_string())
}

/// A duration above 0 and at most ten years.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let value = duration(text)?;
    match value > Duration::ZERO && value <= Duration::from_secs(315_360_000) {
        true => Ok(value),
        false => Err(format!("'{text}': give more than 0 and at most ten years")),
    }
}

pub(crate) fn share(text: &str) -> Result<f64, String> {
    units::parse_share(text).map_err(|e| e.to_string())
}

pub(crate) fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let value: u64 = text
        .parse()
        .map_err(|_| format!("'{text}' is not a whole number"))?;
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(format!("{value} is out of range: give {least} to {most}")),
    }
}

pub(crate) fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("'{text}': give true or false")),
    }
}

/// A duration that [`duration`] takes.
pub(crate) fn show_duration(value: Duration) -> String {
    match value.is_zero() {
        true => "0".to_owned(),
        false => units::duration_exact(value),
    }
}
