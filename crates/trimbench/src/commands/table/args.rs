//! The options of `trimbench table`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  trimbench table results/ > fleet.jsonl  all results of a fleet in one table
  duckdb -c \"SELECT model, max(lost_s) FROM 'fleet.jsonl' GROUP BY model\"
                                          a question to it
  trimbench table *.json | jq -r .host    the hosts of some

docs/fleet.md lists the columns.";

/// Arguments of `trimbench table`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TableArgs {
    /// Records, device cards and JSON of other commands, plain or compressed with zstd or
    /// gzip, and directories of them; - for standard input
    #[arg(value_name = "FILE|DIR", required = true)]
    pub paths: Vec<PathBuf>,
}
