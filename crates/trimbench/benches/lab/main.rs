//! Compares simulated drives of `trimbench lab` with the drives that they stand for: figures
//! measured on these, and the same steps on the simulated ones.
//!
//! `make lab` runs all of it, and `cargo bench -p trimbench --bench lab -- queue files commits
//! array fit` runs the parts that it names. It needs root, a quarter of an hour, and a machine that
//! does nothing else. In compressed time, the time that the host adds to a command counts as many
//! times longer.

#![allow(unreachable_pub)] // seen by this program alone

mod array;
mod commits;
mod drive;
mod fit;
mod queue;
mod table;

use std::process::ExitCode;

use drive::Fallible;

/// A comparison, which prints its result.
type Compare = fn() -> Fallible<()>;

/// The comparisons and their names, in the order in which they run.
const ALL: [(&str, Compare); 5] = [
    ("queue", queue::depths),
    ("files", queue::file_systems),
    ("commits", commits::compare),
    ("array", array::compare),
    ("fit", fit::ladders),
];

fn main() -> ExitCode {
    // Cargo adds options of its own.
    let arguments = std::env::args().skip(1);
    let wanted: Vec<String> = arguments.filter(|a| !a.starts_with('-')).collect();
    let known = |name: &String| ALL.iter().any(|(known, _)| known == name);
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        let names = ALL.map(|(name, _)| name).join(", ");
        eprintln!("lab benchmark: there is no {unknown}; there are {names}");
        return ExitCode::from(2);
    }
    for (name, compare) in ALL {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        if let Err(error) = compare() {
            eprintln!("lab benchmark, {name}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
