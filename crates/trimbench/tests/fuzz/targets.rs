//! Every parser of what trimbench did not write itself, each with samples of real text. The targets of
//! cargo-fuzz (`fuzz/`) include this file, too.

#[path = "handed_in.rs"]
mod handed_in;
#[path = "kernel.rs"]
mod kernel;

/// A parser with inputs that it takes.
pub(crate) struct Target {
    /// Its name, which is also that of its target of cargo-fuzz.
    pub name: &'static str,
    /// Its time for an input, as a multiple of the fastest ones'.
    #[allow(dead_code, reason = "cargo-fuzz counts no inputs")]
    pub cost: u32,
    /// Real inputs.
    pub samples: &'static [&'static [u8]],
    /// Parses an input; a panic is a bug.
    pub parse: fn(&[u8]),
}

/// Every parser.
pub(crate) fn all() -> impl Iterator<Item = &'static Target> {
    kernel::TARGETS.iter().chain(handed_in::TARGETS)
}
