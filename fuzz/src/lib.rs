//! The parsers that `make test` tries with seeded changes, for cargo-fuzz.

#[path = "../../crates/trimbench/tests/fuzz/targets.rs"]
mod targets;

/// Parses an input with the parser of this name.
pub fn parse(name: &str, input: &[u8]) {
    let target = targets::all().find(|target| target.name == name);
    (target.expect("a target of this name").parse)(input);
}

/// Real inputs of each parser, for a corpus: its name, and the inputs.
pub fn samples() -> impl Iterator<Item = (&'static str, &'static [&'static [u8]])> {
    targets::all().map(|target| (target.name, target.samples))
}
