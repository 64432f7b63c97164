//! How values of `run` are read.

use judge::verdict::condition::{Condition, ConditionError};

pub(crate) fn condition(text: &str) -> Result<Condition, String> {
    text.parse().map_err(|e: ConditionError| e.to_string())
}
