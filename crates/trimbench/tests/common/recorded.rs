//! Runs that were recorded in 2024, as records.

use std::path::{Path, PathBuf};

use super::run::{run, trimbench};

/// A folder of iostat and fio logs, imported; `None`, said aloud, where the data isn't here.
pub fn recorded(name: &str, into: &Path) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("../shared/data/trim-stalls-2024").join(name);
    if !folder.is_dir() {
        println!(
            "skipped: the recorded data is not here ({})",
            folder.display()
        );
        return None;
    }
    let record = into.join(format!("{name}.jsonl"));
    let mut command = trimbench();
    command.arg("import").arg(&folder);
    command.arg("--output").arg(&record);
    run(command).succeeds();
    Some(record)
}
