//! How values of `run` are read.

use bench::scenario::words::Word;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use judge::verdict::condition::{Condition, ConditionError};

/// One of some words, which help and completions list with their meanings.
pub(super) fn word<T>(words: &'static [Word<T>]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let possible = words
        .iter()
        .map(|word| PossibleValue::new(word.name).help(word.about));
    PossibleValuesParser::new(possible).try_map(move |name| {
        let found = words.iter().find(|word| word.name == name);
        found.map(|word| word.value).ok_or("unknown")
    })
}

pub(crate) fn condition(text: &str) -> Result<Condition, String> {
    text.parse().map_err(|e: ConditionError| e.to_string())
}
