//! The basis of the end-to-end tests: file systems of their own on loop devices, the binary run
//! with a time limit, and the rules by which a test is skipped.
// Every test binary uses a part of it; a helper that fails is a test that fails.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod disturb;
pub mod recorded;
pub mod run;
pub mod schema;

pub use testkit::{gate, loop_fs, sweep};
