//! The roof: arguments, progress, files and exit codes.
//!
//! A library only so that the man page and the completions can be made from
//! the same argument definitions that the program parses.
#![forbid(unsafe_code)]

pub mod cli;
mod console;
mod exit;
mod output;
mod planning;
mod progress;
mod run;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

/// The program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Run(args) => run::run(*args),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            console::error(&error);
            error.exit().into()
        }
    }
}
