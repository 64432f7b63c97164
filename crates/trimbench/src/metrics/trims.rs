//! The last trims: what `fstrim` kept, and the status of guards.

use diagnose::watch::trims::LastTrims;
use linux::SysRoot;
use reclaim::guard::statuses;
use reclaim::trim::{LastTrim, last_trims, state_directory};

/// Reads them anew, as far as this user may.
pub(crate) fn read(figures: &LastTrims) {
    figures.clear();
    let set = |mount: &str, by: &str, last: &LastTrim| {
        let trim = (last.unix_s, last.bytes, last.seconds);
        figures.set((mount, by), trim, last.missed_in_a_row);
    };
    let kept = state_directory().map(|directory| last_trims(&directory, &SysRoot::host()));
    for (mount, last) in kept.iter().flatten() {
        set(mount, "fstrim", last);
    }
    for status in statuses().unwrap_or_default() {
        if let Some(last) = &status.last {
            set(&status.mount.to_string_lossy(), "guard", last);
        }
    }
}
