//! Removes empty trashes at the end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use super::Outcome;
use crate::event::{Listener, Progress};
use crate::rm::trash::Trash;
use crate::rm::trash::pauses::Pauses;

/// The pause after each small discard at the end, by the device number of a directory.
pub(super) type PauseByDevice = HashMap<u64, Duration>;

/// Removes the trashes that are empty. Returns the paths of those that stay; one that another
/// process has removed is not among them.
pub(super) fn close(
    trashes: impl IntoIterator<Item = Trash>,
    outcome: &Outcome,
    lengths: &PauseByDevice,
    listener: &mut Listener<'_>,
) -> Vec<PathBuf> {
    let freed = outcome.summary.iter().map(|summary| summary.freed).sum();
    let done = Progress {
        total_bytes: freed,
        freed_bytes: freed,
        names: outcome.names,
        ..Progress::default()
    };
    // Another subvolume than the one that was worked on has another number.
    let longest = lengths.values().copied().max().unwrap_or_default();
    let mut pauses = Pauses::new(done, listener);
    let mut left: Vec<PathBuf> = trashes
        .into_iter()
        .filter_map(|trash| {
            let device = crate::directory::device(trash.directory());
            let each = device.and_then(|device| lengths.get(&device));
            pauses.set(each.copied().unwrap_or(longest));
            let path = trash.path().to_owned();
            (!trash.close(&mut pauses)).then_some(path)
        })
        .collect();
    left.sort();
    left
}
