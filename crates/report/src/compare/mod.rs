//! Comparisons as text; the conclusions are
//! [`judge::compare`]'s.

mod junit;
mod markdown;
pub(crate) mod words;

pub use crate::json::comparison as json;
pub use crate::terminal::compare::comparison as terminal;
pub use junit::junit;
pub use markdown::comparison as markdown;
pub use words::outcome;

#[cfg(test)]
mod tests;
