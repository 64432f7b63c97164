//! Where the operations go. Pure.

/// The order in which blocks are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternKind {
    /// Uniformly random blocks, independent of each other.
    Random,
    /// One after the other, around and around.
    Sequential,
}

impl PatternKind {
    /// The word for it in a record: `random` or `sequential`.
    pub fn as_str(self) -> &'static str {
        match self {
            PatternKind::Random => "random",
            PatternKind::Sequential => "sequential",
        }
    }
}
