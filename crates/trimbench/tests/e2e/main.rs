//! The command line, end to end: the built binary on file systems of the tests' own.

#![allow(clippy::unwrap_used, unreachable_pub)] // helpers fail for the test, and are seen by it alone

#[path = "../common/mod.rs"]
mod common;

mod bad_place;
mod bad_usage;
mod deletion;
mod disk_trouble;
mod foreground;
mod help;
mod interrupted;
mod killed;
mod many_files;
mod no_io_uring;
mod not_restored;
mod outputs;
mod phases;
mod quick;
mod raw_device;
mod real_disk;
mod verdicts;
