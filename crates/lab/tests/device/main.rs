//! Drives as block devices: needs root, `/dev/fuse` and loop devices.

#![allow(clippy::unwrap_used)] // helpers fail for the test

mod common;
mod data;
mod faults;
mod foreground;
mod killed;
mod oracle;
mod pressure;
mod verified;

// Shared with the end-to-end tests, beside which these may run.
use testkit::gate;

/// Not a test: what the servers of the other tests' drives run. It does
/// nothing unless the last argument is a drive's directory.
#[test]
fn serve_a_drive_when_started_for_it() {
    let last = std::env::args().next_back().unwrap_or_default();
    let dir = std::path::Path::new(&last);
    if dir.is_absolute() && dir.join("spec.json").exists() && std::env::args().count() == 5 {
        // As a program would: its last words are the reason.
        if let Err(error) = lab::serve(dir) {
            eprintln!("\ntrimbench: {error}");
            std::process::exit(1);
        }
    }
}
