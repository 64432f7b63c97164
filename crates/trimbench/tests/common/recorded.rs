//! Runs that were recorded in 2024, as records.

use std::path::{Path, PathBuf};

use testkit::recorded::Recorded;

use super::run::{run, trimbench};

/// A folder with iostat's log and the notes beside it, imported.
pub fn recorded(what: &Recorded, into: &Path) -> PathBuf {
    let record = into.join(format!("{what}.jsonl"));
    let mut command = trimbench();
    command.arg("import").arg(what.write_folder(into));
    command.arg("--output").arg(&record);
    run(command).succeeds();
    record
}
