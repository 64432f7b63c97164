//! The options of `trimbench scenarios`.

use clap::{Args, Subcommand};

/// Arguments of `trimbench scenarios`.
#[derive(Debug, Args)]
pub struct ScenariosArgs {
    /// The command to run instead of listing them.
    #[command(subcommand)]
    pub command: Option<ScenariosCommand>,
}

/// The commands for scenarios.
#[derive(Debug, Subcommand)]
pub enum ScenariosCommand {
    /// List the keys of scenarios and of every `--set`, each with its default
    Keys {
        /// Only those whose command, name or meaning has this, e.g. deletion
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
    },
    /// Print a scenario's file
    Show {
        /// Which
        #[arg(value_name = "NAME")]
        name: String,
    },
}
