//! Runs a scenario: actors and phases become a [`record::RunRecord`].
//!
//! [`Survey`] looks at a place and leaves it as it is. [`Plan::of`] picks safe sizes.
//! A [`Plan`] describes the run in full. [`preflight`] refuses before the run what would be
//! refused on the way. A [`ReadyRun`] run does it, records it, and removes what it made.
//! `judge::judge` interprets the record.
#![forbid(unsafe_code)]

mod actors;
mod drain;
mod error;
mod observer;
pub mod plan;
mod preflight;
mod run;
pub mod scenario;
mod session;
mod sink;
pub mod sizes;
mod survey;
mod warning;
mod watched;
mod workplace;

pub use error::BenchError;
pub use observer::{Observer, Second};
pub use plan::Plan;
pub use preflight::{Checked, preflight};
pub use run::{Explain, Outcome, ReadyRun};
pub use survey::{Survey, Swept, sweep};
pub use warning::Warning;
