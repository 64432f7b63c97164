//! Whether TRIM ever destroys data here, or fails to hide them.
//!
//! Several threads write blocks that say what they are, overwrite, cut, punch, remove and discard
//! them, and read them back past the page cache. Each sector that is not as it was written becomes
//! evidence: where it lies, what it holds, which discard was near, and whether a second read and
//! another write help. From that follows the fault that explains it best.
//!
//! | module | question it answers |
//! |---|---|
//! | [`block`] | what does a sector say of itself? |
//! | [`pattern`] | what is wrong with a sector? |
//! | [`discards`] | which discards were near? |
//! | [`cause`] | which fault explains the damage? |
//! | [`causes`] | which faults explain all of it? |
//! | [`finding`] | how is it reported? |
//! | [`report`] | what came of a test? |
//!
//! The first six are pure: they hold no file and no clock.
pub mod block;
mod buffer;
pub mod cause;
pub mod causes;
mod check;
pub mod discards;
mod error;
pub mod finding;
mod home;
mod joined;
pub mod pattern;
mod place;
mod plan;
mod recover;
mod remount;
pub mod report;
mod run;
mod shared;
mod slot;
mod stage;
mod state;
mod trimmed;
mod worker;

pub use error::VerifyError;
pub use plan::{Plan, Where};
pub use report::{Outcome, Report};
pub use run::{Tick, verify};
pub use shared::Remover;
pub use stage::Progress;
