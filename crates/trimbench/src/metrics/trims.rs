//! The last trims: what `fstrim` kept, and the status of guards.

use diagnose::watch::trims::LastTrims;
use linux::SysRoot;
use reclaim::guard::statuses;
use reclaim::trim::{LastTrim, last_trims, state_directory};

/// Reads them anew, as far as this user may.
pub(crate) fn read(figures: &LastTrims) {
    let kept = state_directory().map(|directory| last_trims(&directory, &SysRoot::host()));
    let guards = statuses().unwrap_or_default();
    let set = |mount: &str, by: &str, last: &LastTrim| {
        let trim = (last.unix_s, last.bytes, last.seconds);
        figures.set((mount, by), trim, last.missed_in_a_row);
    };
    // Only now, so that a client hardly sees them without any.
    figures.clear();
    for (mount, last) in kept.iter().flatten() {
        set(mount, "fstrim", last);
    }
    for guard in &guards {
        if let Some(last) = &guard.last {
            set(&guard.mount.to_string_lossy(), "guard", last);
        }
    }
}
