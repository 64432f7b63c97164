//! The roof: arguments, progress, files and exit codes.
//!
//! A library only so that the man page and the completions can be made from
//! the same argument definitions that the program parses.
#![forbid(unsafe_code)]

mod card;
pub mod cli;
mod commands;
pub mod completions;
mod confirm;
mod console;
mod exit;
mod filled;
mod freeing;
mod goal;
mod input;
mod interference;
mod metrics;
mod output;
mod record_output;
mod run_progress;
mod signals;
mod simulated;
mod status_line;
mod systemd;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::ErrorKind;

use cli::{Cli, Command};
use console::Stream;
use record::units::names;

/// The arguments; ends the program if they are wrong.
fn arguments() -> Cli {
    let refused = match parsed(std::env::args_os()) {
        Ok(cli) => return cli,
        Err(refused) => refused,
    };
    // clap repeats what was given as it was given. So it is given only what a terminal shows.
    let given = std::env::args_os().map(|word| names::harmless(&word.to_string_lossy()));
    let shown = parsed(given).err().unwrap_or(refused);
    // Whatever can't be written can't be told either.
    let shown = usage::explained(shown);
    let _ = shown.print();
    if shown.kind() == ErrorKind::UnknownArgument
        && let Some(hint) = commands::rm::dash_hint(std::env::args_os())
    {
        Stream::Err.print(&hint);
    }
    std::process::exit(shown.exit_code())
}

fn parsed<T: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = T>,
) -> Result<Cli, clap::Error> {
    let mut command = cli::command();
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The program.
pub fn main() -> ExitCode {
    signals::outlive_large_files();
    completions::answer();
    let cli = arguments();
    let result = linux::host::check_identity()
        .map_err(exit::Error::Usage)
        .and_then(|()| carry_out(cli.command));
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            console::error(&error);
            error.exit().into()
        }
    }
}

fn carry_out(command: Command) -> Result<exit::Exit, exit::Error> {
    match command {
        Command::Run(args) => commands::run::run(*args),
        Command::Scenarios(args) => commands::scenarios::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Table(args) => commands::table::run(&args),
        Command::Import(args) => commands::import::run(&args),
        Command::Fit(args) => commands::fit::run(&args),
        Command::Rm(args) => commands::rm::run(&args),
        Command::Fstrim(args) => commands::fstrim::run(&args),
        Command::Guard(args) => commands::guard::run(&args),
        Command::Blkdiscard(args) => commands::blkdiscard::run(&args),
        Command::Tune(args) => commands::tune::run(&args),
        Command::Suite(args) => commands::suite::run(&args),
        Command::Verify(args) => commands::verify::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Sim(args) => commands::sim::run(&args),
        Command::Watch(args) => commands::watch::run(&args),
        Command::Why(args) => commands::why::run(&args),
        Command::Lab(args) => commands::lab::run(args),
    }
}
