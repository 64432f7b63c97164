//! Measures how fast a simulated drive can be at most. It compares the profile `ideal`, whose model
//! costs nothing, with nbdkit's memory behind nbdfuse.
//!
//! `make bench` runs it, or `cargo bench -p trimbench-lab --bench drive -- --help`.
//!
//! Both are FUSE files under loop devices with direct I/O, served with the same priority. fio asks
//! both for the same work, in turns and several times, so that a drift of the machine reaches both.
//! The results are medians with their ranges.

mod case;
mod drives;
mod fio;
mod options;
mod table;

use std::error::Error;
use std::process::ExitCode;

use drives::{Contestant, Nbdkit, Ours};
use options::Options;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // This program again, as the drive's server.
    if let [first, dir] = &args[..]
        && first == drives::SERVE
    {
        return ended(lab::serve(dir.as_ref()).map_err(Into::into));
    }
    match Options::from_args(args.into_iter()) {
        Ok(Some(options)) => ended(run(&options)),
        Ok(None) => {
            println!("{}", options::HELP);
            ExitCode::SUCCESS
        }
        Err(what) => {
            eprintln!("{what}\n\n{}", options::HELP);
            ExitCode::from(2)
        }
    }
}

fn ended(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("drive benchmark: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let mut contestants: Vec<Box<dyn Contestant>> = vec![Box::new(Ours::up(options.bytes)?)];
    if options.nbdkit {
        match Nbdkit::up(options.bytes) {
            Ok(theirs) => contestants.push(Box::new(theirs)),
            Err(why) => println!("without nbdkit: {why}"),
        }
    }
    for contestant in &contestants {
        fio::fill(contestant.device(), options.bytes)?;
    }
    table::print_head();
    let mut rows = Vec::new();
    for case in case::ALL.iter().filter(|case| options.wants(case)) {
        let mut measured = vec![Vec::new(); contestants.len()];
        let mut failed = vec![false; contestants.len()];
        for repeat in 0..options.repeats {
            for i in 0..contestants.len() {
                // Another one begins each time.
                let i = (i + repeat) % contestants.len();
                if failed[i] {
                    continue;
                }
                match fio::per_second(case, contestants[i].device(), options) {
                    Ok(rate) => measured[i].push(rate),
                    Err(error) => {
                        println!("{}: without {}: {error}", case.name, contestants[i].name());
                        failed[i] = true;
                    }
                }
            }
        }
        let of_case: Vec<_> = contestants
            .iter()
            .zip(&measured)
            .filter(|(_, rates)| !rates.is_empty())
            .map(|(contestant, rates)| table::Row::new(case, contestant.name(), rates))
            .collect();
        table::print(&of_case);
        rows.extend(of_case);
    }
    table::write_json(&rows, &options.json)?;
    println!("\nfigures: {}", options.json.display());
    Ok(())
}
