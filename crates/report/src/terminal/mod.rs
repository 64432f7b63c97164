//! Text for a terminal: what was found, the live line, the verdict and the timeline.

pub(crate) mod compare;
mod glyphs;
mod live;
mod page;
mod set_up;
mod timeline;
mod verdict;

pub use live::{LiveLine, live};
pub use set_up::set_up;
pub use timeline::timeline;
pub use verdict::{conditions, verdict};

/// How text is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to use ANSI colours; without, the text has no escape codes.
    pub colour: bool,
    /// Columns of the terminal; no line is wider. Below 40 counts as 40.
    pub width: u16,
    /// Whether the terminal shows Unicode; without, the text is ASCII.
    pub unicode: bool,
}
