//! Steps of a run that free its file where unlink(2) alone wouldn't do.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use record::units::percent_exact;

use crate::exit::{Error, Exit};

/// Removes the file, and has btrfs discard what it emptied.
pub(super) fn free_all(file: &Path) -> Result<Exit, Error> {
    experiments::tune::free_with_groups(file)?;
    Ok(Exit::Done)
}

/// Removes the file, and becomes `trimbench fstrim`.
pub(super) fn trim_after(file: &Path, path: &Path, slowdown: f64) -> Result<Exit, Error> {
    let range = experiments::tune::free(file)?;
    let failed = |e: std::io::Error| Error::Setting(format!("can't run `trimbench fstrim`: {e}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("fstrim").arg(path).arg("--quiet");
    command.arg(format!("--slowdown={}", percent_exact(slowdown)));
    // What else is free isn't a part of the experiment, but for the rest of a chunk of btrfs.
    command.arg(format!("--offset={}", range.start));
    command.arg(format!("--length={}", (range.end - range.start).max(1)));
    Err(failed(command.exec()))
}
