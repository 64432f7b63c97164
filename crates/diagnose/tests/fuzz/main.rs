//! Parsers meet samples of real text with seeded random changes, and must not panic.
//!
//! With `TRIMBENCH_SOAK` it runs for an hour. Its seed is the time, and it prints that.

#![allow(clippy::unwrap_used, missing_docs)]

mod targets;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use targets::{TARGETS, Target};
use testkit::mutation::Mutations;

/// Inputs for each parser in an ordinary test; fewer where each is a whole machine.
const INPUTS: u32 = 20_000;
const MACHINES: u32 = 400;

#[test]
fn parsers_do_not_panic() {
    if std::env::var_os("TRIMBENCH_SOAK").is_some() {
        return soak();
    }
    for target in TARGETS {
        let inputs = if target.name == "machine" {
            MACHINES
        } else {
            INPUTS
        };
        let mut mutations = Mutations::new(0x7269_6d62);
        for number in 0..inputs {
            check(target, &mutations.next(target.samples), u64::from(number));
        }
    }
}

/// cargo-fuzz has a target for each parser.
#[test]
fn each_parser_has_a_target_of_cargo_fuzz() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder).unwrap();
    let name = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.unwrap().path();
        path.file_stem().unwrap().to_str().unwrap().to_owned()
    };
    let mut there: Vec<String> = files.map(name).collect();
    let mut wanted: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    there.sort();
    wanted.sort_unstable();
    assert_eq!(there, wanted);
    let manifest = std::fs::read_to_string(format!("{folder}/../Cargo.toml")).unwrap();
    for name in wanted {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}

/// An hour, shared by all parsers in rounds.
fn soak() {
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    println!("seed {seed}");
    let (mut mutations, mut inputs) = (Mutations::new(seed), 0);
    let end = Instant::now() + Duration::from_secs(3600);
    while Instant::now() < end {
        for target in TARGETS {
            let each = if target.name == "machine" { 20 } else { 2000 };
            for _ in 0..each {
                check(target, &mutations.next(target.samples), seed);
                inputs += 1;
            }
        }
    }
    println!("{inputs} inputs, no panic");
}

/// Parses one input; a panic names it, so that it can become a test.
fn check(target: &Target, input: &[u8], number: u64) {
    let parsed = std::panic::catch_unwind(|| (target.parse)(input));
    assert!(
        parsed.is_ok(),
        "{} panics on input {number}: {}",
        target.name,
        input.escape_ascii()
    );
}
