//! The end of an online schema change: a table is exchanged for its
//! replacement, then the old one is dropped.
//!
//! gh-ost and pt-online-schema-change end so. The order makes it safe: the exchange is on the
//! device (`fsync` of the directory) before the unlink begins. So a crash leaves the old table or
//! the new one, never none.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;

use super::progress::{Call, Progress};
use super::spawn;
use super::spec::{Files, How, Way};
use super::victim::{Failed, Victim};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static HOW: How = How {
    name: "swap",
    about: "rename a replacement over each, then unlink the old one (an online schema change)",
    of: |_, _| Ok(Swap.into()),
    has_folder: true,
    ..How::FILES
};

/// The end of an online schema change: rename each table aside, rename its replacement in, `fsync`
/// the directory, then unlink the old table. Its name is its own with `.old` behind it meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Swap;

impl Swap {
    /// Size of the file that takes a table's place, in bytes: writing the new table isn't the
    /// subject, only that there is one.
    pub const REPLACEMENT_BYTES: u64 = 1 << 20;
}

impl Way for Swap {
    fn start(self, mut files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        // Only to know that they are there: nothing of them is freed.
        let replacements = Victim::look_at_all(std::mem::take(&mut files.replacements))?;
        let tables = files.victims()?;
        let progress = Progress::of(clock, 1, &tables);
        spawn(progress, move |progress, call| {
            for (table, replacement) in tables.iter().zip(&replacements) {
                if progress.stopping() {
                    return;
                }
                match swap(table, &replacement.path, call) {
                    Ok(()) => progress.file_done(),
                    Err((what, error)) => progress.fail(&table.path, what, &error),
                }
            }
        })
    }
}

/// Once begun it is carried through: half a swap would leave the table without its name.
fn swap(table: &Victim, replacement: &Path, call: Call<'_>) -> Result<(), Failed> {
    let aside = aside(&table.path);
    call.make(0, || rename(&table.path, &aside))
        .map_err(|error| ("rename it aside", error))?;
    if let Err(error) = call.make(0, || rename(replacement, &table.path)) {
        // The error that matters is the first; what can't be undone stays as it is.
        let _ = call.make(0, || rename(&aside, &table.path));
        return Err(("put its replacement in its place", error));
    }
    call.make(0, || sync_directories(&table.path, replacement))
        .map_err(|error| ("sync its directory", error))?;
    call.make(table.bytes, || std::fs::remove_file(&aside))
        .map_err(|error| ("unlink what was renamed aside", error))
}

/// The old table's name meanwhile.
fn aside(table: &Path) -> PathBuf {
    let mut name = table.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

/// Never over a file that is there.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

fn sync_directories(table: &Path, replacement: &Path) -> io::Result<()> {
    let (ours, theirs) = (directory_of(table), directory_of(replacement));
    File::open(ours)?.sync_all()?;
    if theirs != ours {
        File::open(theirs)?.sync_all()?;
    }
    Ok(())
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
