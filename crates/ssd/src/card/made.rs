//! A card from figures instead of a text.

use super::{Card, CardError, Entry, build};

impl Card {
    /// A card with these figures, by their paths.
    ///
    /// # Errors
    /// If one is missing or isn't what its key takes.
    pub(crate) fn of(
        name: &str,
        about: &str,
        entries: Vec<(&'static str, Entry)>,
    ) -> Result<Card, CardError> {
        let entries = entries.into_iter().collect();
        Ok(Card {
            figures: build::figures(&entries)?,
            name: name.to_owned(),
            about: about.to_owned(),
            entries,
        })
    }
}
