//! Writes the man pages and the shell completions from the argument definitions: `make man`.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs, process};

use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;
use trimbench::cli::Cli;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(target) = env::args_os().nth(1) else {
        eprintln!("usage: generate DIRECTORY");
        process::exit(2);
    };
    let target = PathBuf::from(target);
    let command = Cli::command();

    let man = target.join("man");
    fs::create_dir_all(&man)?;
    clap_mangen::generate_to(command.clone(), &man)?;

    let completions = target.join("completions");
    fs::create_dir_all(&completions)?;
    for &shell in Shell::value_variants() {
        clap_complete::generate_to(shell, &mut command.clone(), "trimbench", &completions)?;
    }
    println!("{}\n{}", man.display(), completions.display());
    Ok(())
}
