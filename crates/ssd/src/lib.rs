//! How a drive behaves: its device card, and a timing model without a clock.
//!
//! Nobody's simulator of drives models what this project is about: a discard
//! that keeps reads waiting. This crate does, in two parts:
//!
//! - [`card`]: what one drive costs, figure by figure with its source, as TOML
//!   that people can copy and edit; [`profiles`] are the cards that are shipped;
//! - [`drive`]: the model. Commands go in with a time, completions come out
//!   with a time. Tests try it beside readers in virtual time with
//!   `testkit::harness`.
//!
//! [`extents`] are the ranges that a drive, a file system and a deleter count in.
//!
//! It is pure: no system call, no clock, no thread, and the same seed gives
//! the same result.

#![forbid(unsafe_code)]

pub mod card;
pub mod drive;
pub mod extents;
pub mod fit;
pub mod flash;
pub mod profiles;
mod rng;
mod time;

pub use card::{Card, Discard, Figures, Fold, PerMib, Queue, ReadAfterTrim, Transfer};
pub use drive::{Command, Completion, Drive, Id, Refused};
pub use rng::Rng;
pub use time::Time;
