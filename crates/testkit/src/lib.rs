//! What tests of several crates need. No program depends on it.
//!
//! | module | what it makes |
//! |---|---|
//! | [`machine`] | a `/proc`, `/sys` and `/dev` as another machine has them |

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that can't be set up fails")]

pub mod machine;

pub use machine::Machine;
