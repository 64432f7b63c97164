//! `--set a=2ms`: a card with one figure changed.

use units::typed::nearest;

use super::{At, Card, CardError, Entry, KEYS, Key, Note, Sure, build, keys};

impl Card {
    /// The card with one figure changed: `discard.a=2ms`, or `a=2ms` where only
    /// one section has such a key. The figure counts as assumed from then on.
    ///
    /// ```
    /// let card = ssd::profiles::by_name("crucial-t500-2tb").unwrap();
    /// let slower = card.with("a=2ms").unwrap();
    /// let discard = slower.figures().discard.as_ref().unwrap();
    /// assert_eq!(discard.a.as_millis(), 2);
    /// ```
    ///
    /// # Errors
    /// If it isn't KEY=VALUE, no key is called so (the error names the nearest),
    /// several are, or the value isn't what the key takes.
    pub fn with(&self, text: &str) -> Result<Card, CardError> {
        let (key, value) = text.split_once('=').ok_or_else(|| CardError::NoOverride {
            text: text.to_owned(),
        })?;
        let key = find(key.trim())?;
        let mut changed = self.clone();
        changed.entries.insert(
            key.path,
            Entry {
                text: value.trim().to_owned(),
                note: Note {
                    sure: Sure::Assumed,
                    source: "set by hand".to_owned(),
                },
            },
        );
        changed.figures = build::figures(&changed.entries)?;
        Ok(changed)
    }
}

fn find(typed: &str) -> Result<&'static Key, CardError> {
    if let Some(key) = keys::by_path(typed) {
        return Ok(key);
    }
    let candidates: Vec<&'static Key> = KEYS.iter().filter(|k| k.name() == typed).collect();
    match candidates[..] {
        [key] => Ok(key),
        [] => {
            let names = KEYS.iter().flat_map(|k| [k.path, k.name()]);
            Err(CardError::UnknownKey {
                at: At(None),
                key: typed.to_owned(),
                nearest: nearest(typed, names),
            })
        }
        _ => Err(CardError::Ambiguous {
            key: typed.to_owned(),
            candidates: candidates.iter().map(|k| k.path).collect(),
        }),
    }
}
