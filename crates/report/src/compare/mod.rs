//! Comparisons as text; the conclusions are
//! [`judge::compare`]'s.

mod junit;
mod markdown;
pub(crate) mod words;

pub use crate::json::comparison as json;
pub use crate::terminal::compare::comparison as terminal;
pub use junit::{junit, outcome};
pub use markdown::comparison as markdown;

#[cfg(test)]
mod tests;
