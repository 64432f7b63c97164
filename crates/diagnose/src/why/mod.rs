//! Finds out who waits, for whom, and what TRIM has to do with it.
//!
//! [`Observer`] watches a machine while something waits, and [`explain`] draws the conclusions. The
//! latter is pure: an [`Observation`] of another machine will do.
//!
//! | module | question it answers |
//! |---|---|
//! | [`frames`] | what does a kernel stack mean? |
//! | [`trace`] | who sent discards, why, and when were they in flight? |
//! | [`tracer`] | how do the kernel's events get here? |
//! | [`sampler`] | where does each thread wait? |
//! | [`follow`] | whom does a client wait for? |
//! | [`observe`] | how are all of these watched at once? |
//! | [`beside`] | who of a run's own actors waits in what? |
//! | [`recorder`] | what happened in the last minutes? |
//! | [`join`] | which waits are discards' fault? |
//! | [`sentence`] | how does the answer read? |
//! | [`text`] | how does it look in a terminal? |

pub mod beside;
pub mod follow;
pub mod frames;
pub mod join;
pub mod observe;
pub mod recorder;
pub mod sampler;
pub mod sentence;
pub mod spans;
pub mod text;
mod timeline;
pub mod trace;
pub mod tracer;

mod advice;
mod devices;
mod report;
pub(crate) mod senders;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use advice::advice;
pub use join::explain;
pub use observe::{Observation, Observer};
pub use report::{
    Cause, Client, Deleted, Deletion, DeviceWork, Sampling, SenderWork, Stretch, Verdict, Victim,
    Wait, Why,
};
pub use text::folded;

/// The schema that every report names.
pub const SCHEMA: &str = "trimbench.why/1";

/// The JSON schema of a report.
pub const JSON_SCHEMA: &str = include_str!("../../schema/why-1.json");

/// Whose waits are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Every process.
    All,
    /// One process.
    Process(u32),
    /// A process and its descendants.
    Family(u32),
    /// The processes of a control group, by its directory.
    Group(PathBuf),
}

/// Something that could not be found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The fact.
    pub what: String,
    /// Why, and how to get it.
    pub why: String,
}

impl Missing {
    /// `not seen: who sends discards: tracefs is not mounted`.
    pub fn words(&self) -> String {
        format!("not seen: {}: {}", self.what, self.why)
    }

    /// The stacks, where the kernel did not show one.
    pub(crate) fn stacks() -> Missing {
        Missing {
            what: "the stacks of blocked threads".to_owned(),
            why: "the kernel shows them to root alone; run it as root".to_owned(),
        }
    }
}
