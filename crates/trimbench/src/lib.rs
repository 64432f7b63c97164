//! The roof: arguments, progress, files and exit codes.
//!
//! A library only so that the man page and the completions can be made from
//! the same argument definitions that the program parses.
#![forbid(unsafe_code)]

mod ask;
pub mod cli;
mod compare;
mod console;
mod cost;
mod exit;
mod fit;
mod fstrim;
mod goal;
mod import;
mod input;
mod intentions;
mod judging;
mod lab;
mod live;
mod marks;
mod output;
mod planning;
mod progress;
mod report;
mod rm;
mod run;
mod scenarios;
mod shown;
mod signals;
mod tune;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use units::names;

/// The arguments; ends the program if they are wrong.
fn arguments() -> Cli {
    let refused = match Cli::try_parse() {
        Ok(cli) => return cli,
        Err(refused) => refused,
    };
    // clap repeats what was given as it was given. So it is given only what a terminal shows.
    let given = std::env::args_os().map(|word| names::harmless(&word.to_string_lossy()));
    match Cli::try_parse_from(given) {
        Ok(_) => refused.exit(),
        Err(shown) => shown.exit(),
    }
}

/// The program.
pub fn main() -> ExitCode {
    signals::outlive_large_files();
    let cli = arguments();
    let result = match cli.command {
        Command::Run(args) => run::run(*args),
        Command::Scenarios(args) => scenarios::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Fit(args) => fit::run(&args),
        Command::Rm(args) => rm::run(&args),
        Command::Fstrim(args) => fstrim::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Lab(args) => lab::run(args),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            console::error(&error);
            error.exit().into()
        }
    }
}
