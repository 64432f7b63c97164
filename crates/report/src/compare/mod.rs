//! Comparisons as text and as a page; the conclusions are
//! [`judge::compare`]'s.

mod html;
mod markdown;
mod overlay;
pub(crate) mod words;

pub use crate::json::comparison as json;
pub use crate::terminal::compare::comparison as terminal;
pub use html::page as html;
pub use markdown::comparison as markdown;

#[cfg(test)]
mod tests;
