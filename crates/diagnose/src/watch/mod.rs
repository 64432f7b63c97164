//! A live view of devices: what they do, who sends discards, and who is blocked.
//!
//! [`Watcher`] makes an [`Update`] of each stretch of time. All else is pure: the view and its keys,
//! the screen, the lines, the record and the figures for Prometheus take updates alone.
//!
//! | module | question it answers |
//! |---|---|
//! | [`target`] | which devices are watched? |
//! | [`watcher`] | what happened since the last update? |
//! | [`update`] | which figures does an update hold? |
//! | [`view`] | what do the keys change, and what is shown? |
//! | [`screen`] | how does it look in a terminal? |
//! | [`lines`] | how does it look where there is no terminal? |
//! | [`recording`] | how do updates become a record that can be judged? |
//! | [`metrics`] | which figures does Prometheus get? |
//! | [`drives`] | which of the drives themselves? |
//! | [`trims`] | which of the last trims? |

pub mod drives;
pub mod lines;
pub mod metrics;
pub mod recording;
pub mod screen;
pub mod target;
pub mod trims;
pub mod update;
pub mod view;
pub mod watcher;

#[cfg(test)]
mod tests;

pub(crate) use target::by_name;
pub use target::{Targets, TargetsError};
pub use update::Update;
pub use view::{Key, View};
pub use watcher::Watcher;

/// The schema that every update names.
pub const SCHEMA: &str = "trimbench.watch/1";

/// The JSON schema of an update.
pub const JSON_SCHEMA: &str = include_str!("../../schema/watch-1.json");
